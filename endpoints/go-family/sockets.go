package family

import (
	"cmp"
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

// socketHello gathers what HELLO would say from the variables of CONTRACT section 3.
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
	env := Environment{Hello: h, Logs: &Logs{}, eager: true, stack: stack,
		Now: func() uint64 { return uint64(time.Since(start)) }}
	if err := env.Logs.keylog(h, true); err != nil {
		return err
	}
	if h.Role == "client" {
		err = socketClient(env)
	} else {
		err = socketServer(env)
	}
	return errors.Join(err, env.Logs.write())
}

func socketClient(env Environment) error {
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
	if why := c.why(); why != nil {
		return errors.New(*why)
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
