package endpoint

import (
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
func socketHello() (*hello, error) {
	h := &hello{
		Role:      os.Getenv("ROLE"),
		Testcase:  os.Getenv("TESTCASE"),
		Requests:  strings.Fields(os.Getenv("REQUESTS")),
		Options:   map[string]string{},
		WWW:       os.Getenv("WWW"),
		Downloads: os.Getenv("DOWNLOADS"),
		Certs:     os.Getenv("CERTS"),
		Keylog:    os.Getenv("SSLKEYLOGFILE"),
		Qlog:      os.Getenv("QLOGDIR"),
	}
	for _, pair := range strings.Fields(os.Getenv("BENTPIPE_OPTIONS")) {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, unsupported{fmt.Sprintf("BENTPIPE_OPTIONS: %q: want name=value", pair)}
		}
		h.Options[name] = value
	}
	return h, nil
}

// runSockets is the program in socket mode.
func runSockets() error {
	h, err := socketHello()
	if err != nil {
		return err
	}
	config, err := h.quicConfig()
	if err != nil {
		return err
	}
	logs, err := openLogs(h, false)
	if err != nil {
		return err
	}
	config.Tracer = logs.tracer
	start := time.Now()
	env := environment{hello: h, config: config, disk: directDisk{}, logs: logs,
		now: func() uint64 { return uint64(time.Since(start)) }}
	if h.Role == "client" {
		err = socketClient(env)
	} else {
		err = socketServer(env)
	}
	return errors.Join(err, logs.flush())
}

func socketClient(env environment) error {
	if len(env.hello.Requests) == 0 {
		return errors.New("REQUESTS is empty: want URLs")
	}
	address, err := url.Parse(env.hello.Requests[0])
	if err != nil {
		return fmt.Errorf("REQUESTS: %w", err)
	}
	port := address.Port()
	if port == "" {
		port = "443"
	}
	remote, err := net.ResolveUDPAddr("udp", net.JoinHostPort(address.Hostname(), port))
	if err != nil {
		return fmt.Errorf("REQUESTS: %w", err)
	}
	env.remote = remote
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return err
	}
	env.socket = socket
	c, err := newClient(env)
	if err != nil {
		return err
	}
	c.run()
	err = c.flush()
	if why := describe(c.err); why != nil {
		err = errors.Join(errors.New(*why), err)
	}
	return err
}

func socketServer(env environment) error {
	address, err := net.ResolveUDPAddr("udp", os.Getenv("BENTPIPE_LISTEN"))
	if err != nil {
		return fmt.Errorf("BENTPIPE_LISTEN: %w", err)
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return fmt.Errorf("BENTPIPE_LISTEN: %w", err)
	}
	env.socket = socket
	s, err := newServer(env)
	if err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	if err := s.start(); err != nil {
		return err
	}
	fmt.Println("ready")
	<-ended
	return nil
}
