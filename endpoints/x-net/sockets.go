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
	logs := &logs{}
	config.QLogLogger = logs.qlogger(h.Qlog)
	start := time.Now()
	env := environment{hello: h, config: config, eager: true,
		now: func() uint64 { return uint64(time.Since(start)) }}
	if h.Keylog != "" {
		// Secrets go to the file as they become known: whoever captures packets reads them while they come.
		keylog, err := os.OpenFile(h.Keylog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("SSLKEYLOGFILE: %w", err)
		}
		env.keylog = keylog
	}
	if h.Role == "client" {
		err = socketClient(env)
	} else {
		err = socketServer(env)
	}
	return errors.Join(err, logs.write())
}

func socketClient(env environment) error {
	if len(env.hello.Requests) == 0 {
		return errors.New("REQUESTS is empty: want URLs")
	}
	address, err := url.Parse(env.hello.Requests[0])
	if err != nil {
		return fmt.Errorf("REQUESTS: %w", err)
	}
	env.remote = address.Host
	if address.Port() == "" {
		env.remote = net.JoinHostPort(address.Hostname(), "443")
	}
	if env.socket, err = net.ListenUDP("udp", nil); err != nil {
		return err
	}
	app, err := newApplication(env)
	if err != nil {
		return err
	}
	c := app.(*client)
	c.run()
	if why := describe(c.err); why != nil {
		return errors.New(*why)
	}
	return nil
}

func socketServer(env environment) error {
	address, err := net.ResolveUDPAddr("udp", os.Getenv("BENTPIPE_LISTEN"))
	if err != nil {
		return fmt.Errorf("BENTPIPE_LISTEN: %w", err)
	}
	if env.socket, err = net.ListenUDP("udp", address); err != nil {
		return fmt.Errorf("BENTPIPE_LISTEN: %w", err)
	}
	app, err := newApplication(env)
	if err != nil {
		return err
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	if err := app.start(); err != nil {
		return err
	}
	fmt.Println("ready")
	<-terminated
	return nil
}
