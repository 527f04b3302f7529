package endpoint

import (
	"flag"
	"os"
	"testing"
)

// TestMain makes the program out of the test binary; started otherwise it runs the tests.
func TestMain(m *testing.M) {
	program.Main(m)
	flag.Parse()
	if skip := flag.Lookup("test.skip"); skip.Value.String() == "" {
		skip.Value.Set("^TestVirtualTimeProgram$")
	}
	os.Exit(m.Run())
}

// TestVirtualTimeProgram is no test: it is the program in virtual time, which needs the *testing.T.
func TestVirtualTimeProgram(t *testing.T) {
	os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	program.VirtualTime(t)
}
