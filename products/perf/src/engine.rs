//! The connections of a program and its socket, in one thread and real time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_endpoint::driver::{Port, Wakeup};
use bentpipe_endpoint::{Clock, EndpointError, LogFile, Received, Transmit};
use bentpipe_noq_adapter::{Library as _, to_transmit};
use bentpipe_noq_options::{Noq, RememberedPaths};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, EndpointConfig, Incoming, PathId,
    ServerConfig,
};

use crate::session::Session;

/// The largest UDP payload over IPv4, and so the most that one call can send.
const MOST_BYTES: usize = 65_507;
/// Datagrams of one call at least, as in noq's own driver, and with a path that is fast enough what
/// it carries in [`BURST`].
const LEAST_SEGMENTS: usize = 10;
const BURST: Duration = Duration::from_millis(1);
/// Calls to send of one connection before it is looked for what has come.
const CALLS: usize = 16;
/// Datagrams handled before the application reads: the library keeps their data until then.
const UNREAD: usize = 64;

/// A test and its connection.
pub struct Test {
    pub connection: Connection,
    pub session: Session,
    pub remote: SocketAddr,
    /// Its qlog.
    pub log: Option<LogFile>,
    /// Its name for people.
    pub number: Option<usize>,
    /// How many of its intervals they have seen.
    pub shown: usize,
    /// Whether what its connection has learned of the path is kept.
    path_is_kept: bool,
    /// Whether its end was shown; then it stays only until the connection has drained.
    pub concluded: bool,
}

/// The acceptor of connections.
pub trait Accept {
    /// Its description, and the session for it.
    fn accept(&mut self, incoming: &Incoming, now: Duration) -> (Arc<ServerConfig>, Session);
    /// Its qlog, if it has one: asked when the connection has just been made.
    fn log(&self) -> Option<LogFile>;
}

/// The acceptor of a client, which accepts nothing.
pub struct NoAcceptor;

impl Accept for NoAcceptor {
    fn accept(&mut self, _: &Incoming, _: Duration) -> (Arc<ServerConfig>, Session) {
        unreachable!("an endpoint without server configuration has no incoming connections")
    }

    fn log(&self) -> Option<LogFile> {
        None
    }
}

/// The engine: the connections of a program, their tests, and the socket.
pub struct Engine<A> {
    port: Port,
    connections: Connections<A>,
    /// The datagrams being sent, while the socket takes no more.
    blocked: Option<Transmit>,
    buffer: Vec<u8>,
    /// There is something to do at once.
    more: bool,
}

/// The connections and their tests: all but the socket.
struct Connections<A> {
    endpoint: noq_proto::Endpoint,
    accept: A,
    clock: Clock,
    paths: RememberedPaths,
    /// By their handles; `None`: drained.
    tests: Vec<Option<Test>>,
    /// Datagrams that belong to no connection.
    responses: VecDeque<(Transmit, Vec<u8>)>,
    /// Datagrams handled since the applications have read.
    unread: usize,
}

impl<A: Accept> Engine<A> {
    pub fn new(
        port: Port,
        accept: A,
        server: Option<Arc<ServerConfig>>,
        clock: Clock,
        paths: RememberedPaths,
    ) -> Self {
        let mut config = EndpointConfig::default();
        let largest = u16::try_from(MOST_BYTES).expect("a UDP payload's length is a u16");
        config
            .max_udp_payload_size(largest)
            .expect("QUIC allows larger ones");
        let connections = Connections {
            endpoint: Noq::endpoint(Arc::new(config), server),
            accept,
            clock,
            paths,
            tests: Vec::new(),
            responses: VecDeque::new(),
            unread: 0,
        };
        Self {
            port,
            connections,
            blocked: None,
            buffer: Vec::new(),
            more: false,
        }
    }

    pub fn port(&self) -> &Port {
        &self.port
    }

    pub fn accept(&mut self) -> &mut A {
        &mut self.connections.accept
    }

