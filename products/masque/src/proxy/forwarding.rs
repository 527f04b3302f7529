//! Packets of QUIC that pass beside a proxy's tunnels.

use std::time::Duration;

use bentpipe_endpoint::{Received, Transmit};
use bytes::Bytes;
use h3::error::Code;
use noq_proto::PathId;

use super::flow::Flow;
use super::ids::VirtualIds;
use super::{FlowId, MasqueProxy, Output};
use crate::channel::Ending;
use crate::counts::Statistics;
use crate::forwarding::{CidCapsule, is_short};

impl Flow {
    /// Takes what the client has said of connection IDs, and answers.
    pub fn hear(&mut self, id: FlowId, all: &mut VirtualIds, counts: &mut Statistics) {
        let mut channel = self.channel.borrow_mut();
        let mut wrong = None;
        while let Some(said) = channel.heard.pop_front() {
            match said {
                CidCapsule::RegisterClient(_) | CidCapsule::RegisterTarget(_)
                    if !self.ids.count_registration() =>
                {
                    wrong = Some("more connection IDs than are allowed");
                }
                CidCapsule::RegisterClient(real) => {
                    let added = self.ids.add_client(&real, id, all);
                    counts.virtual_connection_ids_total += u64::from(added.is_some());
                    channel.say(&match added {
                        Some(virtual_id) => CidCapsule::AckClient(real, virtual_id),
                        None => CidCapsule::CloseClient(real),
                    });
                }
                CidCapsule::RegisterTarget(real) => {
                    let added = self.ids.add_target(&real, id, all);
                    counts.virtual_connection_ids_total += u64::from(added.is_some());
                    channel.say(&match added {
                        Some(virtual_id) => CidCapsule::AckTarget(real, virtual_id),
                        None => CidCapsule::CloseTarget(real),
                    });
                }
                CidCapsule::AckClientVirtual(real, virtual_id) => {
                    // One that was replaced meanwhile is of no use any more.
                    let known = self.ids.clients.get_mut(&real);
                    if let Some(known) = known.filter(|it| it.virtual_id == virtual_id) {
                        known.is_known = true;
                    }
                }
                CidCapsule::CloseClient(real) => {
                    self.ids.close_client(&real, all);
                }
                CidCapsule::CloseTarget(real) => {
                    self.ids.close_target(&real, all);
                }
                CidCapsule::AckClient(..)
                | CidCapsule::AckTarget(..)
                | CidCapsule::MaxConnectionIds(_) => {
                    wrong = Some("a capsule that only proxies send");
                }
            }
            if let Some(why) = wrong {
                channel.leave(Err(Code::H3_MESSAGE_ERROR));
                channel.end(Ending::Failed(why.to_owned()));
                return;
            }
            if let Some(most) = self.ids.allow() {
                channel.say(&CidCapsule::MaxConnectionIds(most));
            }
        }
    }
}

impl Flow {
    /// Closes all connection IDs, and takes no more: the client is elsewhere, and what is sent
    /// there may not be more than it has shown that it wants (section "Handling Connection
    /// Migration").
    fn close_ids(&mut self, all: &mut VirtualIds) {
        if std::mem::replace(&mut self.ids.is_closed, true) {
            return;
        }
        let mut channel = self.channel.borrow_mut();
        all.forget(&self.ids);
        self.ids.virtual_ids.clear();
        for (id, _) in std::mem::take(&mut self.ids.clients).iter() {
            channel.say(&CidCapsule::CloseClient(id.clone()));
        }
        for (id, _) in self.ids.targets.drain(..) {
            channel.say(&CidCapsule::CloseTarget(id));
        }
    }

    /// The packet that is sent in place of this one; `None`: it has to go through the tunnel.
    fn to_virtual(&self, packet: &[u8]) -> Option<Bytes> {
        let channel = self.channel.borrow();
        let transforms = channel.transforms.as_ref()?;
        let (id, known) = self.ids.clients.find(&packet[1..])?;
        if !known.is_known || channel.has_ended() {
            return None;
        }
        transforms
            .sending
            .to_virtual(packet, id.len(), &known.virtual_id)
    }
}

impl MasqueProxy {
    /// Has a client whose address has changed use the tunnel alone from now on.
    pub(super) fn note_move(&mut self, handle: usize) {
        if self.settings.tunnel.forward.is_none() {
            return;
        }
        let (Some(client), Some(entry)) =
            (self.clients.get_mut(&handle), self.endpoint.get(handle))
        else {
            return;
        };
        let connection = &mut entry.connection;
        let path = connection.network_path(PathId::ZERO);
        if path.is_ok_and(|it| it.remote() == client.address) {
            return;
        }
        for id in client.flows.values() {
            if let Some(flow) = self.flows.get_mut(id) {
                flow.close_ids(&mut self.virtual_ids);
            }
        }
        client.tunnel.session.pump(connection);
    }

    /// Sends on a packet of a client that has come beside the tunnel, if it is one.
    pub(super) fn forward_to_target(&mut self, now: Duration, datagram: &Received) -> bool {
        let packet = &datagram.payload[..];
        if self.settings.tunnel.forward.is_none() || !is_short(packet) {
            return false;
        }
        let Some((virtual_id, (id, Some(real)))) = self.virtual_ids.by_id.find(&packet[1..]) else {
            return false;
        };
        let Some(flow) = self.flows.get_mut(id) else {
            return false;
        };
        let client = self.clients.get(&flow.client);
        if client.is_none_or(|it| it.address != datagram.remote) {
            return false;
        }
        flow.touched = now;
        let channel = flow.channel.borrow();
        let transforms = channel.transforms.as_ref().filter(|_| flow.is_open);
        let real = transforms.and_then(|it| it.receiving.to_real(packet, virtual_id.len(), real));
        match real {
            Some(packet) => {
                self.counts.received_forwarded_packets_total += 1;
                self.counts.received_forwarded_bytes_total += packet.len() as u64;
                self.outputs
                    .push_back(Output::Send(*id, datagram.ecn, packet));
            }
            None => self.counts.unknown_datagrams_total += 1,
        }
        true
    }

    /// Has a packet of a target pass beside the tunnel, if it may.
    pub(super) fn forward_to_client(
        &mut self,
        now: Duration,
        id: FlowId,
        ecn: u8,
        packet: &[u8],
    ) -> bool {
        let settings = &self.settings.tunnel;
        let may_pass = settings.forward.is_some() && packet.len() <= settings.largest_forwarded;
        if !may_pass || !is_short(packet) {
            return false;
        }
        let Some(flow) = self.flows.get_mut(&id) else {
            return false;
        };
        let (Some(client), Some(entry)) = (
            self.clients.get_mut(&flow.client),
            self.endpoint.get(flow.client),
        ) else {
            return false;
        };
        let connection = &mut entry.connection;
        let Ok(path) = connection.network_path(PathId::ZERO) else {
            return false;
        };
        if path.remote() != client.address {
            return false;
        }
        let Some(packet) = flow.to_virtual(packet) else {
            return false;
        };
        flow.touched = now;
        let path = Transmit {
            ecn,
            ..Transmit::to(path.remote(), path.local_ip())
        };
        self.forwarded.push(path, packet, &mut self.counts);
        true
    }
}
