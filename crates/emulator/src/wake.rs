//! What ends the sleep of the thread that forwards.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use bentpipe_units::{Span, Time};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::clock::{Clock, TrialClock};

/// A timer of the kernel, for instants. Once it has gone off it stays so until it is set anew.
pub(crate) struct Timer {
    timer: OwnedFd,
    set: Option<Time>,
}

impl Timer {
    /// A timer that is off.
    pub fn new() -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer, set: None })
    }

    /// Sets the timer to an instant; nothing turns it off.
    pub fn set(&mut self, wake: Option<Time>, clock: &TrialClock) -> io::Result<()> {
        const NONE: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if wake == self.set {
            return Ok(());
        }
        let time = Itimerspec {
            it_interval: NONE,
            it_value: wake.map_or(NONE, |wake| clock.monotonic(wake)),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &time)?;
        self.set = wake;
        Ok(())
    }

    /// Sleeps until it goes off.
    pub fn sleep(&self) -> io::Result<()> {
        rustix::io::read(&self.timer, &mut [0_u8; 8])?;
        Ok(())
    }
}

/// A timer, ports, and an event by which other threads end it all.
pub(crate) struct Wake {
    timer: Timer,
    spin: Span,
    ports: Vec<OwnedFd>,
}

impl Wake {
    /// Stays awake for the last `spin` before an instant.
    pub fn new<'a>(
        spin: Span,
        ports: impl Iterator<Item = &'a (impl AsFd + 'a)>,
    ) -> io::Result<Self> {
        let copies = ports.map(|port| port.as_fd().try_clone_to_owned());
        Ok(Self {
            timer: Timer::new()?,
            spin,
            ports: copies.collect::<io::Result<_>>()?,
        })
    }

    /// Sleeps until a port has something, a packet is due, or the end is asked for.
    pub fn wait(
        &mut self,
        next: Option<Time>,
        clock: &TrialClock,
        stop: &OwnedFd,
    ) -> io::Result<()> {
        let wake = next.map(|due| due - self.spin);
        if wake.is_some_and(|wake| wake <= clock.now()) {
            return Ok(());
        }
        self.timer.set(wake, clock)?;
        let own = [self.timer.timer.as_fd(), stop.as_fd()];
        let ports = self.ports.iter().map(AsFd::as_fd);
        let mut all: Vec<PollFd<'_>> = own
            .into_iter()
            .chain(ports)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut all, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let failed = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        if all[2..].iter().any(|it| it.revents().intersects(failed)) {
            return Err(io::Error::other("a device is gone, or down"));
        }
        Ok(())
    }
}
