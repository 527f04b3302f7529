//! IP packets between clients and a proxy's routes.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bentpipe_wire::too_big;

use super::flow::Flow;
use super::{Event, FlowId, MasqueProxy, Output};
use crate::channel::Shared;
use crate::config::{Assigned, IpSettings};
use crate::ip::{
    Access, ErrorCounts, Lease, Prefix, Problem, Refused, Scope, Sides, Throttle, Towards, clamp,
    decrement_hop_limit, destination, icmp_error,
};
use crate::refusal::Refusal;

/// The errors that senders by routes are told: fifty at once, and a hundred per second.
const SENDER_ERRORS: (Duration, u32) = (Duration::from_millis(10), 50);

/// The errors towards senders by routes, and the count of all.
#[derive(Debug)]
pub struct Errors {
    throttle: Throttle,
    counts: ErrorCounts,
}

impl Default for Errors {
    fn default() -> Self {
        let (interval, burst) = SENDER_ERRORS;
        Self {
            throttle: Throttle::new(interval, burst),
            counts: ErrorCounts::default(),
        }
    }
}

impl MasqueProxy {
    /// A packet has come by a route: it goes to the client that has its destination, the one that
    /// asked last if several do. The request that it goes to, if there is one.
    pub fn handle_packet(&mut self, now: Duration, packet: &[u8]) -> Option<FlowId> {
        let flow = match self.judge(packet) {
            Ok(flow) => flow,
            Err(refused) => {
                self.counts.refused_packets_total += 1;
                if matches!(refused, Refused::Unassigned(_)) {
                    self.tell_sender(now, packet, Problem::Unreachable);
                }
                return None;
            }
        };
        let mut packet = packet.to_vec();
        let most = self.largest_packet_of(flow);
        if packet.len() > most {
            self.counts.too_large_datagrams_total += 1;
            if self.assigned().is_some() {
                self.tell_sender(now, &packet, Problem::TooBig(most));
                return None;
            }
            let told = too_big(&packet, u32::try_from(most).unwrap_or(u32::MAX));
            let told = told.map(|it| Output::Packet(None, it.into()));
            self.outputs.extend(told);
            return None;
        }
        if !decrement_hop_limit(&mut packet) {
            self.counts.refused_packets_total += 1;
            self.tell_sender(now, &packet, Problem::HopLimit);
            return None;
        }
        clamp(&mut packet, most);
        self.handle_reply(now, flow, 0, &packet);
        Some(flow)
    }

    /// Tells a client why its packet goes no further, unless it has been told too much.
    pub fn refuse(&mut self, now: Duration, flow: FlowId, packet: &[u8], problem: Problem) {
        let is_v4 = packet.first().is_some_and(|it| it >> 4 == 4);
        let own = self.assigned().and_then(|it| it.pool.own_of(is_v4));
        let Some(told) = own.and_then(|own| icmp_error(packet, problem, own)) else {
            return;
        };
        let Some(flow_of) = self.flows.get_mut(&flow) else {
            return; // it has gone away
        };
        let may = flow_of.errors.take(now);
        self.errors.counts.count(may);
        if may {
            self.handle_reply(now, flow, 0, &told);
        }
    }

    /// The errors that it has told.
    #[must_use]
    pub fn error_counts(&self) -> ErrorCounts {
        self.errors.counts
    }

    /// The largest packet that the tunnel carries.
    #[must_use]
    pub fn largest_packet(&self) -> usize {
        self.settings.tunnel.largest_packet
    }

    /// Whether a client of this proxy has an address.
    #[must_use]
    pub fn has_client(&self, address: IpAddr) -> bool {
        self.by_address.contains_key(&address)
    }

    /// Has packets of all clients go where the settings say now.
    pub(super) fn reroute(&mut self, now: Duration) {
        let Some(routes) = self.assigned().map(|it| it.routes.clone()) else {
            return;
        };
        for flow in self.flows.values().filter(|it| it.lease.is_some()) {
            flow.channel.borrow_mut().reroute(&routes);
        }
        for handle in self.clients.keys().copied().collect::<Vec<_>>() {
            self.progress(now, handle);
            self.settle(now, handle);
        }
    }

    fn assigned(&self) -> Option<&Assigned> {
        match &self.settings.ip {
            Some(IpSettings::Assigned(assigned)) => Some(assigned),
            _ => None,
        }
    }

    /// Tells a sender by a route, as if by the packet's destination: the kernel takes no packet
    /// from an address of its own.
    fn tell_sender(&mut self, now: Duration, packet: &[u8], problem: Problem) {
        let Ok(to) = destination(packet) else {
            return;
        };
        if self.assigned().is_none() {
            return;
        }
        let Some(told) = icmp_error(packet, problem, to) else {
            return;
        };
        let may = self.errors.throttle.take(now);
        self.errors.counts.count(may);
        if may {
            self.outputs.push_back(Output::Packet(None, told.into()));
        }
    }

