package family

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bubbleEpoch is the wall-clock time at which every synctest bubble starts, in Unix seconds: 1 January 2000.
const bubbleEpoch = 946684800

// The application protocols.
const (
	HQ = "hq-interop"
	H3 = "h3"
)

// pageTestcase is the test case in which replies lead to further requests.
const pageTestcase = "page"

// Unsupported is a role, test case, option or option value that the program does not offer: exit code 127.
type Unsupported struct{ What string }

func (u Unsupported) Error() string { return "unsupported: " + u.What }

// exitCode is the exit code that endpoints/CONTRACT.md asks for when the program ends with err.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[Unsupported](err); ok {
		return 127
	}
	return 1
}

// Hello is the body of HELLO. Socket mode fills it from the environment.
type Hello struct {
	Contract  int               `json:"contract"`
	Role      string            `json:"role"`
	Testcase  string            `json:"testcase"`
	Requests  []string          `json:"requests"`
	Options   map[string]string `json:"options"`
	Seed      string            `json:"seed"`
	Epoch     int64             `json:"epoch_unix_s"`
	Local     string            `json:"local"`
	Remote    string            `json:"remote"`
	WWW       string            `json:"www"`
	Downloads string            `json:"downloads"`
	Certs     string            `json:"certs"`
	Keylog    string            `json:"keylog"`
	Qlog      string            `json:"qlog"`
	ALPN      string            `json:"alpn"`
	Page      []Resource        `json:"page"`
	Memory    *SharedMemory     `json:"shared_memory"`
	Paths     []Path            `json:"paths"` // none where there is one; in socket mode without ports of clients
	Report    string            `json:"-"`     // in socket mode a file for BYE

	migrateAfter *time.Duration // since the start; nil: a client stays where it is
}

// SharedMemory is memory for the bodies of messages: those to the program in its first half, from it in its second.
type SharedMemory struct {
	FD    int `json:"fd"`
	Bytes int `json:"bytes"`
}

// Ready is the body of READY.
type Ready struct {
	Stack    string  `json:"stack"`
	Version  string  `json:"version"`
	Driver   string  `json:"driver"`
	NextWake *uint64 `json:"next_wake"`
	Memory   bool    `json:"shared_memory"` // whether it has mapped that of HELLO
	Paths    bool    `json:"paths,omitempty"`
}

// Bye is the body of BYE; times are in nanoseconds since the start of the trial, nil for what never happened.
type Bye struct {
	HandshakeNS *uint64  `json:"handshake_ns"`
	Requests    []Answer `json:"requests"`
	Error       *string  `json:"error"`
}

// Answer is the reply to a request, as far as it has arrived.
type Answer struct {
	Path        string  `json:"path"`
	AskedNS     *uint64 `json:"asked_ns,omitempty"` // in page
	Bytes       uint64  `json:"bytes"`
	FirstByteNS *uint64 `json:"first_byte_ns"`
	LastByteNS  *uint64 `json:"last_byte_ns"`
}

// later is the BYE with times that count from ns earlier.
func (b Bye) later(ns uint64) Bye {
	shift := func(time *uint64) *uint64 {
		if time == nil {
			return nil
		}
		return new(*time + ns)
	}
	b.HandshakeNS = shift(b.HandshakeNS)
	b.Requests = slices.Clone(b.Requests)
	for i := range b.Requests {
		r := &b.Requests[i]
		r.AskedNS, r.FirstByteNS, r.LastByteNS = shift(r.AskedNS), shift(r.FirstByteNS), shift(r.LastByteNS)
	}
	return b
}

// parseHello reads HELLO, with its seed, and checks what matters in virtual time only.
func parseHello(body []byte) (*Hello, uint64, error) {
	h := Hello{ALPN: HQ}
	if err := json.Unmarshal(body, &h); err != nil {
		return nil, 0, fmt.Errorf("HELLO: %w", err)
	}
	if h.Contract != 1 {
		return nil, 0, Unsupported{fmt.Sprintf("contract %d: this program speaks contract 1", h.Contract)}
	}
	if h.Epoch != bubbleEpoch {
		return nil, 0, Unsupported{fmt.Sprintf("epoch_unix_s %d: a synctest bubble starts at %d", h.Epoch, bubbleEpoch)}
	}
	seed, err := strconv.ParseUint(h.Seed, 16, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("HELLO: seed %q: want 64 bits in hexadecimal", h.Seed)
	}
	return &h, seed, nil
}

// check holds role, test case, application protocol and options against what the stack offers.
func (h *Hello) check(stack *Stack) error {
	if h.Role != "client" && h.Role != "server" {
		return Unsupported{fmt.Sprintf("role %q: want client or server", h.Role)}
	}
	if !slices.Contains(stack.Testcases, h.Testcase) {
		return Unsupported{fmt.Sprintf("test case %q: want %s", h.Testcase, strings.Join(stack.Testcases, ", "))}
	}
	if h.ALPN != HQ && !slices.Contains(stack.ALPN, h.ALPN) {
		return Unsupported{fmt.Sprintf("application protocol %q: want %s", h.ALPN, strings.Join(append([]string{HQ}, stack.ALPN...), ", "))}
	}
	if h.ALPN == H3 && (h.Resumes() || h.uploads()) {
		return Unsupported{fmt.Sprintf("test case %s in h3: it is of hq-interop", h.Testcase)}
	}
	if h.ALPN == HQ && h.Loads() {
		return Unsupported{"test case page in hq-interop: it is of h3"}
	}
	if err := h.takeMigration(stack); err != nil {
		return err
	}
	for name, value := range h.Options {
		if err := stack.CheckOption(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Resumes is true in the test cases that have two connections, of which the second resumes the session of the first.
func (h *Hello) Resumes() bool { return h.Testcase == "resumption" || h.Testcase == "zerortt" }

// Loads is true in the test case page.
func (h *Hello) Loads() bool { return h.Testcase == pageTestcase }

func (h *Hello) uploads() bool { return h.Testcase == "upload" }

// Number reads the value of an option that is a number, from least to most.
func Number(name, value string, least, most uint64) (uint64, error) {
	number, err := strconv.ParseUint(value, 10, 64)
	if err != nil || number < least || number > most {
		return 0, Unsupported{fmt.Sprintf("option %s=%s: want a number from %d to %d", name, value, least, most)}
	}
	return number, nil
}

// Version is the version of a module as goMod, the text of a go.mod, pins it. A test binary has no record of its
// modules, which would be the usual source.
func Version(goMod, module string) string {
	_, after, _ := strings.Cut(goMod, module+" ")
	number, _, _ := strings.Cut(after, "\n")
	return number
}
