//! The proxy as its drivers see it.
//!
//! Promises: no socket, no clock, and nothing that grows with what strangers send. Decides what
//! becomes of a client that arrives, and which room gets a datagram, a timer or a notice; must not
//! know how a stream is carried or a packet read.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_endpoint::{Clock, Received, Transmit};
use noq_proto::{
    ConnectionIdGenerator as _, EndpointConfig, Event as ConnectionEvent, Incoming,
    RandomConnectionIdGenerator,
};

use crate::bypass::{Bypass, FlowClient, own_connection_ids};
use crate::config::{Config, HandshakeMode, PepError};
use crate::connections::{Side, Socket};
use crate::events::{ConnectionNumber, Event, Refusal, Statistics};
use crate::handshake::{
    ArrivedClient, ClientHello, Connector, Crypto, FirstHello, IncompleteHellos, InitialDatagram,
    PendingClient,
};
use crate::limits::{Admission, Unproven};
use crate::pool::{Pool, PoolKey};
use crate::relay::{
    BypassCandidate, CloseCode, ConnectedNextHop, NewPair, Notice, PairedConnections,
};

/// A performance enhancing proxy: it ends connections of clients, and carries what they bear over
/// separate connections.
pub struct Proxy {
    config: Arc<Config>,
    clock: Clock,
    admission: Admission,
    /// Clients that have begun to say what they want.
    hellos: IncompleteHellos,
    /// Clients that are relayed.
    pairs: PairedConnections,
    /// Connections to next hops that are ready.
    pool: Pool,
    /// Flows that are forwarded untouched.
    bypass: Bypass,
}

impl Proxy {
    /// A proxy that has no connection yet. Times are durations since the start of `clock`.
    pub fn new(config: Config, clock: Clock) -> Result<Self, PepError> {
        config.check()?;
        let config = Arc::new(config);
        // In this order: all of them draw from what a trial's seed makes.
        let crypto = Crypto::new(&config, &clock)?;
        let (endpoints, key) = endpoint_configs(&config);
        let connector = Connector::new(config.clone(), crypto, endpoints);
        Ok(Self {
            config,
            clock,
            admission: Admission::default(),
            hellos: IncompleteHellos::default(),
            pairs: PairedConnections::new(connector),
            pool: Pool::default(),
            bypass: Bypass::new(key),
        })
    }

    /// A datagram has arrived.
    pub fn handle_datagram(&mut self, now: Duration, socket: Socket, datagram: Received) {
        let now = self.clock.instant(now);
        let flow = match socket {
            Socket::Client => return self.handle_from_client(now, datagram),
            Socket::Bypass(flow) => Some(flow),
            Socket::Server => self.bypass.flow_of(&self.config, &datagram),
        };
        if let Some(flow) = flow {
            let bypass = &mut self.bypass;
            return bypass.receive_for_client(now, &self.config, flow, &datagram);
        }
        // No connection is accepted on that side.
        let _ = self.pairs.receive(now, Side::Server, datagram);
        self.drive(now);
    }

    fn handle_from_client(&mut self, now: Instant, datagram: Received) {
        let bypass = &mut self.bypass;
        let Some(datagram) = bypass.receive_from_client(now, &self.config, datagram) else {
            return;
        };
        let copy = IncompleteHellos::copy(&datagram);
        if let Some(copy) = &copy
            && let Some(client) = self.hellos.resume(datagram.remote, copy)
        {
            // The library has the datagrams, too, and keeps them for the connection.
            let _ = self.pairs.receive(now, Side::Client, datagram);
            return self.handle_arrival(now, client);
        }
        if let Some(incoming) = self.pairs.receive(now, Side::Client, datagram) {
            self.begin_arrival(now, *incoming, copy);
        }
        self.drive(now);
    }

