//! The relay: accepts connections, and gives each pair its turn when one of its sockets is ready.

mod late_acceptance;
mod pool;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bentpipe_endpoint::{Clock, EndpointError};
use bentpipe_service::quota::OverLimit;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{SocketFlags, accept_with};
use tracing::{debug, warn};

use crate::buffers::Buffers;
use crate::config::{Accept, Config, Destination};
use crate::event_log::{EndReason, EventLog};
use crate::pair::{ClientConnection, Ends, Pair, PairState};
use crate::sockets;
use crate::statistics::Statistics;
use crate::syn_gate::SynGate;
use crate::watched_socket::ALL_EVENTS;
use late_acceptance::PendingClient;
use pool::{Arriving, Warm, preface};

/// Numbers from here on are not of pairs.
const SPECIAL: u64 = 1 << 63;
const INBOX: u64 = SPECIAL;
const GATES: u64 = SPECIAL + 1;
const LISTENERS: u64 = SPECIAL + 16;
/// Sockets that are looked at after one call.
const EVENTS: usize = 256;
/// Pairs that have a turn before it is looked again for what has come.
const TURNS: usize = 32;
/// How often it is looked for what takes too long, at most and at least.
const SWEEPS: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];

/// A socket that listens.
#[derive(Debug)]
pub struct Listener {
    pub socket: OwnedFd,
    /// Whether those who come are of a terminal's pool.
    pub is_of_pool: bool,
}

/// The sockets at which a relay learns of clients.
#[derive(Debug)]
pub struct ClientSources {
    /// Accept from these, which do not block.
    pub listeners: Vec<Listener>,
    /// The gates for SYNs, with late acceptance.
    pub gates: Vec<SynGate>,
}

/// A message to a relay.
pub enum Message {
    /// Connections to come are like this.
    Reconfigure(Box<Config>),
    /// Take nobody any more; those there are may go on for so long.
    Drain(Duration),
    /// End at once.
    End,
    /// Say what was counted.
    Count(SyncSender<Statistics>),
}

/// The messages for a relay.
pub type Inbox = bentpipe_service::inbox::Inbox<Message>;

/// The state of a relay's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    /// When nothing is left, or at this time.
    By(Duration),
    Now,
}

/// A relay that listens.
pub struct Relay {
    epoll: OwnedFd,
    inbox: Arc<Inbox>,
    clock: Clock,
    config: Config,
    listeners: Vec<Listener>,
    gates: Vec<SynGate>,
    asking: BTreeMap<u64, PendingClient>,
    asking_by_ends: HashMap<Ends, u64>,
    arriving: BTreeMap<u64, Arriving>,
    warm: BTreeMap<u64, Warm>,
    /// Where the next connection of the pool comes from.
    next_port: u16,
    pairs: BTreeMap<u64, Pair>,
    next: u64,
    /// Whose turn it is.
    turns_from: u64,
    buffers: Buffers,
    /// Pairs that wait for a buffer.
    starved: BTreeSet<u64>,
    /// Whether it accepts no connections, for want of descriptors or memory.
    is_paused: bool,
    ending: Ending,
    sweep_at: Duration,
    log: EventLog,
    statistics: Statistics,
}

