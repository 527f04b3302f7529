package endpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	family "bentpipe-endpoint-go-family"
)

// never is a next wake that does not come.
const never = math.MaxUint64

// datagram is one on its way.
type datagram struct {
	time  uint64 // ns since the start of the trial
	ecn   byte
	bytes []byte
}

// child is an endpoint under test, and the test's end of its two pipes.
type child struct {
	t      testing.TB
	cmd    *exec.Cmd
	ask    *os.File
	answer *os.File
	stderr bytes.Buffer
}

// startChild runs this very binary as an endpoint in virtual time.
func startChild(t testing.TB) *child {
	t.Helper()
	askRead, ask, err := os.Pipe()
	check(t, err)
	answer, answerWrite, err := os.Pipe()
	check(t, err)
	c := &child{t: t, ask: ask, answer: answer}
	c.cmd = exec.Command(os.Args[0], "--virtual-time")
	c.cmd.ExtraFiles = []*os.File{askRead, answerWrite}
	c.cmd.Stderr = &c.stderr
	check(t, c.cmd.Start())
	askRead.Close()
	answerWrite.Close()
	t.Cleanup(func() {
		ask.Close()
		c.cmd.Process.Kill()
		c.cmd.Wait()
		answer.Close()
	})
	return c
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *child) send(kind byte, body []byte) {
	c.t.Helper()
	message := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	_, err := c.ask.Write(append(append(message, kind), body...))
	check(c.t, err)
}

func (c *child) sendHello(h family.Hello) {
	c.t.Helper()
	body, err := json.Marshal(h)
	check(c.t, err)
	c.send(family.MessageHello, body)
}

// receive reads the next answer, which must be of the given type.
func (c *child) receive(kind byte) []byte {
	c.t.Helper()
	head := make([]byte, 5) // length and type
	if _, err := io.ReadFull(c.answer, head); err != nil {
		c.cmd.Wait()
		c.t.Fatalf("want a message of type %d: %v; exit code %d; stderr: %s", kind, err, c.cmd.ProcessState.ExitCode(), &c.stderr)
	}
	if head[4] != kind {
		c.t.Fatalf("a message of type %d, want %d", head[4], kind)
	}
	body := make([]byte, binary.LittleEndian.Uint32(head))
	_, err := io.ReadFull(c.answer, body)
	check(c.t, err)
	return body
}

// wait returns the exit code.
func (c *child) wait() int {
	c.t.Helper()
	ended := time.AfterFunc(60*time.Second, func() { c.cmd.Process.Kill() })
	defer ended.Stop()
	c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

// path is a link in both directions: a rate, an unlimited queue, a delay, and every nth datagram lost.
type path struct {
	delay    uint64 // ns
	rate     uint64 // bit/s
	lossStep int    // 0: nothing is lost
	lossFrom int    // number of the first datagram that can be lost
}

// direction is one direction of a path and what is in it.
type direction struct {
	path
	free   uint64
	count  int
	flight []datagram
}

// carry takes a departure.
func (d *direction) carry(packet datagram) {
	d.count++
	d.free = max(d.free, packet.time) + uint64(len(packet.bytes)+28)*8*1e9/d.rate
	if d.lossStep > 0 && d.count >= d.lossFrom && d.count%d.lossStep == 0 {
		return
	}
	d.flight = append(d.flight, datagram{d.free + d.delay, packet.ecn, packet.bytes})
}

// until takes out what arrives before t.
func (d *direction) until(t uint64) (arriving []datagram) {
	n := 0
	for n < len(d.flight) && d.flight[n].time < t {
		n++
	}
	arriving, d.flight = d.flight[:n], d.flight[n:]
	return arriving
}

// end is one endpoint of a trial as its coordinator sees it.
type end struct {
	*child
	inbound direction
	now     uint64
	wake    uint64
	done    bool
	sent    int
}

func (e *end) next() uint64 {
	if len(e.inbound.flight) > 0 {
		return min(e.wake, e.inbound.flight[0].time)
	}
	return e.wake
}

func (e *end) run(until uint64) {
	arriving := e.inbound.until(until)
	body := binary.LittleEndian.AppendUint64(nil, until)
	body = binary.LittleEndian.AppendUint32(body, uint32(len(arriving)))
	for _, a := range arriving {
		body = binary.LittleEndian.AppendUint64(body, a.time)
		body = append(body, a.ecn)
		body = binary.LittleEndian.AppendUint16(body, uint16(len(a.bytes)))
		body = append(body, a.bytes...)
	}
	e.send(family.MessageRun, body)
}

// ran reads the answer to run, and checks what the contract says about it.
func (e *end) ran(until uint64) []datagram {
	e.t.Helper()
	body := e.receive(family.MessageRan)
	e.wake, e.done = binary.LittleEndian.Uint64(body), body[8] == 1
	if e.wake < until {
		e.t.Fatalf("next wake %d before until %d", e.wake, until)
	}
	var packets []datagram
	rest, last := body[13:], e.now
	for range binary.LittleEndian.Uint32(body[9:]) {
		end := 11 + int(binary.LittleEndian.Uint16(rest[9:]))
		d := datagram{binary.LittleEndian.Uint64(rest), rest[8], rest[11:end]}
		if d.time < last || d.time >= until {
			e.t.Fatalf("a departure at %d, want %d to %d", d.time, last, until)
		}
		packets = append(packets, d)
		rest, last = rest[end:], d.time
	}
	e.now = until
	e.sent += len(packets)
	return packets
}

// trial is one run of a client against a server, both this binary.
type trial struct {
	client, server end
	hello          family.Hello
	limit          uint64
	packets        []byte // all departures of both sides
	largest        int    // of them, in bytes
	virtual        time.Duration
	cpu            time.Duration // of both processes
	clientBye      family.Bye
	serverBye      family.Bye
}

// newTrial prepares folders and a file of the given size, filled from a fixed seed.
func newTrial(t testing.TB, link path, size int) *trial {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"www", "downloads", "qlog"} {
		check(t, os.Mkdir(filepath.Join(folder, name), 0o755))
	}
	check(t, os.WriteFile(filepath.Join(folder, "www", "file"), content(size), 0o644))
	certs, err := filepath.Abs("../certs")
	check(t, err)
	x := &trial{limit: 600e9}
	x.hello = family.Hello{
		Contract: 1, Role: "client", Testcase: "transfer", Requests: []string{"https://server:443/file"},
		Options: map[string]string{}, Seed: "00f1e2d3c4b5a697", Epoch: 946684800,
		Local: "192.0.2.1:50000", Remote: "198.51.100.1:443",
		WWW: filepath.Join(folder, "www"), Downloads: filepath.Join(folder, "downloads"), Certs: certs, ALPN: family.HQ,
	}
	x.client.inbound.path, x.server.inbound.path = link, link
	return x
}

