package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	family "bentpipe-endpoint-go-family"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// client opens the connections of a test case, one after the other, on one socket.
type client struct {
	*family.Client
	dial    func(context.Context) (*quic.Conn, error)
	tickets *ticketCache // nil: they are not kept
}

func newClient(c *family.Client) (func(), error) {
	config, err := configure(&c.Environment)
	if err != nil {
		return nil, err
	}
	session := &client{Client: c}
	secrets := clientTLS(&c.Environment)
	if c.Hello.Resumes() {
		session.tickets = &ticketCache{ClientSessionCache: tls.NewLRUClientSessionCache(1), arrived: make(chan struct{})}
		secrets.ClientSessionCache = session.tickets
	}
	early := c.Hello.Testcase == "zerortt"
	if early && c.Logs.Keylog != nil {
		session.tickets.early = &earlySecrets{keylog: c.Logs.Keylog}
	}
	transport := newTransport(c.Socket, session.tickets.secrets())
	dial := transport.Dial
	if early {
		dial = transport.DialEarly
	}
	session.dial = func(ctx context.Context) (*quic.Conn, error) { return dial(ctx, c.Remote, secrets, config) }
	return session.live, nil
}

func (c *client) live() {
	for i, requests := range c.Connections() {
		last := i > 0 || c.tickets == nil
		if c.Fail(c.connect(requests, last)) {
			return
		}
	}
}

// connect is the life of one connection. One that is not the last waits for a session ticket.
func (c *client) connect(requests []*family.Request, last bool) error {
	conn, err := c.dial(context.Background())
	if err != nil {
		return err
	}
	c.Connected()
	if c.Migrates() {
		go c.migrate(conn)
	}
	c.ask(conn, requests)
	if !last {
		select {
		case <-c.tickets.arrived:
		case <-conn.Context().Done():
		}
	}
	err = context.Cause(conn.Context())
	conn.CloseWithError(c.noError(), "")
	return err
}

// migrate moves the connection to the second path when it is time. Where the library cannot, the connection ends.
func (c *client) migrate(conn *quic.Conn) {
	socket, due, err := c.AwaitMigration(conn.Context().Done())
	if due {
		err = switchPath(conn, socket)
	}
	if err != nil {
		conn.CloseWithError(family.Refused, "migration: "+err.Error())
	}
}

// switchPath is how an application migrates: the library switches to a path once that is validated, not before.
func switchPath(conn *quic.Conn, socket net.PacketConn) error {
	path, err := conn.AddPath(newTransport(socket, nil))
	if err != nil {
		return err
	}
	if err := path.Probe(conn.Context()); err != nil {
		return err
	}
	return path.Switch()
}

// noError is the code with which a connection is closed that has done its work.
func (c *client) noError() quic.ApplicationErrorCode {
	if c.Hello.ALPN == family.H3 {
		return quic.ApplicationErrorCode(http3.ErrCodeNoError)
	}
	return 0
}

// ask sends the requests, again after the handshake if they went out in 0-RTT packets that the server has rejected.
func (c *client) ask(conn *quic.Conn, requests []*family.Request) {
	open := func() (family.Stream, error) {
		s, err := conn.OpenStreamSync(context.Background())
		return stream{s}, err
	}
	if c.Hello.ALPN == family.H3 {
		openHTTP := openH3(conn)
		if c.Hello.Loads() {
			c.Load(openHTTP, conn.Context().Done())
			return
		}
		open = func() (family.Stream, error) { return openHTTP() }
	}
	c.Ask(open, requests)
	for _, r := range requests {
		if errors.Is(r.Err, quic.Err0RTTRejected) {
			if _, err := conn.NextConnection(context.Background()); err == nil {
				c.Ask(open, requests)
			}
			return
		}
	}
}

// ticketCache keeps session tickets and tells when the first has come.
type ticketCache struct {
	tls.ClientSessionCache
	arrived chan struct{}
	once    sync.Once
	early   *earlySecrets // nil: nobody wants them
}

// secrets are those of the connections that the tickets are offered in; nil if nobody wants them.
func (t *ticketCache) secrets() *earlySecrets {
	if t == nil {
		return nil
	}
	return t.early
}

// Get returns the ticket that the connection is about to offer.
func (t *ticketCache) Get(key string) (*tls.ClientSessionState, bool) {
	state, ok := t.ClientSessionCache.Get(key)
	if ok && t.early != nil {
		if err := t.early.offer(state); err != nil {
			fmt.Fprintln(os.Stderr, "keylog: no secrets of 0-RTT:", err)
		}
	}
	return state, ok
}

// Put keeps a ticket, or forgets it if state is nil.
func (t *ticketCache) Put(key string, state *tls.ClientSessionState) {
	t.ClientSessionCache.Put(key, state)
	if state != nil {
		t.once.Do(func() { close(t.arrived) })
	}
}
