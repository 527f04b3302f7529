//! One side of a program: an endpoint of the library and its connections.
//!
//! Nothing here looks at all connections: timers are in a set by time, and those that may have
//! something to send stand in a queue.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_endpoint::{Received, Transmit};
use bentpipe_noq_options::RememberedPaths;
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, Event, FourTuple, Incoming, PathId, ServerConfig, StreamEvent,
    VarInt,
};

/// The time over which a burst is spread at least.
const BURST: Duration = Duration::from_millis(1);
/// The datagrams that may leave at once at least.
const LEAST: NonZeroUsize = NonZeroUsize::new(10).unwrap();
/// Datagrams that wait to be sent for no connection.
const MOST_RESPONSES: usize = 1024;

/// A connection of the library, and what belongs to it on its side.
pub struct ConnectionEntry<Owner> {
    /// The library's connection.
    pub connection: Connection,
    /// The owner; `None`: it is only there until it has drained, or is kept ready.
    pub owner: Option<Owner>,
    /// The store for its path's values when it ends.
    peers: RememberedPaths,
    /// The time under which it is in the set of timers.
    timer: Option<Instant>,
    /// It stands in the queue of those that may have something to send.
    is_queued: bool,
    /// Its peer has opened a bidirectional stream or sent a datagram, or it was taken into use.
    is_used: bool,
}

impl<Owner> ConnectionEntry<Owner> {
    /// The connection begins to be used, perhaps long after it was made: what is known of its path
    /// by now is of use to it.
    pub fn begin(&mut self) {
        if !std::mem::replace(&mut self.is_used, true) {
            self.peers.begin(&self.connection);
        }
    }
}

/// The library's endpoint of one side, with its connections.
pub struct SideEndpoint<Owner> {
    endpoint: Endpoint,
    /// By their handles; `None`: drained.
    by_handle: Vec<Option<ConnectionEntry<Owner>>>,
    count: usize,
    timers: BTreeSet<(Instant, usize)>,
    senders: VecDeque<usize>,
    /// Datagrams that belong to no connection.
    responses: VecDeque<(Transmit, Vec<u8>)>,
}

/// The connection that a datagram is of.
pub enum DatagramOwner {
    /// One that is there, by its handle.
    Connection(usize),
    /// A new one.
    NewConnection(Box<Incoming>),
    /// None.
    Nobody,
}

