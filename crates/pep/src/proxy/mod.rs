//! The proxy as its drivers see it.

pub mod event;
pub mod statistics;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_endpoint::{Clock, Received, Transmit};
use noq_proto::{
    ConnectionIdGenerator as _, HashedConnectionIdGenerator, RandomConnectionIdGenerator,
};

use crate::bypass::flows::{Asides, Rtts};
use crate::bypass::ids;
use crate::config::error::PepError;
use crate::config::{Config, Mode};
use crate::connections::endpoint::{Arrived, Connections};
use crate::handshake::crypto::Crypto;
use crate::handshake::incomplete_hello::Arrivals;
use crate::pool::ready::Pool;
use crate::proxy::event::{Event, Number, Refusal};
use crate::proxy::statistics::Statistics;
use crate::relay::pair::{Facing, Pair};

/// Events that are kept for whoever fetches them.
const MOST_EVENTS: usize = 1 << 12;

/// Through which of the proxy's sockets a datagram goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that clients connect to.
    Client,
    /// The one that next hops are connected from.
    Server,
    /// One towards the next hop, for a flow that is forwarded untouched.
    ///
    /// With [`Config::one_socket`] these are sent from the one of the server side, and what comes there is given to [`Side::Server`].
    Aside(u64),
}

/// A proxy.
pub struct Proxy {
    pub(crate) config: Arc<Config>,
    pub(crate) clock: Clock,
    pub(crate) crypto: Crypto,
    /// The connections on the client side and on the server side.
    pub(crate) sides: [Connections; 2],
    pub(crate) arrivals: Arrivals,
    pub(crate) pairs: BTreeMap<Number, Pair>,
    /// When pairs want to be called.
    pub(crate) timers: BTreeSet<(Instant, Number)>,
    /// Connections that were touched and have not been asked what that led to.
    pub(crate) touched: VecDeque<(Facing, usize)>,
    events: VecDeque<Event>,
    pub(crate) statistics: Statistics,
    /// Pairs whose handshakes are under way.
    pub(crate) handshaking: usize,
    pub(crate) is_draining: bool,
    /// Connections to next hops that are ready.
    pub(crate) pool: Pool,
    pub(crate) is_warmed_up: bool,
    /// The pool is to be emptied.
    pub(crate) is_pool_stale: bool,
    /// Flows that are forwarded untouched.
    pub(crate) asides: Asides,
    pub(crate) rtts: Rtts,
    /// Datagrams of these on their way.
    pub(crate) forwarded: VecDeque<(Side, Transmit, Vec<u8>)>,
    /// Tells the proxy's connection IDs from those of others.
    pub(crate) own_ids: HashedConnectionIdGenerator,
    /// From where connections of clients come.
    pub(crate) client_addresses: BTreeMap<SocketAddr, usize>,
    /// Whose turn it is to send first.
    first: Facing,
}

impl Proxy {
    /// A proxy that has no connection yet. Times are durations since the start of `clock`.
    pub fn new(config: Config, clock: Clock) -> Result<Self, PepError> {
        config.check()?;
        let crypto = Crypto::new(&config, &clock)?;
        let mut accepting = noq_proto::EndpointConfig::default();
        if let Some(version) = config.client.version {
            accepting.supported_versions(vec![version]);
        }
        let random = RandomConnectionIdGenerator::default().generate_cid();
        let key = random
            .iter()
            .fold(0, |all, byte| all << 8 | u64::from(*byte));
        let mut connecting = noq_proto::EndpointConfig::default();
        connecting.cid_generator(Arc::new(move || Box::new(ids(key))));
        if let Some(ids) = &config.connection_ids {
            accepting.cid_generator(ids.clone());
        } else if config.one_socket && config.auto.is_some() {
            accepting.cid_generator(Arc::new(move || Box::new(ids(key))));
        } else {
            // The library's own have 3 random bytes: that of a Retry is now and then a connection's already (`docs/upstream/noq-retry.md`).
            accepting.cid_generator(Arc::new(
                || Box::new(RandomConnectionIdGenerator::default()),
            ));
        }
        let server = Some(crypto.accepting().clone());
        let sides = [
            Connections::new(accepting, server),
            Connections::new(connecting, None),
        ];
        Ok(Self {
            config: Arc::new(config),
            clock,
            crypto,
            sides,
            arrivals: Arrivals::default(),
            pairs: BTreeMap::new(),
            timers: BTreeSet::new(),
            touched: VecDeque::new(),
            events: VecDeque::new(),
            statistics: Statistics::default(),
            handshaking: 0,
            is_draining: false,
            pool: Pool::default(),
            is_warmed_up: false,
            is_pool_stale: false,
            asides: Asides::default(),
            rtts: Rtts::default(),
            forwarded: VecDeque::new(),
            own_ids: ids(key),
            client_addresses: BTreeMap::new(),
            first: Facing::Client,
        })
    }

