//! A worker: a proxy with its sockets, on a separate thread.
//!
//! Workers share the addresses that they listen at (`steering`), the limits and the sessions that
//! can be resumed, and nothing else: what belongs to a connection never leaves its thread.

mod event_log;
mod inbox;
mod sockets;
mod token;

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use bentpipe_connections::steering::worker_of;
use bentpipe_endpoint::{Clock, EndpointError, Transmit};
use bentpipe_pep::{Event, Proxy, Socket};
use bentpipe_service::ending::Ending;
use tracing::{debug, error};

use event_log::EventLog;
use sockets::{Sent, Sockets};
use token::Token;

use inbox::MOST_DATAGRAMS;
pub use inbox::{Inbox, Message, WorkerCounters};

/// Calls to send before it is looked for what has come.
const CALLS: usize = 64;

/// The parts that all workers share.
pub struct Shared {
    pub inboxes: Vec<Inbox>,
    pub bypass_owners: BypassOwners,
    /// Workers that have connections, or may get some.
    pub busy: AtomicUsize,
}

/// The workers that forward the datagrams of clients untouched: their connection IDs are not of the
/// worker's making.
#[derive(Debug, Default)]
pub struct BypassOwners {
    /// How many there are, for where there is none.
    count: AtomicUsize,
    owners: RwLock<HashMap<SocketAddr, usize>>,
}

impl BypassOwners {
    fn owner(&self, client: SocketAddr) -> Option<usize> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let owners = self.owners.read().expect("nobody panics with it");
        owners.get(&client).copied()
    }

    fn set(&self, client: SocketAddr, owner: Option<usize>) {
        let mut owners = self.owners.write().expect("nobody panics with it");
        match owner {
            Some(owner) => owners.insert(client, owner),
            None => owners.remove(&client),
        };
        self.count.store(owners.len(), Ordering::Release);
    }
}

/// A worker, which runs on a separate thread.
pub struct Worker {
    number: usize,
    proxy: Proxy,
    clock: Clock,
    sockets: Sockets,
    shared: Arc<Shared>,
    event_log: EventLog,
    /// The datagrams being sent, while their socket takes no more; their bytes are in the buffer.
    blocked: Option<(Socket, Transmit, Token)>,
    buffer: Vec<u8>,
    /// The clients of flows that are forwarded untouched.
    bypassed: HashMap<u64, SocketAddr>,
    counted: WorkerCounters,
    ending: Ending,
}

impl Worker {
    pub fn new(
        number: usize,
        proxy: Proxy,
        clock: Clock,
        listening: Vec<UdpSocket>,
        shared: Arc<Shared>,
    ) -> Result<Self, EndpointError> {
        let mut sockets = Sockets::new(listening)?;
        sockets
            .poller()
            .add(&shared.inboxes[number], Token::Inbox)?;
        Ok(Self {
            number,
            proxy,
            clock,
            sockets,
            event_log: EventLog::new(number),
            shared,
            blocked: None,
            buffer: Vec::new(),
            bypassed: HashMap::new(),
            counted: WorkerCounters::default(),
            ending: Ending::default(),
        })
    }

    /// Serves until it is asked to end; returns the proxy, for its counters.
    pub fn run(mut self) -> Result<Proxy, EndpointError> {
        let mut ready = vec![Token::Inbox];
        loop {
            let now = self.tick();
            for token in ready.drain(..) {
                let received = self.receive(now, token);
                self.tolerate("receive-failed", received);
            }
            if self.proxy.next_timeout().is_some_and(|time| time <= now) {
                self.proxy.handle_timeout(now);
            }
            let more = self.transmit(now)?;
            self.follow(now);
            self.note_drained();
            if self.ending.has_come(now) {
                return Ok(self.proxy);
            }
            let timeout = self.timeout(more);
            ready.extend_from_slice(self.sockets.poller().wait(timeout)?);
        }
    }

    /// Real time since the start, made known to TLS.
    fn tick(&self) -> Duration {
        let now = self.clock.elapsed();
        self.clock.set(now);
        now
    }

