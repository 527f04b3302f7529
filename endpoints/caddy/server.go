package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
)

// server is Caddy at work. There is one at a time, because Caddy's state is the process's.
type server struct {
	sockets *sockets
	scratch string // the folder for what Caddy wants to keep
}

// start has Caddy serve what is asked for. It listens when this returns.
func start(asked settings) (*server, error) {
	running, err := prepare(asked)
	if err != nil {
		return nil, err
	}
	configuration, err := asked.configure(running.sockets)
	if err == nil {
		caddy.DefaultStorage = &certmagic.FileStorage{Path: running.scratch}
		err = caddy.Run(configuration)
	}
	if err != nil {
		return nil, errors.Join(err, running.release())
	}
	return running, nil
}

// prepare makes what Caddy is given.
func prepare(asked settings) (*server, error) {
	if _, err := os.ReadDir(asked.www); err != nil {
		return nil, fmt.Errorf("WWW: %w", err)
	}
	opened, err := asked.open()
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	scratch, err := os.MkdirTemp("", "bentpipe-caddy-")
	if err != nil {
		return nil, errors.Join(err, opened.close())
	}
	return &server{opened, scratch}, nil
}

// stop ends it.
func (s *server) stop() error { return errors.Join(caddy.Stop(), s.release()) }

// release gives up what Caddy was given.
func (s *server) release() error {
	return errors.Join(s.sockets.close(), os.RemoveAll(s.scratch))
}

// certificate reads the certificate of CERTS, and its key, as they are.
func (asked *settings) certificate() (certificate, key string, err error) {
	first, err := os.ReadFile(filepath.Join(asked.certs, "cert.pem"))
	if err != nil {
		return "", "", fmt.Errorf("CERTS: %w", err)
	}
	second, err := os.ReadFile(filepath.Join(asked.certs, "priv.key"))
	if err != nil {
		return "", "", fmt.Errorf("CERTS: %w", err)
	}
	return string(first), string(second), nil
}
