package main

import (
	"context"
	"net"
	"os"
	"syscall"
)

// socket is one that listens, to be handed to Caddy by its descriptor.
type socket struct {
	file    *os.File
	address net.Addr // with the port that the kernel chose if none was asked for
}

// open makes the socket of what is asked for.
func (asked *settings) open() (*socket, error) {
	if asked.overTCP() {
		return asked.openTCP()
	}
	packets, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(asked.listen))
	if err != nil {
		return nil, err
	}
	defer packets.Close()
	return duplicate(packets, packets.LocalAddr())
}

// openTCP makes one that accepts connections, which inherit its congestion control. It is of plain TCP: what Go makes
// where nothing is said is of Multipath TCP.
func (asked *settings) openTCP() (*socket, error) {
	configuration := net.ListenConfig{Control: func(_, _ string, connection syscall.RawConn) error {
		return setCongestion(connection, asked.congestion)
	}}
	configuration.SetMultipathTCP(false)
	listener, err := configuration.Listen(context.Background(), "tcp", asked.listen.String())
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	return duplicate(listener.(*net.TCPListener), listener.Addr())
}

// duplicate keeps a socket beyond what Go made it for.
func duplicate(original interface{ File() (*os.File, error) }, address net.Addr) (*socket, error) {
	file, err := original.File()
	if err != nil {
		return nil, err
	}
	return &socket{file, address}, nil
}
