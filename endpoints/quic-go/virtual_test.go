package endpoint

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var satellite = path{delay: 300e6, rate: 20e6}

func TestTransfer(t *testing.T) {
	x := newTrial(t, satellite, 1<<20)
	x.run(t)
	t.Logf("virtual %v, packets: client %d, server %d", x.virtual, x.client.sent, x.server.sent)
	x.expectFile(t, "file", 1<<20)
	if x.clientBye.Error != nil || x.serverBye.Error != nil {
		t.Errorf("errors: client %q, server %q", text(x.clientBye.Error), text(x.serverBye.Error))
	}
	r := x.clientBye.Requests[0]
	if r.Path != "/file" || r.Bytes != 1<<20 {
		t.Errorf("reported %q with %d bytes", r.Path, r.Bytes)
	}
	// One round trip, then one more, at 600 ms each and a little for the rate; then the file at 20 Mbit/s.
	expectTime(t, "handshake", x.clientBye.HandshakeNS, 600*time.Millisecond, 610*time.Millisecond)
	expectTime(t, "first byte", r.FirstByteNS, 1200*time.Millisecond, 1220*time.Millisecond)
	expectTime(t, "last byte", r.LastByteNS, 1200*time.Millisecond+time.Second*8<<20/20e6, 5*time.Second)
}

func (x *trial) expectFile(t *testing.T, name string, size int) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(x.hello.Downloads, name))
	check(t, err)
	if !bytes.Equal(got, content(size)) {
		t.Errorf("%s: %d bytes that differ from the %d served", name, len(got), size)
	}
}

