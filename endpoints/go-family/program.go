// Package family is the common part of endpoint programs of QUIC libraries in Go: all of the endpoint contract
// (endpoints/CONTRACT.md) that does not need to know the library.
//
// In virtual time the library lives in a bubble of testing/synctest, whose clock stands still until every goroutine in
// it is blocked. Bubbles are for tests only, so a program is a compiled test binary whose TestMain takes over. The
// same binary talks UDP when it is started in socket mode.
package family

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
)

// Stack is a QUIC library as the program needs it.
type Stack struct {
	Name      string
	Version   string
	Testcases []string
	ALPN      []string // application protocols beside HQ
	// CheckOption returns an error of type Unsupported for an option or value that the library does not take.
	CheckOption func(name, value string) error
	// NewClient prepares a client. What it returns is the client's life, which ends when nothing is left to do.
	NewClient func(*Client) (func(), error)
	// NewServer prepares a server. What it returns begins to listen; it must not block.
	NewServer func(*Server) (func() error, error)
	// Migrates says that a client can migrate to another path, for which it asks by [Client.AwaitMigration], and that a
	// server follows one that does.
	Migrates bool
	// Describe says in the contract's words why a connection ended; nil for an end without error.
	Describe func(error) *string
}

// Environment is the input of a role, in either mode.
type Environment struct {
	Hello  *Hello
	Socket net.PacketConn // in virtual time a *VirtualSocket
	Remote *net.UDPAddr   // client: the server
	Logs   *Logs
	Now    func() uint64 // ns since the start of the trial

	second func() (net.PacketConn, error) // a client that migrates: its socket on the second path

	eager bool // files are written as they come, not when save is called
	stack *Stack
}

// role is the program's side: a Client or a Server.
type role interface {
	// start begins; it must not block.
	start() error
	done() bool
	// save writes to files what has come in since it was called last.
	save() error
	report() Bye
}

func (env Environment) newRole() (role, error) {
	if env.Hello.Role == "client" {
		return newClient(env)
	}
	return newServer(env)
}

// Main makes the program out of a test binary: with the argument --virtual-time, or with the variable ROLE, it is an
// endpoint and does not return. In virtual time a test called TestVirtualTimeProgram must call [Stack.VirtualTime].
func (stack *Stack) Main(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "--virtual-time" {
		os.Args = []string{os.Args[0], "-test.run=^TestVirtualTimeProgram$"}
		os.Exit(m.Run())
	}
	if os.Getenv("ROLE") != "" {
		stack.exit(stack.runSockets())
	}
}

// VirtualTime is the program in virtual time, which needs a test.
func (stack *Stack) VirtualTime(t *testing.T) {
	// One goroutine at a time, and none of the collector's in between: what runs when must not depend on the machine.
	// A process lives for one trial; only one that would grow beyond the limit collects at all.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)

	p := openPipes()
	h, seed, err := p.readHello()
	if err == nil {
		err = h.check(stack)
	}
	if err != nil {
		stack.exit(err)
	}
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(*testing.T) { stack.exit(stack.runVirtual(p, h)) })
}

func (p *pipes) readHello() (*Hello, uint64, error) {
	kind, body, err := p.read()
	if err != nil {
		return nil, 0, fmt.Errorf("want HELLO: %w", err)
	}
	if kind != MessageHello {
		return nil, 0, fmt.Errorf("file descriptor 3: a message of type %d, want HELLO", kind)
	}
	return parseHello(body)
}

// exit ends the program as endpoints/CONTRACT.md says.
func (stack *Stack) exit(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "bentpipe-endpoint-%s: %v\n", stack.Name, err)
	}
	os.Exit(exitCode(err))
}

// ErrNotStarted is the error of a program that is started in neither mode.
var ErrNotStarted = errors.New("start it with --virtual-time, or with the variables of socket mode: endpoints/CONTRACT.md")
