//! Packets of QUIC that pass beside the tunnel, of a client that is no end of their connections.
//!
//! Such a client knows the connection IDs that packets with long headers show: those with which a
//! connection begins. What the ends agree on later they say encrypted, so packets with another
//! connection ID go through the tunnel, as does all that comes before the proxy has acknowledged
//! one.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bentpipe_endpoint::{Received, Transmit};
use bytes::Bytes;
use h3::error::Code;

use super::{Client, Delivery, Flow};
use crate::channel::{Channel, Ending, Phase};
use crate::counts::Statistics;
use crate::forwarding::{
    Cid, CidCapsule, FIRST_ALLOWED, LONGEST_CID, MOST_IDS, PrefixMap, SHORTEST_VIRTUAL_ID,
    is_short, source_id,
};

/// When packets have been forwarded for so long and nothing has come, the proxy is sent a packet of
/// the tunnel: by that it learns where the client is, whose address a NAT may have changed.
const SILENCE: Duration = Duration::from_secs(2);

/// The connection IDs of a flow.
pub struct FlowIds {
    /// Those of the clients of its connections.
    clients: BTreeMap<Cid, Registered>,
    /// Those of the target.
    targets: PrefixMap<Registered>,
    /// Registrations that were sent, and that may be.
    sent: u64,
    allowed: u64,
    /// Those that wait until there may be more.
    waiting: VecDeque<CidCapsule>,
    has_said: bool,
}

/// A connection ID that is registered, or waits for that.
struct Registered {
    /// The virtual one, once the proxy has given it.
    virtual_id: Option<Cid>,
    /// When a packet had it the last time.
    used: Duration,
    /// The proxy has acknowledged or closed it: before that it is not given up, or the answer would
    /// be taken for that to the next registration.
    is_answered: bool,
}

impl Default for FlowIds {
    fn default() -> Self {
        Self {
            clients: BTreeMap::new(),
            targets: PrefixMap::default(),
            sent: 0,
            allowed: FIRST_ALLOWED,
            waiting: VecDeque::new(),
            has_said: false,
        }
    }
}

/// The meaning of a virtual connection ID of packets that come.
pub struct VirtualId {
    /// Whom they are for.
    flow: SocketAddr,
    /// The connection ID that they have in truth.
    id: Cid,
}

/// The virtual connection IDs of packets that come.
pub type VirtualIds = PrefixMap<VirtualId>;

impl FlowIds {
    /// Whether there are capsules that nobody has had sent.
    pub fn has_said(&mut self) -> bool {
        std::mem::take(&mut self.has_said)
    }

    /// A flow is over.
    pub fn forget(&self, virtual_ids: &mut VirtualIds) {
        let all = self.clients.values();
        for virtual_id in all.filter_map(|it| it.virtual_id.as_ref()) {
            virtual_ids.remove(virtual_id);
        }
    }

    /// Where as many are registered as can be, closes the one that has not been used for longest:
    /// its connection is probably over. Says whether there is room for one more.
    fn make_room(&mut self, channel: &mut Channel, virtual_ids: &mut VirtualIds) -> bool {
        if self.clients.len() + self.targets.len() < MOST_IDS {
            return true;
        }
        let clients = self.clients.iter().map(|(id, it)| (it, true, id));
        let targets = self.targets.iter().map(|(id, it)| (it, false, id));
        let answered = clients.chain(targets).filter(|(it, ..)| it.is_answered);
        let Some((_, is_client, id)) = answered.min_by_key(|(it, ..)| it.used) else {
            return false;
        };
        let id = id.clone();
        let capsule = if is_client {
            let gone = self.clients.remove(&id);
            if let Some(virtual_id) = gone.and_then(|it| it.virtual_id) {
                virtual_ids.remove(&virtual_id);
            }
            CidCapsule::CloseClient(id)
        } else {
            self.targets.remove(&id);
            CidCapsule::CloseTarget(id)
        };
        channel.say(&capsule);
        self.has_said = true;
        true
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
            self.has_said = true;
        }
    }

    /// The proxy has given a virtual connection ID for one of the client's; the answer, or what is
    /// wrong.
    fn note_client(
        &mut self,
        (id, virtual_id): (Cid, Cid),
        flow: SocketAddr,
        virtual_ids: &mut VirtualIds,
    ) -> Result<CidCapsule, &'static str> {
        let Some(known) = self.clients.get_mut(&id) else {
            return Ok(CidCapsule::CloseClient(id));
        };
        known.is_answered = true;
        if known.virtual_id.is_some() {
            return Err("the proxy has acknowledged a connection ID twice");
        }
        let least = id.len().max(SHORTEST_VIRTUAL_ID);
        let fits = (least..=LONGEST_CID).contains(&virtual_id.len());
        let id_of = id.clone();
        if fits && virtual_ids.insert(virtual_id.clone(), VirtualId { flow, id: id_of }) {
            known.virtual_id = Some(virtual_id.clone());
            Ok(CidCapsule::AckClientVirtual(id, virtual_id))
        } else {
            Ok(CidCapsule::CloseClient(id))
        }
    }
}

