//! The adapter: the calls of the endpoint contract made into those of the library.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bentpipe_endpoint::contract::Statistics;
use bentpipe_endpoint::{
    Clock, Closing, ConnectionKey, EndpointError, Event, Options, Outbox, PathEnds, Read, Received,
    Resume, Role, Setup, Stack, StreamEnd, StreamKey, TestCase, Transmit,
};
use bytes::Bytes;
use proto::crypto::rustls::QuicServerConfig;
use proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EndpointConfig, ReadError,
    ServerConfig, StreamEvent, TimeSource, TransportConfig, VarInt, WriteError,
};

use crate::client::Client;
use crate::inbox::{self, Inbox, stream_id};
use crate::library::{Library, PathMemory as _, ReadOrder, Report};
use crate::options;

/// An endpoint of the library `L` and its connections.
pub struct Adapter<L: Library> {
    endpoint: proto::Endpoint,
    client: Option<Client>,
    /// In the order of their handles; `None`: drained.
    connections: Vec<Option<Connection>>,
    /// Of each of a client's connections, how many of `ends` it has opened, in the same order.
    opened: Vec<usize>,
    events: VecDeque<Event>,
    /// The data that were read before the application asked for them; `None`: the library keeps it.
    inbox: Option<Inbox>,
    /// A connection to be closed once it has sent what it has to send, and the error code.
    leaving: Option<(ConnectionKey, u32)>,
    /// Datagrams that belong to no connection.
    responses: Outbox,
    paths: L::Paths,
    /// Those of the setup, by number, if they are used at once.
    ends: Vec<PathEnds>,
    addresses: Addresses,
    clock: Clock,
    /// The report of congestion control at the end.
    report: Option<Report>,
    /// The free buffer for DATAGRAM frames to be sent, while none waits.
    datagram_room: usize,
}

/// The addresses of this end, which the library leaves to whoever has the sockets.
#[derive(Default)]
struct Addresses {
    /// Whether datagrams take the paths of their addresses: else there is one path.
    decide: bool,
    /// The local address that a client sends from since it has migrated.
    own: Option<IpAddr>,
    /// Whether the library is not told to which local address datagrams were sent.
    hidden: bool,
}

impl Addresses {
    /// Those of a trial, whose endpoint uses `ends` at once.
    fn of(setup: &Setup, ends: &[PathEnds]) -> Self {
        Self {
            decide: ends.len() > 1 || setup.follows_paths(),
            own: None,
            // As of a socket that is bound to one address, and after migration to another: what
            // still comes to the first would otherwise make noq send from there again.
            hidden: setup.migrates(),
        }
    }

    /// The datagrams that a poll has brought, from where this side is now.
    fn transmit(&self, transmit: &proto::Transmit) -> Transmit {
        let transmit = to_transmit(transmit);
        Transmit {
            source: self.own.or(transmit.source),
            ..transmit
        }
    }
}

/// A token's age is counted in the trial's time.
struct WallClock(Clock);

impl TimeSource for WallClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.0.unix()
    }
}

impl<L: Library> Stack for Adapter<L> {
    const NAME: &'static str = L::NAME;
    const VERSION: &'static str = L::VERSION;
    const TEST_CASES: &'static [TestCase] = &TestCase::ALL;
    const MIGRATES: bool = true;

    fn knows_paths(&self) -> bool {
        self.addresses.decide
    }

    fn new(setup: &Setup, words: &mut Options) -> Result<Self, EndpointError> {
        let mut transport = TransportConfig::default();
        let paths = L::Paths::default();
        let report = options::apply::<L>(&mut transport, &setup.surroundings(), words, &paths)?;
        let order = inbox::take_read_order::<L>(words)?;
        let ends = options::take_paths::<L>(setup, words)?;
        if let Ok(count @ 2..) = u32::try_from(ends.len()) {
            L::allow_paths(&mut transport, count);
        }
        if let Some(folder) = &setup.qlog {
            let start = setup.clock.instant(Duration::ZERO);
            L::log_to(folder, start, &mut transport);
        }
        let transport = Arc::new(transport);
        let mut server_config = None;
        let mut client = None;
        match setup.role {
            Role::Server => {
                let tls =
                    QuicServerConfig::try_from(setup.server_tls()?).map_err(EndpointError::tls)?;
                let mut config = ServerConfig::with_crypto(Arc::new(tls));
                config.transport_config(transport);
                config.time_source(Arc::new(WallClock(setup.clock.clone())));
                server_config = Some(Arc::new(config));
            }
            Role::Client => client = Some(Client::new(setup.client_tls()?, transport)),
        }
        Ok(Self {
            endpoint: L::endpoint(Arc::new(EndpointConfig::default()), server_config),
            client,
            connections: Vec::new(),
            opened: Vec::new(),
            events: VecDeque::new(),
            inbox: (order == ReadOrder::Unordered).then(Inbox::default),
            leaving: None,
            responses: Outbox::default(),
            paths,
            addresses: Addresses::of(setup, &ends),
            ends,
            clock: setup.clock.clone(),
            report,
            datagram_room: 0,
        })
    }