func expectTime(t *testing.T, what string, got *uint64, low, high time.Duration) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: never", what)
	} else if d := time.Duration(*got); d < low || d > high {
		t.Errorf("%s at %v, want %v to %v", what, d, low, high)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestSameSeedSamePackets(t *testing.T) {
	for name, link := range map[string]path{
		"clean": satellite,
		"lossy": {delay: 300e6, rate: 20e6, lossStep: 97, lossFrom: 20},
		"short": {delay: 15e6, rate: 10e6},
	} {
		t.Run(name, func(t *testing.T) {
			var trials [6]*trial
			var pair sync.WaitGroup
			for i := range trials {
				trials[i] = newTrial(t, link, 1<<20)
				pair.Go(func() { trials[i].run(t) })
				if i%2 == 1 {
					pair.Wait()
				}
			}
			for i, x := range trials {
				if !bytes.Equal(x.packets, trials[0].packets) {
					t.Errorf("trial %d sent other packets than trial 0", i)
				}
			}
		})
	}
}

func TestAnotherSeedOtherPackets(t *testing.T) {
	a, b := newTrial(t, satellite, 1000), newTrial(t, satellite, 1000)
	b.hello.Seed = "0123456789abcdef"
	a.run(t)
	b.run(t)
	if bytes.Equal(a.packets, b.packets) {
		t.Error("two seeds gave the same packets")
	}
}

func TestLogsChangeNoPacket(t *testing.T) {
	plain, logged := newTrial(t, satellite, 1<<20), newTrial(t, satellite, 1<<20)
	folder := filepath.Join(filepath.Dir(logged.hello.WWW), "qlog")
	logged.hello.Qlog, logged.hello.Keylog = folder, filepath.Join(folder, "secrets")
	plain.run(t)
	logged.run(t)
	if !bytes.Equal(plain.packets, logged.packets) {
		t.Error("other packets are sent when logs are written")
	}
	secrets, err := os.ReadFile(logged.hello.Keylog)
	check(t, err)
	if !strings.Contains(string(secrets), "SERVER_TRAFFIC_SECRET_0 ") {
		t.Errorf("secrets: %s", secrets)
	}
	for _, side := range []string{"client", "server"} {
		names, err := filepath.Glob(filepath.Join(folder, "*_"+side+".sqlog"))
		check(t, err)
		if len(names) != 1 {
			t.Fatalf("%s: %d qlog files, want 1", side, len(names))
		}
		checkQlog(t, names[0])
	}
}

func TestManyRequests(t *testing.T) {
	x := newTrial(t, satellite, 30000)
	x.hello.Requests = nil
	for range 150 { // more than the 100 streams that a server allows at first
		x.hello.Requests = append(x.hello.Requests, "https://server:443/file")
	}
	check(t, os.Mkdir(filepath.Join(x.hello.WWW, "in"), 0o755))
	check(t, os.WriteFile(filepath.Join(x.hello.WWW, "in", "empty"), nil, 0o644))
	x.hello.Requests = append(x.hello.Requests, "https://server:443/in/empty")
	x.run(t)
	if x.clientBye.Error != nil {
		t.Error(*x.clientBye.Error)
	}
	for i, r := range x.clientBye.Requests[:150] {
		if r.Bytes != 30000 {
			t.Errorf("request %d: %d bytes", i, r.Bytes)
		}
	}
	x.expectFile(t, "in/empty", 0)
}

func TestRefusedPaths(t *testing.T) {
	x := newTrial(t, satellite, 1000)
	outside := filepath.Join(filepath.Dir(x.hello.WWW), "outside")
	check(t, os.WriteFile(outside, content(10), 0o644))
	check(t, os.Symlink(outside, filepath.Join(x.hello.WWW, "link")))
	x.hello.Requests = []string{"https://server:443/absent", "https://server:443/link", "https://server:443/file"}
	x.run(t)
	x.expectFile(t, "file", 1000)
	for _, r := range x.clientBye.Requests[:2] {
		if _, err := os.Stat(filepath.Join(x.hello.Downloads, r.Path)); r.Bytes > 0 || err == nil {
			t.Errorf("%s was answered", r.Path)
		}
	}
	if !strings.Contains(text(x.clientBye.Error), "/absent") {
		t.Errorf("error %q, want one about /absent", text(x.clientBye.Error))
	}
}

func TestWindowLimits(t *testing.T) {
	x := newTrial(t, satellite, 400_000)
	x.hello.Options["window"] = "50000"
	x.run(t)
	x.expectFile(t, "file", 400_000)
	// After the first byte at 1.2 s, the server waits seven times for credit, a round trip each.
	expectTime(t, "last byte", x.clientBye.Requests[0].LastByteNS, 9*600*time.Millisecond, 20*600*time.Millisecond)
}

func TestDeadPath(t *testing.T) {
	x := newTrial(t, path{delay: 300e6, rate: 20e6, lossStep: 1, lossFrom: 50}, 10<<20)
	x.limit = 100e9
	x.run(t)
	if got := text(x.clientBye.Error); got != "idle timeout" {
		t.Errorf("client's error %q, want idle timeout", got)
	}
	if got := text(x.serverBye.Error); got != "idle timeout" {
		t.Errorf("server's error %q, want idle timeout", got)
	}
	if !x.client.done || !x.server.done {
		t.Errorf("done: client %v, server %v", x.client.done, x.server.done)
	}
	if x.clientBye.Requests[0].Bytes >= 10<<20 {
		t.Error("a dead path carried the whole file")
	}
}

func TestNoAnswer(t *testing.T) {
	x := newTrial(t, path{delay: 300e6, rate: 20e6, lossStep: 1, lossFrom: 1}, 1000)
	x.limit = 60e9
	x.run(t)
	if !x.client.done || x.clientBye.HandshakeNS != nil || x.clientBye.Error == nil {
		t.Errorf("done %v, handshake %v, error %q", x.client.done, x.clientBye.HandshakeNS, text(x.clientBye.Error))
	}
}

func BenchmarkSatellite10MiB(b *testing.B) {
	x := newTrial(b, satellite, 10<<20)
	for b.Loop() {
		*x = trial{hello: x.hello, limit: x.limit}
		x.client.inbound.path, x.server.inbound.path = satellite, satellite
		x.run(b)
		b.ReportMetric(x.virtual.Seconds(), "virtual-s")
		b.ReportMetric(float64(x.cpu.Milliseconds()), "cpu-ms")
	}
	b.ReportMetric(x.virtual.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "virtual/wall")
}
