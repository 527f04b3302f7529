package family

import (
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// clock is the time of the trial, in ns since its start.
//
// A datagram that arrives at t is handed over while the bubble's clock stands at t-1, after the timers of t-1 and
// before those of t: arrivals come before timers of the same instant, which the runtime would order at random. The
// stack thus sees every arrival 1 ns early; what it sends in response departs at t.
type clock struct {
	start   time.Time
	arrival atomic.Uint64
}

func (c *clock) bubble() int64 { return int64(time.Since(c.start)) }

func (c *clock) now() uint64 { return max(uint64(c.bubble()), c.arrival.Load()) }

// VirtualSocket replaces a library's UDP socket: datagrams come from and go to the coordinator. A client that migrates has
// one for each path, a server one for all.
type VirtualSocket struct {
	local, Remote *net.UDPAddr
	remotes       []*net.UDPAddr // the other side's addresses on several paths, by number; none where there is one
	path          int            // where remotes are all the same
	clock         *clock
	arriving      chan Datagram
	leaving       *leaving
}

// leaving is what departs in a RUN, from all sockets.
type leaving struct {
	mu sync.Mutex
	departures
}

// Receive waits for the next arrival.
func (s *VirtualSocket) Receive() Datagram { return <-s.arriving }

// Send lets datagrams depart now, each of up to size bytes.
func (s *VirtualSocket) Send(b []byte, size int, ecn byte, to net.Addr) {
	now, mark := s.clock.now(), ecn|byte(s.pathTo(to))<<pathShift
	s.leaving.mu.Lock()
	defer s.leaving.mu.Unlock()
	for piece := range slices.Chunk(b, max(size, 1)) {
		s.leaving.add(now, mark, piece)
	}
}

// pathTo is the number of the path to an address of the other side.
func (s *VirtualSocket) pathTo(to net.Addr) int {
	address, ok := to.(*net.UDPAddr)
	for number, remote := range s.remotes {
		if ok && remote.Port == address.Port && remote.IP.Equal(address.IP) {
			return number
		}
	}
	return s.path
}

// arrive hands a datagram to whoever reads.
func (s *VirtualSocket) arrive(d Datagram) {
	d.From = s.Remote
	if d.path < len(s.remotes) {
		d.From = s.remotes[d.path]
	}
	s.arriving <- d
}

// ReadFrom waits for the next arrival and leaves out its ECN bits.
func (s *VirtualSocket) ReadFrom(b []byte) (int, net.Addr, error) {
	d := s.Receive()
	return copy(b, d.Bytes), d.From, nil
}

// WriteTo lets a datagram depart now, without an ECN mark.
func (s *VirtualSocket) WriteTo(b []byte, to net.Addr) (int, error) {
	s.Send(b, len(b), 0, to)
	return len(b), nil
}

// beginRun starts the collection of the departures of a RUN.
func (l *leaving) beginRun() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reset()
}

// endRun returns the message that answers a RUN, valid until the next beginRun.
func (l *leaving) endRun(nextWake uint64, done bool) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ran(nextWake, done)
}

// LocalAddr is that of a net.PacketConn.
func (s *VirtualSocket) LocalAddr() net.Addr { return s.local }

// Close is that of a net.PacketConn; nothing is to be closed.
func (s *VirtualSocket) Close() error { return nil }

// SetDeadline is that of a net.PacketConn; nobody sets one.
func (s *VirtualSocket) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (s *VirtualSocket) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (s *VirtualSocket) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
