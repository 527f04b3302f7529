package endpoint

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	family "bentpipe-endpoint-go-family"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// openH3 starts HTTP/3 on a connection, and returns how a request stream of it is opened.
func openH3(conn *quic.Conn) func() (family.HTTPStream, error) {
	session := (&http3.Transport{DisableCompression: true}).NewClientConn(conn)
	return func() (family.HTTPStream, error) {
		s, err := session.OpenRequestStream(context.Background())
		return &requestStream{RequestStream: s}, err
	}
}

// requestStream takes the question of hq-interop and asks it in HTTP/3; what is read from it is the content of a reply.
type requestStream struct {
	*http3.RequestStream
	status int // 0: there is no answer yet
}

func (s *requestStream) Write(question []byte) (int, error) {
	method, path, _ := strings.Cut(strings.TrimSuffix(string(question), "\r\n"), " ")
	return len(question), s.ask(method, path, nil)
}

func (s *requestStream) Get(path string, headers [][2]string) error {
	fields := http.Header{}
	for _, field := range headers {
		fields[field[0]] = []string{field[1]}
	}
	return s.ask(http.MethodGet, path, fields)
}

func (s *requestStream) ask(method, path string, fields http.Header) error {
	address := &url.URL{Scheme: "https", Host: serverName, Path: path}
	return s.SendRequestHeader(&http.Request{Method: method, URL: address, Host: serverName, Header: fields})
}

func (s *requestStream) Status() (int, error) {
	if s.status == 0 {
		reply, err := s.ReadResponse()
		if err != nil {
			return 0, err
		}
		s.status = reply.StatusCode
	}
	return s.status, nil
}

func (s *requestStream) Read(b []byte) (int, error) {
	status, err := s.Status()
	if err != nil {
		return 0, err
	}
	if status != http.StatusOK {
		s.Refuse()
		return 0, fmt.Errorf("status %d", status)
	}
	return s.RequestStream.Read(b)
}

func (s *requestStream) Finish() error { return s.Close() }

// Release does nothing: the library gives a stream up by itself once its end has been read.
func (s *requestStream) Release() {}

func (s *requestStream) Refuse() {
	s.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
	s.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
}

// serveH3 returns how the requests of a connection are answered in HTTP/3.
func serveH3(s *family.Server) func(*quic.Conn) error {
	answer := func(w http.ResponseWriter, request *http.Request) {
		body, found := s.File(request.URL.Path)
		switch {
		case request.Method != http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case !found:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			w.Write(body)
		}
	}
	return (&http3.Server{Handler: http.HandlerFunc(answer)}).ServeQUICConn
}
