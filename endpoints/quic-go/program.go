// Package endpoint puts quic-go behind Bentpipe's endpoint contract (endpoints/CONTRACT.md), as client and as server.
package endpoint

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	family "bentpipe-endpoint-go-family"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// goMod pins the library.
//
//go:embed go.mod
var goMod string

var program = &family.Stack{
	Name:        "quic-go",
	Version:     "quic-go " + family.Version(goMod, "github.com/quic-go/quic-go"),
	Testcases:   []string{"transfer", "handshake", "longrtt", "multiplexing", "resumption", "zerortt", "upload", "page"},
	ALPN:        []string{family.H3},
	Migrates:    true,
	CheckOption: func(name, value string) error { return setOption(&quic.Config{}, name, value) },
	NewClient:   newClient,
	NewServer:   newServer,
	Describe:    describe,
}

// serverName is the client's name for its server, whatever its address.
const serverName = "server"

// largestPacket is the size, in bytes, for which quic-go's pacer waits until path MTU discovery sets another
// (newPacer). With larger packets from the start the sender asks again and again, at one instant, whether it may send:
// it is told "at once", but the congestion controller wants to wait. In virtual time that instant never ends.
const largestPacket = 1280

func setOption(config *quic.Config, name, value string) error {
	switch name {
	case "cc":
		// CUBIC is in the source, but the library makes every sender with Reno.
		if value != "newreno" {
			return family.Unsupported{What: fmt.Sprintf("option cc=%s: quic-go has newreno only", value)}
		}
	case "window":
		window, err := family.Number(name, value, 1, 1<<62-1)
		if err != nil {
			return err
		}
		config.InitialStreamReceiveWindow = window
		config.MaxStreamReceiveWindow = window
		config.InitialConnectionReceiveWindow = window
		config.MaxConnectionReceiveWindow = window
	case "mtu":
		size, err := family.Number(name, value, 1200, largestPacket)
		if err != nil {
			return err
		}
		config.InitialPacketSize = uint16(size)
		config.DisablePathMTUDiscovery = true
	default:
		return family.Unsupported{What: fmt.Sprintf("option %s: quic-go takes cc, window and mtu, of a client also migrate", name)}
	}
	return nil
}

// configure turns the options, which have been checked, into quic-go's configuration.
func configure(env *family.Environment) (*quic.Config, error) {
	config := &quic.Config{Tracer: tracer(env)}
	for name, value := range env.Hello.Options {
		if err := setOption(config, name, value); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// newTransport is quic-go on a socket of the trial. Its connection IDs have four bytes, with which several
// connections can share the socket. Departures are passed to the secrets of 0-RTT, unless these are nil.
func newTransport(socket net.PacketConn, early *earlySecrets) *quic.Transport {
	switch socket := socket.(type) {
	case *family.VirtualSocket:
		return &quic.Transport{Conn: newKernelSocket(socket, early)}
	case *net.UDPConn:
		if early != nil {
			return &quic.Transport{Conn: &watchedSocket{socket, early}}
		}
	}
	return &quic.Transport{Conn: socket}
}

func clientTLS(env *family.Environment) *tls.Config {
	return &tls.Config{
		ServerName: serverName,
		NextProtos: []string{env.Hello.ALPN},
		// The contract leaves verification to the client; results do not depend on it.
		InsecureSkipVerify: true,
		KeyLogWriter:       env.Logs.Keylog,
	}
}

func serverTLS(env *family.Environment) (*tls.Config, error) {
	certs := env.Hello.Certs
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "cert.pem"), filepath.Join(certs, "priv.key"))
	if err != nil {
		return nil, fmt.Errorf("certs %q: %w", certs, err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{env.Hello.ALPN},
		KeyLogWriter: env.Logs.Keylog,
	}, nil
}

// stream is a stream as the family knows it.
type stream struct{ *quic.Stream }

func (s stream) Finish() error { return s.Close() }

// Release does nothing: the library gives a stream up by itself once its end has been read.
func (s stream) Release() {}

func (s stream) Refuse() {
	s.CancelRead(family.Refused)
	s.CancelWrite(family.Refused)
}

// describe says why a connection ended, or why it never came about; nil for an end without error.
func describe(err error) *string {
	var text string
	var application *quic.ApplicationError
	var transport *quic.TransportError
	var idle *quic.IdleTimeoutError
	var handshake *quic.HandshakeTimeoutError
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return nil
	case errors.As(err, &application):
		if application.ErrorCode == 0 || application.ErrorCode == quic.ApplicationErrorCode(http3.ErrCodeNoError) {
			return nil
		}
		text = fmt.Sprintf("application error %#x: %s", uint64(application.ErrorCode), application.ErrorMessage)
		if application.Remote {
			text = "closed by peer: " + text
		}
	case errors.As(err, &transport):
		text = transport.Error()
		if transport.Remote {
			text = "closed by peer: " + text
		}
	case errors.As(err, &idle):
		text = "idle timeout"
	case errors.As(err, &handshake):
		text = "handshake timeout"
	default:
		text = err.Error()
	}
	return &text
}
