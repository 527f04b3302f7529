package endpoint

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"runtime"
	"testing/synctest"
	"time"

	"golang.org/x/net/quic"
)

// driverText describes the driver in READY.
const driverText = "goroutines run until all are blocked; the stack takes arrivals one by one and sends after each; " +
	"next wake is until (never once done, or before a server's first datagram): a bubble does not tell its timers"

// never is a next wake that does not come.
const never = math.MaxUint64

// application is a role: what the program does with its QUIC stack.
type application interface {
	// start begins; it must not block.
	start() error
	done() bool
	// save writes to files what has come in since it was called last.
	save() error
	report() bye
}

// driver lets a role live in the time that the coordinator gives it. It runs in the bubble, as its only goroutine
// that waits for something outside, and as the only one that touches files: a system call gives the processor away for
// a time that depends on the machine, and would let others overtake.
type driver struct {
	frames *frames
	clock  *clock
	socket *virtualSocket
	logs   *logs
	app    application

	started bool
	asleep  bool   // nothing can happen but an arrival
	now     uint64 // end of the last RUN
}

// runVirtual answers HELLO and then every question until FINISH.
func runVirtual(f *frames, h *hello, config *quic.Config) error {
	// Addresses of four bytes: to the library, one written as IPv6 is another path.
	local, err := netip.ParseAddrPort(h.Local)
	if err != nil {
		return fmt.Errorf("HELLO: local %q: %w", h.Local, err)
	}
	remote, err := netip.ParseAddrPort(h.Remote)
	if err != nil {
		return fmt.Errorf("HELLO: remote %q: %w", h.Remote, err)
	}
	clock := &clock{start: time.Now()}
	socket := &virtualSocket{
		local: net.UDPAddrFromAddrPort(local), remote: net.UDPAddrFromAddrPort(remote),
		clock: clock, arriving: make(chan []byte),
	}
	d := &driver{frames: f, clock: clock, socket: socket, logs: &logs{}, asleep: h.Role == "server"}
	config.QLogLogger = d.logs.qlogger(h.Qlog)
	env := environment{hello: h, config: config, socket: socket, remote: h.Remote, now: clock.now}
	if h.Keylog != "" {
		env.keylog = d.logs.file(h.Keylog)
	}
	if d.app, err = newApplication(env); err != nil {
		return err
	}
	hi := ready{Stack: "x-net", Version: version(), Driver: driverText}
	if !d.asleep {
		hi.NextWake = new(uint64)
	}
	if err := f.writeJSON(frameReady, hi); err != nil {
		return err
	}
	return d.serve()
}

// serve answers RUNs until FINISH.
func (d *driver) serve() error {
	for {
		kind, body, err := d.frames.read()
		switch {
		case err == io.EOF:
			return errors.New("the coordinator went away before FINISH")
		case err != nil:
			return err
		case kind == frameRun:
			err = d.answerRun(body)
		case kind == frameFinish:
			return errors.Join(d.logs.write(), d.frames.writeJSON(frameBye, d.app.report()))
		default:
			err = fmt.Errorf("file descriptor 3: a frame of type %d, want RUN or FINISH", kind)
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
	d.socket.beginRun()
	if !d.started && r.until > 0 {
		d.started = true
		if err := d.app.start(); err != nil {
			return err
		}
		settle()
	}
	if err := d.live(r); err != nil {
		return err
	}
	if err := d.app.save(); err != nil {
		return err
	}
	wake, done := r.until, d.app.done()
	if done || d.asleep {
		wake = never
	}
	return d.frames.write(frameRan, d.socket.endRun(wake, done))
}

// live hands over the arrivals of a RUN and ends with every event before until behind it.
func (d *driver) live(r run) error {
	for _, arrival := range r.arrivals {
		if arrival.time < d.now || arrival.time >= r.until {
			return fmt.Errorf("RUN: an arrival at %d, want %d to %d", arrival.time, d.now, r.until-1)
		}
		d.asleep = false
		d.sleepUntil(arrival.time)
		d.clock.arrival.Store(arrival.time)
		d.socket.arriving <- arrival.bytes
		d.now = arrival.time
	}
	d.sleepUntil(r.until)
	d.now = r.until
	return nil
}

// sleepUntil lets the bubble live through every event before t: its clock ends at t-1.
func (d *driver) sleepUntil(t uint64) {
	if delta := int64(t) - 1 - d.clock.bubble(); delta > 0 {
		time.Sleep(time.Duration(delta))
	}
	settle()
}

// settle waits until the stack and the role have nothing left to do at this instant.
func settle() {
	synctest.Wait()
	// Going through the run queue starts a new time slice. The scheduler would otherwise, after 10 ms of wall time, take
	// the processor from a goroutine at an arbitrary point.
	runtime.Gosched()
}