    fn connect(
        &mut self,
        now: Duration,
        remote: SocketAddr,
        resume: Resume,
    ) -> Result<ConnectionKey, EndpointError> {
        let client = self.client.as_ref().expect("only a client connects");
        let config = client.config(resume)?;
        let now = self.clock.instant(now);
        self.paths.connecting_to(remote);
        let (handle, mut connection) = self
            .endpoint
            .connect(now, config, remote, "server")
            .map_err(EndpointError::failed)?;
        self.paths.begun(&mut connection);
        self.add(handle, connection);
        Ok(ConnectionKey(handle.0))
    }

    fn migrate(&mut self, now: Duration, to: PathEnds) -> bool {
        let now = self.clock.instant(now);
        let mut open: Vec<_> = self.connections.iter_mut().flatten().collect();
        open.retain(|it| !it.is_closed());
        if open.is_empty() || open.iter().any(|it| it.is_handshaking()) {
            return false;
        }
        for connection in open {
            L::local_address_changed(connection, now);
        }
        self.addresses.own = Some(to.local.ip());
        for index in 0..self.connections.len() {
            self.settle(now, ConnectionHandle(index));
        }
        true
    }

    fn handle_datagram(&mut self, now: Duration, mut datagram: Received) {
        let now = self.clock.instant(now);
        if self.addresses.hidden {
            datagram.local_ip = None;
        }
        let mut buffer = Vec::new();
        match L::handle(&mut self.endpoint, now, datagram, &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = &mut self.connections[handle.0] {
                    connection.handle_event(event);
                }
                self.open_paths(now, handle);
                self.settle(now, handle);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.paths.connecting_to(incoming.remote_address());
                match self.endpoint.accept(incoming, now, &mut buffer, None) {
                    Ok((handle, connection)) => {
                        self.add(handle, connection);
                        self.settle(now, handle);
                    }
                    Err(error) => {
                        if let Some(transmit) = &error.response {
                            self.responses.push(to_transmit(transmit), &buffer);
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.responses.push(to_transmit(&transmit), &buffer);
            }
            None => {}
        }
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        let connections = self.connections.iter_mut().flatten();
        let earliest = connections.filter_map(next_timeout).min()?;
        Some(self.clock.since_start(earliest))
    }

    fn handle_timeout(&mut self, now: Duration) {
        let now = self.clock.instant(now);
        for index in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[index]
                && connection.poll_timeout().is_some_and(|time| time <= now)
            {
                connection.handle_timeout(now);
                self.settle(now, ConnectionHandle(index));
            }
        }
    }

    fn poll_transmit(
        &mut self,
        now: Duration,
        max_datagrams: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if let Some(transmit) = self.responses.take(max_datagrams, buffer) {
            return Some(transmit);
        }
        let now = self.clock.instant(now);
        for index in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[index] else {
                continue;
            };
            if let Some(transmit) = L::poll_transmit(connection, now, max_datagrams, buffer) {
                buffer.truncate(transmit.size);
                self.settle(now, ConnectionHandle(index));
                return Some(self.addresses.transmit(&transmit));
            }
        }
        let (connection, code) = self.leaving.take()?;
        self.close_at_once(now, connection, code);
        self.poll_transmit(self.clock.since_start(now), max_datagrams, buffer)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn open(&mut self, connection: ConnectionKey) -> Option<StreamKey> {
        let id = self.connection(connection)?.streams().open(Dir::Bi)?;
        Some(StreamKey(id.into()))
    }

    fn open_one_way(&mut self, connection: ConnectionKey) -> Option<StreamKey> {
        let id = self.connection(connection)?.streams().open(Dir::Uni)?;
        Some(StreamKey(id.into()))
    }

    fn set_priority(&mut self, connection: ConnectionKey, stream: StreamKey, priority: i32) {
        if let Some(connection) = self.connection(connection) {
            // A stream that is closed already needs none.
            let _ = connection
                .send_stream(stream_id(stream))
                .set_priority(priority);
        }
    }

    fn largest_datagram_frame(&mut self, connection: ConnectionKey) -> Option<usize> {
        self.connection(connection)?.datagrams().max_size()
    }

    fn send_datagram_frame(&mut self, connection: ConnectionKey, data: Bytes) {
        if let Some(connection) = self.connection(connection) {
            // One that is too large, since the path's MTU has become smaller, is lost.
            let _ = connection.datagrams().send(data, true);
        }
    }

    fn has_waiting_datagram_frames(&mut self, key: ConnectionKey) -> bool {
        let empty = self.datagram_room;
        let connection = self.connection(key);
        connection.is_some_and(|it| it.datagrams().send_buffer_space() < empty)
    }

    fn write(
        &mut self,
        connection: ConnectionKey,
        stream: StreamKey,
        data: &mut Bytes,
    ) -> Result<(), StreamEnd> {
        let connection = self.connection(connection).ok_or(StreamEnd::NotOpen)?;
        let mut sender = connection.send_stream(stream_id(stream));
        while !data.is_empty() {
            match L::write(&mut sender, data) {
                Ok(()) => {}
                Err(WriteError::Blocked) => return Ok(()),
                Err(WriteError::Stopped(code)) => {
                    return Err(StreamEnd::ByPeer(code.into_inner()));
                }
                Err(WriteError::ClosedStream) => return Err(StreamEnd::NotOpen),
            }
        }
        Ok(())
    }

    fn finish(&mut self, connection: ConnectionKey, stream: StreamKey) -> Result<(), StreamEnd> {
        let connection = self.connection(connection).ok_or(StreamEnd::NotOpen)?;
        connection
            .send_stream(stream_id(stream))
            .finish()
            .map_err(|error| match error {
                proto::FinishError::Stopped(code) => StreamEnd::ByPeer(code.into_inner()),
                proto::FinishError::ClosedStream => StreamEnd::NotOpen,
            })
    }

    fn reset(&mut self, connection: ConnectionKey, stream: StreamKey, code: u32) {
        if let Some(connection) = self.connection(connection) {
            // A stream that is closed already needs no reset.
            let _ = connection
                .send_stream(stream_id(stream))
                .reset(VarInt::from_u32(code));
        }
    }

    fn stop(&mut self, key: ConnectionKey, stream: StreamKey, code: u32) {
        if let Some(connection) = self.connection(key) {
            // As above.
            let _ = connection
                .recv_stream(stream_id(stream))
                .stop(VarInt::from_u32(code));
        }
        if let Some(inbox) = &mut self.inbox {
            inbox.stop((key, stream));
        }
    }

    fn read(
        &mut self,
        key: ConnectionKey,
        stream: StreamKey,
        sink: &mut dyn FnMut(Bytes),
    ) -> Result<Read, StreamEnd> {
        let connection = self.connections.get_mut(key.0).and_then(Option::as_mut);
        let connection = connection.ok_or(StreamEnd::NotOpen)?;
        if let Some(inbox) = &mut self.inbox {
            return inbox.read(connection, (key, stream), sink);
        }
        let mut receiver = connection.recv_stream(stream_id(stream));
        // Whatever the error says, the stream cannot be read (any longer).
        let mut chunks = receiver.read(true).map_err(|_| StreamEnd::NotOpen)?;
        let result = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => sink(chunk.bytes),
                Ok(None) => break Ok(Read::Finished),
                Err(ReadError::Blocked) => break Ok(Read::Blocked),
                Err(ReadError::Reset(code)) => break Err(StreamEnd::ByPeer(code.into_inner())),
            }
        };
        // Whether flow control credit is to be sent, the next poll finds out by itself.
        let _ = chunks.finalize();
        result
    }

    fn close(&mut self, now: Duration, connection: ConnectionKey, code: u32) {
        let early = |connection: &mut Connection| connection.has_0rtt();
        if self.client.is_some() && self.connection(connection).is_some_and(early) {
            // The replies may come with the server's handshake. A connection that is closed then
            // would never send its own Finished, and the server would report a failed handshake.
            self.leaving = Some((connection, code));
        } else {
            self.close_at_once(self.clock.instant(now), connection, code);
        }
    }

    fn statistics(&self) -> Statistics {
        self.report
            .as_ref()
            .map_or_else(Statistics::default, |report| report())
    }
}

