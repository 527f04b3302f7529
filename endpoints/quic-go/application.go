package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/quic-go/quic-go"
)

// environment is what a role is given to work with, in either mode.
type environment struct {
	hello  *hello
	config *quic.Config
	socket net.PacketConn
	remote net.Addr // client: the server
	disk   disk
	logs   *logs
	now    func() uint64 // ns since the start of the trial
}

func (env *environment) clientTLS() *tls.Config {
	return &tls.Config{
		ServerName: "server",
		NextProtos: []string{alpn},
		// The contract leaves verification to the client; results do not depend on it.
		InsecureSkipVerify: true,
		KeyLogWriter:       env.logs.keylog,
	}
}

func (env *environment) serverTLS() (*tls.Config, error) {
	certs := env.hello.Certs
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "cert.pem"), filepath.Join(certs, "priv.key"))
	if err != nil {
		return nil, fmt.Errorf("certs %q: %w", certs, err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{alpn},
		KeyLogWriter: env.logs.keylog,
	}, nil
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
		if application.ErrorCode == 0 {
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