    /// The largest packet to a client: the peer may take less than the tunnel's own packets have.
    fn largest_packet_of(&mut self, flow: FlowId) -> usize {
        let most = self.largest_packet();
        let Some(flow) = self.flows.get(&flow).filter(|it| it.lease.is_some()) else {
            return most;
        };
        let client = self.clients.get(&flow.client);
        let entry = self.endpoint.get(flow.client);
        let (Some(client), Some(entry)) = (client, entry) else {
            return most;
        };
        let stream = flow.channel.borrow().stream;
        let of_peer = client.tunnel.largest_payload(&mut entry.connection, stream);
        of_peer.map_or(most, |it| it.min(most))
    }

    fn judge(&self, packet: &[u8]) -> Result<FlowId, Refused> {
        let to = destination(packet)?;
        if self.assigned().is_some() {
            let flow = *self.by_address.get(&to).ok_or(Refused::Unassigned(to))?;
            let there = self.flows.get(&flow).ok_or(Refused::Unassigned(to))?;
            let channel = there.channel.borrow();
            let sides = channel.sides.as_ref().ok_or(Refused::Unassigned(to))?;
            return sides.judge(packet, Towards::Clients).map(|()| flow);
        }
        let mut refused = Refused::Unassigned(to);
        for (id, flow) in self.flows.iter().rev() {
            let channel = flow.channel.borrow();
            let sides = channel.sides.as_ref().filter(|it| it.has_client(to));
            match sides.map(|it| it.judge(packet, Towards::Clients)) {
                Some(Ok(())) => return Ok(*id),
                // Another request of the same client may be for this protocol.
                Some(Err(error)) => refused = error,
                None => {}
            }
        }
        Err(refused)
    }
}

/// Decides on a request for IP of a client at `from`: what it is limited to must be allowed, and
/// there must be addresses for it. Its addresses, if they are its own.
pub fn begin_ip(
    channel: &Shared,
    ip: Option<&IpSettings>,
    scope: Scope,
    from: IpAddr,
) -> Result<Option<Lease>, Refusal> {
    let begun = begin(ip, scope, from);
    let mut channel = channel.borrow_mut();
    match begun {
        Ok((sides, lease)) => {
            channel.begin(sides);
            channel.decide(Ok(()));
            Ok(lease)
        }
        Err(refusal) => {
            channel.decide(Err(refusal));
            Err(refusal)
        }
    }
}

fn begin(
    ip: Option<&IpSettings>,
    scope: Scope,
    from: IpAddr,
) -> Result<(Sides, Option<Lease>), Refusal> {
    let sides = |access: &Access| Sides::of_proxy(access, scope).ok_or(Refusal::NotAllowed);
    match ip {
        None => Err(Refusal::NotAllowed),
        Some(IpSettings::Shared(access)) => Ok((sides(access)?, None)),
        Some(IpSettings::Assigned(assigned)) => {
            let routes = assigned.routes.clone();
            sides(&Access {
                clients: Vec::new(),
                routes: routes.clone(),
            })?;
            let lease = assigned
                .pool
                .lease(assigned.thread, from, assigned.most_of_client);
            let lease = lease.ok_or(Refusal::NoAddressLeft)?;
            let clients = lease.addresses().iter().map(|it| Prefix::of(*it));
            let access = Access {
                clients: clients.collect(),
                routes,
            };
            Ok((sides(&access)?, Some(lease)))
        }
    }
}

/// Keeps the addresses of a request, and tells whoever runs the proxy of them, or that there are
/// none.
pub fn note(
    lease: Result<Option<Lease>, Refusal>,
    (id, flow): (FlowId, &mut Flow),
    client: SocketAddr,
    (by_address, outputs): (&mut BTreeMap<IpAddr, FlowId>, &mut VecDeque<Output>),
) {
    let event = match lease {
        Ok(None) => return,
        Ok(Some(lease)) => {
            let addresses = lease.addresses().to_vec();
            by_address.extend(addresses.iter().map(|it| (*it, id)));
            flow.lease = Some(lease);
            Event::Assigned(id, client, addresses)
        }
        Err(refusal) => Event::IpRefused(client, refusal),
    };
    outputs.push_back(Output::Tell(event));
}

/// A request that is over has no addresses any more.
pub fn free(by_address: &mut BTreeMap<IpAddr, FlowId>, gone: &Flow) {
    for address in gone.lease.iter().flat_map(Lease::addresses) {
        by_address.remove(address);
    }
}
