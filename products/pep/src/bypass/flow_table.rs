//! The flows that are forwarded untouched, by number, by client, and by connection ID.
use bentpipe_service::quota::ConnectionPermit;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// A client whose datagrams are to be forwarded.
pub struct FlowClient {
    /// Its address.
    pub address: SocketAddr,
    /// The proxy's own address that it sends to.
    pub local: Option<IpAddr>,
    /// Its permit: flows count as connections do.
    pub permit: ConnectionPermit,
}

/// A flow that is forwarded untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BypassedFlow {
    /// Where its client is.
    pub client: SocketAddr,
    /// The proxy's own address that the client sends to.
    pub local: Option<IpAddr>,
    /// Where its datagrams go.
    pub next_hop: SocketAddr,
    until: Instant,
}

/// The table of flows that are forwarded untouched.
#[derive(Default)]
pub struct FlowTable {
    flows: BTreeMap<u64, BypassedFlow>,
    by_client: BTreeMap<SocketAddr, u64>,
    timers: BTreeSet<(Instant, u64)>,
    permits: BTreeMap<u64, ConnectionPermit>,
    /// The connection IDs that clients send to in long headers, where addresses do not tell.
    ids: BTreeMap<Vec<u8>, u64>,
    last: u64,
}

impl FlowTable {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.flows.len()
    }

    /// Begins a flow; its number.
    pub fn begin(&mut self, client: FlowClient, next_hop: SocketAddr, until: Instant) -> u64 {
        self.last += 1;
        let flow = BypassedFlow {
            client: client.address,
            local: client.local,
            next_hop,
            until,
        };
        self.flows.insert(self.last, flow);
        self.permits.insert(self.last, client.permit);
        self.by_client.insert(client.address, self.last);
        self.timers.insert((until, self.last));
        self.last
    }

    /// The flow of a client, which goes on for longer now.
    pub fn of_client(&mut self, client: SocketAddr, until: Instant) -> Option<(u64, BypassedFlow)> {
        let number = *self.by_client.get(&client)?;
        self.prolong(number, until).map(|flow| (number, flow))
    }

    /// The flow of this number, which goes on for longer now.
    pub fn prolong(&mut self, number: u64, until: Instant) -> Option<BypassedFlow> {
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

    /// When [`Self::overdue`] wants to be called.
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
        self.permits.remove(&number);
        self.ids.retain(|_, it| *it != number);
        if self.by_client.get(&flow.client) == Some(&number) {
            self.by_client.remove(&flow.client);
        }
        self.timers.remove(&(flow.until, number))
    }
}
