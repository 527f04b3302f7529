//! Stepping aside: deciding it, and forwarding datagrams untouched.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use bentpipe_endpoint::{Received, Transmit};
use noq_proto::{ConnectionId, ConnectionIdGenerator as _, HashedConnectionIdGenerator, PathId};

use crate::arrivals::First;
use crate::event::Event;
use crate::pair::Facing;
use crate::proxy::{Proxy, Side};
use crate::seats::Seat;

/// Datagrams that wait to be forwarded: what comes beyond these is lost, as in any router.
const MOST_WAITING: usize = 1 << 12;
/// Of the connection IDs that the library makes.
const ID_LENGTH: usize = 8;

impl Proxy {
    /// Forwards a datagram of a client whose flow is one of those; or gives it back.
    pub(crate) fn forward_from_client(
        &mut self,
        now: Instant,
        datagram: Received,
    ) -> Option<Received> {
        if self.asides.count() == 0 {
            return Some(datagram);
        }
        let until = now + self.config.limits.idle;
        let Some((number, flow)) = self.asides.of_client(datagram.remote, until) else {
            return Some(datagram);
        };
        self.forward(
            Side::Aside(number),
            (flow.next_hop, None),
            datagram.ecn,
            &datagram.payload,
        );
        None
    }

    /// A datagram has come for a flow.
    pub(crate) fn forward_to_client(&mut self, now: Instant, number: u64, datagram: &Received) {
        let until = now + self.config.limits.idle;
        if let Some(flow) = self.asides.go_on(number, until)
            && flow.next_hop == datagram.remote
        {
            let to = (flow.client, flow.local);
            self.forward(Side::Client, to, datagram.ecn, &datagram.payload);
        }
    }

    /// The flow that a datagram is of which came to the socket that all share, if it is of no connection of the proxy's own.
    pub(crate) fn flow_of(&self, datagram: &Received) -> Option<u64> {
        if self.asides.count() == 0 || !self.config.one_socket {
            return None;
        }
        let bytes = &datagram.payload;
        let is_long = bytes.first()? & 0x80 != 0;
        let id = if is_long {
            bytes.get(6..6 + usize::from(*bytes.get(5)?))?
        } else {
            bytes.get(1..=ID_LENGTH)?
        };
        if id.len() == ID_LENGTH && self.own_ids.validate(ConnectionId::new(id)).is_ok() {
            return None;
        }
        self.asides.towards(datagram.remote)
    }

    fn forward(&mut self, side: Side, to: (SocketAddr, Option<IpAddr>), ecn: u8, payload: &[u8]) {
        if self.forwarded.len() >= MOST_WAITING {
            return;
        }
        let transmit = Transmit {
            destination: to.0,
            source: to.1,
            ecn,
            segment_size: None,
        };
        self.forwarded.push_back((side, transmit, payload.to_vec()));
    }

    /// Whether a client that goes to `next_hop` needs no proxy, because the hop that it is for is short; `None`: nobody knows.
    pub(crate) fn is_short(
        &self,
        now: Instant,
        client: SocketAddr,
        next_hop: SocketAddr,
    ) -> Option<bool> {
        let Some(auto) = self.config.auto else {
            return Some(false);
        };
        let host = if auto.of_client_side {
            client.ip()
        } else {
            next_hop.ip()
        };
        match self.rtts.of(now, host) {
            Some(rtt) => Some(rtt < auto.threshold),
            // Only clients show how far they are, by connecting.
            None if auto.of_client_side => Some(false),
            None => None,
        }
    }

    /// Whether there is room for a flow of a client that has `own` connections which do not go untouched: these need its datagrams.
    pub(crate) fn may_step_aside(&self, client: SocketAddr, own: usize) -> bool {
        let connections = self.client_addresses.get(&client).copied().unwrap_or(0);
        connections == own && self.asides.count() < self.config.limits.connections
    }

    /// From now on forwards what comes from a client, beginning with these datagrams.
    pub(crate) fn step_aside(
        &mut self,
        now: Instant,
        (client, local, seat): (SocketAddr, Option<IpAddr>, Seat),
        next_hop: SocketAddr,
        datagrams: &[First],
    ) {
        let until = now + self.config.limits.idle;
        let flow = self.asides.begin((client, local, seat), next_hop, until);
        self.statistics.asides_total += 1;
        self.tell(Event::Aside {
            flow,
            client,
            next_hop,
        });
        for datagram in datagrams {
            let to = (next_hop, None);
            self.forward(Side::Aside(flow), to, datagram.ecn, &datagram.payload);
        }
    }

    /// A connection knows how long a round trip takes.
    pub(crate) fn learn_rtt(&mut self, now: Instant, facing: Facing, handle: usize) {
        if self.config.auto.is_none() {
            return;
        }
        if let Some(member) = self.sides[facing as usize].get(handle)
            && let Ok(path) = member.connection.network_path(PathId::ZERO)
            && let Some(rtt) = member.connection.rtt(PathId::ZERO)
        {
            self.rtts.learn(now, path.remote().ip(), rtt);
        }
    }
}

/// Makes connection IDs that can be told from those of others by whoever knows the key.
pub fn ids(key: u64) -> HashedConnectionIdGenerator {
    HashedConnectionIdGenerator::from_key(key)
}
