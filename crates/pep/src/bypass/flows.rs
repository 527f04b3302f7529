//! Flows that are forwarded untouched: datagram by datagram, to the next hop and back.
//!
//! A flow is all that comes from one address of a client. Each has a socket of its own towards the next hop, so that replies find their way
//! without anybody looking into them. Where all datagrams of a side have one address, as in virtual time, connection IDs tell flows from connections.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::limits::quota::Seat;

/// What is known of the smallest round-trip times to other hosts is forgotten after this: a path may have changed.
const MEMORY: Duration = Duration::from_secs(600);
/// Hosts of which it is known.
const MOST_HOSTS: usize = 1 << 12;

/// A flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    pub client: SocketAddr,
    /// The proxy's own address that the client sends to.
    pub local: Option<IpAddr>,
    pub next_hop: SocketAddr,
    until: Instant,
}

/// All flows that are forwarded untouched.
#[derive(Default)]
pub struct Asides {
    flows: BTreeMap<u64, Flow>,
    by_client: BTreeMap<SocketAddr, u64>,
    timers: BTreeSet<(Instant, u64)>,
    /// Flows count as connections do.
    seats: BTreeMap<u64, Seat>,
    /// The connection IDs that clients send to in long headers, where addresses do not tell.
    ids: BTreeMap<Vec<u8>, u64>,
    last: u64,
}

impl Asides {
    pub fn count(&self) -> usize {
        self.flows.len()
    }

    /// Begins a flow; its number.
    pub fn begin(
        &mut self,
        (client, local, seat): (SocketAddr, Option<IpAddr>, Seat),
        next_hop: SocketAddr,
        until: Instant,
    ) -> u64 {
        self.last += 1;
        let flow = Flow {
            client,
            local,
            next_hop,
            until,
        };
        self.flows.insert(self.last, flow);
        self.seats.insert(self.last, seat);
        self.by_client.insert(client, self.last);
        self.timers.insert((until, self.last));
        self.last
    }

    /// The flow of a client, which goes on for longer now.
    pub fn of_client(&mut self, client: SocketAddr, until: Instant) -> Option<(u64, Flow)> {
        let number = *self.by_client.get(&client)?;
        self.go_on(number, until).map(|flow| (number, flow))
    }

    /// The flow of this number, which goes on for longer now.
    pub fn go_on(&mut self, number: u64, until: Instant) -> Option<Flow> {
        let flow = self.flows.get_mut(&number)?;
        self.timers.remove(&(flow.until, number));
        flow.until = until;
        self.timers.insert((until, number));
        Some(*flow)
    }

    /// From now on what is sent to this connection ID is of the flow.
    pub fn add_id(&mut self, number: u64, id: &[u8]) {
        if self.flows.contains_key(&number) {
            self.ids.insert(id.to_vec(), number);
        }
    }

    /// Whether what is sent to this connection ID is of a flow.
    pub fn has_id(&self, id: &[u8]) -> bool {
        self.ids.contains_key(id)
    }

    /// Flows by connection IDs.
    pub fn entries(&self) -> usize {
        self.ids.len()
    }

    /// The latest flow to this next hop, where all have one address.
    pub fn towards(&self, next_hop: SocketAddr) -> Option<u64> {
        let mut flows = self.flows.iter().rev();
        let found = flows.find(|(_, flow)| flow.next_hop == next_hop)?;
        Some(*found.0)
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Ends the next flow that has been silent for long.
    pub fn overdue(&mut self, now: Instant) -> Option<u64> {
        let (time, number) = *self.timers.first()?;
        (time <= now && self.remove(number)).then_some(number)
    }

    /// Ends a flow; whether it was there.
    pub fn remove(&mut self, number: u64) -> bool {
        let Some(flow) = self.flows.remove(&number) else {
            return false;
        };
        self.seats.remove(&number);
        self.ids.retain(|_, it| *it != number);
        if self.by_client.get(&flow.client) == Some(&number) {
            self.by_client.remove(&flow.client);
        }
        self.timers.remove(&(flow.until, number))
    }
}

/// The smallest round-trip times to hosts that are known.
#[derive(Default)]
pub struct Rtts {
    /// By host: the time, and until when it is believed.
    known: BTreeMap<IpAddr, (Duration, Instant)>,
}

impl Rtts {
    pub fn learn(&mut self, now: Instant, host: IpAddr, rtt: Duration) {
        if self.known.len() >= MOST_HOSTS && !self.known.contains_key(&host) {
            self.known.pop_first();
        }
        let (known, until) = self.known.entry(host).or_insert((rtt, now + MEMORY));
        if rtt <= *known || *until <= now {
            (*known, *until) = (rtt, now + MEMORY);
        }
    }

    pub fn of(&self, now: Instant, host: IpAddr) -> Option<Duration> {
        let (rtt, until) = self.known.get(&host)?;
        (*until > now).then_some(*rtt)
    }
}