// content is repeatable text without long repetitions.
func content(size int) []byte {
	text := make([]byte, 0, size+32)
	for block := sha256.Sum256(nil); len(text) < size; block = sha256.Sum256(block[:]) {
		text = append(text, block[:]...)
	}
	return text[:size]
}

func (x *trial) run(t testing.TB) {
	t.Helper()
	client, server := x.hello, x.hello
	server.Role, server.Local, server.Remote = "server", client.Remote, client.Local
	server.Seed, server.Requests, server.Keylog = "1"+client.Seed[1:], nil, ""
	x.client.child, x.server.child = startChild(t), startChild(t)
	x.client.begin(client)
	x.server.begin(server)
	for !x.client.done || !x.server.done {
		next := min(x.client.next(), x.server.next())
		if next > x.limit {
			break
		}
		until := next + x.client.inbound.delay
		x.client.run(until)
		x.server.run(until)
		for _, side := range []struct{ from, to *end }{{&x.client, &x.server}, {&x.server, &x.client}} {
			for _, d := range side.from.ran(until) {
				x.largest = max(x.largest, len(d.bytes))
				x.packets = fmt.Appendf(x.packets, "%d %d %x\n", d.time, d.ecn, d.bytes)
				side.to.inbound.carry(d)
			}
		}
	}
	x.virtual = time.Duration(min(x.client.now, math.MaxInt64))
	x.client.end(&x.clientBye)
	x.server.end(&x.serverBye)
	for _, e := range []*end{&x.client, &x.server} {
		x.cpu += e.cmd.ProcessState.UserTime() + e.cmd.ProcessState.SystemTime()
	}
}

func (e *end) begin(h family.Hello) {
	e.t.Helper()
	e.sendHello(h)
	var r family.Ready
	check(e.t, json.Unmarshal(e.receive(family.MessageReady), &r))
	if !strings.HasPrefix(r.Version, "quic-go v") {
		e.t.Errorf("version %q", r.Version)
	}
	e.wake = never
	if r.NextWake != nil {
		e.wake = *r.NextWake
	}
}

func (e *end) end(b *family.Bye) {
	e.t.Helper()
	e.send(family.MessageFinish, nil)
	check(e.t, json.Unmarshal(e.receive(family.MessageBye), b))
	if code := e.wait(); code != 0 {
		e.t.Fatalf("exit code %d after BYE: %s", code, &e.stderr)
	}
}
