//! A client, proxies in a row and a server, in memory, over paths that lose, delay, reorder and
//! repeat datagrams.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use bentpipe_endpoint::{Clock, Received};
use bentpipe_pep::{Proxy, Socket};
use bytes::BytesMut;
use noq_proto::TransportConfig;

use crate::peer::Peer;

/// In 2000, when the certificates begin to hold.
pub const EPOCH: Duration = Duration::from_hours(262_968);

/// The effect of one hop on datagrams.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    pub delay: Duration,
    /// The most that one takes longer, so that they overtake each other.
    pub jitter: Duration,
    /// Each is lost with this probability, in percent.
    pub loss: u64,
    /// Each comes twice with this probability, in percent.
    pub twice: u64,
}

impl Path {
    /// Perfect.
    pub fn of(milliseconds: u64) -> Self {
        Self {
            delay: Duration::from_millis(milliseconds),
            jitter: Duration::ZERO,
            loss: 0,
            twice: 0,
        }
    }
}

/// Small and good enough (Marsaglia's xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }
}

struct Datagram {
    /// Between the nodes of these numbers.
    from: usize,
    to: usize,
    source: SocketAddr,
    destination: SocketAddr,
    ecn: u8,
    payload: Vec<u8>,
}

/// Flows that are forwarded untouched have separate ports, from here on; others are above.
const FIRST_BYPASS_PORT: u16 = 40_000;
const LEAST_CALLING: u16 = 50_000;

/// All of it.
pub struct World {
    pub clock: Clock,
    pub now: Duration,
    pub client: Peer,
    pub proxies: Vec<Proxy>,
    pub server: Peer,
    /// In the order of the hops.
    pub paths: Vec<Path>,
    pub random: Random,
    /// By time of arrival and number.
    under_way: BTreeMap<(Duration, u64), Datagram>,
    sent: u64,
    /// Datagrams that crossed each hop, or were to.
    pub crossed: Vec<u64>,
    /// Datagrams among them without a mark of ECN.
    pub unmarked: Vec<u64>,
    /// Flows that are forwarded untouched have the port of their proxy's connections.
    pub one_socket: bool,
    /// Datagrams from the node of this number, if their sizes are in this range, are lost.
    pub swallowed: Option<(usize, Range<usize>)>,
    /// Nothing goes to or from the node of this number.
    pub silent: Option<usize>,
    /// The client's.
    pub transport: TransportConfig,
    /// A hash of all datagrams so far, with their times (FNV-1a).
    pub fingerprint: u64,
}

/// Towards the client, node `index` is here; the client itself is node 0.
pub fn listening(index: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, u8::try_from(index).unwrap(), 1], 443))
}

/// Towards the server, node `index` is here.
pub fn calling(index: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, u8::try_from(index).unwrap(), 2], LEAST_CALLING))
}