    /// A datagram has arrived.
    pub fn handle_datagram(&mut self, now: Duration, side: Side, datagram: Received) {
        let now = self.clock.instant(now);
        match side {
            Side::Client => self.handle_from_client(now, datagram),
            Side::Aside(flow) => self.forward_to_client(now, flow, &datagram),
            Side::Server => {
                if let Some(flow) = self.flow_of(&datagram) {
                    return self.forward_to_client(now, flow, &datagram);
                }
                if let Arrived::At(handle) = self.side(Facing::Server).handle(now, datagram) {
                    self.settle(now, Facing::Server, handle);
                }
            }
        }
    }

    fn handle_from_client(&mut self, now: Instant, datagram: Received) {
        let Some(datagram) = self.forward_from_client(now, datagram) else {
            return;
        };
        let copy = Arrivals::copy(&datagram);
        if let Some(copy) = &copy
            && let Some(arrival) = self.arrivals.go_on(datagram.remote, copy)
        {
            // The library has the datagrams, too, and keeps them for the connection.
            self.side(Facing::Client).handle(now, datagram);
            self.arrive(now, arrival);
            return;
        }
        match self.side(Facing::Client).handle(now, datagram) {
            Arrived::At(handle) => self.settle(now, Facing::Client, handle),
            Arrived::New(incoming) => self.begin_arrival(now, *incoming, copy),
            Arrived::Nothing => {}
        }
    }

    /// A flow cannot be forwarded, because there is no socket for it: it ends, and what its client sends next is looked at anew.
    pub fn forget_aside(&mut self, flow: u64) {
        if self.asides.remove(flow) {
            self.forwarded
                .retain(|(side, ..)| *side != Side::Aside(flow));
            self.tell(Event::AsideClosed { flow });
        }
    }

    /// When [`Proxy::handle_timeout`] wants to be called.
    pub fn next_timeout(&mut self) -> Option<Duration> {
        let pairs = self.timers.first().map(|(time, _)| *time);
        let [client, server] = &self.sides;
        let times = [
            pairs,
            self.arrivals.next_timeout(),
            self.pool.next_timeout(),
            self.asides.next_timeout(),
            client.next_timeout(),
            server.next_timeout(),
        ];
        if self.is_pool_stale || self.config.mode == Mode::Warm && !self.is_warmed_up {
            return Some(Duration::ZERO);
        }
        let earliest = times.into_iter().flatten().min()?;
        Some(self.clock.since_start(earliest))
    }

