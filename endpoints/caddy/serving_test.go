package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	quic "github.com/quic-go/quic-go/http3"
)

// content is that of the file that is asked for; it is longer than what Caddy writes at one time.
var content = bytes.Repeat([]byte("bentpipe"), 50_000)

// site is a server with a folder, and its address.
type site struct{ address string }

// serveFolder starts a server of a folder with a file in it, and one beside it, until the test ends.
func serveFolder(t *testing.T, changes ...string) site {
	t.Helper()
	place := t.TempDir()
	www := filepath.Join(place, "www")
	for name, bytes := range map[string][]byte{"www/a.js": content, "secret": []byte("secret")} {
		path := filepath.Join(place, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join("..", "secret"), filepath.Join(www, "link")); err != nil {
		t.Fatal(err)
	}
	asked, err := ask(t, append(changes, "WWW="+www)...)
	if err != nil {
		t.Fatal(err)
	}
	running, err := start(asked)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.stop(); err != nil {
			t.Error(err)
		}
	})
	return site{running.sockets.address().String()}
}

// client is one that speaks this protocol alone, and trusts the contract's authority. Without a name it asks for the
// certificate of an IP address, which Go's clients do without SNI.
func client(t *testing.T, protocol, name string) *http.Client {
	t.Helper()
	authority, err := os.ReadFile("../certs/p256/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	encryption := &tls.Config{RootCAs: trusted, ServerName: name}
	if protocol == http3 {
		transport := &quic.Transport{TLSClientConfig: encryption}
		t.Cleanup(func() { transport.Close() })
		return &http.Client{Transport: transport}
	}
	transport := &http.Transport{TLSClientConfig: encryption, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(protocol == http1)
	transport.Protocols.SetHTTP2(protocol == http2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get is the response to a request, with its body.
func (s site) get(t *testing.T, client *http.Client, scheme, path string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	url := fmt.Sprintf("%s://%s%s", scheme, s.address, path)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, body
}
