package endpoint

import (
	"fmt"
	"os"
	"testing"

	family "bentpipe-endpoint-go-family"
)

// TestMain makes the program out of the test binary. It holds no test; those of Bentpipe start the program.
func TestMain(m *testing.M) {
	program.Main(m)
	fmt.Fprintln(os.Stderr, "bentpipe-endpoint-x-net:", family.ErrNotStarted)
	os.Exit(1)
}

// TestVirtualTimeProgram is no test: it is the program in virtual time, which needs the *testing.T.
func TestVirtualTimeProgram(t *testing.T) { program.VirtualTime(t) }