impl World {
    pub fn new(
        clock: Clock,
        client: Peer,
        proxies: Vec<Proxy>,
        server: Peer,
        paths: Vec<Path>,
        seed: u64,
    ) -> Self {
        assert_eq!(paths.len(), proxies.len() + 1);
        Self {
            clock,
            now: Duration::ZERO,
            client,
            proxies,
            server,
            crossed: vec![0; paths.len()],
            unmarked: vec![0; paths.len()],
            paths,
            random: Random(seed | 1),
            under_way: BTreeMap::new(),
            sent: 0,
            one_socket: false,
            swallowed: None,
            silent: None,
            transport: TransportConfig::default(),
            fingerprint: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// The number of the server's node.
    pub fn last(&self) -> usize {
        self.proxies.len() + 1
    }

    /// Goes on to the next arrival or timer before `until`, which is reached if there is none;
    /// whether there was one.
    pub fn step(&mut self, until: Duration) -> bool {
        self.transmit();
        let arrival = self.under_way.first_key_value().map(|((time, _), _)| *time);
        let proxies = self.proxies.iter_mut().filter_map(Proxy::next_timeout);
        let peers = [&mut self.client, &mut self.server];
        let peers = peers.into_iter().filter_map(Peer::next_timeout);
        let next = proxies.chain(peers).chain(arrival).min();
        let next = next.filter(|time| *time < until);
        self.now = next.map_or(until, |time| time.max(self.now));
        self.clock.set(self.now);
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= self.now
        {
            let datagram = entry.remove();
            self.deliver(datagram);
        }
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        for proxy in &mut self.proxies {
            proxy.handle_timeout(self.now);
        }
        self.transmit();
        next.is_some()
    }

    /// Until then, whatever happens.
    pub fn run(&mut self, duration: Duration) {
        let until = self.now + duration;
        while self.step(until) {}
    }

    fn deliver(&mut self, datagram: Datagram) {
        let Datagram {
            from,
            to,
            source,
            destination,
            ecn,
            payload,
        } = datagram;
        if self.silent == Some(to) {
            return;
        }
        let received = Received {
            remote: source,
            local_ip: Some(destination.ip()),
            ecn,
            payload: BytesMut::from(&payload[..]),
        };
        if to == 0 {
            self.client.handle(self.now, received);
        } else if to == self.last() {
            self.server.handle(self.now, received);
        } else {
            let proxy = &mut self.proxies[to - 1];
            let side = match destination.port() {
                _ if from < to => Socket::Client,
                port @ FIRST_BYPASS_PORT..LEAST_CALLING => {
                    Socket::Bypass(u64::from(port - FIRST_BYPASS_PORT))
                }
                _ => Socket::Server,
            };
            proxy.handle_datagram(self.now, side, received);
        }
    }

    fn transmit(&mut self) {
        let mut buffer = Vec::new();
        let last = self.last();
        for node in 0..=last {
            loop {
                buffer.clear();
                let polled = if node == 0 {
                    let polled = self.client.poll_transmit(self.now, &mut buffer);
                    polled.map(|transmit| (Socket::Server, transmit))
                } else if node == last {
                    let polled = self.server.poll_transmit(self.now, &mut buffer);
                    polled.map(|transmit| (Socket::Client, transmit))
                } else {
                    self.proxies[node - 1].poll_transmit(self.now, 10, &mut buffer)
                };
                let Some((side, transmit)) = polled else {
                    break;
                };
                let segment = transmit.segment_size.unwrap_or(buffer.len()).max(1);
                for payload in buffer.chunks(segment) {
                    self.send(node, side, transmit.destination, transmit.ecn, payload);
                }
            }
        }
    }

    fn send(
        &mut self,
        from: usize,
        socket: Socket,
        destination: SocketAddr,
        ecn: u8,
        payload: &[u8],
    ) {
        let (to, source) = match socket {
            Socket::Client => (from - 1, listening(from)),
            Socket::Bypass(_) if self.one_socket => (from + 1, calling(from)),
            Socket::Server => (from + 1, calling(from)),
            Socket::Bypass(flow) => {
                let mut source = calling(from);
                source.set_port(FIRST_BYPASS_PORT + u16::try_from(flow).unwrap());
                (from + 1, source)
            }
        };
        for byte in self.now.as_nanos().to_le_bytes().iter().chain(payload) {
            self.fingerprint = (self.fingerprint ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
        let hop = from.min(to);
        self.crossed[hop] += 1;
        self.unmarked[hop] += u64::from(ecn == 0);
        self.sent += 1;
        let path = self.paths[hop];
        let swallowed = self.swallowed.as_ref();
        if swallowed.is_some_and(|(node, sizes)| *node == from && sizes.contains(&payload.len())) {
            return;
        }
        if self.silent == Some(from) || self.random.below(100) < path.loss {
            return;
        }
        let copies = 1 + u64::from(self.random.below(100) < path.twice);
        for copy in 0..copies {
            let jitter = u64::try_from(path.jitter.as_nanos()).unwrap();
            let delay = path.delay + Duration::from_nanos(self.random.below(jitter));
            let datagram = Datagram {
                from,
                to,
                source,
                destination,
                ecn,
                payload: payload.to_owned(),
            };
            self.under_way
                .insert((self.now + delay, 2 * self.sent + copy), datagram);
        }
    }

    /// A datagram of somebody else reaches a proxy.
    pub fn inject(&mut self, proxy: usize, source: SocketAddr, payload: &[u8]) {
        let received = Received {
            remote: source,
            local_ip: None,
            ecn: 0,
            payload: BytesMut::from(payload),
        };
        self.proxies[proxy].handle_datagram(self.now, Socket::Client, received);
    }

    /// Nothing is left in any proxy.
    pub fn assert_clean(&self) {
        for (index, proxy) in self.proxies.iter().enumerate() {
            let statistics = proxy.statistics();
            for (metric, value) in statistics.entries() {
                let is_gauge = metric.kind == bentpipe_service::metrics::MetricKind::Gauge;
                let is_left = is_gauge && value != 0 && metric.name != "warm";
                assert!(
                    !is_left || statistics.warm > 0,
                    "proxy {index}: {} = {value}",
                    metric.name
                );
            }
            if statistics.warm == 0 {
                assert_eq!(proxy.entries(), 0, "proxy {index} keeps entries");
            }
        }
    }
}