impl<L: Library> Adapter<L> {
    /// A client opens further paths once its handshake is complete, and the server has given
    /// connection IDs for them.
    fn open_paths(&mut self, now: Instant, handle: ConnectionHandle) {
        let Some(connection) = &mut self.connections[handle.0] else {
            return;
        };
        let may_open = self.client.is_some() && !connection.is_handshaking();
        while let Some(ends) = self.ends.get(self.opened[handle.0]).filter(|_| may_open) {
            if !L::open_path(connection, *ends, now) {
                break;
            }
            self.opened[handle.0] += 1;
        }
    }

    fn connection(&mut self, key: ConnectionKey) -> Option<&mut Connection> {
        self.connections.get_mut(key.0)?.as_mut()
    }

    fn close_at_once(&mut self, now: Instant, connection: ConnectionKey, code: u32) {
        let open = |it: &&mut Connection| !it.is_closed();
        let connection = self.connections.get_mut(connection.0);
        if let Some(connection) = connection.and_then(Option::as_mut).filter(open) {
            self.paths.learn_from(connection);
            connection.close(now, VarInt::from_u32(code), Bytes::new());
        }
    }

    fn add(&mut self, handle: ConnectionHandle, mut connection: Connection) {
        self.datagram_room = connection.datagrams().send_buffer_space();
        if self.connections.len() <= handle.0 {
            self.connections.resize_with(handle.0 + 1, || None);
            self.opened.resize(handle.0 + 1, 0);
        }
        self.opened[handle.0] = 1; // the path of its handshake
        self.connections[handle.0] = Some(connection);
    }

