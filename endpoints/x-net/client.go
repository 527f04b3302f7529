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

	"golang.org/x/net/quic"
)

// client asks for every path on a stream of its own, all at once, and stores the replies.
type client struct {
	env       environment
	replies   []*reply
	handshake *uint64
	err       error
	ended     atomic.Bool
}

func newClient(env environment) (*client, error) {
	c := &client{env: env}
	for _, text := range env.hello.Requests {
		address, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("request %q: %w", text, err)
		}
		name := filepath.FromSlash(address.Path)
		if len(name) < 2 || !filepath.IsLocal(name[1:]) {
			return nil, fmt.Errorf("request %q: the path names no file below downloads", text)
		}
		c.replies = append(c.replies, &reply{
			env: &c.env, name: filepath.Join(env.hello.Downloads, name), answer: answer{Path: address.Path},
		})
	}
	return c, nil
}

func (c *client) start() error {
	go c.run()
	return nil
}

func (c *client) done() bool { return c.ended.Load() }

// run is the life of the one connection.
func (c *client) run() {
	defer c.ended.Store(true)
	endpoint, err := quic.NewEndpoint(c.env.socket, nil)
	if err != nil {
		c.err = err
		return
	}
	conn, err := endpoint.Dial(context.Background(), "udp", c.env.remote, c.env.config)
	if err != nil {
		c.err = err
		return
	}
	c.handshake = new(c.env.now())
	c.request(conn)
	c.err = ended(conn)
	for _, r := range c.replies {
		if c.err == nil && r.err != nil {
			c.err = fmt.Errorf("request %s: %w", r.answer.Path, r.err)
		}
	}
	conn.Abort(&quic.ConnectionCloseError{Code: 0})
}

// request sends all requests and returns when each has been answered or has failed.
func (c *client) request(conn *quic.Conn) {
	var answered sync.WaitGroup
	defer answered.Wait()
	for _, r := range c.replies {
		stream, err := conn.NewStream(context.Background())
		if err == nil {
			_, err = fmt.Fprintf(stream, "GET %s\r\n", r.answer.Path)
		}
		if err != nil {
			r.err = err
			return
		}
		stream.CloseWrite()
		answered.Go(func() { r.receive(stream) })
	}
}

func (c *client) save() error {
	for _, r := range c.replies {
		if err := r.save(); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) report() bye {
	b := bye{HandshakeNS: c.handshake, Requests: []answer{}, Error: describe(c.err)}
	for _, r := range c.replies {
		b.Requests = append(b.Requests, r.answer)
	}
	return b
}

// reply is a path asked for, and what has come of it so far.
type reply struct {
	env      *environment
	answer   answer
	err      error
	name     string // of the file that the reply goes to
	held     []byte // has arrived and is not in the file yet
	complete bool   // has been received to its end
	stored   bool   // is in the file to its end
	file     *os.File
}

// receive reads the reply to its end.
func (r *reply) receive(stream *quic.Stream) {
	defer stream.CloseRead() // also after the last byte: the library keeps the stream until then
	buffer := make([]byte, 64<<10)
	for r.err == nil && !r.complete {
		n, err := stream.Read(buffer)
		if n > 0 {
			r.answer.LastByteNS = new(r.env.now())
			if r.answer.Bytes == 0 {
				r.answer.FirstByteNS = r.answer.LastByteNS
			}
			r.answer.Bytes += uint64(n)
			r.held = append(r.held, buffer[:n]...)
		}
		if err == io.EOF {
			r.complete = true
		} else {
			r.err = err
		}
		if r.env.eager {
			r.err = errors.Join(r.err, r.save())
		}
	}
}

// save moves what is held to the file. A request that is reset before its first byte leaves no file.
func (r *reply) save() error {
	if r.stored || len(r.held) == 0 && !r.complete {
		return nil
	}
	if r.file == nil {
		if err := os.MkdirAll(filepath.Dir(r.name), 0o755); err != nil {
			return err
		}
		var err error
		if r.file, err = os.Create(r.name); err != nil {
			return err
		}
	}
	_, err := r.file.Write(r.held)
	r.held = r.held[:0]
	if r.complete {
		r.stored = true
		err = errors.Join(err, r.file.Close())
	}
	return err
}
