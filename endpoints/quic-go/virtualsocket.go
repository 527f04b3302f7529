package endpoint

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// virtualSocket is what quic-go takes for a UDP socket: datagrams come from and go to the coordinator.
//
// quic-go uses path MTU discovery, ECN and segmentation offload only on sockets that take control messages, so this
// one takes them, as Linux would: otherwise the stack under test would not be the one that people deploy.
type virtualSocket struct {
	local, remote *net.UDPAddr
	clock         *clock
	arriving      chan datagram

	mu      sync.Mutex
	leaving departures
}

var _ quic.OOBCapablePacketConn = &virtualSocket{}

// ReadMsgUDP waits for the next arrival. Its ECN bits are in oob, as the control message that Linux passes.
func (s *virtualSocket) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error) {
	d := <-s.arriving
	return copy(b, d.bytes), s.putECN(oob, d.ecn), 0, s.remote, nil
}

// ReadBatch is how quic-go reads where it can; it finds one datagram at a time.
func (s *virtualSocket) ReadBatch(messages []ipv4.Message, _ int) (int, error) {
	m := &messages[0]
	var err error
	m.N, m.NN, m.Flags, m.Addr, err = s.ReadMsgUDP(m.Buffers[0], m.OOB)
	return 1, err
}

// ReadFrom waits for the next arrival.
func (s *virtualSocket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, _, _, addr, err := s.ReadMsgUDP(b, nil)
	return n, addr, err
}

// WriteMsgUDP lets datagrams depart now. Control messages say how they are marked, and how long each of them is
// when b holds several.
func (s *virtualSocket) WriteMsgUDP(b, oob []byte, _ *net.UDPAddr) (n, oobn int, err error) {
	ecn, segment, err := parseControl(oob)
	if err != nil {
		return 0, 0, err
	}
	if segment == 0 {
		segment = max(len(b), 1)
	}
	now := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest := b; len(rest) > 0; {
		size := min(segment, len(rest))
		s.leaving.add(now, ecn, rest[:size])
		rest = rest[size:]
	}
	return len(b), len(oob), nil
}

// WriteTo lets one datagram depart now.
func (s *virtualSocket) WriteTo(b []byte, _ net.Addr) (int, error) {
	n, _, err := s.WriteMsgUDP(b, nil, s.remote)
	return n, err
}

// beginRan starts the collection of the departures of a RUN.
func (s *virtualSocket) beginRan() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving.reset()
}

// endRan returns the answer to a RUN, valid until the next beginRan.
func (s *virtualSocket) endRan(nextWake uint64, done bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving.finish(nextWake, done)
}

func (s *virtualSocket) LocalAddr() net.Addr { return s.local }

// SyscallConn returns a connection on which every socket option can be set, and none has an effect: there is no
// socket below, and the simulated path does not fragment.
func (s *virtualSocket) SyscallConn() (syscall.RawConn, error) { return noSocket{}, nil }

func (s *virtualSocket) SetReadBuffer(int) error { return nil }

func (s *virtualSocket) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (s *virtualSocket) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (s *virtualSocket) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

func (s *virtualSocket) Close() error { return nil }

type noSocket struct{}

func (noSocket) Control(func(fd uintptr)) error { return nil }

var errNoSocket = errors.New("a virtual socket has no file descriptor")

func (noSocket) Read(func(fd uintptr) bool) error  { return errNoSocket }
func (noSocket) Write(func(fd uintptr) bool) error { return errNoSocket }

// putECN writes the control message that carries the ECN bits of a received datagram, and returns its length.
func (s *virtualSocket) putECN(oob []byte, ecn byte) int {
	level, kind, size := int32(unix.IPPROTO_IP), int32(unix.IP_TOS), 1
	if s.remote.IP.To4() == nil {
		level, kind, size = unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 4
	}
	if len(oob) < unix.CmsgSpace(size) {
		return 0
	}
	clear(oob[:unix.CmsgSpace(size)])
	head := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	head.Level, head.Type = level, kind
	head.SetLen(unix.CmsgLen(size))
	value := unsafe.Pointer(&oob[unix.CmsgSpace(0)])
	if size == 1 {
		*(*byte)(value) = ecn
	} else {
		*(*uint32)(value) = uint32(ecn)
	}
	return unix.CmsgSpace(size)
}

// parseControl reads the ECN bits and the segment size (0: one datagram) that a write asks for.
func parseControl(oob []byte) (ecn byte, segment int, err error) {
	for len(oob) > 0 {
		head, value, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return 0, 0, err
		}
		switch {
		case head.Level == unix.IPPROTO_IP && head.Type == unix.IP_TOS && len(value) >= 1:
			ecn = value[0] & 3
		case head.Level == unix.IPPROTO_IPV6 && head.Type == unix.IPV6_TCLASS && len(value) >= 4:
			ecn = byte(*(*uint32)(unsafe.Pointer(&value[0]))) & 3
		case head.Level == unix.IPPROTO_UDP && head.Type == unix.UDP_SEGMENT && len(value) >= 2:
			segment = int(*(*uint16)(unsafe.Pointer(&value[0])))
		}
		oob = rest
	}
	return ecn, segment, nil
}
