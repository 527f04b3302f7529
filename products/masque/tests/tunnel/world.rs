//! A client, a proxy, and a path between them on which everything takes its time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_endpoint::{Clock, Options, Received, Role, Surroundings, Tls, Transmit};
use bentpipe_masque::{
    Client, ClientSettings, FlowId, MasqueProxy, Output, ProxySettings, Purpose, Refusal, Settings,
    Template,
};
use bentpipe_service::quota::ConnectionLimits;
use bytes::{Bytes, BytesMut};

pub const DELAY: Duration = Duration::from_millis(300);
pub const TARGET: &str = "target.example:443";

/// A time at which the certificates are valid.
#[expect(
    clippy::duration_suboptimal_units,
    reason = "the Unix time of 2000 is one of seconds"
)]
const EPOCH: Duration = Duration::from_secs(946_684_800);

pub fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 443))
}

pub fn clock() -> Clock {
    Clock::new(EPOCH)
}

pub fn tls(clock: &Clock) -> (rustls::ClientConfig, rustls::ServerConfig) {
    let certs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../endpoints/certs");
    let tls = Tls {
        certs: &certs,
        clock,
        alpn: "h3",
        keylog: None,
    };
    (tls.client().unwrap(), tls.server().unwrap())
}

pub fn tunnel(clock: &Clock, role: Role, words: &str) -> Settings {
    let around = Surroundings {
        role,
        real_time: false,
        qlog: None,
        clock: clock.clone(),
    };
    Settings::take(Options::parse(words).unwrap().into_map(), &around).unwrap()
}

pub fn proxy(clock: &Clock, words: &str, tokens: &[&str]) -> MasqueProxy {
    MasqueProxy::new(proxy_settings(clock, words, tokens), clock.clone()).unwrap()
}

pub fn proxy_settings(clock: &Clock, words: &str, tokens: &[&str]) -> ProxySettings {
    ProxySettings {
        tunnel: tunnel(clock, Role::Server, words),
        ip: None,
        tls: tls(clock).1,
        tokens: tokens.iter().map(|it| (*it).to_owned()).collect(),
        connections: ConnectionLimits {
            total: 4,
            of_client: 4,
        },
        quota: Arc::default(),
        requests: 8,
        idle: None,
        connection_ids: None,
    }
}

pub fn client(clock: &Clock, words: &str, token: Option<&str>) -> Client {
    let settings = ClientSettings {
        tunnel: tunnel(clock, Role::Client, words),
        proxy: address(2),
        proxy_name: "server".to_owned(),
        wanted: Purpose::Udp {
            template: Template::of_proxy("server").unwrap(),
            target: TARGET.parse().unwrap(),
        },
        token: token.map(str::to_owned),
        tls: tls(clock).0,
    };
    Client::new(settings, clock.clone()).unwrap()
}

/// Somebody who sends to the proxy.
pub trait Peer {
    fn handle_datagram(&mut self, now: Duration, datagram: Received);
    fn next_timeout(&self) -> Option<Duration>;
    fn handle_timeout(&mut self, now: Duration);
    fn poll_transmit(&mut self, now: Duration, buffer: &mut Vec<u8>) -> Option<Transmit>;
}

const MOST: NonZeroUsize = NonZeroUsize::new(10).unwrap();

impl Peer for Client {
    fn handle_datagram(&mut self, now: Duration, datagram: Received) {
        self.handle_datagram(now, datagram);
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.next_timeout()
    }

    fn handle_timeout(&mut self, now: Duration) {
        self.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Duration, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.poll_transmit(now, MOST, buffer)
    }
}

/// A packet under way: when it arrives, whether at the proxy, who sent it or gets it, and its ECN
/// bits.
type Flying = (Duration, bool, SocketAddr, u8, Vec<u8>);

pub struct World {
    pub now: Duration,
    pub clock: Clock,
    pub proxy: MasqueProxy,
    pub peers: BTreeMap<SocketAddr, Box<dyn Peer>>,
    flying: VecDeque<Flying>,
    sent: usize,
    /// Whether the packet of this number is lost.
    pub loses: fn(usize) -> bool,
    /// The datagrams that came out at the target, and when.
    pub at_target: Vec<(Duration, FlowId, Bytes)>,
    /// Their ECN bits.
    pub marks: Vec<u8>,
    /// Where the client is.
    pub client_at: SocketAddr,
    /// The packets between client and proxy.
    pub wire: Vec<Vec<u8>>,
    /// The IP packets that came out at the proxy's routes.
    pub routed: Vec<Bytes>,
    pub flows: Vec<FlowId>,
    pub closed: Vec<FlowId>,
    /// The answer to requests, if there is one.
    pub answer: Option<Result<(), Refusal>>,
}

