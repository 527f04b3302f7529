//! A client or server: an endpoint of the library and its connections, which tests talk to
//! directly.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bentpipe_endpoint::{Clock, Received, Transmit};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig, Event, FourTuple, ServerConfig, TimeSource, TransportConfig,
};

/// Tokens that a server gives have the time of the world in them, in seconds, and not this
/// machine's.
struct WallClock(Clock);

impl TimeSource for WallClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.0.unix()
    }
}

/// A client or a server.
pub struct Peer {
    endpoint: Endpoint,
    clock: Clock,
    pub connections: BTreeMap<usize, Connection>,
    pub events: VecDeque<(usize, Event)>,
    responses: VecDeque<(Transmit, Vec<u8>)>,
    /// Turns away whoever comes.
    pub refuses: bool,
}

impl Peer {
    pub fn client(clock: &Clock) -> Self {
        Self::new(clock, EndpointConfig::default(), None)
    }

    pub fn server(clock: &Clock, tls: rustls::ServerConfig, transport: TransportConfig) -> Self {
        let tls = QuicServerConfig::try_from(tls).unwrap();
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(Arc::new(transport));
        config.time_source(Arc::new(WallClock(clock.clone())));
        Self::new(clock, EndpointConfig::default(), Some(config))
    }

    pub fn new(clock: &Clock, config: EndpointConfig, server: Option<ServerConfig>) -> Self {
        Self {
            endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), true),
            clock: clock.clone(),
            connections: BTreeMap::new(),
            events: VecDeque::new(),
            responses: VecDeque::new(),
            refuses: false,
        }
    }

    /// Connects to the first proxy.
    pub fn connect(
        &mut self,
        now: Duration,
        tls: rustls::ClientConfig,
        transport: TransportConfig,
        name: &str,
    ) -> usize {
        let tls = QuicClientConfig::try_from(tls).unwrap();
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(Arc::new(transport));
        self.connect_with(now, config, name)
    }

    pub fn connect_with(&mut self, now: Duration, config: ClientConfig, name: &str) -> usize {
        let remote = crate::world::listening(1);
        let now = self.clock.instant(now);
        let (handle, connection) = self.endpoint.connect(now, config, remote, name).unwrap();
        self.connections.insert(handle.0, connection);
        handle.0
    }

    pub fn handle(&mut self, now: Duration, datagram: Received) {
        let now = self.clock.instant(now);
        let path = FourTuple::new(datagram.remote, datagram.local_ip);
        let ecn = EcnCodepoint::from_bits(datagram.ecn);
        let mut buffer = Vec::new();
        let handled = self
            .endpoint
            .handle(now, path, ecn, datagram.payload, &mut buffer);
        match handled {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = self.connections.get_mut(&handle.0) {
                    connection.handle_event(event);
                }
                self.settle(handle.0);
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.refuses => {
                let transmit = self.endpoint.refuse(incoming, &mut buffer);
                self.responses.push_back((translate(&transmit), buffer));
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut buffer, None) {
                    Ok((handle, connection)) => {
                        self.connections.insert(handle.0, connection);
                        self.settle(handle.0);
                    }
                    Err(error) => {
                        if let Some(transmit) = &error.response {
                            self.responses.push_back((translate(transmit), buffer));
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.responses.push_back((translate(&transmit), buffer));
            }
            None => {}
        }
    }

    fn settle(&mut self, handle: usize) {
        let Some(connection) = self.connections.get_mut(&handle) else {
            return;
        };
        let mut drained = false;
        while let Some(event) = connection.poll_endpoint_events() {
            drained |= event.is_drained();
            let answer = self.endpoint.handle_event(ConnectionHandle(handle), event);
            if let Some(event) = answer {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            self.events.push_back((handle, event));
        }
        if drained {
            self.connections.remove(&handle);
        }
    }

    pub fn next_timeout(&mut self) -> Option<Duration> {
        let times = self.connections.values();
        let earliest = times.filter_map(Connection::poll_timeout).min()?;
        Some(self.clock.since_start(earliest))
    }

    pub fn handle_timeout(&mut self, now: Duration) {
        let now = self.clock.instant(now);
        let handles: Vec<_> = self.connections.keys().copied().collect();
        for handle in handles {
            let connection = self.connections.get_mut(&handle).unwrap();
            if connection.poll_timeout().is_some_and(|time| time <= now) {
                connection.handle_timeout(now);
                self.settle(handle);
            }
        }
    }

    pub fn poll_transmit(&mut self, now: Duration, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((transmit, bytes)) = self.responses.pop_front() {
            *buffer = bytes;
            return Some(transmit);
        }
        let now = self.clock.instant(now);
        let handles: Vec<_> = self.connections.keys().copied().collect();
        for handle in handles {
            let connection = self.connections.get_mut(&handle).unwrap();
            let most = NonZeroUsize::new(10).unwrap();
            if let Some(transmit) = connection.poll_transmit(now, most, buffer) {
                buffer.truncate(transmit.size);
                self.settle(handle);
                return Some(translate(&transmit));
            }
        }
        None
    }

    pub fn close(&mut self, now: Duration, handle: usize, code: u32, reason: &str) {
        let now = self.clock.instant(now);
        if let Some(connection) = self.connections.get_mut(&handle) {
            connection.close(now, code.into(), reason.to_owned().into());
            self.settle(handle);
        }
    }

    /// Forgets all connections without closing them.
    pub fn forget_all(&mut self) {
        self.connections.clear();
    }
}

fn translate(transmit: &noq_proto::Transmit) -> Transmit {
    Transmit {
        destination: transmit.destination,
        source: transmit.src_ip,
        ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
        segment_size: transmit.segment_size,
    }
}
