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

/// The name of something that a worker waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    Inbox,
    /// The socket of a listening address.
    Client(usize),
    /// The socket of a family of addresses.
    Server(usize),
    /// The socket of a flow that is forwarded untouched.
    Bypass(u64),
}

impl Token {
    fn number(self) -> u64 {
        match self {
            Self::Inbox => 0,
            Self::Client(index) => 1 + 4 * index as u64,
            Self::Server(index) => 2 + 4 * index as u64,
            Self::Bypass(flow) => 3 + 4 * flow,
        }
    }

    fn of(number: u64) -> Self {
        let index = || usize::try_from(number / 4).expect("it was a usize");
        match number % 4 {
            0 => Self::Inbox,
            1 => Self::Client(index()),
            2 => Self::Server(index()),
            _ => Self::Bypass(number / 4),
        }
    }
}

/// A set of sockets to wait for, until they are closed.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    ready: Vec<Token>,
}

impl Poller {
    pub fn new() -> Result<Self, EndpointError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC);
        Ok(Self {
            epoll: epoll.map_err(failed("making an epoll"))?,
            ready: Vec::with_capacity(BATCH),
        })
    }

    pub fn add(&self, what: impl AsFd, token: Token) -> Result<(), EndpointError> {
        let data = EventData::new_u64(token.number());
        epoll::add(&self.epoll, what, data, EventFlags::IN).map_err(failed("waiting for a socket"))
    }

    /// Sets whether to wait until sending is possible, too.
    pub fn want_writable(
        &self,
        what: impl AsFd,
        token: Token,
        wanted: bool,
    ) -> Result<(), EndpointError> {
        let data = EventData::new_u64(token.number());
        let mut flags = EventFlags::IN;
        flags.set(EventFlags::OUT, wanted);
        epoll::modify(&self.epoll, what, data, flags).map_err(failed("waiting for room"))
    }

    /// Sleeps until something is there or `timeout` is over.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<&[Token], EndpointError> {
        let timeout =
            timeout.map(|it| Timespec::try_from(it).expect("a timeout fits the kernel's"));
        let mut events = [MaybeUninit::<Event>::uninit(); BATCH];
        self.ready.clear();
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((events, _)) => {
                let tokens = events.iter().map(|event| Token::of(event.data.u64()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_their_numbers() {
        for token in [
            Token::Inbox,
            Token::Client(0),
            Token::Client(7),
            Token::Server(0),
            Token::Server(1),
            Token::Bypass(0),
            Token::Bypass(u64::MAX / 8),
        ] {
            assert_eq!(Token::of(token.number()), token);
        }
    }
}