    fn receive(&mut self, now: Duration, token: Token) -> Result<(), EndpointError> {
        let Self {
            number,
            proxy,
            sockets,
            shared,
            counted,
            ..
        } = self;
        match token {
            Token::Inbox => self.read_messages(now),
            Token::Client(_) => {
                let workers = shared.inboxes.len();
                return sockets.receive(token, |datagram| {
                    let owner = shared.bypass_owners.owner(datagram.remote);
                    let owner = owner.unwrap_or_else(|| worker_of(&datagram.payload, workers));
                    if owner == *number {
                        proxy.handle_datagram(now, Socket::Client, datagram);
                    } else if shared.inboxes[owner]
                        .send_if_below(MOST_DATAGRAMS, Message::Datagram(datagram))
                    {
                        counted.handed_on += 1;
                    } else {
                        counted.lost += 1;
                    }
                });
            }
            Token::Server(_) => {
                return sockets.receive(token, |datagram| {
                    proxy.handle_datagram(now, Socket::Server, datagram);
                });
            }
            Token::Bypass(flow) => {
                return sockets.receive(token, |datagram| {
                    proxy.handle_datagram(now, Socket::Bypass(flow), datagram);
                });
            }
        }
        Ok(())
    }

    fn read_messages(&mut self, now: Duration) {
        for message in self.shared.inboxes[self.number].take() {
            match message {
                Message::Reconfigure(config) => {
                    if let Err(error) = self.proxy.reconfigure(*config) {
                        error!(worker = self.number, why = %error, "reload-failed");
                    }
                }
                Message::Drain(grace) => {
                    self.proxy.drain(now, now + grace);
                    self.ending.drain(now + grace);
                }
                Message::End => self.ending = Ending::Now,
                Message::Count(answer) => {
                    self.counted.statistics = self.proxy.statistics();
                    // Who asked may have gone away.
                    let _ = answer.try_send(self.counted.clone());
                }
                Message::Datagram(datagram) => {
                    self.proxy.handle_datagram(now, Socket::Client, datagram);
                }
            }
        }
    }

    /// Sends; says whether there may be more to send at once.
    fn transmit(&mut self, now: Duration) -> Result<bool, EndpointError> {
        if let Some((socket, transmit, token)) = self.blocked.take() {
            if let Sent::Blocked(_) = self.send(socket, &transmit) {
                self.blocked = Some((socket, transmit, token));
                return Ok(false);
            }
            self.sockets.want_writable(token, false)?;
        }
        let most = self.sockets.most_segments();
        for _ in 0..CALLS {
            self.buffer.clear();
            let next = self.proxy.poll_transmit(now, most, &mut self.buffer);
            // A flow's socket must be there before its first datagram leaves.
            self.follow(now);
            let Some((socket, transmit)) = next else {
                return Ok(false);
            };
            if let Sent::Blocked(token) = self.send(socket, &transmit) {
                self.blocked = Some((socket, transmit, token));
                self.sockets.want_writable(token, true)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn send(&mut self, socket: Socket, transmit: &Transmit) -> Sent {
        let sent = self.sockets.send(socket, transmit, &self.buffer);
        self.tolerate("send-failed", sent).unwrap_or(Sent::Yes)
    }

    /// A socket's error is about one destination: what was to be sent is lost, as on its way, and
    /// all else goes on.
    fn tolerate<T>(&mut self, event: &'static str, result: Result<T, EndpointError>) -> Option<T> {
        result
            .map_err(|error| {
                self.counted.socket_errors += 1;
                debug!(why = %error, "{event}");
            })
            .ok()
    }

    /// Does what the proxy's events ask for, and logs them.
    fn follow(&mut self, now: Duration) {
        while let Some(event) = self.proxy.poll_event() {
            self.event_log.write(now, &event);
            match event {
                Event::BypassOpened {
                    flow,
                    client,
                    next_hop,
                } => {
                    if let Err(error) = self.sockets.open_bypass(flow, next_hop) {
                        error!(%client, why = %error, "aside-failed");
                        self.proxy.forget_bypass(flow);
                        continue;
                    }
                    self.bypassed.insert(flow, client);
                    self.shared.bypass_owners.set(client, Some(self.number));
                }
                Event::BypassClosed { flow } => {
                    self.sockets.close_bypass(flow);
                    if let Some(client) = self.bypassed.remove(&flow) {
                        self.shared.bypass_owners.set(client, None);
                    }
                }
                _ => {}
            }
        }
    }

    /// The last worker that has nothing left ends all.
    fn note_drained(&mut self) {
        if self.proxy.is_drained() && self.ending.note_drained(&self.shared.busy) {
            for inbox in &self.shared.inboxes {
                inbox.send(Message::End);
            }
        }
    }

    /// How long to sleep.
    fn timeout(&mut self, more: bool) -> Option<Duration> {
        if more {
            return Some(Duration::ZERO);
        }
        let end = self.ending.time();
        let wake = self.proxy.next_timeout().into_iter().chain(end).min();
        wake.map(|time| time.saturating_sub(self.clock.elapsed()))
    }
}
