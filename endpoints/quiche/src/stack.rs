//! quiche behind the contract's [`Stack`].

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bentpipe_endpoint::{
    Clock, ConnectionKey, EndpointError, Event, LogFile, LogFolder, Options, Outbox, PathEnds,
    Read, Received, Resume, Role, Setup, Stack, StreamEnd, StreamKey, TestCase, Transmit,
};
use bytes::Bytes;
use quiche::{Config, Header, RecvInfo, Shutdown, Type};

use crate::config::configure;
use crate::connection::{Connection, Shared, new_connection_id};

/// Shorter datagrams cannot start a connection (RFC 9000, section 14.1).
const SHORTEST_FIRST_DATAGRAM: usize = 1200;

/// An endpoint and its connections.
pub struct Quiche {
    config: Config,
    /// The size of full datagrams.
    mtu: usize,
    /// After how many datagrams quiche is asked for an ACK.
    ack_every: u64,
    is_server: bool,
    follows_paths: bool,
    /// Its address, of a client that migrates that on each path.
    locals: Vec<SocketAddr>,
    keylog: Option<LogFile>,
    qlog: Option<LogFolder>,
    clock: Clock,
    /// `None`: closed.
    connections: Vec<Option<Connection>>,
    /// Which connection a packet belongs to, by its Destination Connection ID.
    routes: BTreeMap<Vec<u8>, ConnectionKey>,
    events: VecDeque<Event>,
    /// A client's latest.
    session: Option<Vec<u8>>,
    /// Datagrams that are made already.
    responses: Outbox,
}

impl Stack for Quiche {
    const NAME: &'static str = "quiche";
    const VERSION: &'static str = "quiche 0.30.0";
    const POLLING: &'static str = "; quiche acknowledges in every poll, and with bbr2 is not \
                                   polled before its pacer lets the next packet go";
    const TEST_CASES: &'static [TestCase] = &TestCase::OF_FILES;
    const MIGRATES: bool = true;

    fn knows_paths(&self) -> bool {
        self.follows_paths
    }

    fn new(setup: &Setup, options: &mut Options) -> Result<Self, EndpointError> {
        let (config, mtu) = configure(setup, options)?;
        // Who sends files must not wait: for it an acknowledgement is the leave to send more.
        let receives_files = (setup.role == Role::Client) != (setup.test_case == TestCase::Upload);
        let ack = options.take_number("ack", 1..=1000)?;
        Ok(Self {
            config,
            mtu,
            ack_every: ack.filter(|_| receives_files).unwrap_or(1),
            is_server: setup.role == Role::Server,
            follows_paths: setup.follows_paths(),
            locals: if setup.migrates() {
                setup.paths.iter().map(|path| path.local).collect()
            } else {
                vec![setup.local]
            },
            keylog: setup.keylog.clone(),
            qlog: setup.qlog.clone(),
            clock: setup.clock.clone(),
            connections: Vec::new(),
            routes: BTreeMap::new(),
            events: VecDeque::new(),
            session: None,
            responses: Outbox::default(),
        })
    }

    fn connect(
        &mut self,
        now: Duration,
        remote: SocketAddr,
        resume: Resume,
    ) -> Result<ConnectionKey, EndpointError> {
        let id = new_connection_id();
        let mut connection = quiche::connect_with_buffer_factory(
            Some("server"),
            &quiche::ConnectionId::from_ref(&id),
            self.locals[0],
            remote,
            &mut self.config,
        )
        .map_err(EndpointError::failed)?;
        if resume != Resume::Nothing
            && let Some(session) = &self.session
        {
            connection
                .set_session(session)
                .map_err(EndpointError::failed)?;
        }
        let key = self.add(connection, [id]);
        if resume == Resume::EarlyData {
            self.begin(now, key);
        }
        Ok(key)
    }

    fn migrate(&mut self, _now: Duration, to: PathEnds) -> bool {
        let latest = self.connections.iter_mut().flatten().last();
        latest.is_some_and(|connection| connection.migrate(to))
    }

    fn handle_datagram(&mut self, now: Duration, mut datagram: Received) {
        let Ok(header) = Header::from_slice(&mut datagram.payload, quiche::MAX_CONN_ID_LEN) else {
            return;
        };
        let known = self.routes.get(header.dcid.as_ref()).copied();
        let Some(key) = known.or_else(|| self.accept(&header, &datagram)) else {
            return;
        };
        let info = RecvInfo {
            from: datagram.remote,
            to: self.local(datagram.local_ip),
        };
        let Some(connection) = &mut self.connections[key.0] else {
            return;
        };
        let now = self.clock.instant(now);
        connection.receive(now, &mut datagram.payload, info, datagram.local_ip);
        self.settle(key);
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        let connections = self.connections.iter().flatten();
        let earliest = connections.filter_map(Connection::next_timeout).min()?;
        Some(self.clock.since_start(earliest))
    }

