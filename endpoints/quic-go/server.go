package endpoint

import (
	"context"

	family "bentpipe-endpoint-go-family"

	"github.com/quic-go/quic-go"
)

func newServer(s *family.Server) (func() error, error) {
	config, err := configure(&s.Environment)
	if err != nil {
		return nil, err
	}
	secrets, err := serverTLS(&s.Environment)
	if err != nil {
		return nil, err
	}
	transport := newTransport(s.Socket, nil)
	// Connections are counted from the first Initial packet on, so that one whose handshake fails counts too.
	transport.ConnContext = func(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
		s.Begun()
		context.AfterFunc(ctx, func() { s.Ended(context.Cause(ctx)) })
		return ctx, nil
	}
	return func() error {
		var accept func(context.Context) (*quic.Conn, error)
		if s.Hello.Resumes() {
			// Requests in 0-RTT packets are answered before the handshake is complete.
			config.Allow0RTT = s.Hello.Testcase == "zerortt"
			listener, err := transport.ListenEarly(secrets, config)
			if err != nil {
				return err
			}
			accept = listener.Accept
		} else {
			listener, err := transport.Listen(secrets, config)
			if err != nil {
				return err
			}
			accept = listener.Accept
		}
		go serve(s, accept)
		return nil
	}, nil
}

// serve answers every connection, in the application protocol of the trial.
func serve(s *family.Server, accept func(context.Context) (*quic.Conn, error)) {
	h3 := serveH3(s)
	for {
		conn, err := accept(context.Background())
		if err != nil {
			return
		}
		if s.Hello.ALPN == family.H3 {
			go h3(conn)
			continue
		}
		go s.Serve(func() (family.Stream, error) {
			next, err := conn.AcceptStream(context.Background())
			return stream{next}, err
		})
	}
}
