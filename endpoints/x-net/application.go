package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"

	"golang.org/x/net/quic"
)

// environment is what a role is given to work with, in either mode.
type environment struct {
	hello  *hello
	config *quic.Config // without TLS
	socket net.PacketConn
	remote string        // client: address and port of the server
	keylog io.Writer     // nil: no secrets are written
	now    func() uint64 // ns since the start of the trial
	eager  bool          // replies go to their files as they come, not when save is called
}

func newApplication(env environment) (application, error) {
	env.config.TLSConfig = &tls.Config{
		ServerName: "server",
		NextProtos: []string{"hq-interop"},
		MinVersion: tls.VersionTLS13,
		// The contract leaves verification to the client; results do not depend on it.
		InsecureSkipVerify: true,
		KeyLogWriter:       env.keylog,
	}
	if env.hello.Role == "client" {
		return newClient(env)
	}
	certs := env.hello.Certs
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "cert.pem"), filepath.Join(certs, "priv.key"))
	if err != nil {
		return nil, fmt.Errorf("certs %q: %w", certs, err)
	}
	env.config.TLSConfig.Certificates = []tls.Certificate{pair}
	return newServer(env)
}

// ended is why conn has ended; nil while it has not.
func ended(conn *quic.Conn) error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := conn.Wait(now); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
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