    fn handle_timeout(&mut self, now: Duration) {
        let now = self.clock.instant(now);
        for index in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[index] {
                connection.handle_timeout(now);
                self.settle(ConnectionKey(index));
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
        buffer.resize(self.mtu, 0);
        let mut connections = self.connections.iter_mut().flatten();
        let (size, transmit) =
            connections.find_map(|connection| connection.poll_transmit(now, buffer))?;
        buffer.truncate(size);
        Some(transmit)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn open(&mut self, connection: ConnectionKey) -> Option<StreamKey> {
        self.connection(connection)?.open()
    }

    fn write(
        &mut self,
        connection: ConnectionKey,
        stream: StreamKey,
        data: &mut Bytes,
    ) -> Result<(), StreamEnd> {
        let connection = self.connection(connection).ok_or(StreamEnd::NotOpen)?;
        connection.write(stream, data)
    }

    fn finish(&mut self, connection: ConnectionKey, stream: StreamKey) -> Result<(), StreamEnd> {
        let connection = self.connection(connection).ok_or(StreamEnd::NotOpen)?;
        connection.finish(stream)
    }

    fn reset(&mut self, connection: ConnectionKey, stream: StreamKey, code: u32) {
        if let Some(connection) = self.connection(connection) {
            connection.shut_down(stream, Shutdown::Write, code);
        }
    }

    fn stop(&mut self, connection: ConnectionKey, stream: StreamKey, code: u32) {
        if let Some(connection) = self.connection(connection) {
            connection.shut_down(stream, Shutdown::Read, code);
        }
    }

    fn read(
        &mut self,
        connection: ConnectionKey,
        stream: StreamKey,
        sink: &mut dyn FnMut(Bytes),
    ) -> Result<Read, StreamEnd> {
        let connection = self.connection(connection).ok_or(StreamEnd::NotOpen)?;
        connection.read(stream, sink)
    }

    fn close(&mut self, _now: Duration, connection: ConnectionKey, code: u32) {
        if let Some(connection) = self.connection(connection) {
            connection.close(code);
        }
    }
}

impl Quiche {
    /// The address that a datagram was sent to, of those that quiche knows.
    fn local(&self, ip: Option<IpAddr>) -> SocketAddr {
        let is_it = |local: &&SocketAddr| Some(local.ip()) == ip;
        let found = self.locals.iter().find(is_it).copied();
        found.unwrap_or(self.locals[0])
    }

    fn connection(&mut self, key: ConnectionKey) -> Option<&mut Connection> {
        self.connections.get_mut(key.0)?.as_mut()
    }

    /// Takes a new connection in, to which packets with any of `ids` belong.
    fn add<const N: usize>(
        &mut self,
        mut connection: quiche::Connection<Shared>,
        ids: [Vec<u8>; N],
    ) -> ConnectionKey {
        if let Some(file) = &self.keylog {
            connection.set_keylog(Box::new(file.clone()));
        }
        if let Some(file) = self.qlog.as_ref().and_then(LogFolder::create) {
            connection.set_qlog(Box::new(file), Self::NAME.into(), String::new());
        }
        let key = ConnectionKey(self.connections.len());
        self.connections
            .push(Some(Connection::new(key, connection, self.ack_every)));
        self.routes.extend(ids.map(|id| (id, key)));
        key
    }

    /// Makes a client's first datagram, because TLS lets early data be written only after its
    /// `ClientHello`.
    fn begin(&mut self, now: Duration, key: ConnectionKey) {
        let now = self.clock.instant(now);
        let mut packet = vec![0; self.mtu];
        if let Some(connection) = &mut self.connections[key.0]
            && let Some((size, transmit)) = connection.poll_transmit(now, &mut packet)
        {
            self.responses.push(transmit, &packet[..size]);
        }
    }

    /// A server's answer to a packet of no connection: a connection, a Version Negotiation packet,
    /// or nothing.
    fn accept(&mut self, header: &Header<'_>, datagram: &Received) -> Option<ConnectionKey> {
        let is_first = header.ty == Type::Initial || !quiche::version_is_supported(header.version);
        if !self.is_server || !is_first || datagram.payload.len() < SHORTEST_FIRST_DATAGRAM {
            return None;
        }
        if !quiche::version_is_supported(header.version) {
            self.negotiate_version(header, datagram);
            return None;
        }
        let id = new_connection_id();
        let connection = quiche::accept_with_buf_factory(
            &quiche::ConnectionId::from_ref(&id),
            None,
            self.locals[0],
            datagram.remote,
            &mut self.config,
        );
        // It fails where BoringSSL has no memory; then the client will try again.
        let connection = connection.ok()?;
        Some(self.add(connection, [id, header.dcid.to_vec()]))
    }

    fn negotiate_version(&mut self, header: &Header<'_>, datagram: &Received) {
        let mut packet = vec![0; self.mtu];
        if let Ok(size) = quiche::negotiate_version(&header.scid, &header.dcid, &mut packet) {
            let transmit = Transmit::to(datagram.remote, datagram.local_ip);
            self.responses.push(transmit, &packet[..size]);
        }
    }

    /// Collects what the application should know, and lets go of a connection that has ended.
    fn settle(&mut self, key: ConnectionKey) {
        let Some(connection) = &mut self.connections[key.0] else {
            return;
        };
        connection.settle(&mut self.events);
        if let Some(session) = connection.take_session() {
            self.session = Some(session);
            self.events.push_back(Event::Ticket(key));
        }
        let ids = connection.offer_connection_ids();
        self.routes.extend(ids.into_iter().map(|id| (id, key)));
        if connection.is_closed() {
            self.connections[key.0] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_endpoint::Stack;

    #[test]
    fn the_version_is_the_one_that_is_locked() {
        let (name, version) = super::Quiche::VERSION.split_once(' ').unwrap();
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(
            include_str!("../Cargo.lock").contains(&entry),
            "update VERSION"
        );
    }
}
