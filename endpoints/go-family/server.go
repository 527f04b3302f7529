package family

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
)

// maxRequest bounds the line of a request, in bytes: a longer one is refused.
const maxRequest = 8 << 10

// Refused is the application error code of the RESET_STREAM that refuses a request.
const Refused = 1

// Server answers requests with the files of a folder; in the test case upload it stores what it is sent.
type Server struct {
	Environment
	listen    func() error
	files     map[string][]byte // by path, with a leading slash
	downloads *downloads
	cause     atomic.Pointer[string] // why the last connection to end has ended

	begun, ended atomic.Int64 // connections

	mu      sync.Mutex
	uploads []*stored
}

func newServer(env Environment) (*Server, error) {
	s := &Server{Environment: env}
	var err error
	if env.Hello.uploads() {
		if s.downloads, err = env.openDownloads(); err != nil {
			return nil, fmt.Errorf("downloads: %w", err)
		}
	} else if s.files, err = mapFolder(env.Hello.WWW); err != nil {
		return nil, fmt.Errorf("www: %w", err)
	}
	s.listen, err = env.stack.NewServer(s)
	return s, err
}

// Begun says that there is another connection.
func (s *Server) Begun() { s.begun.Add(1) }

// Ended says that one of the connections has ended, and why.
func (s *Server) Ended(cause error) {
	s.cause.Store(s.stack.Describe(cause))
	s.ended.Add(1)
}

// Serve answers every stream of a connection until accept, which waits for the next, returns an error.
func (s *Server) Serve(accept func() (Stream, error)) {
	for {
		stream, err := accept()
		if err != nil {
			return
		}
		go s.answer(stream)
	}
}

// File is the file that a path asks for, which begins with a slash; false if there is none.
func (s *Server) File(path string) ([]byte, bool) {
	body, found := s.files[path]
	return body, found
}

func (s *Server) answer(stream Stream) {
	exchange := s.send
	if s.Hello.uploads() {
		exchange = s.store
	}
	if exchange(stream) != nil {
		stream.Refuse()
	}
}

var errRefused = errors.New("refused")

// send answers a GET with its file.
func (s *Server) send(stream Stream) error {
	text, err := io.ReadAll(io.LimitReader(stream, maxRequest+1))
	line, whole := strings.CutSuffix(string(text), "\r\n")
	path, get := strings.CutPrefix(line, "GET ")
	body, found := s.File(path)
	if err != nil || !whole || !get || !found {
		return errRefused
	}
	stream.Release() // also where all has been read: x/net/quic grants the peer another stream only then
	if len(body) > 0 {
		if _, err := stream.Write(body); err != nil {
			return err
		}
	}
	return stream.Finish()
}

// store takes the file that a PUT sends. In virtual time it is on the disk when the RUN ends. A file that cannot be
// stored, though its path is one, ends the program.
func (s *Server) store(stream Stream) error {
	text := bufio.NewReaderSize(stream, pieceLen)
	line, err := text.ReadSlice('\n')
	question, whole := strings.CutSuffix(string(line), "\r\n")
	path, put := strings.CutPrefix(question, "PUT ")
	if err != nil || !whole || !put || len(line) > maxRequest {
		return errRefused
	}
	file, ok := s.downloads.file(path)
	if !ok {
		return errRefused
	}
	s.mu.Lock()
	s.uploads = append(s.uploads, file)
	s.mu.Unlock()
	buffer := make([]byte, pieceLen)
	for {
		n, err := text.Read(buffer)
		if failed := file.write(buffer[:n]); failed != nil {
			return failed
		}
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	stream.Release()
	if err := file.end(); err != nil {
		return err
	}
	return stream.Finish()
}

func (s *Server) start() error {
	if err := s.listen(); err != nil {
		return fmt.Errorf("listen on %s: %w", s.Socket.LocalAddr(), err)
	}
	return nil
}

func (s *Server) done() bool {
	begun := s.begun.Load()
	return begun > 0 && s.ended.Load() == begun
}

func (s *Server) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, file := range s.uploads {
		if err := file.save(); err != nil {
			return err
		}
	}
	return nil
}

// report leaves out the handshake: a client says when it was.
func (s *Server) report() Bye {
	return Bye{Requests: []Answer{}, Error: s.cause.Load()}
}