    /// Real time since the start, made known to TLS.
    pub fn tick(&self) -> Duration {
        let now = self.connections.clock.elapsed();
        self.connections.clock.set(now);
        now
    }

    /// Starts a connection; its handle.
    pub fn connect(
        &mut self,
        config: ClientConfig,
        remote: SocketAddr,
        name: &str,
        session: Session,
    ) -> Result<ConnectionHandle, EndpointError> {
        let now = self.connections.clock.instant(self.tick());
        self.connections.paths.connecting_to(remote);
        let (handle, connection) = self
            .connections
            .endpoint
            .connect(now, config, remote, name)
            .map_err(EndpointError::failed)?;
        self.connections.add(handle, connection, session, remote);
        self.more = true;
        Ok(handle)
    }

    /// All tests there are.
    pub fn tests(&mut self) -> impl Iterator<Item = &mut Test> {
        self.connections.tests.iter_mut().flatten()
    }

    pub fn test(&mut self, handle: ConnectionHandle) -> Option<&mut Test> {
        self.connections.tests.get_mut(handle.0)?.as_mut()
    }

    /// The user wants all to end.
    pub fn interrupt(&mut self) {
        let now = self.tick();
        self.more = true;
        for test in self.connections.tests.iter_mut().flatten() {
            test.session.interrupt(&mut test.connection, now);
        }
    }

    /// Sleeps until something happens or `until`, and does what is due then.
    pub fn turn(&mut self, until: Option<Duration>) -> Result<Wakeup, EndpointError> {
        let awake = self.wait(until)?;
        let now = self.tick();
        if awake.readable {
            let connections = &mut self.connections;
            self.port
                .receive(|datagram| connections.handle(now, datagram))?;
        }
        self.connections.handle_timers(now);
        self.connections.drive_all(now);
        self.more = self.transmit(now)?;
        Ok(awake)
    }

    fn wait(&mut self, until: Option<Duration>) -> Result<Wakeup, EndpointError> {
        let timeout = if self.more {
            Some(Duration::ZERO)
        } else {
            let wake = self.connections.next_wake().into_iter().chain(until).min();
            wake.map(|time| time.saturating_sub(self.connections.clock.elapsed()))
        };
        self.port.wait(timeout, self.blocked.is_some())
    }

    /// Sends; says whether there may be more to send at once.
    fn transmit(&mut self, now: Duration) -> Result<bool, EndpointError> {
        if let Some(transmit) = self.blocked.take()
            && !self.port.send(&transmit, &self.buffer)?
        {
            self.blocked = Some(transmit);
            return Ok(false);
        }
        while let Some((transmit, bytes)) = self.connections.responses.pop_front() {
            // One that does not fit is lost, as on its way.
            self.port.send(&transmit, &bytes)?;
        }
        let mut more = false;
        for index in 0..self.connections.tests.len() {
            for call in 0..=CALLS {
                if call == CALLS {
                    more = true;
                    break;
                }
                let most = self.port.most_segments();
                let Some(transmit) = self.connections.poll(index, now, most, &mut self.buffer)
                else {
                    break;
                };
                if !self.port.send(&transmit, &self.buffer)? {
                    self.blocked = Some(transmit);
                    return Ok(false);
                }
            }
        }
        Ok(more)
    }
}

impl<A: Accept> Connections<A> {
    fn add(
        &mut self,
        handle: ConnectionHandle,
        connection: Connection,
        session: Session,
        remote: SocketAddr,
    ) {
        if self.tests.len() <= handle.0 {
            self.tests.resize_with(handle.0 + 1, || None);
        }
        self.tests[handle.0] = Some(Test {
            connection,
            session,
            remote,
            log: self.accept.log(),
            number: None,
            shown: 0,
            path_is_kept: false,
            concluded: false,
        });
    }

