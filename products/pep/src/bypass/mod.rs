//! Forwarding datagrams untouched, where a proxy is of no use.
//!
//! Promises: such a flow stays end-to-end encrypted, and replies find their way without anybody
//! looking into them. Knows addresses, connection IDs in the clear and round-trip times; must not
//! know connections.
//!
//! A flow is all that comes from one address of a client. Each has a separate socket towards the
//! next hop. Where all datagrams of a side have one address, as in virtual time, connection IDs
//! tell flows from connections.

mod connection_ids;
mod flow_table;
mod min_rtt;

pub use connection_ids::own_connection_ids;
pub use flow_table::FlowClient;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bentpipe_endpoint::{Received, Transmit};
use noq_proto::{ConnectionId, ConnectionIdGenerator as _, HashedConnectionIdGenerator};

use crate::config::Config;
use crate::connections::Socket;
use crate::handshake::InitialDatagram;
use connection_ids::{is_long_header, long_header_ids, short_header_id};
use flow_table::FlowTable;
use min_rtt::MinRtts;

/// Datagrams that wait to be forwarded: what comes beyond these is lost, as in any router.
const MOST_WAITING: usize = 1 << 12;

/// A datagram on its way.
struct Forwarded {
    socket: Socket,
    transmit: Transmit,
    payload: Vec<u8>,
}

/// The flows that are forwarded untouched, and what decides which are.
pub struct Bypass {
    flows: FlowTable,
    min_rtts: MinRtts,
    waiting: VecDeque<Forwarded>,
    /// Tells the proxy's connection IDs from those of others.
    own_ids: HashedConnectionIdGenerator,
}

impl Bypass {
    /// No flow yet. The connection IDs that the proxy makes are of this key.
    pub fn new(key: u64) -> Self {
        Self {
            flows: FlowTable::default(),
            min_rtts: MinRtts::default(),
            waiting: VecDeque::new(),
            own_ids: own_connection_ids(key),
        }
    }

    /// Forwards a datagram of a client whose flow is one of those; or gives it back.
    pub fn receive_from_client(
        &mut self,
        now: Instant,
        config: &Config,
        datagram: Received,
    ) -> Option<Received> {
        if self.flows.count() == 0 || config.one_socket && !self.is_to_server(&datagram.payload) {
            return Some(datagram);
        }
        let until = now + config.limits.idle;
        let Some((number, flow)) = self.flows.of_client(datagram.remote, until) else {
            return Some(datagram);
        };
        let to = (flow.next_hop, None);
        let socket = Socket::Bypass(number);
        self.forward(socket, to, datagram.ecn, &datagram.payload);
        None
    }

    /// A datagram has come for a flow.
    pub fn receive_for_client(
        &mut self,
        now: Instant,
        config: &Config,
        number: u64,
        datagram: &Received,
    ) {
        let until = now + config.limits.idle;
        if let Some(flow) = self.flows.prolong(number, until)
            && flow.next_hop == datagram.remote
        {
            let to = (flow.client, flow.local);
            self.forward(Socket::Client, to, datagram.ecn, &datagram.payload);
            if config.one_socket
                && let Some((_, from)) = long_header_ids(&datagram.payload)
            {
                self.flows.add_id(number, from);
            }
        }
    }

    /// Whether a datagram of the address that clients' connections come from, too, is of a flow.
    ///
    /// The server's connection IDs passed here in its long headers before a client wrote them into
    /// its own. A short header may have one that was given since, which nobody sees: all are the
    /// server's that are none of the proxy's.
    fn is_to_server(&self, datagram: &[u8]) -> bool {
        if is_long_header(datagram) {
            return long_header_ids(datagram).is_some_and(|(to, _)| self.flows.has_id(to));
        }
        !short_header_id(datagram).is_some_and(|id| self.is_own(id))
    }

    fn is_own(&self, id: &[u8]) -> bool {
        id.len() == self.own_ids.cid_len() && self.own_ids.validate(ConnectionId::new(id)).is_ok()
    }

