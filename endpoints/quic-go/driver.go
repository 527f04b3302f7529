package endpoint

import (
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
)

// driverText describes the driver in READY.
const driverText = "goroutines run until all are blocked, after each instant at which datagrams arrive; " +
	"next wake is until (never once done, or before a server's first datagram): quic-go does not tell its timers"

// never is a next wake that does not come.
const never = math.MaxUint64

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

// application is a role: what the program does with its QUIC stack.
type application interface {
	// start begins; it must not block.
	start() error
	// idle is true while nothing can happen but an arrival.
	idle() bool
	done() bool
	report() bye
	// flush writes what is in memory to files.
	flush() error
}

// driver lets a role live in the time that the coordinator gives it. It runs in the bubble, as its only goroutine
// that waits for something outside: while it reads from the pipe, the bubble's clock stands still.
type driver struct {
	pipe   *pipe
	clock  *clock
	socket *virtualSocket
	disk   *bubbleDisk
	logs   *logs
	app    application
	timer  *time.Timer

	started bool
	now     uint64 // end of the last RUN
}

// runVirtual answers HELLO and then every question until FINISH.
func runVirtual(p *pipe, h *hello, config *quic.Config) error {
	local, err := net.ResolveUDPAddr("udp", h.Local)
	if err != nil {
		return fmt.Errorf("HELLO: local %q: %w", h.Local, err)
	}
	remote, err := net.ResolveUDPAddr("udp", h.Remote)
	if err != nil {
		return fmt.Errorf("HELLO: remote %q: %w", h.Remote, err)
	}
	clock := &clock{start: time.Now()}
	d := &driver{
		pipe:   p,
		clock:  clock,
		socket: &virtualSocket{local: local, remote: remote, clock: clock, arriving: make(chan datagram)},
		disk:   &bubbleDisk{jobs: make(chan func())},
		timer:  time.NewTimer(math.MaxInt64),
	}
	if d.logs, err = openLogs(h, true); err != nil {
		return err
	}
	config.Tracer = d.logs.tracer
	env := environment{hello: h, config: config, socket: d.socket, remote: remote, disk: d.disk, logs: d.logs, now: clock.now}
	if h.Role == "client" {
		d.app, err = newClient(env)
	} else {
		d.app, err = newServer(env)
	}
	if err != nil {
		return err
	}
	hi := ready{Stack: "quic-go", Version: version(), Driver: driverText}
	if !d.app.idle() {
		hi.NextWake = new(uint64)
	}
	if err := p.writeJSON(frameReady, hi); err != nil {
		return err
	}
	return d.serve()
}

// serve answers RUNs until FINISH.
func (d *driver) serve() error {
	for {
		kind, body, err := d.pipe.read()
		if err == io.EOF {
			return fmt.Errorf("the coordinator went away before FINISH")
		} else if err != nil {
			return err
		}
		switch kind {
		case frameRun:
			if err := d.answerRun(body); err != nil {
				return err
			}
		case frameFinish:
			return d.finish()
		default:
			return fmt.Errorf("file descriptor 3: a frame of type %d, want RUN or FINISH", kind)
		}
	}
}

func (d *driver) answerRun(body []byte) error {
	run, err := parseRun(body)
	if err != nil {
		return err
	}
	if run.until < d.now || run.until > math.MaxInt64/2 {
		return fmt.Errorf("RUN: until %d, after a run that ended at %d", run.until, d.now)
	}
	d.socket.beginRan()
	if !d.started && run.until > 0 {
		d.started = true
		if err := d.app.start(); err != nil {
			return err
		}
		d.settle()
	}
	if err := d.live(run); err != nil {
		return err
	}
	d.now = run.until
	wake := run.until
	if d.app.done() || d.app.idle() {
		wake = never
	}
	return d.pipe.write(d.socket.endRan(wake, d.app.done()))
}

// live hands over the arrivals of a RUN and ends with every event before until behind it.
func (d *driver) live(run arrivals) error {
	last := d.now
	for pending := false; ; pending = true {
		a, ok, err := run.next()
		if err != nil {
			return err
		}
		if ok && (a.time < last || a.time >= run.until) {
			return fmt.Errorf("RUN: an arrival at %d, want %d to %d", a.time, last, run.until)
		}
		// All that arrives in one instant is there before the stack reacts to it.
		if pending && (!ok || a.time > last) {
			d.settle()
		}
		if !ok {
			break
		}
		d.sleepUntil(a.time)
		d.clock.arrival.Store(a.time)
		d.socket.arriving <- a
		last = a.time
	}
	d.sleepUntil(run.until)
	return nil
}

// sleepUntil lets the bubble live through every event before t: its clock ends at t-1.
func (d *driver) sleepUntil(t uint64) {
	for {
		delta := int64(t) - 1 - d.clock.bubble()
		if delta <= 0 {
			return
		}
		d.timer.Reset(time.Duration(delta))
		select {
		case job := <-d.disk.jobs:
			job()
		case <-d.timer.C:
			d.settle()
		}
	}
}

// settle waits until the stack and the role have nothing left to do at this instant.
func (d *driver) settle() {
	for {
		synctest.Wait()
		select {
		case job := <-d.disk.jobs:
			job()
		default:
			// Going through the run queue starts a new time slice: the scheduler would otherwise, after 10 ms of
			// wall time, take the processor from a goroutine at an arbitrary point.
			runtime.Gosched()
			return
		}
	}
}

func (d *driver) finish() error {
	if err := d.app.flush(); err != nil {
		return err
	}
	if err := d.logs.flush(); err != nil {
		return err
	}
	return d.pipe.writeJSON(frameBye, d.app.report())
}

// disk is where a role reads and writes files.
type disk interface {
	// do runs f and returns when it has run.
	do(f func())
}

// directDisk runs file work where it is asked for.
type directDisk struct{}

func (directDisk) do(f func()) { f() }

// bubbleDisk has file work done by the driver, when every other goroutine is blocked. A system call gives the
// processor away for a time that depends on the machine; done by the goroutine that wants the file, it would let
// others overtake, and the same seed could give other packets.
type bubbleDisk struct{ jobs chan func() }

func (b *bubbleDisk) do(f func()) {
	done := make(chan struct{})
	b.jobs <- func() {
		f()
		close(done)
	}
	<-done
}
