package endpoint

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	family "bentpipe-endpoint-go-family"
)

// socketProgram prepares this binary as an endpoint in socket mode, which dies with this process. The caller starts it.
func socketProgram(t *testing.T, h family.Hello, more ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	// A child dies with the thread that started it: this goroutine keeps its own until the child is gone.
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(os.Environ(), "ROLE="+h.Role, "TESTCASE="+h.Testcase, "WWW="+h.WWW, "DOWNLOADS="+h.Downloads,
		"CERTS="+h.Certs, "SSLKEYLOGFILE="+h.Keylog, "QLOGDIR="+h.Qlog)
	cmd.Env = append(cmd.Env, more...)
	cmd.Stderr = &bytes.Buffer{}
	t.Cleanup(func() {
		if cmd.Process != nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
		runtime.UnlockOSThread()
	})
	return cmd
}

// freePort gives a UDP port of the loopback address that nobody else takes until the test ends: the kernel gives it to nobody
// who has not asked for just this one, and whoever of Bentpipe does so has first bound a name (python/bentpipe/stacks/loopback.py).
func freePort(t *testing.T) string {
	t.Helper()
	limits, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	check(t, err)
	var low, high int
	_, err = fmt.Sscan(string(limits), &low, &high)
	check(t, err)
	var ports []int
	for port := 10_000; port < 65_536; port++ {
		if port < low || port > high || (low <= 10_000 && high == 65_535) { // with such limits there are none
			ports = append(ports, port)
		}
	}
	for index := range ports {
		port := ports[(index+os.Getpid()*97)%len(ports)]
		name, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: fmt.Sprintf("@bentpipe UDP port %d", port), Net: "unixgram"})
		if err != nil {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if probe, err := net.ListenPacket("udp", address); err == nil {
			probe.Close()
			t.Cleanup(func() { name.Close() })
			return address
		}
		name.Close()
	}
	t.Fatal("no UDP port is free")
	return ""
}

// startSocketServer runs a server on a free port, and returns it with its address once it is ready.
func startSocketServer(t *testing.T, h family.Hello) (*exec.Cmd, string) {
	t.Helper()
	address := freePort(t)
	h.Role = "server"
	server := socketProgram(t, h, "BENTPIPE_LISTEN="+address)
	stdout, err := server.StdoutPipe()
	check(t, err)
	check(t, server.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("the server said %q (%v): %s", line, err, server.Stderr)
	}
	return server, address
}

func TestLoopback(t *testing.T) {
	x := newTrial(t, satellite, 5<<20)
	folder := filepath.Join(filepath.Dir(x.hello.WWW), "qlog")
	x.hello.Qlog = folder
	server, address := startSocketServer(t, x.hello)
	x.hello.Keylog = filepath.Join(folder, "secrets")
	client := socketProgram(t, x.hello, "REQUESTS=https://"+address+"/file", "BENTPIPE_OPTIONS=cc=newreno window=10000000")
	if err := client.Run(); err != nil {
		t.Fatalf("client: %v: %s", err, client.Stderr)
	}
	x.expectFile(t, "file", 5<<20)
	check(t, server.Process.Signal(syscall.SIGTERM))
	if err := server.Wait(); err != nil {
		t.Errorf("server: %v: %s", err, server.Stderr)
	}
	secrets, err := os.ReadFile(x.hello.Keylog)
	check(t, err)
	if !strings.Contains(string(secrets), "CLIENT_TRAFFIC_SECRET_0 ") {
		t.Errorf("secrets: %s", secrets)
	}
	names, err := filepath.Glob(filepath.Join(folder, "*.sqlog"))
	check(t, err)
	if len(names) != 2 {
		t.Errorf("qlog files: %v, want one of each side", names)
	}
}

func TestLoopbackFailures(t *testing.T) {
	x := newTrial(t, satellite, 1000)
	_, address := startSocketServer(t, x.hello)
	url := "REQUESTS=https://" + address
	for name, c := range map[string]struct {
		testcase string
		more     []string
		code     int
	}{
		"absent file":    {"transfer", []string{url + "/absent"}, 1},
		"test case":      {"kqzjw", []string{url + "/file"}, 127},
		"option":         {"transfer", []string{url + "/file", "BENTPIPE_OPTIONS=iw=10"}, 127},
		"option, spelt":  {"transfer", []string{url + "/file", "BENTPIPE_OPTIONS=cubic"}, 127},
		"request, empty": {"transfer", []string{"REQUESTS="}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := x.hello
			h.Testcase = c.testcase
			client := socketProgram(t, h, c.more...)
			client.Run()
			if code := client.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, client.Stderr)
			}
			if client.Stderr.(*bytes.Buffer).Len() == 0 {
				t.Error("a failure without a word on standard error")
			}
		})
	}
}
