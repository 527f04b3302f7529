//! A timer of the kernel.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bentpipe_units::Time;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::clock::TrialClock;

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

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
