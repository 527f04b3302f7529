package endpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	family "bentpipe-endpoint-go-family"
)

// TestFilesOverHTTP3 has more requests than the 100 streams that a server allows at first.
func TestFilesOverHTTP3(t *testing.T) {
	x := newTrial(t, satellite, 3000)
	x.hello.ALPN, x.hello.Testcase, x.hello.Requests = family.H3, "multiplexing", nil
	for range 150 {
		x.hello.Requests = append(x.hello.Requests, "https://server:443/file")
	}
	x.hello.Requests = append(x.hello.Requests, "https://server:443/absent")
	x.run(t)
	x.expectFile(t, "file", 3000)
	for i, r := range x.clientBye.Requests[:150] {
		if r.Bytes != 3000 || r.AskedNS != nil {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	if got := text(x.clientBye.Error); got != "request /absent: status 404" || x.serverBye.Error != nil {
		t.Errorf("errors: client %q, server %q", got, text(x.serverBye.Error))
	}
}

func TestPage(t *testing.T) {
	x := newTrial(t, satellite, 100_000)
	x.hello.ALPN, x.hello.Testcase = family.H3, "page"
	check(t, os.WriteFile(filepath.Join(x.hello.WWW, "empty"), nil, 0o644))
	for _, path := range []string{"/empty", "/absent", "/file", "/file", "/empty"} {
		x.hello.Requests = append(x.hello.Requests, "https://server:443"+path)
	}
	x.hello.Page = []family.Resource{
		{Incremental: true},
		{Initiator: new(uint64(0)), WaitMS: 1000}, // at the end of the first
		{Initiator: new(uint64(0)), FoundAfterBytes: new(uint64(0)), Urgency: 7},
		{Initiator: new(uint64(2))},                                  // which is absent
		{Initiator: new(uint64(1)), FoundAfterBytes: new(uint64(1))}, // which is empty
		{Initiator: new(uint64(1)), Urgency: 3},
	}
	x.run(t)
	const ms, round = time.Millisecond, 600 * time.Millisecond
	got := x.clientBye.Requests
	expectTime(t, "the document is asked for", got[0].AskedNS, round, round+10*ms)
	expectTime(t, "the document begins", got[0].FirstByteNS, 2*round, 2*round+20*ms)
	expectTime(t, "what is found in it is asked for", got[2].AskedNS, 2*round, 2*round+20*ms)
	wait := time.Duration(*got[0].LastByteNS) + time.Second
	expectTime(t, "what is found at its end is asked for", got[1].AskedNS, wait, wait+1)
	end := time.Duration(*got[1].LastByteNS)
	expectTime(t, "an empty one has an end", got[1].LastByteNS, wait+round, wait+round+20*ms)
	for _, number := range []int{4, 5} {
		expectTime(t, "what the empty one leads to is asked for", got[number].AskedNS, end, end)
	}
	if got[2].FirstByteNS == nil || got[2].LastByteNS != nil || got[3].AskedNS != nil {
		t.Errorf("reported %+v and %+v", got[2], got[3])
	}
	if got := text(x.clientBye.Error); got != "request /absent: status 404" || x.serverBye.Error != nil {
		t.Errorf("errors: client %q, server %q", got, text(x.serverBye.Error))
	}
}

func TestPageOnADeadPath(t *testing.T) {
	x := newTrial(t, path{delay: 300e6, rate: 20e6, lossStep: 1, lossFrom: 50}, 1<<20)
	x.hello.ALPN, x.hello.Testcase, x.limit = family.H3, "page", 200e9
	x.hello.Requests = append(x.hello.Requests, "https://server:443/file")
	x.hello.Page = []family.Resource{{}, {Initiator: new(uint64(0)), FoundAfterBytes: new(uint64(1)), WaitMS: 3_600_000}}
	x.run(t)
	if got := text(x.clientBye.Error); got != "idle timeout" || !x.client.done {
		t.Errorf("client's error %q, want idle timeout; done: %v", got, x.client.done)
	}
}

// TestBadPages has a page refused in either mode, before the first packet and not as something that is unsupported.
func TestBadPages(t *testing.T) {
	x := newTrial(t, satellite, 1000)
	x.hello.ALPN, x.hello.Testcase = family.H3, "page"
	x.hello.Page = []family.Resource{{Urgency: 8}}
	c := startChild(t)
	c.sendHello(x.hello)
	if code := c.wait(); code != 1 || !strings.Contains(c.stderr.String(), "resource 0: urgency: it is 7 at most") {
		t.Errorf("virtual time: exit code %d: %s", code, &c.stderr)
	}
	file := filepath.Join(t.TempDir(), "page.json")
	check(t, os.WriteFile(file, []byte(`[{"initiator": 0, "wait_ms": 0, "urgency": 0, "incremental": true}]`), 0o644))
	client := socketProgram(t, x.hello, "REQUESTS=https://127.0.0.1:1/file", "BENTPIPE_ALPN=h3", "PAGE="+file)
	client.Run()
	if code := client.ProcessState.ExitCode(); code != 1 {
		t.Errorf("sockets: exit code %d: %s", code, client.Stderr)
	}
}