impl Flow {
    /// Registers the connection ID of a client whose packet passes.
    pub fn see_client(&mut self, now: Duration, packet: &[u8], virtual_ids: &mut VirtualIds) {
        let Some(id) = self.seen(packet) else {
            return;
        };
        if let Some(known) = self.ids.clients.get_mut(id) {
            known.used = now;
            return;
        }
        let channel = &mut self.channel.borrow_mut();
        if !self.ids.make_room(channel, virtual_ids) {
            return;
        }
        let id = Cid::copy_from_slice(id);
        self.ids.clients.insert(id.clone(), Registered::at(now));
        self.ids.register(CidCapsule::RegisterClient(id), channel);
    }

    /// Registers the connection ID of a target whose packet passes; says whether that is to be
    /// sent.
    pub fn see_target(
        &mut self,
        now: Duration,
        packet: &[u8],
        virtual_ids: &mut VirtualIds,
    ) -> bool {
        let Some(id) = self.seen(packet) else {
            return false;
        };
        if let Some(known) = self.ids.targets.get_mut(id) {
            known.used = now;
        } else if !self.ids.targets.conflicts(id) {
            let channel = &mut self.channel.borrow_mut();
            if self.ids.make_room(channel, virtual_ids) {
                let id = Cid::copy_from_slice(id);
                self.ids.targets.insert(id.clone(), Registered::at(now));
                self.ids.register(CidCapsule::RegisterTarget(id), channel);
            }
        }
        self.ids.has_said()
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
        virtual_ids: &mut VirtualIds,
        counts: &mut Statistics,
    ) {
        let mut channel = self.channel.borrow_mut();
        while let Some(said) = channel.heard.pop_front() {
            if let Err((code, why)) = self
                .ids
                .take(said, client, &mut channel, virtual_ids, counts)
            {
                channel.leave(Err(code));
                channel.end(Ending::Failed(why.to_owned()));
                return;
            }
        }
        self.ids.send_waiting(&mut channel);
    }

    /// Makes of a packet the one that is sent in place of it; `None`: it has to go through the
    /// tunnel.
    fn make_virtual(&mut self, now: Duration, packet: &[u8]) -> Option<Bytes> {
        let channel = self.channel.borrow();
        let transforms = channel.transforms.as_ref()?;
        let (id, known) = self.ids.targets.find_mut(&packet[1..])?;
        let virtual_id = known.virtual_id.as_ref().filter(|_| !channel.has_ended())?;
        known.used = now;
        self.touched = now;
        transforms.sending.to_virtual(packet, id.len(), virtual_id)
    }
}

impl Registered {
    fn at(used: Duration) -> Self {
        Self {
            virtual_id: None,
            used,
            is_answered: false,
        }
    }
}

impl FlowIds {
    /// Takes one thing that the proxy has said; else what is wrong with it.
    fn take(
        &mut self,
        said: CidCapsule,
        client: SocketAddr,
        channel: &mut Channel,
        virtual_ids: &mut VirtualIds,
        counts: &mut Statistics,
    ) -> Result<(), (Code, &'static str)> {
        let wrong = |why| (Code::H3_MESSAGE_ERROR, why);
        match said {
            // It does not forward packets to this one.
            CidCapsule::AckClient(id, virtual_id) if virtual_id.is_empty() => {
                if let Some(known) = self.clients.get_mut(&id) {
                    known.is_answered = true;
                }
            }
            CidCapsule::AckClient(id, virtual_id) => {
                let ids = (id, virtual_id);
                let answer = self.note_client(ids, client, virtual_ids).map_err(wrong)?;
                if matches!(answer, CidCapsule::AckClientVirtual(..)) {
                    counts.virtual_connection_ids_total += 1;
                }
                channel.say(&answer);
            }
            CidCapsule::AckTarget(id, virtual_id) => {
                if let Some(known) = self.targets.get_mut(&id) {
                    known.is_answered = true;
                    if (1..=LONGEST_CID).contains(&virtual_id.len()) {
                        counts.virtual_connection_ids_total += 1;
                        known.virtual_id = Some(virtual_id);
                    }
                }
            }
            CidCapsule::CloseClient(id) => {
                if let Some(known) = self.clients.get_mut(&id) {
                    known.is_answered = true;
                    if let Some(gone) = known.virtual_id.take() {
                        virtual_ids.remove(&gone);
                    }
                }
            }
            CidCapsule::CloseTarget(id) => {
                if let Some(known) = self.targets.get_mut(&id) {
                    known.is_answered = true;
                    known.virtual_id = None;
                }
            }
            CidCapsule::MaxConnectionIds(most) if most + 1 >= FIRST_ALLOWED => {
                self.allowed = self.allowed.max(most + 1);
            }
            CidCapsule::MaxConnectionIds(_) => {
                let why = "the proxy allows fewer registrations than there are at first";
                return Err((Code::H3_DATAGRAM_ERROR, why));
            }
            CidCapsule::RegisterClient(_)
            | CidCapsule::RegisterTarget(_)
            | CidCapsule::AckClientVirtual(..) => {
                return Err(wrong("the proxy has sent a capsule that only clients send"));
            }
        }
        Ok(())
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
        let settings = &self.settings.tunnel;
        let may_pass = settings.forward.is_some() && packet.len() <= settings.largest_forwarded;
        if !may_pass || !is_short(packet) {
            return false;
        }
        let (Some(flow), Some(live)) = (self.flows.get_mut(&from), &self.live) else {
            return false;
        };
        let Some(entry) = self.endpoint.get(live.handle) else {
            return false;
        };
        let connection = &mut entry.connection;
        let Some(packet) = flow.make_virtual(now, packet) else {
            return false;
        };
        if now >= self.heard + SILENCE {
            self.heard = now;
            connection.ping();
            let handle = live.handle;
            self.settle(now, handle);
        }
        let path = Transmit {
            ecn,
            ..Transmit::to(self.settings.proxy, None)
        };
        self.forwarded.push(path, packet, &mut self.counts);
        true
    }