    /// The first datagram of a client has come.
    ///
    /// `first`: as it came, if it starts with an Initial packet.
    fn begin_arrival(&mut self, now: Instant, incoming: Incoming, first: Option<InitialDatagram>) {
        let client = incoming.remote_address();
        let unproven = Unproven {
            hellos: self.hellos.count(),
            handshakes: self.pairs.table().handshaking(),
        };
        if !incoming.remote_address_validated()
            && Admission::wants_validation(&self.config, unproven, client.ip())
        {
            self.pairs.events.statistics.retried_total += 1;
            return self
                .pairs
                .connector
                .endpoints
                .of(Side::Client)
                .retry(incoming);
        }
        let crypto = &self.pairs.connector.crypto;
        let hello = first.and_then(|first| {
            let stream = crypto.initial_stream(&first.payload)?;
            Some((FirstHello::of(stream, &first)?, first))
        });
        let Some((hello, first)) = hello else {
            return self.handle_arrival(now, ArrivedClient::Invalid(incoming));
        };
        let permit = match self.admission.acquire(&self.config, client.ip()) {
            Ok(permit) => permit,
            Err(why) => return self.refuse(incoming, why),
        };
        let client = PendingClient {
            incoming,
            permit,
            datagrams: vec![first],
        };
        match hello {
            FirstHello::Complete(hello) => {
                self.handle_arrival(now, ArrivedClient::Complete(client, hello));
            }
            FirstHello::Incomplete(stream) => {
                let until = now + self.config.limits.handshake;
                self.hellos.wait(client, stream, until);
            }
        }
    }

    fn handle_arrival(&mut self, now: Instant, client: ArrivedClient) {
        match client {
            ArrivedClient::Complete(client, hello) => self.take(now, client, hello),
            // A sender of garbage gets no answer, which would tell it something.
            ArrivedClient::Invalid(incoming) => {
                let client = incoming.remote_address();
                self.pairs
                    .connector
                    .endpoints
                    .of(Side::Client)
                    .ignore(incoming);
                self.pairs.events.push_refusal(client, Refusal::ClientHello);
            }
        }
    }

    /// Takes a client whose `ClientHello` is complete: it is relayed, or forwarded untouched.
    fn take(&mut self, now: Instant, client: PendingClient, hello: ClientHello) {
        let PendingClient {
            incoming,
            permit,
            datagrams,
        } = client;
        let client = incoming.remote_address();
        let local = incoming.local_ip();
        let next_hop = self.config.next_hop(hello.server_name.as_deref());
        // Where nobody knows whether the proxy is of use, the connection to the next hop tells; the
        // client waits for that. One that was sent a Retry looks for it in the handshake (RFC 9000,
        // section 7.3), which only the proxy can complete then.
        let is_short = match next_hop {
            Some(to) if incoming.may_retry() => {
                self.bypass.is_short_hop(now, &self.config, client, to)
            }
            _ => Some(false),
        };
        let others = self.pairs.table().count_from(client);
        if let (Some(next_hop), Some(true)) = (next_hop, is_short)
            && self.bypass.can_take(&self.config, others)
        {
            self.pairs
                .connector
                .endpoints
                .of(Side::Client)
                .ignore(incoming);
            let client = FlowClient {
                address: client,
                local,
                permit,
            };
            return self.open_bypass(now, client, next_hop, &datagrams);
        }
        let server_name = hello.server_name.clone();
        let bypass = is_short
            .is_none()
            .then_some(BypassCandidate { local, datagrams });
        let new = NewPair {
            client,
            incoming: Box::new(incoming),
            permit,
            hello,
            bypass,
        };
        let number = self.pairs.begin(now, new);
        let Some(next_hop) = next_hop else {
            // It is accepted only to be informed of that.
            let why = Refusal::ServerName(server_name);
            self.pairs.events.push_refusal(client, why);
            let reason = CloseCode::Name.into();
            self.pairs.end(now, number, Side::Server, reason);
            return self.drive(now);
        };
        self.pairs.events.push(Event::Opened {
            number,
            client,
            server_name,
            next_hop,
        });
        if self.config.mode != HandshakeMode::Warm || !self.take_ready(now, number, next_hop) {
            self.pairs.connect(now, number, next_hop);
            self.drive(now);
        }
        if self.config.mode == HandshakeMode::Parallel && is_short.is_some() {
            self.pairs.accept(now, number, None);
            self.drive(now);
        }
        self.pairs.keep_time(number);
    }

