package endpoint

import (
	"net"
	"os"
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

// virtualSocket is what the library takes for a UDP socket: datagrams come from and go to the coordinator.
//
// The library reads ECN bits from a *net.UDPConn only, so that here it never counts any, and so reports none to its
// peer. All else that it would do with a UDP socket, it does with this one too.
type virtualSocket struct {
	local, remote *net.UDPAddr
	clock         *clock
	arriving      chan []byte

	mu      sync.Mutex
	leaving departures
}

// ReadFrom waits for the next arrival.
func (s *virtualSocket) ReadFrom(b []byte) (int, net.Addr, error) {
	return copy(b, <-s.arriving), s.remote, nil
}

// WriteTo lets a datagram depart now.
func (s *virtualSocket) WriteTo(b []byte, _ net.Addr) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving.add(s.clock.now(), b)
	return len(b), nil
}

// beginRun starts the collection of the departures of a RUN.
func (s *virtualSocket) beginRun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving.reset()
}

// endRun returns the frame that answers a RUN, valid until the next beginRun.
func (s *virtualSocket) endRun(nextWake uint64, done bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving.ran(nextWake, done)
}

func (s *virtualSocket) LocalAddr() net.Addr { return s.local }
func (s *virtualSocket) Close() error        { return nil }

func (s *virtualSocket) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (s *virtualSocket) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (s *virtualSocket) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
