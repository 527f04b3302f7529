//! IP packets of those behind a client, or of its own host.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bentpipe_wire::too_big;
use bytes::Bytes;

use super::{AGAIN, Client, Delivery, Flow};
use crate::ip::{
    ErrorCounts, Header, Network, Problem, Refused, Sides, Throttle, Towards, clamp,
    decrement_hop_limit, icmp_error,
};

/// Stands for all behind a client, whose packets have one request.
const ALL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
/// The longest time between two requests for addresses that fail.
const LONGEST: Duration = Duration::from_secs(32);
/// The errors that this host is told: ten at once, and ten per second.
const ERRORS: (Duration, u32) = (Duration::from_millis(100), 10);

/// The addresses of this host that a proxy assigns.
#[derive(Debug)]
pub struct HostAddresses {
    /// When the proxy is asked for them, while it is not; `None`: never again.
    next: Option<Duration>,
    /// The time after that until it is asked again.
    pause: Duration,
    /// The latest of what the proxy said that was handed on.
    known: Option<u64>,
    throttle: Throttle,
    errors: ErrorCounts,
}

impl Default for HostAddresses {
    fn default() -> Self {
        let (interval, burst) = ERRORS;
        Self {
            next: Some(Duration::ZERO),
            pause: AGAIN,
            known: None,
            throttle: Throttle::new(interval, burst),
            errors: ErrorCounts::default(),
        }
    }
}

impl Client {
    /// Sends a packet of one behind it into the tunnel.
    pub fn send_packet(&mut self, now: Duration, packet: &[u8]) {
        if self.host.is_some() && !self.flows.contains_key(&ALL) {
            self.counts.unknown_datagrams_total += 1; // there is no request
            return;
        }
        if let Err(refused) = self.judge(packet, Towards::Servers) {
            self.counts.refused_packets_total += 1;
            if matches!(refused, Refused::NoRoute(..)) {
                self.tell(now, packet, Problem::Prohibited);
            }
            return;
        }
        let most = self.largest_packet_now();
        if packet.len() > most {
            self.counts.too_large_datagrams_total += 1;
            if self.host.is_some() {
                return self.tell(now, packet, Problem::TooBig(most));
            }
            let told = too_big(packet, u32::try_from(most).unwrap_or(u32::MAX));
            let told = told.map(|it| Delivery::tunnelled(ALL, it.into()));
            self.arrived.extend(told);
            return;
        }
        let mut packet = packet.to_vec();
        // A host's own packets have passed no router (RFC 9484, section 7.1).
        if self.host.is_none() && !decrement_hop_limit(&mut packet) {
            self.counts.refused_packets_total += 1;
            return;
        }
        clamp(&mut packet, most);
        self.send(now, ALL, 0, &packet);
    }

    /// The largest packet that the tunnel carries.
    #[must_use]
    pub fn largest_packet(&self) -> usize {
        self.settings.tunnel.largest_packet
    }

    /// The next packet for one behind it.
    pub fn poll_packet(&mut self) -> Option<Bytes> {
        loop {
            let packet = self.arrived.pop_front()?.payload;
            if self.judge(&packet, Towards::Clients).is_ok() {
                return Some(packet);
            }
            self.counts.refused_packets_total += 1;
        }
    }

    /// The addresses and routes that the proxy says, if they are new.
    pub fn poll_network(&mut self) -> Option<Network> {
        let host = self.host.as_mut()?;
        let channel = self.flows.get(&ALL)?.channel.borrow();
        let (change, network) = channel.sides.as_ref()?.network()?;
        host.pause = AGAIN;
        if host.known.replace(change) == Some(change) {
            return None;
        }
        Some(network)
    }

    /// The errors that this host was told.
    #[must_use]
    pub fn error_counts(&self) -> ErrorCounts {
        self.host
            .as_ref()
            .map_or_else(ErrorCounts::default, |it| it.errors)
    }

    /// When the proxy is to be asked for addresses.
    pub(super) fn next_asking(&self) -> Option<Duration> {
        let host = self.host.as_ref()?;
        let is_asked = self.flows.contains_key(&ALL);
        let next = host.next.filter(|_| !is_asked)?;
        Some(next.max(self.next_connection_if_lost()))
    }

    /// The proxy is not asked for addresses again.
    pub(super) fn stop_asking(&mut self) {
        if let Some(host) = &mut self.host {
            host.next = None;
        }
    }

    fn next_connection_if_lost(&self) -> Duration {
        if self.live.is_some() {
            Duration::ZERO
        } else {
            self.next_connection
        }
    }

    pub(super) fn ask_for_addresses(&mut self, now: Duration) {
        if let Some(host) = &mut self.host {
            host.next = Some(now + host.pause);
            host.pause = (2 * host.pause).min(LONGEST);
            host.known = None;
        }
        if self.live.is_none() {
            self.connect(now);
        }
        if let Some(handle) = self.live.as_ref().map(|live| live.handle) {
            let flow = Flow::new(now, self.sides.clone(), None);
            self.flows.insert(ALL, flow);
            self.progress(now, handle);
            self.settle(now, handle);
        }
    }

    /// Tells this host why a packet goes no further, as if by the packet's destination: this end
    /// has no address that the host does not have.
    fn tell(&mut self, now: Duration, packet: &[u8], problem: Problem) {
        let Some(host) = &mut self.host else {
            return;
        };
        let header = Header::read(packet).ok();
        let told = header.and_then(|it| icmp_error(packet, problem, it.destination));
        let Some(told) = told else {
            return;
        };
        let may = host.throttle.take(now);
        host.errors.count(may);
        if may {
            self.arrived
                .push_back(Delivery::tunnelled(ALL, told.into()));
        }
    }

    /// The largest packet that the peer takes, too, once that is known.
    fn largest_packet_now(&mut self) -> usize {
        let most = self.largest_packet();
        if self.host.is_none() {
            return most;
        }
        let stream = self
            .flows
            .get(&ALL)
            .and_then(|it| it.channel.borrow().stream);
        let of_peer = self.live.as_ref().and_then(|live| {
            let entry = self.endpoint.get(live.handle)?;
            live.tunnel.largest_payload(&mut entry.connection, stream)
        });
        of_peer.map_or(most, |it| it.min(most))
    }

    /// By what the proxy has said; before it has, by what is asked for.
    fn judge(&self, packet: &[u8], towards: Towards) -> Result<(), Refused> {
        let there = self.flows.get(&ALL).map(|it| it.channel.borrow());
        let told = there.as_ref().and_then(|it| it.sides.as_ref());
        let sides: Option<&Sides> = told.or(self.sides.as_ref());
        sides.map_or(Ok(()), |it| it.judge(packet, towards))
    }
}