    fn refuse(&mut self, incoming: Incoming, why: Refusal) {
        let client = incoming.remote_address();
        self.pairs
            .connector
            .endpoints
            .of(Side::Client)
            .refuse(incoming);
        self.pairs.events.push_refusal(client, why);
    }

    /// Gives a pair a connection to the next hop that is ready; whether there was one.
    fn take_ready(&mut self, now: Instant, number: ConnectionNumber, next_hop: SocketAddr) -> bool {
        let Some(pair) = self.pairs.table().get(number) else {
            return false;
        };
        let wanted = PoolKey {
            next_hop,
            server_name: pair.hello.server_name.clone(),
            protocol: Vec::new(),
        };
        let found = self.pool.take(&wanted, &pair.hello.protocols);
        let statistics = &mut self.pairs.events.statistics;
        let Some((handle, key)) = found else {
            statistics.warm_misses_total += 1;
            return false;
        };
        statistics.warm_hits_total += 1;
        self.pairs.adopt(number, Side::Server, handle);
        if let Some(entry) = self.pairs.connector.endpoints.get(Side::Server, handle) {
            entry.begin();
        }
        self.drive(now);
        self.pairs.accept(now, number, Some(key.protocol.clone()));
        self.drive(now);
        self.pool.fill(now, &key, &mut self.pairs.connector);
        self.drive(now);
        true
    }

    /// From now on forwards what comes from a client, beginning with these datagrams.
    fn open_bypass(
        &mut self,
        now: Instant,
        client: FlowClient,
        next_hop: SocketAddr,
        datagrams: &[InitialDatagram],
    ) {
        let address = client.address;
        let bypass = &mut self.bypass;
        let flow = bypass.open(now, &self.config, client, next_hop, datagrams);
        self.pairs.events.statistics.asides_total += 1;
        self.pairs.events.push(Event::BypassOpened {
            flow,
            client: address,
            next_hop,
        });
    }

    /// A flow cannot be forwarded, because there is no socket for it: it ends, and what its client
    /// sends next is looked at anew.
    pub fn forget_bypass(&mut self, flow: u64) {
        if self.bypass.forget(flow) {
            self.pairs.events.push(Event::BypassClosed { flow });
        }
    }

    /// Takes care of what touching connections led to.
    fn drive(&mut self, now: Instant) {
        // A caller that is already driving the pairs does it.
        if self.pairs.is_driving() {
            return;
        }
        while let Some(notice) = self.pairs.next_notice(now) {
            match notice {
                Notice::Connected { number, side } => self.handle_connected(now, number, side),
                Notice::Unpaired { handle, event } => self.handle_unpaired(now, handle, &event),
            }
        }
    }

    fn handle_unpaired(&mut self, now: Instant, handle: usize, event: &ConnectionEvent) {
        self.pool.handle_event(now, handle, event, &self.config);
        if matches!(event, ConnectionEvent::Connected) {
            let rtt = self.pairs.connector.endpoints.rtt(Side::Server, handle);
            self.learn_rtt(now, rtt);
        }
    }

    fn learn_rtt(&mut self, now: Instant, of: Option<(SocketAddr, Duration)>) {
        if let (Some((peer, rtt)), Some(_)) = (of, self.config.bypass) {
            self.bypass.learn_rtt(now, peer, rtt);
        }
    }

