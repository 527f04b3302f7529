// Package endpoint puts golang.org/x/net/quic behind Bentpipe's endpoint contract (endpoints/CONTRACT.md), as client
// and as server.
//
// In virtual time the whole stack lives in a bubble of testing/synctest, whose clock stands still until every
// goroutine in it is blocked. Bubbles are for tests only, so the program is a compiled test binary whose TestMain takes
// over (main_test.go). The same binary talks UDP when it is started in socket mode.
package endpoint

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/quic"
)

// bubbleEpoch is the wall-clock time at which every synctest bubble starts, in Unix seconds: 1 January 2000.
const bubbleEpoch = 946684800

// unsupported is a role, test case, option or option value that the program does not offer: exit code 127.
type unsupported struct{ what string }

func (u unsupported) Error() string { return "unsupported: " + u.what }

// exitCode is the exit code that CONTRACT section 2 asks for when the program ends with err.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[unsupported](err); ok {
		return 127
	}
	return 1
}

// hello is the body of HELLO. Socket mode fills it from the environment.
type hello struct {
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
}

// ready is the body of READY.
type ready struct {
	Stack    string  `json:"stack"`
	Version  string  `json:"version"`
	Driver   string  `json:"driver"`
	NextWake *uint64 `json:"next_wake"`
}

// bye is the body of BYE; times are in nanoseconds since the start of the trial, nil for what never happened.
type bye struct {
	HandshakeNS *uint64  `json:"handshake_ns"`
	Requests    []answer `json:"requests"`
	Error       *string  `json:"error"`
}

// answer is what has come of a request so far.
type answer struct {
	Path        string  `json:"path"`
	Bytes       uint64  `json:"bytes"`
	FirstByteNS *uint64 `json:"first_byte_ns"`
	LastByteNS  *uint64 `json:"last_byte_ns"`
}

// parseHello reads HELLO, with its seed, and checks what matters in virtual time only.
func parseHello(body []byte) (*hello, uint64, error) {
	var h hello
	if err := json.Unmarshal(body, &h); err != nil {
		return nil, 0, fmt.Errorf("HELLO: %w", err)
	}
	if h.Contract != 1 {
		return nil, 0, unsupported{fmt.Sprintf("contract %d: this program speaks contract 1", h.Contract)}
	}
	if h.Epoch != bubbleEpoch {
		return nil, 0, unsupported{fmt.Sprintf("epoch_unix_s %d: a synctest bubble starts at %d", h.Epoch, bubbleEpoch)}
	}
	seed, err := strconv.ParseUint(h.Seed, 16, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("HELLO: seed %q: want 64 bits in hexadecimal", h.Seed)
	}
	return &h, seed, nil
}

// quicConfig checks role, test case and options, and turns the options into the library's configuration.
// Whatever is not supported is reported as an [unsupported] error.
func (h *hello) quicConfig() (*quic.Config, error) {
	if h.Role != "client" && h.Role != "server" {
		return nil, unsupported{fmt.Sprintf("role %q: want client or server", h.Role)}
	}
	if h.Testcase != "transfer" {
		return nil, unsupported{fmt.Sprintf("test case %q: want transfer", h.Testcase)}
	}
	config := &quic.Config{}
	for name, value := range h.Options {
		if err := setOption(config, name, value); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// defaultBuffer is how much the library takes from a writer before it is acknowledged, in bytes, unless it is told.
const defaultBuffer = 1 << 20

func setOption(config *quic.Config, name, value string) error {
	switch name {
	case "cc":
		if value != "newreno" {
			return unsupported{fmt.Sprintf("option cc=%s: x/net/quic has newreno only", value)}
		}
	case "window":
		window, err := strconv.ParseInt(value, 10, 62)
		if err != nil || window <= 0 {
			return unsupported{fmt.Sprintf("option window=%s: want a number of bytes", value)}
		}
		config.MaxStreamReadBufferSize = window
		config.MaxConnReadBufferSize = window
		// A sender must be able to fill the other side's window; a small window must not slow down the sender here.
		config.MaxStreamWriteBufferSize = max(window, defaultBuffer)
	default:
		return unsupported{fmt.Sprintf("option %s: x/net/quic takes cc and window", name)}
	}
	return nil
}

// goMod pins the library. A test binary has no record of its modules, which would be the usual source.
//
//go:embed go.mod
var goMod string

// version names the library as go.mod pins it.
func version() string {
	_, after, _ := strings.Cut(goMod, "golang.org/x/net ")
	number, _, _ := strings.Cut(after, "\n")
	return "x/net/quic " + number
}
