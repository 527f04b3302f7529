package endpoint

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/net/quic"
)

// maxRequest bounds a request, in bytes: a longer one is answered by RESET_STREAM.
const maxRequest = 8 << 10

// errorNoFile is the application error code of the RESET_STREAM that answers a request for which there is no file.
const errorNoFile = 1

// server answers requests with the files of a folder.
type server struct {
	env       environment
	files     map[string][]byte // by path, with a leading slash
	handshake *uint64
	cause     atomic.Pointer[string] // why the last connection to end has ended

	accepted, ended atomic.Int64
}

func newServer(env environment) (*server, error) {
	files, err := mapFolder(env.hello.WWW)
	if err != nil {
		return nil, fmt.Errorf("www: %w", err)
	}
	return &server{env: env, files: files}, nil
}

// mapFolder maps every file of a folder into memory: a request for one that is not in it, or that leads out of it, finds
// none, and to answer takes no system call. Symbolic links below the folder are not followed.
func mapFolder(folder string) (map[string][]byte, error) {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	err = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files[filepath.ToSlash(name[len(folder):])], err = mapFile(name)
		return err
	})
	return files, err
}

func mapFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return nil, err
	}
	return syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
}

// start listens and accepts.
func (s *server) start() error {
	endpoint, err := quic.NewEndpoint(s.env.socket, s.env.config)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.env.socket.LocalAddr(), err)
	}
	go func() {
		for {
			conn, err := endpoint.Accept(context.Background())
			if err != nil {
				return
			}
			if s.accepted.Add(1) == 1 {
				s.handshake = new(s.env.now())
			}
			go s.serve(conn)
		}
	}()
	return nil
}

// serve answers every stream of a connection until it ends.
func (s *server) serve(conn *quic.Conn) {
	for {
		stream, err := conn.AcceptStream(context.Background())
		if err != nil {
			break
		}
		go s.answer(stream)
	}
	s.cause.Store(describe(conn.Wait(context.Background())))
	// A connection that its peer has closed waits for a word of the application before it drains.
	conn.Abort(nil)
	s.ended.Add(1)
}

// answer reads a request and sends the file that it asks for.
func (s *server) answer(stream *quic.Stream) {
	text, err := io.ReadAll(io.LimitReader(stream, maxRequest+1))
	line, whole := strings.CutSuffix(string(text), "\r\n")
	path, get := strings.CutPrefix(line, "GET ")
	body, found := s.files[path]
	stream.CloseRead() // also where all has been read: the library grants the peer another stream only then
	if err != nil || !whole || !get || !found {
		stream.Reset(errorNoFile)
		return
	}
	if _, err := stream.Write(body); err == nil {
		stream.CloseWrite()
	}
}

func (s *server) done() bool {
	return s.accepted.Load() > 0 && s.ended.Load() == s.accepted.Load()
}

func (s *server) save() error { return nil }

func (s *server) report() bye {
	return bye{HandshakeNS: s.handshake, Requests: []answer{}, Error: s.cause.Load()}
}
