package family

import (
	"fmt"
	"io"
	"net/url"
	"sync"
)

// pieceLen is how much is handed to a library, or taken from it, at once, in bytes.
const pieceLen = 64 << 10

// Stream is a bidirectional stream of a library.
type Stream interface {
	io.ReadWriter
	// Finish sends FIN.
	Finish() error
	// Release says that nothing more will be read.
	Release()
	// Refuse resets both directions.
	Refuse()
}

// Client asks for every path on a separate stream, all at once, and stores the replies; in the test case upload it
// sends the files.
type Client struct {
	Environment
	requests  []*Request
	page      *page // nil: not in the test case page
	live      func()
	handshake *uint64
	err       error
	ended     chan struct{}
}

func newClient(env Environment) (*Client, error) {
	c := &Client{Environment: env, ended: make(chan struct{})}
	newRequest, err := env.requester()
	if err != nil {
		return nil, err
	}
	for _, text := range env.Hello.Requests {
		address, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("request %q: %w", text, err)
		}
		r, err := newRequest(address.Path)
		if err != nil {
			return nil, fmt.Errorf("request %q: %w", text, err)
		}
		c.requests = append(c.requests, r)
	}
	if err := env.Hello.checkPage(); err != nil {
		return nil, err
	}
	if env.Hello.Loads() {
		c.page = newPage(&env)
	}
	c.live, err = env.stack.NewClient(c)
	return c, err
}

// requester makes the requests of the test case out of their paths.
func (env *Environment) requester() (func(path string) (*Request, error), error) {
	if env.Hello.uploads() {
		files, err := mapFolder(env.Hello.WWW)
		if err != nil {
			return nil, fmt.Errorf("www: %w", err)
		}
		return func(path string) (*Request, error) {
			body, found := files[path]
			if !found {
				return nil, fmt.Errorf("there is no such file in %s", env.Hello.WWW)
			}
			return &Request{now: env.Now, answer: Answer{Path: path}, verb: "PUT", body: body}, nil
		}, nil
	}
	folder, err := env.openDownloads()
	if err != nil {
		return nil, fmt.Errorf("downloads: %w", err)
	}
	return func(path string) (*Request, error) {
		file, ok := folder.file(path)
		if !ok {
			return nil, fmt.Errorf("the path names no file below %s", env.Hello.Downloads)
		}
		return &Request{now: env.Now, answer: Answer{Path: path}, verb: "GET", reply: file}, nil
	}, nil
}

// Connections are the requests of each connection of the test case, one after the other.
func (c *Client) Connections() [][]*Request {
	if c.Hello.Resumes() {
		return [][]*Request{c.requests[:min(1, len(c.requests))], c.requests[min(1, len(c.requests)):]}
	}
	return [][]*Request{c.requests}
}

// Connected says that a handshake is complete.
func (c *Client) Connected() {
	if c.handshake == nil {
		c.handshake = new(c.Now())
	}
}

// Ask sends requests that have not ended yet, and returns when each has been answered or has failed. Open waits until
// the peer allows another stream.
func (c *Client) Ask(open func() (Stream, error), requests []*Request) {
	var answered sync.WaitGroup
	defer answered.Wait()
	for _, r := range requests {
		if r.ended {
			continue
		}
		stream, err := open()
		if err == nil {
			_, err = fmt.Fprintf(stream, "%s %s\r\n", r.verb, r.answer.Path)
		}
		if r.Err = err; err != nil {
			return
		}
		if r.body == nil {
			stream.Finish()
		}
		answered.Go(func() { r.exchange(stream) })
	}
}

func (c *Client) start() error {
	if c.page != nil {
		c.page.start(c.Now())
	}
	go func() {
		defer close(c.ended)
		c.live()
	}()
	return nil
}

func (c *Client) done() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Fail says why a connection ended, or why it never came about. It returns whether that is an error.
func (c *Client) Fail(err error) bool {
	if c.stack.Describe(err) != nil {
		c.err = err
	}
	return c.err != nil
}

// why is the first failure: of a connection, or else of a request.
func (c *Client) why() *string {
	if c.err != nil {
		return c.stack.Describe(c.err)
	}
	for _, r := range c.requests {
		if r.Err != nil {
			return new(fmt.Sprintf("request %s: %v", r.answer.Path, r.Err))
		}
	}
	for _, r := range c.requests {
		if !r.ended && c.done() {
			return new("closed by peer before every request was answered")
		}
	}
	return nil
}

func (c *Client) save() error {
	for _, r := range c.requests {
		if r.reply == nil {
			continue
		}
		if err := r.reply.save(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) report() Bye {
	b := Bye{HandshakeNS: c.handshake, Requests: []Answer{}, Error: c.why()}
	for _, r := range c.requests {
		b.Requests = append(b.Requests, r.answer)
	}
	return b
}

// Request is a path, and what has come of it so far.
type Request struct {
	Err error

	now    func() uint64
	answer Answer
	verb   string
	body   []byte  // PUT: the file
	reply  *stored // GET: where the reply goes
	ended  bool    // answered to its end

	arrived func(bytes uint64) // of a page: counts bytes of it that have arrived
}

// exchange sends the body, if there is one, and receives the reply to its end.
func (r *Request) exchange(stream Stream) {
	defer stream.Release() // also after the last byte: x/net/quic keeps the stream until then
	r.send(stream)
	buffer := make([]byte, pieceLen)
	for r.Err == nil && !r.ended {
		n, err := stream.Read(buffer)
		if n > 0 {
			r.Err = r.receive(buffer[:n])
		}
		if err == io.EOF {
			r.end()
		} else if r.Err == nil {
			r.Err = err
		}
	}
}

// send hands the body of a PUT to the library, piece by piece.
func (r *Request) send(stream Stream) {
	if r.body == nil {
		return
	}
	r.answer.Bytes = 0
	for rest := r.body; len(rest) > 0; {
		if r.answer.FirstByteNS == nil {
			r.answer.FirstByteNS = new(r.now())
		}
		n, err := stream.Write(rest[:min(pieceLen, len(rest))])
		r.answer.Bytes += uint64(n)
		if err != nil {
			return // a reset, if that was it, is read next
		}
		rest = rest[n:]
	}
	stream.Finish()
}

func (r *Request) receive(b []byte) error {
	if r.reply == nil {
		return fmt.Errorf("the answer to a PUT has %d bytes or more, want none", len(b))
	}
	r.answer.LastByteNS = new(r.now())
	if r.answer.FirstByteNS == nil {
		r.answer.FirstByteNS = r.answer.LastByteNS
	}
	r.answer.Bytes += uint64(len(b))
	if r.arrived != nil {
		r.arrived(r.answer.Bytes)
	}
	return r.reply.write(b)
}

func (r *Request) end() {
	r.ended = true
	if r.reply != nil {
		r.Err = r.reply.end()
	} else {
		r.answer.LastByteNS = new(r.now())
	}
}