    /// The flow that a datagram is of which came to the socket that all share, if it is of no
    /// connection of the proxy's own.
    pub fn flow_of(&self, config: &Config, datagram: &Received) -> Option<u64> {
        if self.flows.count() == 0 || !config.one_socket {
            return None;
        }
        let bytes = &datagram.payload;
        let id = if is_long_header(bytes) {
            long_header_ids(bytes)?.0
        } else {
            short_header_id(bytes)?
        };
        if self.is_own(id) {
            return None;
        }
        self.flows.towards(datagram.remote)
    }

    fn forward(
        &mut self,
        socket: Socket,
        (destination, source): (SocketAddr, Option<IpAddr>),
        ecn: u8,
        payload: &[u8],
    ) {
        if self.waiting.len() >= MOST_WAITING {
            return;
        }
        let transmit = Transmit {
            destination,
            source,
            ecn,
            segment_size: None,
        };
        self.waiting.push_back(Forwarded {
            socket,
            transmit,
            payload: payload.to_vec(),
        });
    }

    /// Puts the next datagram to forward into `buffer`, in place of its contents.
    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>) -> Option<(Socket, Transmit)> {
        let next = self.waiting.pop_front()?;
        *buffer = next.payload;
        Some((next.socket, next.transmit))
    }

    /// Whether a client that goes to `next_hop` needs no proxy, because the hop that it is for is
    /// short; `None`: nobody knows.
    pub fn is_short_hop(
        &self,
        now: Instant,
        config: &Config,
        client: SocketAddr,
        next_hop: SocketAddr,
    ) -> Option<bool> {
        let Some(rule) = config.bypass else {
            return Some(false);
        };
        let host = if rule.of_client_side {
            client.ip()
        } else {
            next_hop.ip()
        };
        match self.min_rtts.of(now, host) {
            Some(rtt) => Some(rtt < rule.threshold),
            // Only clients show how far they are, by connecting.
            None if rule.of_client_side => Some(false),
            None => None,
        }
    }

    /// Whether a flow can be added of a client that has `other` further connections which do not go
    /// untouched: these need the datagrams of its address.
    pub fn can_take(&self, config: &Config, other: usize) -> bool {
        let is_told_apart = config.one_socket || other == 0;
        is_told_apart && self.flows.count() < config.limits.connections
    }

    /// From now on forwards what comes from a client, beginning with these datagrams; the number of
    /// its flow.
    pub fn open(
        &mut self,
        now: Instant,
        config: &Config,
        client: FlowClient,
        next_hop: SocketAddr,
        datagrams: &[InitialDatagram],
    ) -> u64 {
        let flow = self.flows.begin(client, next_hop, now + config.limits.idle);
        for datagram in datagrams {
            if config.one_socket
                && let Some((to, _)) = long_header_ids(&datagram.payload)
            {
                self.flows.add_id(flow, to);
            }
            let to = (next_hop, None);
            let socket = Socket::Bypass(flow);
            self.forward(socket, to, datagram.ecn, &datagram.payload);
        }
        flow
    }

    /// Ends a flow, and forgets what waits for it; whether it was there.
    pub fn forget(&mut self, flow: u64) -> bool {
        let was_there = self.flows.remove(flow);
        if was_there {
            let socket = Socket::Bypass(flow);
            self.waiting.retain(|forwarded| forwarded.socket != socket);
        }
        was_there
    }

    /// Ends the next flow that has been silent for long.
    pub fn overdue(&mut self, now: Instant) -> Option<u64> {
        self.flows.overdue(now)
    }

    /// When [`Self::overdue`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.flows.next_timeout()
    }

    /// A connection knows how long a round trip to a peer takes.
    pub fn learn_rtt(&mut self, now: Instant, peer: SocketAddr, rtt: Duration) {
        self.min_rtts.learn(now, peer.ip(), rtt);
    }

    /// How many flows there are.
    pub fn count(&self) -> usize {
        self.flows.count()
    }

    /// Connection IDs and datagrams that are kept: for the proof that nothing is left behind.
    pub fn entries(&self) -> usize {
        self.flows.entries() + self.waiting.len()
    }
}
