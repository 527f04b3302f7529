package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
)

// TestMain makes the program out of the test binary, where the variable ROLE is set.
func TestMain(m *testing.M) {
	if os.Getenv("ROLE") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// variables are those of socket mode for a page over HTTP/3, on a port that the kernel chooses, and what differs.
func variables(t *testing.T, changes ...string) []string {
	return append([]string{
		"ROLE=server",
		"TESTCASE=page",
		"BENTPIPE_ALPN=h3",
		"BENTPIPE_LISTEN=127.0.0.1:0",
		"CERTS=../certs/p256",
		"WWW=" + t.TempDir(),
	}, changes...)
}

// program is the test binary as the program.
func program(t *testing.T, changes ...string) *exec.Cmd {
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), variables(t, changes...)...)
	return command
}

func TestReadyUntilSIGTERM(t *testing.T) {
	for _, protocol := range []string{http1, http2, http3} {
		scratch := t.TempDir()
		command := program(t, "BENTPIPE_ALPN="+protocol, "TMPDIR="+scratch)
		var complaints bytes.Buffer
		command.Stderr = &complaints
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if line, _ := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
			t.Errorf("%s: %q: want ready", protocol, line)
		}
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil || strings.Contains(complaints.String(), `"level":"info"`) {
			t.Errorf("%s: %v: %s", protocol, err, &complaints)
		}
		if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %v, %v", protocol, left, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for code, changes := range map[int][]string{
		exitUnsupported: {"ROLE=client"},
		exitFailed:      {"WWW=/nowhere"},
	} {
		var complaint bytes.Buffer
		command := program(t, changes...)
		command.Stderr = &complaint
		err := command.Run()
		exit, _ := errors.AsType[*exec.ExitError](err)
		if exit == nil || exit.ExitCode() != code {
			t.Errorf("%v: %v: want exit code %d", changes, err, code)
		}
		if !strings.HasPrefix(complaint.String(), "bentpipe-endpoint-caddy: ") {
			t.Errorf("%v: %q on standard error", changes, &complaint)
		}
	}
}

func TestVersion(t *testing.T) {
	info := &debug.BuildInfo{Deps: []*debug.Module{
		{Path: "github.com/quic-go/quic-go", Version: "v0.63.0"},
		{Path: "github.com/caddyserver/caddy/v2", Version: "v2.11.9"},
	}}
	if got := version(info); got != "Caddy 2.11.9 with quic-go 0.63.0" {
		t.Error(got)
	}
	if got := version(nil); got != "Caddy unknown with quic-go unknown" {
		t.Error(got)
	}
}
