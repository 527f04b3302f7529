package family

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"testing/synctest"
	"time"
)

// driverText describes the driver in READY.
const driverText = "goroutines run until all are blocked, after each instant at which datagrams arrive; " +
	"next wake is until (never once done, or before a server's first datagram): a bubble does not tell its timers"

// never is a next wake that does not come.
const never = math.MaxUint64

// driver lets a role live in the time that the coordinator gives it. It runs in the bubble, as its only goroutine
// that waits for something outside, and as the only one that touches files: a system call gives the processor away for
// a time that depends on the machine, and would let others overtake.
type driver struct {
	pipes   *pipes
	clock   *clock
	sockets []*VirtualSocket // by the number of the path; a server has one for all
	paths   int
	leaving *leaving
	logs    *Logs
	role    role

	started bool
	asleep  bool   // nothing can happen but an arrival
	now     uint64 // end of the last RUN
}

// runVirtual answers HELLO and then every question until FINISH.
func (stack *Stack) runVirtual(p *pipes, h *Hello) error {
	d := &driver{pipes: p, clock: &clock{start: time.Now()}, leaving: &leaving{}, logs: &Logs{}, asleep: h.Role == "server"}
	followsPaths := h.followsPaths(stack)
	if err := d.openSockets(h, followsPaths); err != nil {
		return err
	}
	if err := d.logs.keylog(h, false); err != nil {
		return err
	}
	first := d.sockets[0]
	env := Environment{
		Hello: h, Socket: first, Remote: first.Remote, Logs: d.logs, Now: d.clock.now, stack: stack,
		second: func() (net.PacketConn, error) { return d.sockets[1], nil },
	}
	var err error
	if d.role, err = env.newRole(); err != nil {
		return err
	}
	hi := Ready{Stack: stack.Name, Version: stack.Version, Driver: driverText, Paths: followsPaths}
	if !d.asleep {
		hi.NextWake = new(uint64)
	}
	if hi.Memory, err = p.share(h.Memory); err != nil {
		return err
	}
	if err := p.writeJSON(MessageReady, hi); err != nil {
		return err
	}
	return d.serve()
}

// openSockets makes the sockets that the program has, with the addresses of HELLO.
func (d *driver) openSockets(h *Hello, followsPaths bool) error {
	paths := []Path{{Local: h.Local, Remote: h.Remote}}
	if followsPaths {
		paths = h.Paths
	}
	var remotes []*net.UDPAddr
	for number, path := range paths {
		local, err := virtualAddress("local", path.Local)
		if err != nil {
			return err
		}
		remote, err := virtualAddress("remote", path.Remote)
		if err != nil {
			return err
		}
		remotes = append(remotes, remote)
		d.sockets = append(d.sockets, &VirtualSocket{
			local: local, Remote: remote, path: number, clock: d.clock, arriving: make(chan Datagram), leaving: d.leaving,
		})
	}
	d.paths = len(paths)
	if h.Role == "server" {
		d.sockets = d.sockets[:1]
		d.sockets[0].remotes = remotes
	}
	return nil
}

// virtualAddress reads an address of HELLO. One of four bytes stays so: to x/net/quic, one written as IPv6 is another
// path.
func virtualAddress(key, text string) (*net.UDPAddr, error) {
	address, err := netip.ParseAddrPort(text)
	if err != nil {
		return nil, fmt.Errorf("HELLO: %s %q: %w", key, text, err)
	}
	return net.UDPAddrFromAddrPort(address), nil
}

// serve answers RUNs until FINISH.
func (d *driver) serve() error {
	for {
		kind, body, err := d.pipes.read()
		switch {
		case err == io.EOF:
			return errors.New("the coordinator went away before FINISH")
		case err != nil:
			return err
		case kind == MessageRun:
			err = d.answerRun(body)
		case kind == MessageFinish:
			return errors.Join(d.logs.write(), d.pipes.writeJSON(MessageBye, d.role.report()))
		default:
			err = fmt.Errorf("file descriptor 3: a message of type %d, want RUN or FINISH", kind)
		}
		if err != nil {
			return err
		}
	}
}

func (d *driver) answerRun(body []byte) error {
	r, err := parseRun(body)
	if err != nil {
		return err
	}
	if r.until < d.now || r.until > math.MaxInt64/2 {
		return fmt.Errorf("RUN: until %d, after a run that ended at %d", r.until, d.now)
	}
	d.leaving.beginRun()
	if !d.started && r.until > 0 {
		d.started = true
		if err := d.role.start(); err != nil {
			return err
		}
		settle()
	}
	if err := d.live(r); err != nil {
		return err
	}
	if err := d.role.save(); err != nil {
		return err
	}
	wake, done := r.until, d.role.done()
	if done || d.asleep {
		wake = never
	}
	return d.pipes.write(MessageRan, d.leaving.endRun(wake, done))
}

// live hands over the arrivals of a RUN and ends with every event before until behind it.
func (d *driver) live(r run) error {
	for i, arrival := range r.arrivals {
		if arrival.time < d.now || arrival.time >= r.until {
			return fmt.Errorf("RUN: an arrival at %d, want %d to %d", arrival.time, d.now, r.until-1)
		}
		d.asleep = false
		// All that arrives in one instant is there before the stack reacts to it.
		if i == 0 || arrival.time > d.now {
			d.sleepUntil(arrival.time)
		}
		d.clock.arrival.Store(arrival.time)
		if err := d.arrive(arrival); err != nil {
			return err
		}
		d.now = arrival.time
	}
	d.sleepUntil(r.until)
	d.now = r.until
	return nil
}

// arrive hands a datagram to the socket of its path.
func (d *driver) arrive(datagram Datagram) error {
	if datagram.path >= d.paths {
		return fmt.Errorf("RUN: a datagram on path %d, of %d", datagram.path, d.paths)
	}
	d.sockets[min(datagram.path, len(d.sockets)-1)].arrive(datagram)
	return nil
}

// sleepUntil lets the bubble live through every event before t: its clock ends at t-1.
func (d *driver) sleepUntil(t uint64) {
	settle()
	if delta := int64(t) - 1 - d.clock.bubble(); delta > 0 {
		time.Sleep(time.Duration(delta))
		settle()
	}
}

// settle waits until the stack and the role have nothing left to do at this instant.
func settle() {
	synctest.Wait()
}
