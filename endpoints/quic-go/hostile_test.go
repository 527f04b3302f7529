package endpoint

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"testing"

	family "bentpipe-endpoint-go-family"
)

// checkQlog holds that a file is a qlog of JSON text sequences whose times are those of the trial.
func checkQlog(t *testing.T, name string) {
	t.Helper()
	file, err := os.Open(name)
	check(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	count, last := 0, 0.0
	for ; lines.Scan(); count++ {
		var event struct {
			Time  float64
			Name  string
			Trace map[string]any
		}
		line, ok := bytes.CutPrefix(lines.Bytes(), []byte{0x1e})
		if !ok {
			t.Fatalf("%s: line %d is no record", name, count)
		}
		check(t, json.Unmarshal(line, &event))
		if count == 0 && !strings.Contains(string(line), `"wall_clock_time":"2000-01-01T`) {
			t.Errorf("%s: the reference time is not virtual: %s", name, line)
		}
		if event.Time < last || event.Time > 20000 {
			t.Errorf("%s: time %v after %v", name, event.Time, last)
		}
		last = event.Time
	}
	if count < 500 {
		t.Errorf("%s: %d records", name, count)
	}
}

func TestUnsupported(t *testing.T) {
	for name, change := range map[string]func(*family.Hello){
		"role":         func(h *family.Hello) { h.Role = "proxy" },
		"testcase":     func(h *family.Hello) { h.Testcase = "kqzjw" },
		"cubic":        func(h *family.Hello) { h.Options["cc"] = "cubic" },
		"small mtu":    func(h *family.Hello) { h.Options["mtu"] = "1199" },
		"large mtu":    func(h *family.Hello) { h.Options["mtu"] = "1281" },
		"option":       func(h *family.Hello) { h.Options["iw"] = "100" },
		"cc":           func(h *family.Hello) { h.Options["cc"] = "bbr" },
		"window":       func(h *family.Hello) { h.Options["window"] = "10MB" },
		"zero window":  func(h *family.Hello) { h.Options["window"] = "0" },
		"page in hq":   func(h *family.Hello) { h.Testcase = "page" },
		"upload in h3": func(h *family.Hello) { h.Testcase, h.ALPN = "upload", family.H3 },
		"protocol":     func(h *family.Hello) { h.ALPN = "h2" },
		"contract":     func(h *family.Hello) { h.Contract = 2 },
		"epoch":        func(h *family.Hello) { h.Epoch = 0 },
		"server, case": func(h *family.Hello) { h.Role, h.Testcase = "server", "kqzjw" },
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, satellite, 1000)
			change(&x.hello)
			c := startChild(t)
			c.sendHello(x.hello)
			if code := c.wait(); code != 127 {
				t.Errorf("exit code %d: %s", code, &c.stderr)
			}
			if n, _ := c.answer.Read(make([]byte, 1)); n > 0 {
				t.Error("a message was sent before exit code 127")
			}
		})
	}
}

func TestCoordinatorGoesAway(t *testing.T) {
	for name, begin := range map[string]func(*child){
		"before HELLO": func(*child) {},
		"in HELLO":     func(c *child) { c.ask.Write([]byte{50, 0, 0}) },
		"after HELLO": func(c *child) {
			c.sendHello(newTrial(c.t, satellite, 1000).hello)
			c.receive(family.MessageReady)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := startChild(t)
			begin(c)
			c.ask.Close()
			if code := c.wait(); code != 1 {
				t.Errorf("exit code %d: %s", code, &c.stderr)
			}
		})
	}
}

func TestRubbishOnThePipe(t *testing.T) {
	arrival := func(until, at uint64, count uint32) []byte {
		body := binary.LittleEndian.AppendUint64(nil, until)
		body = binary.LittleEndian.AppendUint32(body, count)
		body = binary.LittleEndian.AppendUint64(body, at)
		return append(body, 0, 1, 0, 'x')
	}
	for name, c := range map[string]struct {
		kind byte
		body []byte
		want string
	}{
		"unknown type":       {9, nil, "type 9"},
		"short RUN":          {family.MessageRun, []byte{1}, "too few"},
		"arrival at until":   {family.MessageRun, arrival(100, 100, 1), "arrival at 100"},
		"missing datagrams":  {family.MessageRun, arrival(100, 10, 2), "cut short"},
		"datagrams too many": {family.MessageRun, arrival(100, 10, 0), "after the last"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startChild(t)
			p.sendHello(newTrial(t, satellite, 1000).hello)
			p.receive(family.MessageReady)
			p.send(c.kind, c.body)
			if code := p.wait(); code != 1 || !strings.Contains(p.stderr.String(), c.want) {
				t.Errorf("exit code %d: %s", code, &p.stderr)
			}
		})
	}
}
