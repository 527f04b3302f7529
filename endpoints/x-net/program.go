// Package endpoint puts golang.org/x/net/quic behind Bentpipe's endpoint contract (endpoints/CONTRACT.md), as client
// and as server.
package endpoint

import (
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"

	family "bentpipe-endpoint-go-family"

	"golang.org/x/net/quic"
	"golang.org/x/net/quic/qlog"
)

// goMod pins the library.
//
//go:embed go.mod
var goMod string

var program = &family.Stack{
	Name:    "x-net",
	Version: "x/net/quic " + family.Version(goMod, "golang.org/x/net"),
	// The library's server issues no session tickets, and neither side knows 0-RTT.
	Testcases:   []string{"transfer", "handshake", "longrtt", "multiplexing", "upload"},
	CheckOption: func(name, value string) error { return setOption(&quic.Config{}, name, value) },
	NewClient:   newClient,
	NewServer:   newServer,
	Describe:    describe,
}

// defaultBuffer is how much the library takes from a writer before it is acknowledged, in bytes, by default.
const defaultBuffer = 1 << 20

func setOption(config *quic.Config, name, value string) error {
	switch name {
	case "cc":
		if value != "newreno" {
			return family.Unsupported{What: fmt.Sprintf("option cc=%s: x/net/quic has newreno only", value)}
		}
	case "window":
		number, err := family.Number(name, value, 1, 1<<62-1)
		if err != nil {
			return err
		}
		window := int64(number)
		config.MaxStreamReadBufferSize = window
		config.MaxConnReadBufferSize = window
		// A sender must be able to fill the other side's window; a small window must not slow down the sender here.
		config.MaxStreamWriteBufferSize = max(window, defaultBuffer)
	default:
		return family.Unsupported{What: fmt.Sprintf("option %s: x/net/quic takes cc and window", name)}
	}
	return nil
}

// configure turns the options, which have been checked, into the library's configuration.
func configure(env *family.Environment) (*quic.Config, error) {
	config := &quic.Config{
		QLogLogger: qlogger(env),
		TLSConfig: &tls.Config{
			ServerName: "server",
			NextProtos: []string{family.HQ},
			MinVersion: tls.VersionTLS13,
			// The contract leaves verification to the client; results do not depend on it.
			InsecureSkipVerify: true,
			KeyLogWriter:       env.Logs.Keylog,
		},
	}
	for name, value := range env.Hello.Options {
		if err := setOption(config, name, value); err != nil {
			return nil, err
		}
	}
	if env.Hello.Role == "client" {
		return config, nil
	}
	certs := env.Hello.Certs
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "cert.pem"), filepath.Join(certs, "priv.key"))
	if err != nil {
		return nil, fmt.Errorf("certs %q: %w", certs, err)
	}
	config.TLSConfig.Certificates = []tls.Certificate{pair}
	return config, nil
}

// qlogger logs every connection, frames included, into a separate qlog file; nil if the trial wants none.
func qlogger(env *family.Environment) *slog.Logger {
	folder := env.Hello.Qlog
	if folder == "" {
		return nil
	}
	return slog.New(qlog.NewJSONHandler(qlog.HandlerOptions{
		Level: quic.QLogLevelFrame,
		NewTrace: func(info qlog.TraceInfo) (io.WriteCloser, error) {
			name := fmt.Sprintf("%s_%s.sqlog", info.GroupID, info.Vantage)
			return env.Logs.File(filepath.Join(folder, name)), nil
		},
	}))
}

// stream is a stream as the family knows it.
type stream struct{ *quic.Stream }

func (s stream) Finish() error { return s.CloseWrite() }
func (s stream) Release()      { s.CloseRead() }

func (s stream) Refuse() {
	s.CloseRead()
	s.Reset(family.Refused)
}

// describe says in the words of the contract why a connection ended, or why it never came about; nil for an end without
// error. The library keeps the types of most of its errors to itself, so that their text has to tell.
func describe(err error) *string {
	if err == nil {
		return nil
	}
	text := err.Error()
	if closed, ok := errors.AsType[*quic.ConnectionCloseError](err); ok {
		if closed.Code == 0 {
			return nil
		}
		text = fmt.Sprintf("closed by peer: application error %#x: %s", closed.Code, closed.Reason)
	} else if reason, ok := strings.CutPrefix(text, "peer closed connection: "); ok {
		text = "closed by peer: " + reason
	} else if strings.HasPrefix(text, "closed connection: ") && strings.HasSuffix(text, `"handshake timeout"`) {
		text = "handshake timeout"
	}
	return &text
}