impl<Owner> SideEndpoint<Owner> {
    /// An endpoint without a connection; `server`: how it accepts any.
    #[must_use]
    pub fn new(config: EndpointConfig, server: Option<ServerConfig>) -> Self {
        Self {
            endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), true),
            by_handle: Vec::new(),
            count: 0,
            timers: BTreeSet::new(),
            senders: VecDeque::new(),
            responses: VecDeque::new(),
        }
    }

    /// Connections that have not drained.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Timers, queued senders and queued responses: for the proof that nothing is left behind.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.timers.len() + self.senders.len() + self.responses.len()
    }

    /// The connection of this handle.
    pub fn get(&mut self, handle: usize) -> Option<&mut ConnectionEntry<Owner>> {
        self.by_handle.get_mut(handle)?.as_mut()
    }

    /// Hands a datagram to the connection that it is of.
    pub fn handle(&mut self, now: Instant, datagram: Received) -> DatagramOwner {
        let Received {
            remote,
            local_ip,
            ecn,
            payload,
        } = datagram;
        let path = FourTuple::new(remote, local_ip);
        let ecn = EcnCodepoint::from_bits(ecn);
        let mut buffer = Vec::new();
        match self.endpoint.handle(now, path, ecn, payload, &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(entry) = self.get(handle.0) {
                    entry.connection.handle_event(event);
                }
                DatagramOwner::Connection(handle.0)
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                DatagramOwner::NewConnection(Box::new(incoming))
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.respond(&transmit, buffer);
                DatagramOwner::Nobody
            }
            None => DatagramOwner::Nobody,
        }
    }

    /// Starts a connection; says why that is not possible.
    pub fn connect(
        &mut self,
        now: Instant,
        config: ClientConfig,
        to: (SocketAddr, &str),
        peers: &RememberedPaths,
    ) -> Result<usize, String> {
        peers.connecting_to(to.0);
        self.start(now, config, to, peers)
    }

    /// Starts a connection that is kept ready until somebody has a use for it, and says so by
    /// [`ConnectionEntry::begin`]: before, it takes nothing that is known of the path.
    pub fn prepare(
        &mut self,
        now: Instant,
        config: ClientConfig,
        to: (SocketAddr, &str),
        peers: &RememberedPaths,
    ) -> Result<usize, String> {
        peers.preparing(to.0);
        self.start(now, config, to, peers)
    }

    fn start(
        &mut self,
        now: Instant,
        config: ClientConfig,
        to: (SocketAddr, &str),
        peers: &RememberedPaths,
    ) -> Result<usize, String> {
        let (handle, mut connection) = self
            .endpoint
            .connect(now, config, to.0, to.1)
            .map_err(|error| error.to_string())?;
        peers.return_frame(&mut connection);
        Ok(self.add(handle, connection, peers))
    }

    /// Takes a client's connection; says why that is not possible.
    pub fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming,
        config: ServerConfig,
        peers: &RememberedPaths,
    ) -> Result<usize, ConnectionError> {
        peers.preparing(incoming.remote_address());
        let mut buffer = Vec::new();
        let config = Some(Arc::new(config));
        match self.endpoint.accept(incoming, now, &mut buffer, config) {
            Ok((handle, connection)) => Ok(self.add(handle, connection, peers)),
            Err(error) => {
                if let Some(transmit) = &error.response {
                    self.respond(transmit, buffer);
                }
                Err(error.cause)
            }
        }
    }

    /// Has a stream of the peer's that ends not allow another: the program says when there may be
    /// more.
    pub fn allow_no_streams(&mut self, handle: usize) {
        if let Some(entry) = self.get(handle) {
            for dir in [Dir::Bi, Dir::Uni] {
                let none = VarInt::from_u32(0);
                entry.connection.set_max_concurrent_streams(dir, none);
            }
        }
    }

    /// Turns a client away with `CONNECTION_REFUSED`.
    pub fn refuse(&mut self, incoming: Incoming) {
        let mut buffer = Vec::new();
        let transmit = self.endpoint.refuse(incoming, &mut buffer);
        self.respond(&transmit, buffer);
    }

    /// Has the client show that it is at its address (RFC 9000, section 8.1.2).
    pub fn retry(&mut self, incoming: Incoming) {
        let mut buffer = Vec::new();
        match self.endpoint.retry(incoming, &mut buffer) {
            Ok(transmit) => self.respond(&transmit, buffer),
            Err(error) => self.endpoint.ignore(error.into_incoming()),
        }
    }

    /// Says nothing to a client.
    pub fn ignore(&mut self, incoming: Incoming) {
        self.endpoint.ignore(incoming);
    }

    /// Queues a response; beyond the limit it is dropped: whoever sends that many requests repeats
    /// them.
    fn respond(&mut self, transmit: &noq_proto::Transmit, bytes: Vec<u8>) {
        if self.responses.len() < MOST_RESPONSES {
            self.responses.push_back((translate(transmit), bytes));
        }
    }

    fn add(
        &mut self,
        handle: ConnectionHandle,
        connection: Connection,
        peers: &RememberedPaths,
    ) -> usize {
        if self.by_handle.len() <= handle.0 {
            self.by_handle.resize_with(handle.0 + 1, || None);
        }
        self.by_handle[handle.0] = Some(ConnectionEntry {
            connection,
            owner: None,
            peers: peers.clone(),
            timer: None,
            is_queued: false,
            is_used: false,
        });
        self.count += 1;
        handle.0
    }

    /// Lets the connection and the endpoint talk to each other after the connection was touched in
    /// any way; its events. One that has drained is taken out, since its handle may be another's
    /// next, and returned: it may hold what was received and not read yet.
    pub fn drive(
        &mut self,
        handle: usize,
        events: &mut VecDeque<Event>,
    ) -> Option<Box<Connection>> {
        let entry = self.by_handle.get_mut(handle).and_then(Option::as_mut)?;
        let mut drained = false;
        while let Some(event) = entry.connection.poll_endpoint_events() {
            drained |= event.is_drained();
            let answer = self.endpoint.handle_event(ConnectionHandle(handle), event);
            if let Some(event) = answer {
                entry.connection.handle_event(event);
            }
        }
        entry.peers.tend(&mut entry.connection);
        while let Some(event) = entry.connection.poll() {
            entry.peers.handle_event(&entry.connection, &event);
            if let Event::ConnectionLost { reason } = &event
                && *reason != ConnectionError::LocallyClosed
            {
                entry.peers.learn_from(&entry.connection);
            }
            // A one-way stream may be the protocol's own, as the control stream of HTTP/3.
            let opened = matches!(&event, Event::Stream(StreamEvent::Opened { dir: Dir::Bi }));
            if opened || matches!(&event, Event::DatagramReceived) {
                entry.begin();
            }
            events.push_back(event);
        }
        if drained {
            return self.remove(handle).map(Box::new);
        }
        self.keep_time(handle);
        self.enqueue(handle);
        None
    }

    fn remove(&mut self, handle: usize) -> Option<Connection> {
        let entry = self.by_handle[handle].take()?;
        if let Some(time) = entry.timer {
            self.timers.remove(&(time, handle));
        }
        self.count -= 1;
        Some(entry.connection)
    }

    /// Notes when the connection wants to be called.
    fn keep_time(&mut self, handle: usize) {
        let Some(entry) = self.by_handle[handle].as_mut() else {
            return;
        };
        let time = entry.connection.poll_timeout();
        if time == entry.timer {
            return;
        }
        if let Some(before) = entry.timer {
            self.timers.remove(&(before, handle));
        }
        self.timers.extend(time.map(|time| (time, handle)));
        entry.timer = time;
    }

    fn enqueue(&mut self, handle: usize) {
        if let Some(entry) = self.by_handle[handle].as_mut()
            && !entry.is_queued
        {
            entry.is_queued = true;
            self.senders.push_back(handle);
        }
    }

    /// When a connection wants to be called.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Handles the timers of the next connection for which one is due; says which that is.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<usize> {
        let (time, handle) = *self.timers.first()?;
        if time > now {
            return None;
        }
        self.timers.pop_first();
        let entry = self
            .get(handle)
            .expect("timers are of those that are there");
        entry.timer = None;
        entry.connection.handle_timeout(now);
        Some(handle)
    }

    /// Closes a connection, unless it is closed already.
    pub fn close(&mut self, now: Instant, handle: usize, code: u64, reason: &[u8]) {
        let Some(entry) = self.get(handle) else {
            return;
        };
        entry.owner = None;
        if !entry.connection.is_closed() {
            entry.peers.learn_from(&entry.connection);
            let code = code.try_into().expect("error codes are integers of QUIC");
            let reason = bytes::Bytes::copy_from_slice(reason);
            entry.connection.close(now, code, reason);
        }
    }

    /// The next datagrams to send: one response to a datagram of no connection, or those of a
    /// connection in turn with the others, and which it is.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        max_datagrams: NonZeroUsize,
        buffer: &mut Vec<u8>,
    ) -> Option<(Transmit, Option<usize>)> {
        if let Some((transmit, bytes)) = self.responses.pop_front() {
            *buffer = bytes;
            return Some((transmit, None));
        }
        while let Some(handle) = self.senders.pop_front() {
            let Some(entry) = self.by_handle[handle].as_mut() else {
                continue;
            };
            let most = max_datagrams.min(burst(&entry.connection));
            let polled = entry.connection.poll_transmit(now, most, buffer);
            if let Some(transmit) = polled {
                buffer.truncate(transmit.size);
                self.senders.push_back(handle);
                return Some((translate(&transmit), Some(handle)));
            }
            entry.is_queued = false;
            self.keep_time(handle);
        }
        None
    }
}

/// How many datagrams may leave at once: what the path carries in a millisecond, so that it does
/// not see a burst, and ten at least, as in noq's own driver.
fn burst(connection: &Connection) -> NonZeroUsize {
    let window = connection.congestion_state(PathId::ZERO);
    let window = window.map_or(0, noq_proto::congestion::Controller::window);
    let rtt = connection.rtt(PathId::ZERO).unwrap_or_default();
    let bytes = u128::from(window) * BURST.as_nanos() / rtt.as_nanos().max(1);
    let datagrams = bytes / u128::from(connection.current_mtu());
    let datagrams = usize::try_from(datagrams).unwrap_or(usize::MAX);
    NonZeroUsize::new(datagrams).map_or(LEAST, |datagrams| datagrams.max(LEAST))
}

fn translate(transmit: &noq_proto::Transmit) -> Transmit {
    Transmit {
        destination: transmit.destination,
        source: transmit.src_ip,
        ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
        segment_size: transmit.segment_size,
    }
}
