// Command bentpipe-endpoint-caddy puts Caddy, as a library, behind Bentpipe's endpoint contract
// (endpoints/CONTRACT.md): a server in socket mode.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Exit codes of endpoints/CONTRACT.md.
const (
	exitFailed      = 1
	exitUnsupported = 127
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "bentpipe-endpoint-caddy: %v\n", err)
		os.Exit(exitCode(err))
	}
}

// run is the program. Its errors name what is not supported, or what failed.
func run(arguments []string) error {
	if len(arguments) == 1 && arguments[0] == "--version" {
		info, _ := debug.ReadBuildInfo()
		fmt.Println(version(info))
		return nil
	}
	if len(arguments) > 0 {
		return fmt.Errorf("arguments %q: want none, or --version", arguments)
	}
	asked, err := readSettings(os.Getenv)
	if err != nil {
		return err
	}
	return serve(asked)
}

// serve is the program's life as a server, which SIGTERM ends.
func serve(asked settings) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	running, err := start(asked)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	<-ended
	return running.stop()
}

// exitCode is how the program ends because of an error.
func exitCode(err error) int {
	if _, is := errors.AsType[unsupported](err); is {
		return exitUnsupported
	}
	return exitFailed
}
