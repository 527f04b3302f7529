package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// ask reads the settings of a page over HTTP/3, and of what differs.
func ask(t *testing.T, changes ...string) (settings, error) {
	values := map[string]string{}
	for _, one := range variables(t, changes...) {
		name, value, _ := strings.Cut(one, "=")
		values[name] = value
	}
	return readSettings(func(name string) string { return values[name] })
}

func TestUnsupported(t *testing.T) {
	for _, changes := range [][]string{
		{"ROLE=client"},
		{"TESTCASE=zerortt"},
		{"TESTCASE=transfer", "BENTPIPE_ALPN=h2"},
		{"BENTPIPE_ALPN="},
		{"BENTPIPE_ALPN=hq-interop"},
		{"BENTPIPE_OPTIONS=iw=10"},
		{"BENTPIPE_OPTIONS=altsvc"},
		{"BENTPIPE_OPTIONS=altsvc=maybe"},
		{"BENTPIPE_OPTIONS=altsvc=on", "BENTPIPE_ALPN=h2"},
		{"BENTPIPE_OPTIONS=tls=off"},
		{"BENTPIPE_OPTIONS=tls=off", "BENTPIPE_ALPN=h2"},
		{"BENTPIPE_OPTIONS=tls=", "BENTPIPE_ALPN=http/1.1"},
		{"BENTPIPE_OPTIONS=cc=cubic"},
	} {
		_, err := ask(t, changes...)
		if _, is := errors.AsType[unsupported](err); !is {
			t.Errorf("%v: %v: want it to be unsupported", changes, err)
		}
	}
}

func TestSupported(t *testing.T) {
	for _, changes := range [][]string{
		{"TESTCASE=transfer"},
		{"TESTCASE=multiplexing", "BENTPIPE_OPTIONS=altsvc=on"},
		{"BENTPIPE_OPTIONS=altsvc=off tls=on"},
		{"BENTPIPE_OPTIONS=tls=on  cc=bbr", "BENTPIPE_ALPN=h2"},
		{"BENTPIPE_OPTIONS=tls=off", "BENTPIPE_ALPN=http/1.1"},
	} {
		if _, err := ask(t, changes...); err != nil {
			t.Errorf("%v: %v", changes, err)
		}
	}
}

func TestCongestionControlOfTheSocket(t *testing.T) {
	for option, name := range map[string]string{"": "cubic", "cc=newreno": "reno"} {
		asked, err := ask(t, "BENTPIPE_ALPN=h2", "BENTPIPE_OPTIONS="+option)
		if err != nil {
			t.Fatal(err)
		}
		at, err := asked.open()
		if err != nil {
			t.Fatal(err)
		}
		defer at.close()
		got, err := unix.GetsockoptString(int(at.tcp.file.Fd()), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		if err != nil || got != name {
			t.Errorf("%q: %s, %v: want %s", option, got, err, name)
		}
	}
}

func TestCongestionControlThatTheKernelLacks(t *testing.T) {
	for _, name := range []string{"", "reno", "warp"} {
		asked, err := ask(t, "BENTPIPE_ALPN=h2", "BENTPIPE_OPTIONS=cc="+name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = start(asked)
		if _, is := errors.AsType[unsupported](err); !is || !strings.Contains(err.Error(), "newreno") {
			t.Errorf("cc=%s: %v: want the names of those that are there", name, err)
		}
	}
}

func TestWhatCannotBeServed(t *testing.T) {
	for _, changes := range [][]string{
		{"WWW="},
		{"WWW=/nowhere"},
		{"CERTS="},
		{"CERTS=/nowhere"},
		{"BENTPIPE_LISTEN=4433"},
		{"BENTPIPE_LISTEN=192.0.2.1:0"},
	} {
		t.Setenv("TMPDIR", t.TempDir())
		asked, err := ask(t, changes...)
		if err == nil {
			_, err = start(asked)
		}
		if err == nil || exitCode(err) != exitFailed {
			t.Errorf("%v: %v: want it to fail", changes, err)
		}
		if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
			t.Errorf("%v leaves %v, %v", changes, left, err)
		}
	}
}