    /// A handshake of a pair is complete.
    fn handle_connected(&mut self, now: Instant, number: ConnectionNumber, side: Side) {
        let rtt = self.pairs.rtt(number, side);
        self.learn_rtt(now, rtt);
        let next_hop = self.pairs.next_hop(number);
        if let (Some(client), Some(next_hop)) = (self.pairs.bypass_candidate(number), &next_hop)
            && side == Side::Server
        {
            let (config, to) = (&self.config, next_hop.address);
            let others = self.pairs.table().count_from(client) - 1;
            if self.bypass.is_short_hop(now, config, client, to) == Some(true)
                && self.bypass.can_take(config, others)
            {
                return self.switch_to_bypass(now, number, client, to);
            }
        }
        let is_complete = self.pairs.is_connected_on_both(number);
        if side == Side::Server {
            let chosen = next_hop.as_ref().map(|it| it.protocol.clone());
            self.pairs.accept(now, number, chosen);
        }
        if let Some(next_hop) = next_hop
            && is_complete
        {
            self.handle_established(now, number, next_hop);
        }
        self.pairs.keep_time(number);
    }

    /// Both handshakes of a pair are complete.
    fn handle_established(
        &mut self,
        now: Instant,
        number: ConnectionNumber,
        next_hop: ConnectedNextHop,
    ) {
        let Some(pair) = self.pairs.table().get(number) else {
            return;
        };
        let server_name = pair.hello.server_name.clone();
        let protocol = next_hop.protocol.clone();
        self.pairs.establish(now, number, protocol);
        // Not before: a client that is not there could ask for any name.
        if self.config.mode == HandshakeMode::Warm {
            let key = PoolKey {
                next_hop: next_hop.address,
                server_name,
                protocol: next_hop.protocol,
            };
            self.pool.request(now, &key, &mut self.pairs.connector);
        }
    }

    /// The connection to the next hop has shown that it needs no proxy: the client, who waits, is
    /// forwarded untouched.
    fn switch_to_bypass(
        &mut self,
        now: Instant,
        number: ConnectionNumber,
        client: SocketAddr,
        next_hop: SocketAddr,
    ) {
        let Some(candidate) = self.pairs.release(now, number) else {
            return;
        };
        // The pair has just left a permit free, if nobody else was quicker.
        let limits = self.config.limits.connection_limits();
        if let Ok(permit) = self.config.quota.acquire(client.ip(), limits) {
            let client = FlowClient {
                address: client,
                local: candidate.local,
                permit,
            };
            self.open_bypass(now, client, next_hop, &candidate.datagrams);
        }
    }

    /// When [`Proxy::handle_timeout`] wants to be called.
    pub fn next_timeout(&mut self) -> Option<Duration> {
        if self.pool.wants_refresh(&self.config) {
            return Some(Duration::ZERO);
        }
        let times = [
            self.hellos.next_timeout(),
            self.pairs.next_timeout(),
            self.pool.next_timeout(),
            self.bypass.next_timeout(),
        ];
        let earliest = times.into_iter().flatten().min()?;
        Some(self.clock.since_start(earliest))
    }

