package endpoint

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	family "bentpipe-endpoint-go-family"

	"github.com/quic-go/quic-go"
)

func TestSecondConnectionInZeroRTT(t *testing.T) {
	for testcase, second := range map[string]time.Duration{
		// The first connection takes two round trips; the second as long, or less by one.
		"resumption": 4 * 600 * time.Millisecond,
		"zerortt":    3 * 600 * time.Millisecond,
	} {
		t.Run(testcase, func(t *testing.T) {
			x := newTrial(t, satellite, 1000)
			x.hello.Testcase = testcase
			x.hello.Requests = append(x.hello.Requests, "https://server:443/file")
			x.hello.Keylog = filepath.Join(t.TempDir(), "secrets")
			x.run(t)
			if x.clientBye.Error != nil || x.serverBye.Error != nil {
				t.Errorf("errors: client %q, server %q", text(x.clientBye.Error), text(x.serverBye.Error))
			}
			expectTime(t, "first reply", x.clientBye.Requests[0].LastByteNS, 1200*time.Millisecond, 1250*time.Millisecond)
			expectTime(t, "second reply", x.clientBye.Requests[1].LastByteNS, second, second+50*time.Millisecond)
			secrets, err := os.ReadFile(x.hello.Keylog)
			check(t, err)
			if early := strings.Contains(string(secrets), "CLIENT_EARLY_TRAFFIC_SECRET "); early != (testcase == "zerortt") {
				t.Errorf("a secret of 0-RTT: %v", early)
			}
		})
	}
}

func TestUpload(t *testing.T) {
	x := newTrial(t, path{delay: 300e6, rate: 20e6, lossStep: 97, lossFrom: 20}, 300_000)
	x.hello.Testcase = "upload"
	x.hello.Requests = append(x.hello.Requests, "https://server:443/in/empty")
	check(t, os.Mkdir(filepath.Join(x.hello.WWW, "in"), 0o755))
	check(t, os.WriteFile(filepath.Join(x.hello.WWW, "in", "empty"), nil, 0o644))
	x.run(t)
	if x.clientBye.Error != nil || x.serverBye.Error != nil {
		t.Errorf("errors: client %q, server %q", text(x.clientBye.Error), text(x.serverBye.Error))
	}
	x.expectFile(t, "file", 300_000)
	x.expectFile(t, "in/empty", 0)
	r := x.clientBye.Requests[0]
	if r.Bytes != 300_000 || r.FirstByteNS == nil || r.LastByteNS == nil || *r.LastByteNS < *r.FirstByteNS+600e6 {
		t.Errorf("reported %+v", r)
	}
}

func TestFixedPacketSize(t *testing.T) {
	for option, want := range map[string]int{"1200": 1200, "1280": 1280} {
		x := newTrial(t, satellite, 300_000)
		x.hello.Options["mtu"] = option
		x.run(t)
		if x.largest != want {
			t.Errorf("mtu=%s: a datagram of %d bytes", option, x.largest)
		}
	}
}

// loopback is a client connection of this process.
func loopback(t *testing.T, address string) *quic.Conn {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{family.HQ}}
	conn, err := quic.DialAddr(t.Context(), address, config, nil)
	check(t, err)
	t.Cleanup(func() { conn.CloseWithError(0, "") })
	return conn
}

func TestServerRefuses(t *testing.T) {
	for testcase, questions := range map[string][]string{
		"transfer": {"PUT /file\r\nx", "GET /file", "GET /file\r\nx", "GET /../certs\r\n", "POST /file\r\n", "", strings.Repeat("GET", 9000)},
		"upload": {"GET /file\r\n", "PUT file\r\nx", "PUT /../outside\r\nx", "PUT /in/../../outside\r\nx", "PUT /\r\nx",
			"PUT /in/\r\nx", "PUT /file", "PUT /link/outside\r\nx", "PUT /" + strings.Repeat("x", 9000) + "\r\nx"},
	} {
		t.Run(testcase, func(t *testing.T) {
			x := newTrial(t, satellite, 1000)
			x.hello.Testcase = testcase
			around := filepath.Dir(x.hello.Downloads)
			check(t, os.Symlink(around, filepath.Join(x.hello.Downloads, "link")))
			_, address := startSocketServer(t, x.hello)
			conn := loopback(t, address)
			for _, question := range questions {
				stream, err := conn.OpenStreamSync(t.Context())
				check(t, err)
				io.WriteString(stream, question)
				stream.Close()
				if reply, err := io.ReadAll(stream); err == nil {
					t.Errorf("%.30q was answered with %d bytes", question, len(reply))
				}
			}
			if _, err := os.Stat(filepath.Join(around, "outside")); err == nil {
				t.Error("a file outside of the folder was written")
			}
		})
	}
}

// TestRejectedEarlyData has a server change its limits after the first connection, for which it must reject 0-RTT.
func TestRejectedEarlyData(t *testing.T) {
	x := newTrial(t, satellite, 1000)
	x.hello.Testcase = "zerortt"
	secrets, err := serverTLS(&family.Environment{Hello: &x.hello, Logs: &family.Logs{}})
	check(t, err)
	var connections atomic.Int64
	config := &quic.Config{Allow0RTT: true}
	config.GetConfigForClient = func(*quic.ClientInfo) (*quic.Config, error) {
		return &quic.Config{Allow0RTT: true, MaxIncomingStreams: 100 - connections.Add(1)}, nil
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(t, err)
	defer socket.Close()
	listener, err := (&quic.Transport{Conn: socket}).ListenEarly(secrets, config)
	check(t, err)
	go func() {
		for {
			conn, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			go func() {
				for {
					stream, err := conn.AcceptStream(context.Background())
					if err != nil {
						return
					}
					io.ReadAll(stream)
					stream.Write(content(1000))
					stream.Close()
				}
			}()
		}
	}()
	url := " https://" + socket.LocalAddr().String()
	x.hello.Keylog = filepath.Join(t.TempDir(), "secrets")
	client := socketProgram(t, x.hello, "REQUESTS="+url+"/first"+url+"/second"+url+"/third")
	if err := client.Run(); err != nil {
		t.Fatalf("client: %v: %s", err, client.Stderr)
	}
	for _, name := range []string{"first", "second", "third"} {
		x.expectFile(t, name, 1000)
	}
	log, err := os.ReadFile(x.hello.Keylog)
	check(t, err)
	if connections.Load() != 2 || !strings.Contains(string(log), "CLIENT_EARLY_TRAFFIC_SECRET ") {
		t.Errorf("%d connections, want a second one that tries 0-RTT", connections.Load())
	}
}
