package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/quic-go/quic-go"
)

// maxRequest bounds a request: a longer one is answered by RESET_STREAM.
const maxRequest = 8 << 10

// errorNoFile is the application error code of the RESET_STREAM that answers a request for which there is no file.
const errorNoFile = 1

// server answers requests with the files of a folder.
type server struct {
	env       environment
	transport *quic.Transport
	tls       *tls.Config
	www       *os.Root
	handshake *uint64
	cause     atomic.Pointer[error] // why the last connection to end has ended

	// Connections, counted from the first Initial packet on, so that one whose handshake fails counts too.
	begun, ended atomic.Int64
}

func newServer(env environment) (*server, error) {
	www, err := os.OpenRoot(env.hello.WWW)
	if err != nil {
		return nil, fmt.Errorf("www: %w", err)
	}
	tlsConfig, err := env.serverTLS()
	if err != nil {
		return nil, err
	}
	s := &server{env: env, tls: tlsConfig, www: www, transport: &quic.Transport{Conn: env.socket}}
	s.transport.ConnContext = func(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
		s.begun.Add(1)
		context.AfterFunc(ctx, func() {
			s.cause.Store(new(context.Cause(ctx)))
			s.ended.Add(1)
		})
		return ctx, nil
	}
	return s, nil
}

// start listens and accepts.
func (s *server) start() error {
	listener, err := s.transport.Listen(s.tls, s.env.config)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.env.socket.LocalAddr(), err)
	}
	go func() {
		for {
			conn, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			if s.handshake == nil {
				s.handshake = new(s.env.now())
			}
			go s.serve(conn)
		}
	}()
	return nil
}

func (s *server) idle() bool   { return s.begun.Load() == 0 }
func (s *server) done() bool   { return s.begun.Load() > 0 && s.ended.Load() == s.begun.Load() }
func (s *server) flush() error { return nil }

func (s *server) report() bye {
	b := bye{HandshakeNS: s.handshake, Requests: []requestReport{}}
	if cause := s.cause.Load(); cause != nil {
		b.Error = describe(*cause)
	}
	return b
}

// serve answers every stream of a connection until it ends.
func (s *server) serve(conn *quic.Conn) {
	for {
		stream, err := conn.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go s.answer(stream)
	}
}

// answer reads a request and sends the file that it asks for.
func (s *server) answer(stream *quic.Stream) {
	text, err := io.ReadAll(io.LimitReader(stream, maxRequest+1))
	if err == nil {
		var body []byte
		s.env.disk.do(func() { body, err = s.load(string(text)) })
		if err == nil {
			defer syscall.Munmap(body)
			if _, err = stream.Write(body); err == nil {
				err = stream.Close()
			}
		}
	}
	if err != nil {
		stream.CancelRead(errorNoFile)
		stream.CancelWrite(errorNoFile)
	}
}

var errNotARequest = errors.New("not an HTTP/0.9 request")

// load maps the file that a request asks for into memory. The root refuses paths that lead out of it.
func (s *server) load(text string) ([]byte, error) {
	line, complete := strings.CutSuffix(text, "\r\n")
	path, get := strings.CutPrefix(line, "GET /")
	if !complete || !get || strings.ContainsAny(path, "\r\n") {
		return nil, errNotARequest
	}
	file, err := s.www.Open(filepath.FromSlash(path))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	if info.Size() == 0 {
		return nil, nil
	}
	return syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
}