impl Relay {
    /// One that accepts who comes to these.
    pub fn new(
        worker: usize,
        client_sources: ClientSources,
        config: Config,
        inbox: Arc<Inbox>,
    ) -> Result<Self, EndpointError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(failed)?;
        watch(&epoll, &*inbox, INBOX, EventFlags::IN)?;
        for (gate, number) in client_sources.gates.iter().zip(GATES..) {
            watch(&epoll, gate.socket(), number, EventFlags::IN)?;
        }
        let mut relay = Self {
            epoll,
            inbox,
            clock: Clock::start_now(),
            listeners: client_sources.listeners,
            gates: client_sources.gates,
            asking: BTreeMap::new(),
            asking_by_ends: HashMap::new(),
            arriving: BTreeMap::new(),
            warm: BTreeMap::new(),
            next_port: Self::FIRST_PORT,
            pairs: BTreeMap::new(),
            next: 0,
            turns_from: 0,
            buffers: Buffers::new(config.buffer, config.memory),
            starved: BTreeSet::new(),
            is_paused: false,
            ending: Ending::No,
            sweep_at: Duration::ZERO,
            log: EventLog::new(worker),
            statistics: Statistics::default(),
            config,
        };
        relay.watch_listeners()?;
        relay.fill_pool();
        Ok(relay)
    }

    /// Relays until it is asked to end; returns its counters.
    pub fn run(mut self) -> Result<Statistics, EndpointError> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        // In order: which pair comes first must not be drawn.
        let mut ready: BTreeSet<u64> = BTreeSet::new();
        let mut now = self.clock.elapsed();
        loop {
            events.clear();
            let timeout = self.timeout(now, !ready.is_empty());
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
            now = self.clock.elapsed();
            for event in &events {
                match event.data.u64() {
                    INBOX => self.read_messages(now, &mut ready),
                    number if number >= LISTENERS => {
                        let index = usize::try_from(number - LISTENERS).expect("it was a usize");
                        // Clients that are left are reported again.
                        let _ = self.accept(index, now, &mut ready);
                    }
                    number if number >= GATES => {
                        let gate = usize::try_from(number - GATES).expect("it was a usize");
                        self.hear(gate, now);
                    }
                    number => {
                        if let Some(pair) = self.pairs.get_mut(&(number / 2)) {
                            pair.hear(number % 2 == 1, event.flags);
                        }
                        ready.insert(number / 2);
                    }
                }
            }
            let after = ready.range(self.turns_from..);
            let turns = after.chain(ready.range(..self.turns_from)).take(TURNS);
            for number in turns.copied().collect::<Vec<_>>() {
                ready.remove(&number);
                self.turn(number, now, &mut ready);
                self.turns_from = number + 1;
            }
            self.feed(&mut ready);
            if self.sweep_at <= now {
                self.sweep(now);
            }
            if self.has_ended(now) {
                for number in self.pairs.keys().copied().collect::<Vec<_>>() {
                    self.forget(number, now, EndReason::Ending);
                }
                return Ok(self.statistics);
            }
        }
    }

    fn timeout(&self, now: Duration, is_busy: bool) -> Option<Timespec> {
        let wait = if is_busy {
            Duration::ZERO
        } else if self.has_times() {
            self.sweep_at.saturating_sub(now)
        } else {
            return None;
        };
        Some(Timespec::try_from(wait).expect("it is short"))
    }

    /// Whether anything may take too long.
    fn has_times(&self) -> bool {
        let times = &self.config.times;
        let is_empty = self.pairs.is_empty() && self.asking.is_empty() && self.arriving.is_empty();
        let has_limits = (times.idle.is_some() || times.handshake.is_some()) && !is_empty;
        let pool = self.config.pool.filter(|_| !self.is_ending());
        let lacks = pool.is_some_and(|pool| self.warm.len() < pool.connections);
        has_limits || lacks || self.is_paused || matches!(self.ending, Ending::By(_))
    }

    fn has_ended(&self, now: Duration) -> bool {
        match self.ending {
            Ending::No => false,
            Ending::By(time) => now >= time || (self.pairs.is_empty() && self.arriving.is_empty()),
            Ending::Now => true,
        }
    }

    fn is_ending(&self) -> bool {
        self.ending != Ending::No
    }

    fn read_messages(&mut self, now: Duration, ready: &mut BTreeSet<u64>) {
        for message in self.inbox.clone().take() {
            match message {
                Message::Reconfigure(config) => self.reconfigure(*config),
                Message::Drain(grace) => {
                    // Clients that wait in the kernel's queue have been connected by it.
                    for index in 0..self.listeners.len() {
                        while self.accept(index, now, ready) {}
                    }
                    self.listeners.clear();
                    self.gates.clear();
                    self.asking.clear();
                    self.warm.clear();
                    for number in self.arriving.keys().copied().collect::<Vec<_>>() {
                        self.listen_to(number, now, ready); // it may have been said already
                    }
                    self.arriving.retain(|_, arriving| arriving.has_begun());
                    self.ending = Ending::By(now + grace);
                }
                Message::End => self.ending = Ending::Now,
                // Who asked may have gone away.
                Message::Count(answer) => drop(answer.try_send(self.count())),
            }
        }
    }

    fn reconfigure(&mut self, config: Config) {
        self.buffers.resize(config.buffer, config.memory);
        self.config = config;
        for listener in &self.listeners {
            if let Err(error) = sockets::dress(&listener.socket, &self.config.client_side) {
                warn!(why = %error, "reload-failed");
            }
        }
    }

    fn count(&self) -> Statistics {
        let mut counted = self.statistics.clone();
        for pair in self.pairs.values() {
            let [to_client, to_server] = pair.carried();
            counted.bytes_to_clients_total += to_client;
            counted.bytes_to_servers_total += to_server;
            counted.held_bytes += pair.held() as u64;
        }
        counted.connections = self.pairs.len() as u64;
        counted.asking = self.asking.len() as u64;
        counted.arriving = self.arriving.len() as u64;
        counted.pool = self.ready_in_pool() as u64;
        counted.buffers = self.buffers.used() as u64;
        counted
    }

    /// Accepts connections that wait; whether there may be more.
    fn accept(&mut self, index: usize, now: Duration, ready: &mut BTreeSet<u64>) -> bool {
        for _ in 0..EVENTS {
            let Some(listener) = self.listeners.get(index) else {
                return false;
            };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let is_of_pool = listener.is_of_pool;
            let client = match accept_with(&listener.socket, flags) {
                Ok(client) => client,
                Err(Errno::AGAIN) => return false,
                Err(Errno::INTR) => continue,
                Err(error) if is_exhausted(error) => {
                    self.pause();
                    return false;
                }
                // Of one connection: others may still come.
                Err(error) => {
                    debug!(why = %error, "accept-failed");
                    continue;
                }
            };
            // Whatever becomes of it until it is a pair, the client gets a reset.
            let _ = set_socket_linger(&client, Some(Duration::ZERO));
            match self.greet(client, is_of_pool, now, ready) {
                Ok(()) => {}
                Err(error) => {
                    self.statistics.reset_total += 1;
                    debug!(why = %error, "open-failed");
                    if is_exhausted(error) {
                        self.pause();
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Does what is to be done with a connection that was accepted.
    fn greet(
        &mut self,
        client: OwnedFd,
        is_of_pool: bool,
        now: Duration,
        ready: &mut BTreeSet<u64>,
    ) -> Result<(), Errno> {
        let (peer, local) = sockets::names(&client)?;
        if is_of_pool {
            return self.arrive(client, peer.ip(), now, ready);
        }
        let server = match self.config.destination {
            Destination::Wanted => local,
            Destination::Fixed(place) => place,
        };
        let ends = Ends {
            client: peer,
            server,
        };
        if self.config.accept == Accept::Late {
            self.statistics.connections_total += 1;
            return self.admitted(client, ends, now, ready);
        }
        ready.extend(self.serve(client, ends, None, now)?);
        Ok(())
    }

    /// Opens the connection to the next hop; None: the client is beyond a limit. `watched` is the
    /// number of a client's connection that is watched already.
    fn serve(
        &mut self,
        client: OwnedFd,
        ends: Ends,
        watched: Option<u64>,
        now: Duration,
    ) -> Result<Option<u64>, Errno> {
        self.statistics.connections_total += 1;
        let limits = self.config.limits;
        let permit = match self.config.quota.acquire(ends.client.ip(), limits) {
            Ok(permit) => permit,
            Err(limit) => {
                self.refuse(ends.client, limit);
                return Ok(None);
            }
        };
        sockets::dress_accepted(&client, &self.config.client_side)?;
        let client = ClientConnection {
            socket: client,
            permit,
        };
        let (warm, next_hop, preface) = if let Some(pool) = self.config.pool {
            let (warm, socket) = self.take_warm(&pool)?;
            (warm, socket, preface(ends))
        } else {
            let source = self.config.is_transparent.then_some(ends.client);
            let side = &self.config.server_side;
            let socket = sockets::connect(side, ends.server, source)?;
            (None, socket, Vec::new())
        };
        let number = watched.or(warm).unwrap_or_else(|| self.number());
        let pair = Pair::new(client, next_hop, preface, now)?;
        for (socket, data, is_watched) in [
            (pair.sockets()[0], 2 * number, watched.is_some()),
            (pair.sockets()[1], 2 * number + 1, warm.is_some()),
        ] {
            if !is_watched {
                epoll::add(&self.epoll, socket, EventData::new_u64(data), ALL_EVENTS)?;
            }
        }
        self.log.opened(number, ends);
        self.pairs.insert(number, pair);
        Ok(Some(number))
    }

    /// One that nobody has had.
    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn refuse(&mut self, client: SocketAddr, limit: OverLimit) {
        self.statistics.refused_total += 1;
        EventLog::refused(client, limit);
    }

    /// Leaves connections in the kernel's queue until a pair has ended, or for a while.
    fn pause(&mut self) {
        self.statistics.paused_total += 1;
        if self.is_paused {
            return;
        }
        warn!(connections = self.pairs.len(), "no-room");
        self.is_paused = true;
        // A sweep that is due sooner stays: it may free what is missing.
        self.sweep_at = self.sweep_at.min(self.clock.elapsed() + SWEEPS[1]);
        for listener in &self.listeners {
            // One that is not watched does not disturb.
            let _ = epoll::delete(&self.epoll, &listener.socket);
        }
    }

    fn unpause(&mut self) {
        if std::mem::take(&mut self.is_paused) {
            // Listeners that could be watched before can be again: their entries were freed.
            let _ = self.watch_listeners();
        }
    }

    fn watch_listeners(&self) -> Result<(), EndpointError> {
        for (listener, number) in self.listeners.iter().zip(LISTENERS..) {
            watch(&self.epoll, &listener.socket, number, EventFlags::IN)?;
        }
        Ok(())
    }

    /// Gives a connection or a pair its turn.
    fn turn(&mut self, number: u64, now: Duration, ready: &mut BTreeSet<u64>) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            self.answer(number);
            self.look_at_warm(number);
            self.listen_to(number, now, ready);
            return;
        };
        let was_connected = pair.is_connected();
        let state = pair.pump(now, &mut self.buffers);
        if pair.is_connected() && !was_connected {
            self.statistics.established_total += 1;
            self.log.established(number, now.saturating_sub(pair.since));
        }
        match state {
            Ok(PairState::Busy) => drop(ready.insert(number)),
            Ok(PairState::Waiting) => {}
            Ok(PairState::Starved) => {
                self.statistics.starved_total += 1;
                self.starved.insert(number);
            }
            Ok(PairState::Ended) => self.forget(number, now, EndReason::Ended),
            Err(error) => self.forget(number, now, EndReason::Reset(error)),
        }
    }

    /// Gives those a turn that waited for a buffer, if there is one.
    fn feed(&mut self, ready: &mut BTreeSet<u64>) {
        if !self.starved.is_empty() && self.buffers.has_room() {
            ready.append(&mut self.starved);
        }
    }

    /// Ends what takes too long.
    fn sweep(&mut self, now: Duration) {
        let times = self.config.times;
        let shortest = [times.idle, times.handshake].into_iter().flatten().min();
        let every = shortest.map_or(SWEEPS[1], |it| (it / 4).clamp(SWEEPS[0], SWEEPS[1]));
        self.sweep_at = now + every;
        let is_late = |pair: &Pair| {
            let limit = if pair.is_connected() {
                times.idle
            } else {
                times.handshake
            };
            limit.is_some_and(|limit| now >= pair.moved + limit)
        };
        let late = self.pairs.iter().filter(|(_, pair)| is_late(pair));
        for number in late.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.forget(number, now, EndReason::TooLong);
        }
        if let Some(limit) = times.handshake {
            self.sweep_asking(now, limit);
            self.sweep_arriving(now, times.idle.unwrap_or(limit), limit);
        }
        self.fill_pool();
        self.unpause();
    }

    fn forget(&mut self, number: u64, now: Duration, why: EndReason) {
        let Some(mut pair) = self.pairs.remove(&number) else {
            return;
        };
        match why {
            EndReason::Ended => self.statistics.closed_total += 1,
            EndReason::TooLong => self.statistics.timed_out_total += 1,
            EndReason::Reset(_) | EndReason::Ending => self.statistics.reset_total += 1,
        }
        pair.release(&mut self.buffers);
        let carried = pair.carried();
        self.statistics.bytes_to_clients_total += carried[0];
        self.statistics.bytes_to_servers_total += carried[1];
        let lasted = now.saturating_sub(pair.since);
        self.log.closed(number, why, lasted, carried);
        drop(pair);
        self.unpause();
    }
}

/// Whether the system has no more of what a connection needs.
fn is_exhausted(error: Errno) -> bool {
    matches!(
        error,
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM
    )
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
