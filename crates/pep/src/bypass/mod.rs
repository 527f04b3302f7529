//! Stepping aside: deciding it, and forwarding datagrams untouched.

pub mod flows;

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use bentpipe_endpoint::{Received, Transmit};
use noq_proto::{ConnectionId, ConnectionIdGenerator as _, HashedConnectionIdGenerator, PathId};

use crate::handshake::incomplete_hello::First;
use crate::handshake::reader::Reader;
use crate::limits::quota::Seat;
use crate::proxy::event::Event;
use crate::proxy::{Proxy, Side};
use crate::relay::pair::Facing;

/// Datagrams that wait to be forwarded: what comes beyond these is lost, as in any router.
const MOST_WAITING: usize = 1 << 12;
/// Of the connection IDs that the library makes.
const ID_LENGTH: usize = 8;
/// In the first byte (RFC 8999, section 5.1).
const LONG: u8 = 0x80;

impl Proxy {
    /// Forwards a datagram of a client whose flow is one of those; or gives it back.
    pub(crate) fn forward_from_client(
        &mut self,
        now: Instant,
        datagram: Received,
    ) -> Option<Received> {
        if self.asides.count() == 0
            || self.config.one_socket && !self.is_to_server(&datagram.payload)
        {
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
            if self.config.one_socket
                && let Some((_, from)) = long_ids(&datagram.payload)
            {
                self.asides.add_id(number, from);
            }
        }
    }

    /// Whether a datagram of the address that clients' connections come from, too, is of a flow.
    ///
    /// The server's connection IDs passed here in its long headers before a client wrote them into its own. A short header may have one that was
    /// given since, which nobody sees: all are the server's that are none of the proxy's.
    fn is_to_server(&self, datagram: &[u8]) -> bool {
        match datagram.first() {
            Some(first) if first & LONG != 0 => {
                long_ids(datagram).is_some_and(|(to, _)| self.asides.has_id(to))
            }
            _ => !self.is_own(datagram.get(1..=ID_LENGTH).unwrap_or_default()),
        }
    }

    fn is_own(&self, id: &[u8]) -> bool {
        id.len() == ID_LENGTH && self.own_ids.validate(ConnectionId::new(id)).is_ok()
    }

    /// The flow that a datagram is of which came to the socket that all share, if it is of no connection of the proxy's own.
    pub(crate) fn flow_of(&self, datagram: &Received) -> Option<u64> {
        if self.asides.count() == 0 || !self.config.one_socket {
            return None;
        }
        let bytes = &datagram.payload;
        let id = if bytes.first()? & LONG == 0 {
            bytes.get(1..=ID_LENGTH)?
        } else {
            long_ids(bytes)?.0
        };
        if self.is_own(id) {
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

    /// Whether there is room for a flow of a client that has `own` connections which do not go untouched: these need the datagrams of its address.
    pub(crate) fn may_step_aside(&self, client: SocketAddr, own: usize) -> bool {
        let connections = self.client_addresses.get(&client).copied().unwrap_or(0);
        let is_told_apart = self.config.one_socket || connections == own;
        is_told_apart && self.asides.count() < self.config.limits.connections
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
            if self.config.one_socket
                && let Some((to, _)) = long_ids(&datagram.payload)
            {
                self.asides.add_id(flow, to);
            }
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

/// Of a long header: the connection IDs that it goes to and comes from (RFC 8999, section 5.1).
fn long_ids(datagram: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader(datagram);
    if reader.byte()? & LONG == 0 {
        return None;
    }
    reader.take(4)?;
    let mut id = || {
        let length = usize::from(reader.byte()?);
        reader.take(length)
    };
    Some((id()?, id()?))
}

/// Makes connection IDs that can be told from those of others by whoever knows the key.
pub fn ids(key: u64) -> HashedConnectionIdGenerator {
    HashedConnectionIdGenerator::from_key(key)
}
