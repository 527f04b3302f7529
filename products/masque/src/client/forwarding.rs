//! Packets of QUIC that pass beside the tunnel, of a client that is no end of their connections.
//!
//! Such a client knows the connection IDs that packets with long headers show: those with which a
//! connection begins. What the ends agree on later they say encrypted, so packets with another
//! connection ID go through the tunnel, as does all that comes before the proxy has acknowledged
//! one.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bentpipe_endpoint::{Received, Transmit};
use bytes::Bytes;
use h3::error::Code;

use super::{Client, Delivery, Flow};
use crate::channel::{Channel, Ending, Phase};
use crate::counts::Statistics;
use crate::forwarding::{
    Cid, CidCapsule, FIRST_ALLOWED, LONGEST_CID, MOST_IDS, Outgoing, PrefixMap, is_short, source_id,
};

/// The connection IDs of a flow.
pub struct FlowIds {
    /// Those of the client of its connections.
    clients: Vec<Cid>,
    /// Those of the target, with the virtual ones that the proxy has given.
    targets: PrefixMap<Option<Cid>>,
    target_count: usize,
    /// Registrations that were sent, and that may be.
    sent: u64,
    allowed: u64,
    /// Those that wait until there may be more.
    waiting: VecDeque<CidCapsule>,
    has_registered: bool,
}

impl Default for FlowIds {
    fn default() -> Self {
        Self {
            clients: Vec::new(),
            targets: PrefixMap::default(),
            target_count: 0,
            sent: 0,
            allowed: FIRST_ALLOWED,
            waiting: VecDeque::new(),
            has_registered: false,
        }
    }
}

/// The meaning of a virtual connection ID of packets that come.
pub struct VirtualId {
    /// Whom they are for.
    pub flow: SocketAddr,
    /// The connection ID that they have in truth.
    id: Cid,
}

impl FlowIds {
    /// Whether there are registrations that nobody has had sent.
    pub fn has_registered(&mut self) -> bool {
        std::mem::take(&mut self.has_registered)
    }

    fn add_client(&mut self, id: &[u8]) -> bool {
        let is_new = self.clients.len() < MOST_IDS && !self.clients.iter().any(|it| it == id);
        if is_new {
            self.clients.push(Cid::copy_from_slice(id));
        }
        is_new
    }

    fn add_target(&mut self, id: &[u8]) -> bool {
        let is_new =
            self.target_count < MOST_IDS && self.targets.insert(Cid::copy_from_slice(id), None);
        self.target_count += usize::from(is_new);
        is_new
    }

    /// Has a registration be sent, now or when the proxy allows one more.
    fn register(&mut self, capsule: CidCapsule, channel: &mut Channel) {
        self.waiting.push_back(capsule);
        self.send_waiting(channel);
    }

    fn send_waiting(&mut self, channel: &mut Channel) {
        while self.sent < self.allowed
            && let Some(capsule) = self.waiting.pop_front()
        {
            channel.say(&capsule);
            self.sent += 1;
            self.has_registered = true;
        }
    }
}

impl Flow {
    /// Registers the connection ID of a client whose packet passes.
    pub fn see_client(&mut self, packet: &[u8]) {
        if let Some(id) = self.seen(packet)
            && self.ids.add_client(id)
        {
            let capsule = CidCapsule::RegisterClient(Cid::copy_from_slice(id));
            self.ids.register(capsule, &mut self.channel.borrow_mut());
        }
    }

    /// Registers the connection ID of a target whose packet passes; says whether that is to be
    /// sent.
    pub fn see_target(&mut self, packet: &[u8]) -> bool {
        if let Some(id) = self.seen(packet)
            && self.ids.add_target(id)
        {
            let capsule = CidCapsule::RegisterTarget(Cid::copy_from_slice(id));
            self.ids.register(capsule, &mut self.channel.borrow_mut());
        }
        self.ids.has_registered()
    }

