package endpoint

import (
	"context"
	"errors"

	family "bentpipe-endpoint-go-family"

	"golang.org/x/net/quic"
)

// newClient prepares the one connection of a client.
func newClient(c *family.Client) (func(), error) {
	config, err := configure(&c.Environment)
	if err != nil {
		return nil, err
	}
	return func() { c.Fail(connect(c, config)) }, nil
}

// connect is the life of the connection.
func connect(c *family.Client, config *quic.Config) error {
	endpoint, err := quic.NewEndpoint(c.Socket, nil)
	if err != nil {
		return err
	}
	conn, err := endpoint.Dial(context.Background(), "udp", c.Remote.String(), config)
	if err != nil {
		return err
	}
	c.Connected()
	c.Ask(func() (family.Stream, error) {
		s, err := conn.NewStream(context.Background())
		return stream{s}, err
	}, c.Connections()[0])
	err = ended(conn)
	conn.Abort(&quic.ConnectionCloseError{Code: 0})
	return err
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
