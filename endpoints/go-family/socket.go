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

// VirtualSocket replaces a library's UDP socket: datagrams come from and go to the coordinator.
type VirtualSocket struct {
	local, Remote *net.UDPAddr
	clock         *clock
	arriving      chan Datagram

	mu      sync.Mutex
	leaving departures
}

// Receive waits for the next arrival.
func (s *VirtualSocket) Receive() Datagram { return <-s.arriving }

// Send lets datagrams depart now, each of up to size bytes.
func (s *VirtualSocket) Send(b []byte, size int, ecn byte) {
	now := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for piece := range slices.Chunk(b, max(size, 1)) {
		s.leaving.add(now, ecn, piece)
	}
}

// ReadFrom waits for the next arrival and leaves out its ECN bits.
func (s *VirtualSocket) ReadFrom(b []byte) (int, net.Addr, error) {
	return copy(b, s.Receive().Bytes), s.Remote, nil
}

// WriteTo lets a datagram depart now, without an ECN mark.
func (s *VirtualSocket) WriteTo(b []byte, _ net.Addr) (int, error) {
	s.Send(b, len(b), 0)
	return len(b), nil
}

// beginRun starts the collection of the departures of a RUN.
func (s *VirtualSocket) beginRun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving.reset()
}

// endRun returns the message that answers a RUN, valid until the next beginRun.
func (s *VirtualSocket) endRun(nextWake uint64, done bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving.ran(nextWake, done)
}

// LocalAddr is that of a net.PacketConn.
func (s *VirtualSocket) LocalAddr() net.Addr { return s.local }

// Close is that of a net.PacketConn; nothing is to be closed.
func (s *VirtualSocket) Close() error { return nil }

// SetDeadline is that of a net.PacketConn; nobody sets one.
func (s *VirtualSocket) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (s *VirtualSocket) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (s *VirtualSocket) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
