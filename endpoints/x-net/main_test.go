package endpoint

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
)

// TestMain makes the program out of the test binary: with the argument --virtual-time, or with the variable ROLE, it
// is an endpoint and never returns. It holds no test; those of Bentpipe start the program.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "--virtual-time":
		os.Args = []string{os.Args[0], "-test.run=^TestVirtualTimeProgram$"}
		os.Exit(m.Run())
	case os.Getenv("ROLE") != "":
		exit(runSockets())
	default:
		exit(errors.New("start it with --virtual-time, or with the variables of socket mode: endpoints/CONTRACT.md"))
	}
}

// TestVirtualTimeProgram is no test: it is the program in virtual time, which needs the *testing.T.
func TestVirtualTimeProgram(t *testing.T) {
	// One goroutine at a time, and none of the collector's in between: what runs when must not depend on the machine.
	// A process lives for one trial; only one that would grow beyond the limit collects at all.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)

	f := openFrames()
	kind, body, err := f.read()
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
	synctest.Test(t, func(*testing.T) { exit(runVirtual(f, h, config)) })
}

// exit ends the program as CONTRACT section 2 says.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bentpipe-endpoint-x-net:", err)
	}
	os.Exit(exitCode(err))
}
