package endpoint

import (
	"context"

	family "bentpipe-endpoint-go-family"

	"golang.org/x/net/quic"
)

func newServer(s *family.Server) (func() error, error) {
	config, err := configure(&s.Environment)
	if err != nil {
		return nil, err
	}
	return func() error {
		endpoint, err := quic.NewEndpoint(s.Socket, config)
		if err != nil {
			return err
		}
		go func() {
			for {
				conn, err := endpoint.Accept(context.Background())
				if err != nil {
					return
				}
				s.Begun()
				go serve(s, conn)
			}
		}()
		return nil
	}, nil
}

// serve answers every stream of a connection until it ends.
func serve(s *family.Server, conn *quic.Conn) {
	s.Serve(func() (family.Stream, error) {
		next, err := conn.AcceptStream(context.Background())
		return stream{next}, err
	})
	cause := conn.Wait(context.Background())
	// A connection that its peer has closed waits for a word of the application before it drains.
	conn.Abort(nil)
	s.Ended(cause)
}
