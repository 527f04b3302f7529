package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// socket is one that listens, to be handed to Caddy by its descriptor.
type socket struct {
	file    *os.File
	address net.Addr // with the port that the kernel chose if none was asked for
}

// sockets are those of what is asked for: of each transport that it is over, at one port.
type sockets struct {
	tcp, udp *socket // nil: it is not over that
}

// open makes them.
func (asked *settings) open() (*sockets, error) {
	opened, at := &sockets{}, asked.listen
	var err error
	if asked.overTCP() {
		if opened.tcp, err = asked.openTCP(); err != nil {
			return nil, err
		}
		at = opened.tcp.address.(*net.TCPAddr).AddrPort()
	}
	if asked.overQUIC() {
		if opened.udp, err = openUDP(at); err != nil {
			return nil, errors.Join(err, opened.close())
		}
	}
	return opened, nil
}

// address is where they listen, all at one port.
func (opened *sockets) address() netip.AddrPort {
	if opened.udp != nil {
		return opened.udp.address.(*net.UDPAddr).AddrPort()
	}
	return opened.tcp.address.(*net.TCPAddr).AddrPort()
}

// close gives them up.
func (opened *sockets) close() error {
	var failed error
	for _, one := range []*socket{opened.tcp, opened.udp} {
		if one != nil {
			failed = errors.Join(failed, one.file.Close())
		}
	}
	return failed
}

// openUDP makes one that takes packets.
func openUDP(at netip.AddrPort) (*socket, error) {
	packets, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
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
