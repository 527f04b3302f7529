package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Application protocols, by the words of BENTPIPE_ALPN.
const (
	http1 = "http/1.1"
	http2 = "h2"
	http3 = "h3"
	// upgrade is HTTP/2 whose responses name HTTP/3, at the same port, as an alternative.
	upgrade = "h2-h3"
)

// ofHTTP are the test cases that there are over TCP, too.
var ofHTTP = []string{"page", "page-resumption", "live"}

// settings are the variables of socket mode (endpoints/contract/socket-mode.md).
type settings struct {
	protocol   string         // the only one that is served
	listen     netip.AddrPort // where
	www        string         // the folder that is served
	certs      string         // the folder of cert.pem and priv.key
	inTheClear bool           // without TLS
	altSvc     bool           // whether responses over HTTP/3 name HTTP/3 as an alternative
	congestion string         // TCP's congestion control, by the contract's name
}

// unsupported is the error about a feature that this server lacks.
type unsupported string

func (what unsupported) Error() string { return string(what) }

// readSettings takes the settings from variables of the environment.
func readSettings(variable func(string) string) (settings, error) {
	asked := settings{
		protocol: variable("BENTPIPE_ALPN"),
		www:      variable("WWW"),
		certs:    variable("CERTS"),
	}
	if role := variable("ROLE"); role != "server" {
		return asked, unsupported(fmt.Sprintf("ROLE=%s: Caddy is a server", role))
	}
	protocols := []string{http1, http2, http3, upgrade}
	if !slices.Contains(protocols, asked.protocol) {
		return asked, notOneOf("BENTPIPE_ALPN", asked.protocol, protocols)
	}
	testcases := slices.Clone(ofHTTP)
	if !asked.overTCP() {
		testcases = append(testcases, "page-zerortt", "transfer", "handshake", "longrtt", "multiplexing")
	}
	if testcase := variable("TESTCASE"); !slices.Contains(testcases, testcase) {
		return asked, notOneOf("over "+asked.protocol+", TESTCASE", testcase, testcases)
	}
	if err := asked.takeOptions(variable("BENTPIPE_OPTIONS")); err != nil {
		return asked, err
	}
	for _, name := range []string{"WWW", "CERTS"} {
		if variable(name) == "" {
			return asked, fmt.Errorf("%s: want a folder", name)
		}
	}
	var err error
	if asked.listen, err = netip.ParseAddrPort(variable("BENTPIPE_LISTEN")); err != nil {
		return asked, fmt.Errorf("BENTPIPE_LISTEN: want an address and a port, as in 127.0.0.1:4433: %w", err)
	}
	return asked, nil
}

// overTCP is false of HTTP/3 alone.
func (asked *settings) overTCP() bool { return asked.protocol != http3 }

// overQUIC is true where there is HTTP/3.
func (asked *settings) overQUIC() bool { return asked.protocol == http3 || asked.protocol == upgrade }

// takeOptions takes those of BENTPIPE_OPTIONS. Each is of one transport, but for tls=on.
func (asked *settings) takeOptions(options string) error {
	asked.altSvc, asked.congestion = true, "cubic"
	for _, option := range strings.Fields(options) {
		name, value, _ := strings.Cut(option, "=")
		isOn := value == "on"
		switch name {
		case "altsvc":
			if asked.protocol != http3 {
				return unsupported(fmt.Sprintf("option %s: it is of h3, not of %s", option, asked.protocol))
			}
			asked.altSvc = isOn
		case "tls":
			if value == "off" && asked.protocol != http1 {
				return unsupported(fmt.Sprintf("option %s: there is %s over TLS alone", option, asked.protocol))
			}
			asked.inTheClear = !isOn
		case "cc":
			if !asked.overTCP() {
				return unsupported(fmt.Sprintf("option %s: quic-go has one congestion control, which is not chosen", option))
			}
			asked.congestion = value
			continue
		default:
			return unsupported(fmt.Sprintf("option %s: Caddy takes altsvc, cc and tls", option))
		}
		if !isOn && value != "off" {
			return notOneOf("option "+name, value, []string{"on", "off"})
		}
	}
	return nil
}

func notOneOf(name, value string, known []string) error {
	return unsupported(fmt.Sprintf("%s=%s: want %s", name, value, strings.Join(known, ", ")))
}
