//! The packets of the whole path, where middleboxes encapsulate them on part of it.
//!
//! What links carry there is not what was sent. But at the first hop and at the last one packets
//! are as the ends made them: a departure at one is joined with the arrival at the other by
//! content, and of packets with equal content the first with the first.

use std::collections::{HashMap, VecDeque};

use bentpipe_link::{Counters, Direction, Fate};
use bentpipe_units::Time;

use super::{HopPackets, LinkObservation, Packet, PacketLog, TestbedObservation, Transport};

impl HopPackets {
    /// Packets as those of a hop, of `flows` flows. Time zero of the trial is `epoch_unix_ns`.
    #[must_use]
    pub fn of(packets: Vec<Packet>, flows: usize, epoch_unix_ns: u64) -> Self {
        let [mut forward, mut back] = [Counters::default(); 2];
        let mut log = PacketLog::new(flows, epoch_unix_ns);
        for packet in packets {
            let counters = match packet.direction {
                Direction::Forward => &mut forward,
                Direction::Return => &mut back,
            };
            counters.count(packet.fate, packet.ip.bytes);
            log.add(packet);
        }
        Self { log, forward, back }
    }
}

impl TestbedObservation {
    /// The same, in which the flows have one hop, the whole path, and the links keep theirs.
    #[must_use]
    pub fn end_to_end(mut self) -> Self {
        let [first, .., last] = self.hops.as_slice() else {
            return self;
        };
        let packets = whole_path(first.log.packets(), last.log.packets());
        let whole = HopPackets::of(packets, self.flows.len(), first.log.epoch_unix_ns());
        self.links = Some(LinkObservation {
            counters: self.on_links(),
            sha256: Some(self.sha256()),
        });
        self.hops = vec![whole];
        self
    }
}

/// The packets that the ends sent, in the order of sending. Left out are those that were under way
/// when the trial ended.
fn whole_path(first: &[Packet], last: &[Packet]) -> Vec<Packet> {
    let mut packets = across(Direction::Return, first, last);
    packets.extend(across(Direction::Forward, last, first));
    packets.sort_by_key(|packet| packet.sent);
    packets
}

/// The packets that go `way`, which were sent on `near` and arrive on `far`.
fn across(way: Direction, near: &[Packet], far: &[Packet]) -> Vec<Packet> {
    let mut came_out: HashMap<(usize, &Transport), VecDeque<&Packet>> = HashMap::new();
    for packet in in_order(way, far) {
        let key = (packet.flow, &packet.ip.transport);
        came_out.entry(key).or_default().push_back(packet);
    }
    let mut packets: Vec<(Packet, bool)> = Vec::new();
    for packet in in_order(way, near) {
        let fate = match packet.fate {
            Fate::Delivered { at } => came_out
                .get_mut(&(packet.flow, &packet.ip.transport))
                .and_then(|equal| next(equal, at)),
            lost => Some(lost),
        };
        let known = Packet {
            fate: fate.unwrap_or(Fate::Loss),
            ..packet.clone()
        };
        packets.push((known, fate.is_some()));
    }
    let delivered = |(packet, _): &(Packet, bool)| matches!(packet.fate, Fate::Delivered { .. });
    let last_delivered = packets.iter().rposition(delivered);
    let kept = packets.into_iter().enumerate();
    kept.filter(|(number, (_, known))| *known || last_delivered.is_some_and(|last| *number < last))
        .map(|(_, (packet, _))| packet)
        .collect()
}

/// The fate of the first of packets with equal content that came out when this one had gone in.
fn next(equal: &mut VecDeque<&Packet>, at: Time) -> Option<Fate> {
    while let Some(packet) = equal.pop_front() {
        if packet.sent >= at {
            return Some(packet.fate);
        }
    }
    None
}

fn in_order(way: Direction, packets: &[Packet]) -> Vec<&Packet> {
    let mut packets: Vec<&Packet> = packets.iter().filter(|it| it.direction == way).collect();
    packets.sort_by_key(|packet| packet.sent);
    packets
}

#[cfg(test)]
mod tests {
    use bentpipe_wire::IpVersion;
    use bytes::Bytes;

    use super::*;
    use crate::evidence::IpPacket;

    fn packet(way: Direction, sent: u64, fate: Fate, content: &'static [u8]) -> Packet {
        Packet {
            flow: 0,
            direction: way,
            sent: Time::from_nanos(sent),
            ip: IpPacket::udp(IpVersion::V4, 0, Bytes::from_static(content)),
            fate,
        }
    }

    fn at(nanos: u64) -> Fate {
        Fate::Delivered {
            at: Time::from_nanos(nanos),
        }
    }

    fn fates(packets: &[Packet]) -> Vec<(u64, Fate)> {
        let each = packets.iter();
        each.map(|it| (it.sent.as_nanos(), it.fate)).collect()
    }

    #[test]
    fn departures_are_joined_with_arrivals_at_the_other_end() {
        use Direction::{Forward, Return};
        let first = [
            packet(Return, 1, at(2), b"hello"),
            packet(Return, 3, Fate::QueueDrop, b"dropped"),
            packet(Forward, 40, at(41), b"answer"),
        ];
        let last = [
            packet(Return, 20, at(21), b"hello"),
            packet(Forward, 22, at(23), b"answer"),
        ];
        let found = whole_path(&first, &last);
        assert_eq!(
            fates(&found),
            [(1, at(21)), (3, Fate::QueueDrop), (22, at(41))]
        );
        let ways: Vec<Direction> = found.iter().map(|it| it.direction).collect();
        assert_eq!(ways, [Return, Return, Forward]);
    }

    #[test]
    fn what_did_not_come_out_is_lost_or_under_way() {
        let first = [1, 2, 3].map(|sent| packet(Direction::Return, sent, at(sent), b"equal"));
        let second = packet(Direction::Return, 4, at(4), b"other");
        let sent = [&first[..], &[second]].concat();
        let last = [
            packet(Direction::Return, 10, at(11), b"equal"),
            packet(Direction::Return, 12, Fate::Loss, b"equal"),
        ];
        let found = fates(&whole_path(&sent, &last));
        assert_eq!(found, [(1, at(11)), (2, Fate::Loss)], "two were under way");
        let last = [packet(Direction::Return, 10, at(11), b"other")];
        let found = fates(&whole_path(&sent, &last));
        let none_arrived = [1, 2, 3].map(|sent| (sent, Fate::Loss));
        assert_eq!(found, [&none_arrived[..], &[(4, at(11))]].concat());
    }

    #[test]
    fn nothing_comes_out_before_it_went_in() {
        let first = [packet(Direction::Return, 5, at(9), b"again")];
        let last = [8, 9].map(|sent| packet(Direction::Return, sent, at(sent + 1), b"again"));
        assert_eq!(fates(&whole_path(&first, &last)), [(5, at(10))]);
    }
}
