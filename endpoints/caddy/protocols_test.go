package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// versions are the HTTP versions in responses.
var versions = map[string]string{http1: "HTTP/1.1", http2: "HTTP/2.0", http3: "HTTP/3.0"}

func TestFilesInEachProtocol(t *testing.T) {
	for protocol, version := range versions {
		site := serveFolder(t, "BENTPIPE_ALPN="+protocol)
		for _, name := range []string{"server", ""} {
			response, body := site.get(t, client(t, protocol, name), "https", "/a.js")
			if response.StatusCode != http.StatusOK || response.Proto != version || !bytes.Equal(body, content) {
				t.Errorf("%s: %s of %s, %d bytes", protocol, response.Status, response.Proto, len(body))
			}
			if got := response.Header.Get("Content-Type"); got != "text/javascript; charset=utf-8" {
				t.Errorf("%s: a script is of type %q", protocol, got)
			}
			if response.TLS.Version != 0x0304 {
				t.Errorf("%s: over TLS version %#x", protocol, response.TLS.Version)
			}
		}
	}
}

func TestAnswersAreWholeFiles(t *testing.T) {
	for protocol := range versions {
		site := serveFolder(t, "BENTPIPE_ALPN="+protocol)
		response, body := site.get(t, client(t, protocol, "server"), "https", "/a.js",
			"Range", "bytes=0-9", "If-None-Match", "*", "If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT",
			"Accept-Encoding", "gzip, br, zstd")
		if response.StatusCode != http.StatusOK || !bytes.Equal(body, content) {
			t.Errorf("%s: %s, %d bytes", protocol, response.Status, len(body))
		}
		for _, name := range []string{"Accept-Ranges", "Content-Encoding", "Etag", "Last-Modified"} {
			if value := response.Header.Get(name); value != "" {
				t.Errorf("%s: %s: %s", protocol, name, value)
			}
		}
	}
}

// up leads out of a folder.
const up = "/.."

func TestWhatIsNotThereIsRefused(t *testing.T) {
	for protocol := range versions {
		site := serveFolder(t, "BENTPIPE_ALPN="+protocol)
		outside := []string{up + "/secret", "/%2e%2e/secret", "/x" + up + up + "/secret", "/link"}
		for _, path := range append(outside, "/absent", "/", "/a.js/x") {
			response, body := site.get(t, client(t, protocol, "server"), "https", path)
			if response.StatusCode < 400 || bytes.Contains(body, []byte("secret")) {
				t.Errorf("%s: %s: %s: %s", protocol, path, response.Status, body)
			}
		}
	}
}

func TestOtherProtocolsAreRefused(t *testing.T) {
	for protocol, other := range map[string]string{http1: http2, http2: http1} {
		site := serveFolder(t, "BENTPIPE_ALPN="+protocol)
		if response, err := client(t, other, "server").Get("https://" + site.address + "/a.js"); err == nil {
			t.Errorf("a server of %s: %s over %s", protocol, response.Status, other)
		}
	}
}

func TestInTheClear(t *testing.T) {
	site := serveFolder(t, "BENTPIPE_ALPN=http/1.1", "BENTPIPE_OPTIONS=tls=off")
	response, body := site.get(t, client(t, http1, ""), "http", "/a.js")
	if response.Proto != "HTTP/1.1" || response.TLS != nil || !bytes.Equal(body, content) {
		t.Errorf("%s, %d bytes", response.Proto, len(body))
	}
}

func TestAltSvc(t *testing.T) {
	for option, is := range map[string]bool{"": true, "altsvc=on": true, "altsvc=off": false} {
		site := serveFolder(t, "BENTPIPE_OPTIONS="+option)
		want := ""
		if is {
			_, port, _ := strings.Cut(site.address, ":")
			want = `h3=":` + port + `"`
		}
		for _, path := range []string{"/a.js", "/absent"} {
			response, _ := site.get(t, client(t, http3, "server"), "https", path)
			if got := response.Header.Get("Alt-Svc"); got != want {
				t.Errorf("%q: %s: %q: want %q", option, path, got, want)
			}
		}
	}
}

func TestNoAltSvcOverTCP(t *testing.T) {
	for _, protocol := range []string{http1, http2} {
		site := serveFolder(t, "BENTPIPE_ALPN="+protocol)
		response, _ := site.get(t, client(t, protocol, "server"), "https", "/a.js")
		if got := response.Header.Get("Alt-Svc"); got != "" {
			t.Errorf("%s: %s", protocol, got)
		}
	}
}
