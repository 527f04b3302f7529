package endpoint

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
)

// TestMain makes the program out of the test binary: with the argument --virtual-time, or with the variable ROLE, it
// is an endpoint and never returns. Without them it runs the tests.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "--virtual-time":
		os.Args = []string{os.Args[0], "-test.run=^TestVirtualTimeProgram$"}
	case os.Getenv("ROLE") != "":
		exit(runSockets())
	default:
		flag.Parse()
		if skip := flag.Lookup("test.skip"); skip.Value.String() == "" {
			skip.Value.Set("^TestVirtualTimeProgram$")
		}
	}
	os.Exit(m.Run())
}

// TestVirtualTimeProgram is no test: it is the program in virtual time, which needs the *testing.T.
func TestVirtualTimeProgram(t *testing.T) {
	// One goroutine at a time, and none of the collector's in between: what runs when must not depend on the machine.
	// A process lives for one trial; only one that would grow beyond the limit collects at all.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)
	os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")

	p := &pipe{in: 3, out: 4}
	kind, body, err := p.read()
	if err != nil {
		exit(fmt.Errorf("want HELLO: %w", err))
	}
	if kind != frameHello {
		exit(fmt.Errorf("file descriptor 3: a frame of type %d, want HELLO", kind))
	}
	h, seed, err := parseHello(body)
	if err != nil {
		exit(err)
	}
	config, err := h.quicConfig()
	if err != nil {
		exit(err)
	}
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(*testing.T) { exit(runVirtual(p, h, config)) })
}

// exit ends the program as CONTRACT section 2 says.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bentpipe-endpoint-quic-go:", err)
	}
	os.Exit(exitCode(err))
}