impl World {
    pub fn new(clock: Clock, proxy: MasqueProxy) -> Self {
        Self {
            now: Duration::ZERO,
            clock,
            proxy,
            peers: BTreeMap::new(),
            flying: VecDeque::new(),
            sent: 0,
            loses: |_| false,
            at_target: Vec::new(),
            marks: Vec::new(),
            client_at: address(1),
            wire: Vec::new(),
            routed: Vec::new(),
            flows: Vec::new(),
            closed: Vec::new(),
            answer: Some(Ok(())),
        }
    }

    /// Lives until then; `act` may do something with the client of an address after each step.
    pub fn run(&mut self, until: Duration, client: &mut Client) {
        self.run_all(until, Some(client));
    }

    pub fn run_raw(&mut self, until: Duration) {
        self.run_all(until, None);
    }

    fn run_all(&mut self, until: Duration, mut client: Option<&mut Client>) {
        loop {
            self.send(&mut client);
            let arrival = self.flying.front().map(|it| it.0);
            let peers = self.peers.values().filter_map(|it| it.next_timeout());
            let timers = peers.chain(self.proxy.next_timeout());
            let timers = timers.chain(client.as_ref().and_then(|it| it.next_timeout()));
            let Some(next) = timers.chain(arrival).min().filter(|at| *at <= until) else {
                break;
            };
            // Timers that are due again at once must not stop time.
            self.now = next.max(self.now + Duration::from_micros(1));
            self.clock.set(self.now);
            self.receive(&mut client);
            self.proxy.handle_timeout(self.now);
            if let Some(client) = &mut client {
                client.handle_timeout(self.now);
            }
            for peer in self.peers.values_mut() {
                peer.handle_timeout(self.now);
            }
        }
        self.now = until;
        self.clock.set(until);
    }

    fn receive(&mut self, client: &mut Option<&mut Client>) {
        let now = self.now;
        let is_due = |flying: &Flying| flying.0 <= now;
        while self.flying.front().is_some_and(is_due)
            && let Some((_, at_proxy, other, ecn, bytes)) = self.flying.pop_front()
        {
            let datagram = Received {
                remote: if at_proxy { other } else { address(2) },
                local_ip: None,
                ecn,
                payload: BytesMut::from(&bytes[..]),
            };
            if at_proxy {
                self.proxy.handle_datagram(self.now, datagram);
            } else if let Some(peer) = self.peers.get_mut(&other) {
                peer.handle_datagram(self.now, datagram);
            } else if let Some(client) = client
                && other == self.client_at
            {
                client.handle_datagram(self.now, datagram);
            }
        }
    }

    fn send(&mut self, client: &mut Option<&mut Client>) {
        while let Some(output) = self.proxy.poll_output() {
            match output {
                Output::Open(flow, _) => {
                    self.flows.push(flow);
                    if let Some(answer) = self.answer {
                        self.proxy.answer(self.now, flow, answer);
                    }
                }
                Output::Send(flow, ecn, payload) => {
                    self.at_target.push((self.now, flow, payload));
                    self.marks.push(ecn);
                }
                Output::Packet(_, packet) => self.routed.push(packet),
                Output::Unrouted(flow, packet) => {
                    let problem = bentpipe_masque::Problem::NoRoute;
                    self.proxy.refuse(self.now, flow, &packet, problem);
                }
                Output::Close(flow) => self.closed.push(flow),
                Output::Tell(_) => {}
            }
        }
        let mut buffer = Vec::new();
        while let Some(transmit) = self.proxy.poll_transmit(self.now, MOST, &mut buffer) {
            self.fly(false, &transmit, transmit.destination, &mut buffer);
        }
        if let Some(client) = client {
            while let Some(transmit) = client.poll_transmit(self.now, MOST, &mut buffer) {
                self.fly(true, &transmit, self.client_at, &mut buffer);
            }
        }
        let mut peers = std::mem::take(&mut self.peers);
        for (from, peer) in &mut peers {
            while let Some(transmit) = peer.poll_transmit(self.now, &mut buffer) {
                self.fly(true, &transmit, *from, &mut buffer);
            }
        }
        self.peers = peers;
    }

    fn fly(&mut self, to_proxy: bool, transmit: &Transmit, who: SocketAddr, buffer: &mut Vec<u8>) {
        let size = transmit.segment_size.unwrap_or(buffer.len()).max(1);
        for bytes in buffer.chunks(size) {
            self.sent += 1;
            self.wire.push(bytes.to_vec());
            if !(self.loses)(self.sent) {
                let flying = (
                    self.now + DELAY,
                    to_proxy,
                    who,
                    transmit.ecn,
                    bytes.to_vec(),
                );
                self.flying.push_back(flying);
            }
        }
        buffer.clear();
    }
}
