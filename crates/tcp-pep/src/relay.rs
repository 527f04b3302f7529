//! The relay: accepts connections, and gives each pair its turn when one of its sockets is ready.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bentpipe_endpoint::EndpointError;
use bentpipe_linux_tcp::{SocketKind, raise_descriptors};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use crate::options::ProxyOptions;
use crate::pair::{Pair, PairState};

const LISTENER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;
/// Sockets that are looked at after one call.
const EVENTS: usize = 256;

/// The counts of a relay: what went through.
#[derive(Debug, Clone, Copy, Default)]
pub struct RelayCounts {
    pub connections: u64,
    /// Of those, the pairs that ended by a reset or could not be connected.
    pub reset: u64,
    pub bytes_to_client: u64,
    pub bytes_to_server: u64,
}

/// A relay that listens.
pub struct Relay {
    epoll: OwnedFd,
    listener: OwnedFd,
    server_side: SocketKind,
    buffer: usize,
    pairs: HashMap<u64, Pair>,
    next: u64,
    /// Whether it accepts no connections, for want of descriptors or memory.
    is_paused: bool,
    counts: RelayCounts,
}

impl Relay {
    /// One that listens at any address. It ends when `waker` can be read.
    pub fn listen(
        any: SocketAddr,
        options: &ProxyOptions,
        waker: BorrowedFd,
    ) -> Result<Self, EndpointError> {
        let of = |congestion: &str| SocketKind {
            congestion: congestion.to_owned(),
            transparent: true,
            nonblocking: true,
        };
        raise_descriptors();
        let listener = of(&options.client_side.congestion).listen(any)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(failed)?;
        watch(&epoll, &listener, LISTENER, EventFlags::IN)?;
        watch(&epoll, waker, WAKER, EventFlags::IN)?;
        Ok(Self {
            epoll,
            listener,
            server_side: of(&options.server_side.congestion),
            buffer: options.buffer,
            pairs: HashMap::new(),
            next: 0,
            is_paused: false,
            counts: RelayCounts::default(),
        })
    }

    /// Carries until it is woken.
    pub fn run(mut self) -> Result<RelayCounts, EndpointError> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        // In order: which pair comes first must not be drawn.
        let mut ready: BTreeSet<u64> = BTreeSet::new();
        loop {
            events.clear();
            let at_once = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let patience = (!ready.is_empty()).then_some(&at_once);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), patience) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
            for event in &events {
                match event.data.u64() {
                    WAKER => {
                        let left: Vec<u64> = self.pairs.keys().copied().collect();
                        for number in left {
                            self.forget(number);
                        }
                        return Ok(self.counts);
                    }
                    LISTENER => self.accept(&mut ready)?,
                    number => drop(ready.insert(number / 2)),
                }
            }
            for number in std::mem::take(&mut ready) {
                if self.turn(number) {
                    ready.insert(number);
                }
            }
        }
    }

    /// Accepts all connections that wait.
    fn accept(&mut self, ready: &mut BTreeSet<u64>) -> Result<(), EndpointError> {
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let client = match accept_with(&self.listener, flags) {
                Ok(client) => client,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    return self.pause();
                }
                // Of one connection: others may still come.
                Err(error) => {
                    eprintln!("bentpipe-tcp-pep: accepting: {error}");
                    continue;
                }
            };
            self.counts.connections += 1;
            match Pair::open(client, &self.server_side, self.buffer) {
                Ok(pair) => {
                    let number = self.next;
                    self.next += 1;
                    let all = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                    watch(&self.epoll, &pair.client, 2 * number, all)?;
                    watch(&self.epoll, &pair.server, 2 * number + 1, all)?;
                    self.pairs.insert(number, pair);
                    ready.insert(number);
                }
                Err(error) => {
                    self.counts.reset += 1;
                    eprintln!("bentpipe-tcp-pep: {error}");
                }
            }
        }
    }

    /// Leaves connections in the kernel's queue until a pair has ended.
    fn pause(&mut self) -> Result<(), EndpointError> {
        eprintln!(
            "bentpipe-tcp-pep: no room for more than {} pairs",
            self.pairs.len()
        );
        if self.pairs.is_empty() {
            return Err(failed(Errno::MFILE)); // nobody will make room
        }
        self.is_paused = true;
        epoll::delete(&self.epoll, &self.listener).map_err(failed)
    }

    /// Gives a pair its turn; whether it has more to do.
    fn turn(&mut self, number: u64) -> bool {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return false;
        };
        match pair.pump() {
            Ok(PairState::Busy) => return true,
            Ok(PairState::Waiting) => {}
            Ok(PairState::Ended) => self.forget(number),
            Err(_) => {
                pair.reset();
                self.counts.reset += 1;
                self.forget(number);
            }
        }
        false
    }

    fn forget(&mut self, number: u64) {
        if let Some(pair) = self.pairs.remove(&number) {
            let [to_client, to_server] = pair.carried();
            self.counts.bytes_to_client += to_client;
            self.counts.bytes_to_server += to_server;
            if std::mem::take(&mut self.is_paused) {
                // One that could be watched before can be again: there is room for it.
                let _ = watch(&self.epoll, &self.listener, LISTENER, EventFlags::IN);
            }
        }
    }
}

fn watch(
    epoll: &OwnedFd,
    what: impl AsFd,
    number: u64,
    flags: EventFlags,
) -> Result<(), EndpointError> {
    epoll::add(epoll, what, EventData::new_u64(number), flags).map_err(failed)
}

fn failed(error: Errno) -> EndpointError {
    EndpointError::io("waiting for connections")(error.into())
}