    fn handle(&mut self, now: Duration, datagram: Received) {
        let instant = self.clock.instant(now);
        let mut buffer = Vec::new();
        match Noq::handle(&mut self.endpoint, instant, datagram, &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(Some(test)) = self.tests.get_mut(handle.0) {
                    test.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.accept(incoming, now, &mut buffer);
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.responses.push_back((to_transmit(&transmit), buffer));
            }
            None => {}
        }
        self.unread += 1;
        if self.unread >= UNREAD {
            self.drive_all(now);
        }
    }

    fn accept(&mut self, incoming: Incoming, now: Duration, buffer: &mut Vec<u8>) {
        let remote = incoming.remote_address();
        // One that has just been closed may have learned what this one can use.
        self.drive_all(now);
        let (config, session) = self.accept.accept(&incoming, now);
        self.paths.connecting_to(remote);
        let instant = self.clock.instant(now);
        match self
            .endpoint
            .accept(incoming, instant, buffer, Some(config))
        {
            Ok((handle, connection)) => self.add(handle, connection, session, remote),
            Err(error) => {
                let bytes = std::mem::take(buffer);
                let response = error.response.as_ref().map(to_transmit);
                self.responses
                    .extend(response.map(|transmit| (transmit, bytes)));
            }
        }
    }

    fn handle_timers(&mut self, now: Duration) {
        let instant = self.clock.instant(now);
        for test in self.tests.iter_mut().flatten() {
            let timeout = test.connection.poll_timeout();
            if timeout.is_some_and(|time| time <= instant) {
                test.connection.handle_timeout(instant);
            }
        }
    }

    /// Lets connections, endpoint and sessions talk to each other.
    fn drive_all(&mut self, now: Duration) {
        self.unread = 0;
        for index in 0..self.tests.len() {
            let Some(test) = &mut self.tests[index] else {
                continue;
            };
            test.session.drive(&mut test.connection, now);
            if test.session.result.is_some() && !test.path_is_kept {
                test.path_is_kept = true;
                self.paths.learn_from(&test.connection);
            }
            self.settle(index);
            self.forget(index);
        }
    }

    fn settle(&mut self, index: usize) {
        let Some(test) = &mut self.tests[index] else {
            return;
        };
        while let Some(event) = test.connection.poll_endpoint_events() {
            let answer = self.endpoint.handle_event(ConnectionHandle(index), event);
            if let Some(event) = answer {
                test.connection.handle_event(event);
            }
        }
    }

    /// A drained connection is kept until it was concluded.
    fn forget(&mut self, index: usize) {
        let is_past = |test: &mut Test| test.concluded && test.connection.is_drained();
        self.tests[index].take_if(is_past);
    }

    fn next_wake(&mut self) -> Option<Duration> {
        let clock = &self.clock;
        let wakes = self.tests.iter_mut().flatten().flat_map(|test| {
            let timeout = test.connection.poll_timeout();
            let timeout = timeout.map(|time| clock.since_start(time));
            [timeout, test.session.wake()]
        });
        wakes.flatten().min()
    }

    /// The next datagrams of a connection.
    fn poll(
        &mut self,
        index: usize,
        now: Duration,
        most: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let now: Instant = self.clock.instant(now);
        let connection = &mut self.tests[index].as_mut()?.connection;
        buffer.clear();
        let most = most.min(segments(connection));
        let transmit = Noq::poll_transmit(connection, now, most, buffer)?;
        buffer.truncate(transmit.size);
        let transmit = to_transmit(&transmit);
        self.settle(index);
        Some(transmit)
    }
}

/// How many datagrams one call may send: the path should not see them as a burst.
fn segments(connection: &Connection) -> usize {
    let mtu = usize::from(connection.current_mtu());
    let window = connection
        .congestion_state(PathId::ZERO)
        .map_or(0, noq_proto::congestion::Controller::window);
    let rtt = connection.rtt(PathId::ZERO).unwrap_or_default();
    let burst = u128::from(window) * BURST.as_nanos() / rtt.as_nanos().max(1);
    let burst = usize::try_from(burst).unwrap_or(usize::MAX) / mtu;
    burst.max(LEAST_SEGMENTS).min(MOST_BYTES / mtu).max(1)
}
