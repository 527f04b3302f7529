package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
)

// client asks for every path on a stream of its own, all at once, and stores the replies.
type client struct {
	env       environment
	transport *quic.Transport
	requests  []*request
	handshake *uint64
	err       error
	ended     atomic.Bool
}

func newClient(env environment) (*client, error) {
	c := &client{env: env, transport: &quic.Transport{Conn: env.socket}}
	for _, text := range env.hello.Requests {
		address, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("request %q: %w", text, err)
		}
		r := &request{path: address.Path, env: &c.env}
		if r.name = filepath.FromSlash(r.path); len(r.name) < 2 || !filepath.IsLocal(r.name[1:]) {
			return nil, fmt.Errorf("request %q: the path names no file below downloads", text)
		}
		r.name = filepath.Join(env.hello.Downloads, r.name)
		c.requests = append(c.requests, r)
	}
	return c, nil
}

func (c *client) start() error {
	go c.run()
	return nil
}

func (c *client) idle() bool { return false }
func (c *client) done() bool { return c.ended.Load() }

// run is the life of the one connection.
func (c *client) run() {
	defer func() { c.ended.Store(true) }()
	ctx := context.Background()
	conn, err := c.transport.Dial(ctx, c.env.remote, c.env.clientTLS(), c.env.config)
	if err != nil {
		c.err = err
		return
	}
	c.handshake = new(c.env.now())
	var replies sync.WaitGroup
	for _, r := range c.requests {
		stream, err := conn.OpenStreamSync(ctx)
		if err == nil {
			_, err = fmt.Fprintf(stream, "GET %s\r\n", r.path)
		}
		if err != nil {
			r.err = err
			break
		}
		stream.Close()
		replies.Go(func() { r.receive(stream) })
	}
	replies.Wait()
	c.err = context.Cause(conn.Context())
	for _, r := range c.requests {
		if c.err == nil && r.err != nil {
			c.err = fmt.Errorf("request %s: %w", r.path, r.err)
		}
	}
	conn.CloseWithError(0, "")
}

func (c *client) flush() error {
	for _, r := range c.requests {
		if err := r.store(); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) report() bye {
	b := bye{HandshakeNS: c.handshake, Requests: []requestReport{}, Error: describe(c.err)}
	for _, r := range c.requests {
		b.Requests = append(b.Requests, r.report())
	}
	return b
}

// replyBuffer is how much of a reply is kept in memory before it is written to its file.
const replyBuffer = 256 << 10

// request is a path asked for, and what has come of it so far.
type request struct {
	env         *environment
	path        string
	name        string // of the file that the reply goes to
	bytes       uint64
	first, last uint64 // when bytes arrived, in ns since the start of the trial
	err         error
	buffer      []byte
	held        int // bytes in the buffer
	file        *os.File
}

// receive reads the reply to its end. A request that is reset before its first byte leaves no file.
func (r *request) receive(stream *quic.Stream) {
	r.buffer = make([]byte, replyBuffer)
	for r.err == nil {
		n, err := stream.Read(r.buffer[r.held:])
		if n > 0 {
			r.last = r.env.now()
			if r.bytes == 0 {
				r.first = r.last
			}
			r.bytes += uint64(n)
			r.held += n
		}
		switch {
		case err == io.EOF:
			r.env.disk.do(func() { r.err = r.complete() })
			return
		case err != nil:
			r.err = err
		case r.held == len(r.buffer):
			r.env.disk.do(func() { r.err = r.store() })
		}
	}
}

// store moves the buffer to the file.
func (r *request) store() error {
	if r.held == 0 {
		return nil
	}
	if err := r.open(); err != nil {
		return err
	}
	_, err := r.file.Write(r.buffer[:r.held])
	r.held = 0
	return err
}

// open makes the file, unless it has been made.
func (r *request) open() error {
	if r.file != nil {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(r.name), 0o755)
	if err == nil {
		r.file, err = os.Create(r.name)
	}
	return err
}

func (r *request) complete() error {
	return errors.Join(r.open(), r.store(), r.file.Close())
}

func (r *request) report() requestReport {
	report := requestReport{Path: r.path, Bytes: r.bytes}
	if r.bytes > 0 {
		report.FirstByteNS, report.LastByteNS = &r.first, &r.last
	}
	return report
}