    /// Handles all timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Duration) {
        let now = self.clock.instant(now);
        self.warm_up(now);
        while let Some(incoming) = self.arrivals.overdue(now) {
            self.refuse(incoming, Refusal::Hello);
        }
        for facing in Facing::BOTH {
            while let Some(handle) = self.side(facing).handle_timeout(now) {
                self.settle(now, facing, handle);
            }
        }
        while let Some((time, number)) = self.timers.first().copied()
            && time <= now
        {
            self.timers.pop_first();
            self.handle_overdue(now, number);
        }
        self.handle_pool(now);
        while let Some(flow) = self.asides.overdue(now) {
            self.tell(Event::AsideClosed { flow });
        }
    }

    /// What to send next: fills the empty `buffer` with up to `max_datagrams` datagrams of one size.
    pub fn poll_transmit(
        &mut self,
        now: Duration,
        max_datagrams: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<(Side, Transmit)> {
        let now = self.clock.instant(now);
        let most = NonZeroUsize::new(max_datagrams).expect("a poll may return a datagram");
        if let Some((side, transmit, bytes)) = self.forwarded.pop_front() {
            *buffer = bytes;
            return Some((side, transmit));
        }
        // The two sides take turns, so that a busy one does not silence the other.
        for facing in [self.first, self.first.other()] {
            if let Some((transmit, handle)) = self.side(facing).poll_transmit(now, most, buffer) {
                if let Some(handle) = handle {
                    self.settle(now, facing, handle);
                }
                self.first = facing.other();
                let side = match facing {
                    Facing::Client => Side::Client,
                    Facing::Server => Side::Server,
                };
                return Some((side, transmit));
            }
        }
        None
    }

    /// What has happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Notes an event; the oldest is lost if nobody fetches them.
    pub(crate) fn tell(&mut self, event: Event) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
            self.statistics.events_lost_total += 1;
        }
        self.events.push_back(event);
    }

    /// Counters and gauges. Looks at all connections: it is for once a second, not for every datagram.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics.clone();
        let count = |number: usize| number as u64;
        for pair in self.pairs.values() {
            statistics.bytes_to_servers_total += pair.carried(Facing::Client);
            statistics.bytes_to_clients_total += pair.carried(Facing::Server);
            statistics.held_bytes += count(pair.held());
            statistics.streams += count(pair.streams());
            statistics.waiting_streams += pair.waiting_streams();
        }
        statistics.connections = count(self.pairs.len());
        statistics.arriving = count(self.arrivals.count());
        statistics.resumed_total = self.crypto.resumed();
        statistics.warm = count(self.pool.count());
        statistics.asides = count(self.asides.count());
        statistics.client_side = count(self.sides[0].count());
        statistics.server_side = count(self.sides[1].count());
        statistics
    }

    /// Connections to come are like this. The QUIC version of the client side stays what it is.
    pub fn reconfigure(&mut self, config: Config) -> Result<(), PepError> {
        config.check()?;
        if config.client.version != self.config.client.version {
            let what = "the QUIC version of the client side cannot be changed while the proxy runs";
            return Err(PepError::Config(what.into()));
        }
        self.crypto.renew(&config, &self.clock)?;
        self.config = Arc::new(config);
        // What is ready was made with what was wanted and trusted before.
        self.is_pool_stale = true;
        self.is_warmed_up = false;
        Ok(())
    }

    /// From now on accepts nobody; connections go on until they end by themselves or it is `until`, then they are closed.
    pub fn drain(&mut self, now: Duration, until: Duration) {
        self.is_draining = true;
        self.cool_down(self.clock.instant(now));
        for incoming in self.arrivals.take_all() {
            self.refuse(incoming, Refusal::Draining);
        }
        let until = self.clock.instant(until);
        let numbers: Vec<_> = self.pairs.keys().copied().collect();
        for number in numbers {
            self.end_by(number, until);
        }
    }

    /// Whether nothing is left after [`Proxy::drain`].
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let left = self.sides.iter().map(Connections::count).sum::<usize>();
        self.is_draining && self.pairs.is_empty() && left == 0 && self.asides.count() == 0
    }

    /// Timers, queued connections, seats and the like: nothing of that may be left when there is no connection.
    #[must_use]
    pub fn entries(&self) -> usize {
        let sides = self.sides.iter().map(Connections::entries).sum::<usize>();
        let asides = self.asides.entries() + self.forwarded.len();
        let waiting = self.pool.entries() + asides + self.client_addresses.len();
        let seats = self.config.seats.count();
        sides + seats + self.timers.len() + self.touched.len() + waiting
    }

    pub(crate) fn side(&mut self, facing: Facing) -> &mut Connections {
        &mut self.sides[facing as usize]
    }
}
