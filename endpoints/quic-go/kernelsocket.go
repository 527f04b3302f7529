package endpoint

import (
	"errors"
	"net"
	"syscall"
	"unsafe"

	family "bentpipe-endpoint-go-family"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// kernelSocket is a virtual socket that takes control messages, as Linux would: quic-go uses path MTU discovery, ECN and
// segmentation offload only on sockets that do. Otherwise the stack under test would not be the one that people deploy.
type kernelSocket struct {
	*family.VirtualSocket
	early *earlySecrets // nil: nobody wants them
}

func newKernelSocket(s *family.VirtualSocket, early *earlySecrets) *kernelSocket {
	return &kernelSocket{s, early}
}

var _ quic.OOBCapablePacketConn = &kernelSocket{}

// ReadMsgUDP waits for the next arrival. Its ECN bits are in oob, as the control message that Linux passes.
func (s *kernelSocket) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error) {
	d := s.Receive()
	// The peer, as a socket of both IP versions says it: this decides how long a NEW_TOKEN is.
	from := &net.UDPAddr{IP: d.From.IP.To16(), Port: d.From.Port}
	return copy(b, d.Bytes), putECN(oob, d.ECN, from), 0, from, nil
}

// ReadBatch is how quic-go reads where it can; it finds one datagram at a time.
func (s *kernelSocket) ReadBatch(messages []ipv4.Message, _ int) (int, error) {
	m := &messages[0]
	var err error
	m.N, m.NN, m.Flags, m.Addr, err = s.ReadMsgUDP(m.Buffers[0], m.OOB)
	return 1, err
}

// WriteMsgUDP lets datagrams depart now. Control messages say how they are marked, and how long each of them is
// when b holds several.
func (s *kernelSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	ecn, segment, err := parseControl(oob)
	if err != nil {
		return 0, 0, err
	}
	if segment == 0 {
		segment = len(b)
	}
	s.early.sent(b, segment)
	s.Send(b, segment, ecn, to)
	return len(b), len(oob), nil
}

// SyscallConn returns a connection on which every socket option can be set, and none has an effect: there is no
// socket below, and the simulated path does not fragment.
func (s *kernelSocket) SyscallConn() (syscall.RawConn, error) { return noSocket{}, nil }

func (s *kernelSocket) SetReadBuffer(int) error { return nil }

type noSocket struct{}

func (noSocket) Control(func(fd uintptr)) error { return nil }

var errNoSocket = errors.New("a virtual socket has no file descriptor")

func (noSocket) Read(func(fd uintptr) bool) error  { return errNoSocket }
func (noSocket) Write(func(fd uintptr) bool) error { return errNoSocket }

// putECN writes the control message that carries the ECN bits of a received datagram, and returns its length.
func putECN(oob []byte, ecn byte, from *net.UDPAddr) int {
	level, kind, size := int32(unix.IPPROTO_IP), int32(unix.IP_TOS), 1
	if from.IP.To4() == nil {
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