    /// Takes a packet that has come beside the tunnel, if it is one.
    pub(super) fn take_forwarded(&mut self, now: Duration, datagram: &Received) -> bool {
        let packet = &datagram.payload[..];
        let may_pass = self.settings.tunnel.forward.is_some() && is_short(packet);
        if !may_pass || datagram.remote != self.settings.proxy {
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
        self.heard = now;
        if let Some(known) = flow.ids.clients.get_mut(id) {
            known.used = now;
        }
        let channel = flow.channel.borrow();
        let transforms = channel.transforms.as_ref();
        let real = transforms.and_then(|it| it.receiving.to_real(packet, virtual_id.len(), id));
        match real {
            Some(payload) => {
                self.counts.received_forwarded_packets_total += 1;
                self.counts.received_forwarded_bytes_total += packet.len() as u64;
                let (to, ecn) = (*to, datagram.ecn);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8, length: usize) -> Cid {
        vec![byte; length].into()
    }

    /// A flow with one connection takes what a proxy says.
    fn take(said: &[CidCapsule]) -> Result<(), (Code, &'static str)> {
        let mut ids = FlowIds::default();
        ids.clients.insert(id(3, 8), Registered::at(Duration::ZERO));
        let (mut channel, mut virtual_ids) = (Channel::default(), VirtualIds::default());
        let place = SocketAddr::from(([192, 0, 2, 7], 443));
        let mut counts = Statistics::default();
        for one in said {
            ids.take(
                one.clone(),
                place,
                &mut channel,
                &mut virtual_ids,
                &mut counts,
            )?;
        }
        assert!(virtual_ids.len() <= ids.clients.len());
        Ok(())
    }

    #[test]
    fn a_proxy_that_breaks_the_rules_loses_the_request() {
        let acknowledged = |last| CidCapsule::AckClient(id(3, 8), id(last, 8));
        for (said, code) in [
            (
                vec![acknowledged(1), acknowledged(2)],
                Some(Code::H3_MESSAGE_ERROR),
            ),
            (
                vec![CidCapsule::MaxConnectionIds(0)],
                Some(Code::H3_DATAGRAM_ERROR),
            ),
            (
                vec![CidCapsule::RegisterClient(id(1, 8))],
                Some(Code::H3_MESSAGE_ERROR),
            ),
            (
                vec![CidCapsule::AckClientVirtual(id(3, 8), id(1, 8))],
                Some(Code::H3_MESSAGE_ERROR),
            ),
            (
                vec![
                    acknowledged(1),
                    CidCapsule::CloseClient(id(3, 8)),
                    acknowledged(2),
                ],
                None,
            ),
            // Of nobody, too short, too long: taken back.
            (vec![CidCapsule::AckClient(id(4, 8), id(1, 8)); 1000], None),
            (vec![CidCapsule::AckClient(id(3, 8), id(1, 7)); 1000], None),
            (vec![CidCapsule::AckClient(id(3, 8), id(1, 21)); 1000], None),
            (vec![CidCapsule::AckTarget(id(9, 8), id(1, 8)); 1000], None),
        ] {
            let error = take(&said).err().map(|(code, _)| code);
            assert_eq!(error, code, "{:?}", said[0]);
        }
    }
}