    /// A packet's source connection ID, if packets may be forwarded.
    fn seen<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        let channel = self.channel.borrow();
        let is_offered = match channel.phase {
            Phase::Asked => channel.offer.is_some(),
            Phase::Open => channel.transforms.is_some(),
            Phase::Ended(_) => false,
        };
        is_offered.then(|| source_id(packet)).flatten()
    }

    /// Takes what the proxy has said of connection IDs.
    pub fn hear(
        &mut self,
        client: SocketAddr,
        virtual_ids: &mut PrefixMap<VirtualId>,
        counts: &mut Statistics,
    ) {
        let mut channel = self.channel.borrow_mut();
        while let Some(said) = channel.heard.pop_front() {
            match said {
                // It does not forward packets to this one.
                CidCapsule::AckClient(_, other) if other.is_empty() => {}
                CidCapsule::AckClient(id, other) => {
                    let is_known = self.ids.clients.contains(&id);
                    let fits = (id.len()..=LONGEST_CID).contains(&other.len());
                    let value = VirtualId {
                        flow: client,
                        id: id.clone(),
                    };
                    if is_known && fits && virtual_ids.insert(other.clone(), value) {
                        counts.virtual_connection_ids_total += 1;
                        channel.say(&CidCapsule::AckClientVirtual(id, other));
                    } else {
                        channel.say(&CidCapsule::CloseClient(id));
                    }
                }
                CidCapsule::AckTarget(id, other) => {
                    if let Some(known) = self.ids.targets.get_mut(&id)
                        && (1..=LONGEST_CID).contains(&other.len())
                    {
                        counts.virtual_connection_ids_total += 1;
                        *known = Some(other);
                    }
                }
                CidCapsule::CloseClient(id) => {
                    virtual_ids.retain(|it| it.flow != client || it.id != id);
                }
                CidCapsule::CloseTarget(id) => {
                    if let Some(known) = self.ids.targets.get_mut(&id) {
                        *known = None;
                    }
                }
                CidCapsule::MaxConnectionIds(most) if most + 1 >= FIRST_ALLOWED => {
                    self.ids.allowed = self.ids.allowed.max(most + 1);
                }
                CidCapsule::MaxConnectionIds(_) => {
                    channel.leave(Err(Code::H3_DATAGRAM_ERROR));
                    let why = "the proxy allows fewer registrations than there are at first";
                    channel.end(Ending::Failed(why.to_owned()));
                }
                CidCapsule::RegisterClient(_)
                | CidCapsule::RegisterTarget(_)
                | CidCapsule::AckClientVirtual(..) => {
                    channel.leave(Err(Code::H3_MESSAGE_ERROR));
                    let why = "the proxy has sent a capsule that only clients send";
                    channel.end(Ending::Failed(why.to_owned()));
                }
            }
        }
        self.ids.send_waiting(&mut channel);
    }

    /// The packet that is sent in place of this one; `None`: it has to go through the tunnel.
    fn to_virtual(&self, packet: &[u8]) -> Option<Bytes> {
        let channel = self.channel.borrow();
        let transforms = channel.transforms.as_ref()?;
        let (id, other) = self.ids.targets.find(&packet[1..])?;
        let other = other.as_ref().filter(|_| !channel.has_ended())?;
        transforms.sending.to_virtual(packet, id.len(), other)
    }
}

impl Client {
    /// Has a packet of one behind it pass beside the tunnel, if it may.
    pub(super) fn forward(
        &mut self,
        now: Duration,
        from: SocketAddr,
        ecn: u8,
        packet: &[u8],
    ) -> bool {
        if self.settings.tunnel.forward.is_none() || !is_short(packet) {
            return false;
        }
        let Some(flow) = self.flows.get_mut(&from) else {
            return false;
        };
        let Some(packet) = flow.to_virtual(packet) else {
            return false;
        };
        flow.touched = now;
        let bytes = packet.len() as u64;
        let path = Transmit {
            ecn,
            ..Transmit::to(self.settings.proxy, None)
        };
        let most = self.settings.tunnel.carriage.queue;
        if self.outgoings.push(Outgoing { path, packet }, most) {
            self.counts.forwarded_packets_total += 1;
            self.counts.forwarded_bytes_total += bytes;
        } else {
            self.counts.queue_full_datagrams_total += 1;
        }
        true
    }

    /// Takes a packet that has come beside the tunnel, if it is one.
    pub(super) fn take_forwarded(&mut self, now: Duration, datagram: &Received) -> bool {
        let packet = &datagram.payload[..];
        if !is_short(packet) || datagram.remote != self.settings.proxy {
            return false;
        }
        let Some((virtual_id, VirtualId { flow: to, id })) = self.virtual_ids.find(&packet[1..])
        else {
            return false;
        };
        let Some(flow) = self.flows.get_mut(to) else {
            return false;
        };
        flow.touched = now;
        let channel = flow.channel.borrow();
        let transforms = channel.transforms.as_ref();
        let real = transforms.and_then(|it| it.receiving.to_real(packet, virtual_id.len(), id));
        match real {
            Some(payload) => {
                self.counts.received_forwarded_packets_total += 1;
                let ecn = datagram.ecn;
                let to = *to;
                self.arrived.push_back(Delivery { to, ecn, payload });
            }
            None => self.counts.unknown_datagrams_total += 1,
        }
        true
    }
}

impl Delivery {
    /// One that has come through the tunnel.
    pub(super) fn tunnelled(to: SocketAddr, payload: Bytes) -> Self {
        let ecn = 0;
        Self { to, ecn, payload }
    }
}