    /// Lets the connection and the endpoint talk to each other, and collects what the application
    /// should know.
    fn settle(&mut self, now: Instant, handle: ConnectionHandle) {
        let Some(connection) = &mut self.connections[handle.0] else {
            return;
        };
        let mut drained = false;
        while let Some(event) = connection.poll_endpoint_events() {
            drained |= event.is_drained();
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        self.paths.tend(connection);
        let key = ConnectionKey(handle.0);
        let first = self.events.len();
        while let Some(event) = connection.poll() {
            self.paths.handle_event(connection, &event);
            if let proto::Event::ConnectionLost { reason } = &event
                && *reason != ConnectionError::LocallyClosed
            {
                self.paths.learn_from(connection);
            }
            collect(key, connection, event, &mut self.events);
        }
        if let Some(inbox) = &mut self.inbox
            && let Err(why) = inbox.follow(connection, key, self.events.range(first..))
        {
            connection.close(now, VarInt::from_u32(0), Bytes::new());
            self.events
                .push_back(Event::Closed(key, Closing::Error(why)));
        }
        // Only the connection that was just handled can have brought one.
        if let Some(client) = &self.client
            && client.tickets.any_new()
        {
            self.events.push_back(Event::Ticket(key));
        }
        if drained {
            self.connections[handle.0] = None;
            if let Some(inbox) = &mut self.inbox {
                inbox.forget(key);
            }
        }
    }
}

fn collect(
    key: ConnectionKey,
    connection: &mut Connection,
    event: proto::Event,
    events: &mut VecDeque<Event>,
) {
    match event {
        proto::Event::Connected => {
            let is_client = connection.side().is_client();
            if is_client && connection.has_0rtt() && !connection.accepted_0rtt() {
                events.push_back(Event::EarlyDataRejected(key));
            }
            events.push_back(Event::Connected(key));
        }
        proto::Event::ConnectionLost {
            reason: ConnectionError::LocallyClosed,
        } => {}
        proto::Event::ConnectionLost { reason } => {
            events.push_back(Event::Closed(key, closing(&reason)));
        }
        proto::Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
            while let Some(id) = connection.streams().accept(Dir::Bi) {
                events.push_back(Event::Opened(key, StreamKey(id.into())));
            }
        }
        proto::Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
            while let Some(id) = connection.streams().accept(Dir::Uni) {
                events.push_back(Event::OpenedOneWay(key, StreamKey(id.into())));
            }
        }
        proto::Event::Stream(StreamEvent::Readable { id }) => {
            events.push_back(Event::Readable(key, StreamKey(id.into())));
        }
        // A stopped stream's next write says so.
        proto::Event::Stream(StreamEvent::Writable { id } | StreamEvent::Stopped { id, .. }) => {
            events.push_back(Event::Writable(key, StreamKey(id.into())));
        }
        proto::Event::Stream(StreamEvent::Available { .. }) => {
            events.push_back(Event::MoreStreams(key));
        }
        proto::Event::DatagramReceived => {
            while let Some(bytes) = connection.datagrams().recv() {
                events.push_back(Event::DatagramFrame(key, bytes));
            }
        }
        // Paths are not part of any test case.
        _ => {}
    }
}

fn closing(reason: &ConnectionError) -> Closing {
    match reason {
        ConnectionError::ApplicationClosed(close) => Closing::Application {
            code: close.error_code.into_inner(),
            reason: String::from_utf8_lossy(&close.reason).into_owned(),
        },
        ConnectionError::ConnectionClosed(close) => {
            Closing::Error(format!("closed by peer: {close}"))
        }
        ConnectionError::TimedOut => Closing::IdleTimeout,
        other => Closing::Error(other.to_string()),
    }
}

/// The next timer. One library's method takes `&self`, the other's `&mut self`.
fn next_timeout(connection: &mut Connection) -> Option<Instant> {
    connection.poll_timeout()
}

/// The library's description of datagrams to be sent, in the contract's terms.
#[must_use]
pub fn to_transmit(transmit: &proto::Transmit) -> Transmit {
    Transmit {
        destination: transmit.destination,
        source: transmit.src_ip,
        ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
        segment_size: transmit.segment_size,
    }
}
