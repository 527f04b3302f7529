//! The events that wake the forwarding thread.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use bentpipe_units::{Span, Time};
use rustix::event::{PollFd, PollFlags, poll};

use crate::timing::clock::{Clock, TrialClock};
use crate::timing::timer::Timer;

/// A timer, ports, and an event by which other threads end it all.
pub(crate) struct WakeupSources {
    timer: Timer,
    spin: Span,
    ports: Vec<OwnedFd>,
}

impl WakeupSources {
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
        let own = [self.timer.as_fd(), stop.as_fd()];
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
