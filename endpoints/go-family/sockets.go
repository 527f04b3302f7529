package family

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// socketHello gathers what HELLO would say from the variables of socket mode (endpoints/contract/socket-mode.md).
func socketHello() (*Hello, error) {
	h := &Hello{
		Role:      os.Getenv("ROLE"),
		Testcase:  os.Getenv("TESTCASE"),
		Requests:  strings.Fields(os.Getenv("REQUESTS")),
		Options:   map[string]string{},
		WWW:       os.Getenv("WWW"),
		Downloads: os.Getenv("DOWNLOADS"),
		Certs:     os.Getenv("CERTS"),
		Keylog:    os.Getenv("SSLKEYLOGFILE"),
		Qlog:      os.Getenv("QLOGDIR"),
		ALPN:      cmp.Or(os.Getenv("BENTPIPE_ALPN"), HQ),
		Report:    os.Getenv("REPORT"),
	}
	if err := h.readPage(os.Getenv("PAGE")); err != nil {
		return nil, err
	}
	if err := h.readPaths(os.Getenv("BENTPIPE_PATHS")); err != nil {
		return nil, err
	}
	for _, pair := range strings.Fields(os.Getenv("BENTPIPE_OPTIONS")) {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, Unsupported{fmt.Sprintf("BENTPIPE_OPTIONS: %q: want name=value", pair)}
		}
		h.Options[name] = value
	}
	return h, nil
}

// readPage reads the resources of a page from a file, as HELLO has them; without a name there are none.
func (h *Hello) readPage(name string) error {
	if name == "" {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("PAGE: %w", err)
	}
	if err := json.Unmarshal(text, &h.Page); err != nil {
		return fmt.Errorf("PAGE %q: it is no page as endpoints/contract/pages.md has them: %w", name, err)
	}
	return nil
}

// runSockets is the program in socket mode.
func (stack *Stack) runSockets() error {
	h, err := socketHello()
	if err != nil {
		return err
	}
	if err := h.check(stack); err != nil {
		return err
	}
	start := time.Now()
	env := Environment{Hello: h, Logs: &Logs{}, eager: true, stack: stack, second: h.listenSecond,
		Now: func() uint64 { return uint64(time.Since(start)) }}
	if err := env.Logs.keylog(h, true); err != nil {
		return err
	}
	if h.Role == "client" {
		err = socketClient(env, start)
	} else {
		err = socketServer(env)
	}
	return errors.Join(err, env.Logs.write())
}

func socketClient(env Environment, start time.Time) error {
	if len(env.Hello.Requests) == 0 {
		return errors.New("REQUESTS is empty: want URLs")
	}
	address, err := url.Parse(env.Hello.Requests[0])
	if err != nil {
		return fmt.Errorf("REQUESTS: %w", err)
	}
	port := address.Port()
	if port == "" {
		port = "443"
	}
	if env.Remote, err = net.ResolveUDPAddr("udp", net.JoinHostPort(address.Hostname(), port)); err != nil {
		return fmt.Errorf("REQUESTS: %w", err)
	}
	if env.Socket, err = net.ListenUDP("udp", nil); err != nil {
		return err
	}
	c, err := newClient(env)
	if err != nil {
		return err
	}
	if err := c.start(); err != nil {
		return err
	}
	<-c.ended
	if err := c.writeReport(start); err != nil {
		return err
	}
	if why := c.why(); why != nil {
		return errors.New(*why)
	}
	return nil
}

// writeReport leaves the BYE of a page in the file that the trial asks for, with times since 1970.
func (c *Client) writeReport(start time.Time) error {
	if c.Hello.Report == "" {
		return nil
	}
	text, err := json.Marshal(c.report().later(uint64(start.UnixNano())))
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.Hello.Report, text, 0o644); err != nil {
		return fmt.Errorf("REPORT: %w", err)
	}
	return nil
}

func socketServer(env Environment) error {
	address, err := net.ResolveUDPAddr("udp", os.Getenv("BENTPIPE_LISTEN"))
	if err != nil {
		return fmt.Errorf("BENTPIPE_LISTEN: %w", err)
	}
	if env.Socket, err = net.ListenUDP("udp", address); err != nil {
		return fmt.Errorf("BENTPIPE_LISTEN: %w", err)
	}
	s, err := newServer(env)
	if err != nil {
		return err
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	if err := s.start(); err != nil {
		return err
	}
	fmt.Println("ready")
	<-terminated
	return nil
}
