//! The proxy as its drivers see it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_endpoint::{Clock, Received, Transmit};

use crate::arrivals::Arrivals;
use crate::config::Config;
use crate::connections::{Arrived, Connections};
use crate::crypto::Crypto;
use crate::error::PepError;
use crate::event::{Event, Number, Refusal};
use crate::pair::{Facing, Pair};
use crate::statistics::Statistics;

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
    /// A driver with a single socket on the server side sends these from there, too, and gives what comes to [`Side::Server`].
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
    pub(crate) per_client: BTreeMap<IpAddr, usize>,
    /// Connections that were touched and have not been asked what that led to.
    pub(crate) touched: VecDeque<(Facing, usize)>,
    events: VecDeque<Event>,
    pub(crate) statistics: Statistics,
    pub(crate) is_draining: bool,
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
        let server = Some(crypto.accepting().clone());
        let sides = [
            Connections::new(accepting, server),
            Connections::new(noq_proto::EndpointConfig::default(), None),
        ];
        Ok(Self {
            config: Arc::new(config),
            clock,
            crypto,
            sides,
            arrivals: Arrivals::default(),
            pairs: BTreeMap::new(),
            timers: BTreeSet::new(),
            per_client: BTreeMap::new(),
            touched: VecDeque::new(),
            events: VecDeque::new(),
            statistics: Statistics::default(),
            is_draining: false,
            first: Facing::Client,
        })
    }

    /// A datagram has arrived.
    pub fn handle_datagram(&mut self, now: Duration, side: Side, datagram: Received) {
        let now = self.clock.instant(now);
        match side {
            Side::Client => self.handle_from_client(now, datagram),
            Side::Server => {
                if let Arrived::At(handle) = self.side(Facing::Server).handle(now, datagram) {
                    self.settle(now, Facing::Server, handle);
                }
            }
            Side::Aside(_) => {}
        }
    }

    fn handle_from_client(&mut self, now: Instant, datagram: Received) {
        let copy = self.arrivals.copy(&datagram);
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
            Arrived::New(incoming) => {
                let copy = copy.unwrap_or_default();
                self.begin_arrival(now, incoming, &copy);
            }
            Arrived::Nothing => {}
        }
    }

    /// When [`Proxy::handle_timeout`] wants to be called.
    pub fn next_timeout(&mut self) -> Option<Duration> {
        let pairs = self.timers.first().map(|(time, _)| *time);
        let [client, server] = &self.sides;
        let times = [
            pairs,
            self.arrivals.next_timeout(),
            client.next_timeout(),
            server.next_timeout(),
        ];
        let earliest = times.into_iter().flatten().min()?;
        Some(self.clock.since_start(earliest))
    }

    /// Handles all timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Duration) {
        let now = self.clock.instant(now);
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
        }
        statistics.connections = count(self.pairs.len());
        statistics.arriving = count(self.arrivals.count());
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
        Ok(())
    }

    /// From now on accepts nobody; connections go on until they end by themselves or `limits.linger` is over, then are closed.
    pub fn drain(&mut self, now: Duration) {
        let now = self.clock.instant(now);
        self.is_draining = true;
        for incoming in self.arrivals.take_all() {
            self.refuse(incoming, Refusal::Draining);
        }
        let until = now + self.config.limits.linger;
        let numbers: Vec<_> = self.pairs.keys().copied().collect();
        for number in numbers {
            self.end_by(number, until);
        }
    }

    /// Whether nothing is left after [`Proxy::drain`].
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let left = self.sides.iter().map(Connections::count).sum::<usize>();
        self.is_draining && self.pairs.is_empty() && left == 0
    }

    /// Timers, queued connections and the like: nothing of that may be left when there is no connection.
    #[must_use]
    pub fn entries(&self) -> usize {
        let sides = self.sides.iter().map(Connections::entries).sum::<usize>();
        sides + self.timers.len() + self.touched.len() + self.per_client.len()
    }

    pub(crate) fn side(&mut self, facing: Facing) -> &mut Connections {
        &mut self.sides[facing as usize]
    }
}