    /// Handles all timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Duration) {
        let now = self.clock.instant(now);
        self.pool.refresh(now, &mut self.pairs.connector);
        self.drive(now);
        while let Some(incoming) = self.hellos.overdue(now) {
            self.refuse(incoming, Refusal::ClientHello);
        }
        for side in Side::BOTH {
            while self.pairs.connector.endpoints.handle_timeout(now, side) {
                self.drive(now);
            }
        }
        while let Some(number) = self.pairs.next_due(now) {
            self.drive(now);
            self.pairs.handle_timeout(now, number);
            self.drive(now);
        }
        self.pool.handle_timeout(now, &mut self.pairs.connector);
        self.drive(now);
        while let Some(flow) = self.bypass.overdue(now) {
            self.pairs.events.push(Event::BypassClosed { flow });
        }
    }

    /// Fills the empty `buffer` with the next datagrams to send: up to `max_datagrams` of one size.
    pub fn poll_transmit(
        &mut self,
        now: Duration,
        max_datagrams: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<(Socket, Transmit)> {
        let now = self.clock.instant(now);
        let most = NonZeroUsize::new(max_datagrams).expect("a poll may return a datagram");
        if let Some(forwarded) = self.bypass.poll_transmit(buffer) {
            return Some(forwarded);
        }
        let endpoints = &mut self.pairs.connector.endpoints;
        let (side, transmit) = endpoints.poll_transmit(now, most, buffer)?;
        self.drive(now);
        let socket = match side {
            Side::Client => Socket::Client,
            Side::Server => Socket::Server,
        };
        Some((socket, transmit))
    }

    /// The next event of those that nobody has fetched.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.pairs.events.pop()
    }

    /// The counters and gauges. Looks at all connections: it is for once a second, not for every
    /// datagram.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let count = |number: usize| number as u64;
        Statistics {
            arriving: count(self.hellos.count()),
            warm: count(self.pool.count()),
            asides: count(self.bypass.count()),
            ..self.pairs.statistics()
        }
    }

    /// Connections to come are like this. The QUIC version of the client side stays what it is.
    pub fn reconfigure(&mut self, config: Config) -> Result<(), PepError> {
        config.check()?;
        if config.client.version != self.config.client.version {
            let what = "the QUIC version of the client side cannot be changed while the proxy runs";
            return Err(PepError::Config(what.into()));
        }
        let config = Arc::new(config);
        let connector = &mut self.pairs.connector;
        connector.reconfigure(config.clone(), &self.clock)?;
        self.config = config;
        // Pooled connections were made with the wanted names and the trusted certificates of
        // before.
        self.pool.renew();
        Ok(())
    }

    /// From now on accepts nobody; connections go on until they end by themselves or it is `until`,
    /// then they are closed.
    pub fn drain(&mut self, now: Duration, until: Duration) {
        let now = self.clock.instant(now);
        self.admission.is_draining = true;
        self.pool.close(now, &mut self.pairs.connector);
        self.drive(now);
        for incoming in self.hellos.take_all() {
            self.refuse(incoming, Refusal::Draining);
        }
        self.pairs.end_by(self.clock.instant(until));
    }

    /// Whether nothing is left after [`Proxy::drain`].
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.admission.is_draining && self.pairs.is_empty() && self.bypass.count() == 0
    }

    /// Timers, queued connections, permits and the like: nothing of that may be left when there is
    /// no connection.
    #[must_use]
    pub fn entries(&self) -> usize {
        let permits = self.config.quota.count();
        self.pairs.entries() + self.pool.entries() + self.bypass.entries() + permits
    }
}

fn random_key() -> u64 {
    let random = RandomConnectionIdGenerator::default().generate_cid();
    random
        .iter()
        .fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// The configurations of the library's endpoints, of the client side and of the server side, and
/// the key of the connection IDs that can be told from those of others.
fn endpoint_configs(config: &Config) -> ([EndpointConfig; 2], u64) {
    let mut accepting = EndpointConfig::default();
    let key = random_key();
    if let Some(version) = config.client.version {
        accepting.supported_versions(vec![version]);
    }
    let mut connecting = EndpointConfig::default();
    connecting.cid_generator(Arc::new(move || Box::new(own_connection_ids(key))));
    if let Some(ids) = &config.connection_ids {
        accepting.cid_generator(ids.clone());
    } else if config.one_socket && config.bypass.is_some() {
        accepting.cid_generator(Arc::new(move || Box::new(own_connection_ids(key))));
    } else {
        // The library's own have 3 random bytes: that of a Retry is now and then a connection's
        // already (`docs/upstream/noq-retry.md`).
        accepting.cid_generator(Arc::new(
            || Box::new(RandomConnectionIdGenerator::default()),
        ));
    }
    ([accepting, connecting], key)
}
