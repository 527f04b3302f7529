//! Waits for many sockets at once.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use bentpipe_endpoint::EndpointError;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

/// Sockets that one call reports.
const BATCH: usize = 64;

/// The name of something that a worker waits for, and its number.
pub trait Token: Copy {
    /// The number, which no other has.
    fn number(self) -> u64;
    /// The one of this number.
    fn of(number: u64) -> Self;
}

/// A set of sockets to wait for, until they are closed.
#[derive(Debug)]
pub struct Poller<T> {
    epoll: OwnedFd,
    ready: Vec<T>,
}

impl<T: Token> Poller<T> {
    /// An empty one.
    pub fn new() -> Result<Self, EndpointError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC);
        Ok(Self {
            epoll: epoll.map_err(failed("making an epoll"))?,
            ready: Vec::with_capacity(BATCH),
        })
    }

    /// Adds a socket, to wait until something can be received.
    pub fn add(&self, what: impl AsFd, token: T) -> Result<(), EndpointError> {
        let data = EventData::new_u64(token.number());
        epoll::add(&self.epoll, what, data, EventFlags::IN).map_err(failed("waiting for a socket"))
    }

    /// Sets whether to wait until sending is possible, too.
    pub fn want_writable(
        &self,
        what: impl AsFd,
        token: T,
        wanted: bool,
    ) -> Result<(), EndpointError> {
        let data = EventData::new_u64(token.number());
        let mut flags = EventFlags::IN;
        flags.set(EventFlags::OUT, wanted);
        epoll::modify(&self.epoll, what, data, flags).map_err(failed("waiting for room"))
    }

    /// Sleeps until something is there or `timeout` is over.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<&[T], EndpointError> {
        let timeout =
            timeout.map(|it| Timespec::try_from(it).expect("a timeout fits the kernel's"));
        let mut events = [MaybeUninit::<Event>::uninit(); BATCH];
        self.ready.clear();
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((events, _)) => {
                let tokens = events.iter().map(|event| T::of(event.data.u64()));
                self.ready.extend(tokens);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed("waiting")(error)),
        }
        Ok(&self.ready)
    }
}

fn failed(what: &'static str) -> impl FnOnce(Errno) -> EndpointError {
    move |error| EndpointError::io(what)(error.into())
}
