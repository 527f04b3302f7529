//! The packets of the whole path, where middleboxes encapsulate them on part of it.
//!
//! What links carry there is not what was sent. But at the first hop and at the last one packets
//! are as the ends made them: a departure at one is joined with the arrival at the other by
//! content, and of packets with equal content the first with the first. What comes out more often
//! than it went in was duplicated between: the last of these arrives again. What comes out with
//! Congestion Experienced that it was sent without was marked between.

use std::collections::{HashMap, VecDeque};

use bentpipe_link::{ArrivalOrder, Counters, Direction, Fate, FurtherArrival};
use bentpipe_units::{Span, Time};

use super::{HopPackets, LinkObservation, Packet, PacketLog, TestbedObservation, Transport};

impl HopPackets {
    /// Packets as those of a hop, of `flows` flows. Time zero of the trial is `epoch_unix_ns`.
    #[must_use]
    pub fn of(packets: Vec<Packet>, flows: usize, epoch_unix_ns: u64) -> Self {
        let [forward, back] = count_fates(&packets);
        let mut log = PacketLog::new(flows, epoch_unix_ns);
        for packet in packets {
            log.add(packet);
        }
        Self { log, forward, back }
    }
}

/// The fates of packets that stand in the order of sending: forward, and return.
#[must_use]
pub fn count_fates(packets: &[Packet]) -> [Counters; 2] {
    Direction::BOTH.map(|way| {
        let mut counters = Counters::default();
        let mut arrivals = Vec::new();
        let own = packets.iter().filter(|it| it.direction == way);
        for (number, packet) in (0..).zip(own) {
            counters.count(packet.fate, packet.ip.bytes);
            counters.marked += u64::from(packet.marked);
            counters.duplicated += packet.copies.len() as u64;
            if let Fate::Delivered { at } = packet.fate {
                arrivals.push((at, number, packet));
            }
        }
        if !arrivals.is_sorted_by_key(|(at, ..)| *at) {
            // Of those that arrive together, the order is that of sending.
            arrivals.sort_by_key(|(at, ..)| *at);
            let mut order = ArrivalOrder::default();
            for (_, number, packet) in arrivals {
                let flow = flow_number(packet.flow, &packet.ip.transport);
                counters.reorder(order.arrive(flow, number));
            }
        }
        counters
    })
}

/// The number that tells the flow of a packet from others: that of the trial, and of TCP the ports,
/// since one kernel may have many connections.
#[must_use]
pub fn flow_number(flow: usize, transport: &Transport) -> u64 {
    let ports = match transport {
        Transport::Tcp(segment) => segment.first_chunk::<4>(),
        _ => None,
    };
    let ports = ports.map_or(0, |ports| u32::from_be_bytes(*ports));
    (flow as u64) << 32 | u64::from(ports)
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
            hash: Some(self.hash()),
        });
        self.hops = vec![whole];
        self
    }
}

/// The packets that the ends sent, in the order of sending. Left out are those that were under way
/// when the trial ended: after the last that came out, and not for longer than any other took.
fn whole_path(first: &[Packet], last: &[Packet]) -> Vec<Packet> {
    let end = first.iter().chain(last).map(|packet| packet.sent).max();
    let end = end.unwrap_or(Time::ZERO);
    let mut packets = across(Direction::Return, first, last, end);
    packets.extend(across(Direction::Forward, last, first, end));
    packets.sort_by_key(|packet| packet.sent);
    packets
}

/// The packets that go `way`, which were sent on `near` and arrive on `far`. The last packet of the
/// trial was sent at `end`.
fn across(way: Direction, near: &[Packet], far: &[Packet], end: Time) -> Vec<Packet> {
    let mut came_out: HashMap<(usize, &Transport), VecDeque<&Packet>> = HashMap::new();
    for packet in in_order(way, far) {
        let key = (packet.flow, &packet.ip.transport);
        came_out.entry(key).or_default().push_back(packet);
    }
    let mut packets: Vec<Packet> = Vec::new();
    // Of those with equal content, the last that came out.
    let mut last_equal: HashMap<(usize, &Transport), usize> = HashMap::new();
    // Of packets that did not come out: their number, and when they had crossed the first hop.
    let mut vanished: Vec<(usize, Time)> = Vec::new();
    let (mut last_out, mut longest) = (None, Span::ZERO);
    for (number, packet) in in_order(way, near).into_iter().enumerate() {
        let mut whole = Packet {
            copies: Vec::new(), // where the first hop ends
            ..packet.clone()
        };
        if let Fate::Delivered { at } = packet.fate {
            let key = (packet.flow, &packet.ip.transport);
            match came_out.get_mut(&key).and_then(|equal| next(equal, at)) {
                None => {
                    vanished.push((number, at));
                    whole.fate = Fate::Loss;
                }
                Some(found) => {
                    last_equal.insert(key, number);
                    whole.fate = found.fate;
                    whole.marked = packet.is_marked(found.ip.ecn, found.marked);
                    whole.copies = copies(packet, found);
                    if matches!(whole.fate, Fate::Delivered { .. }) {
                        (last_out, longest) = (Some(number), longest.max(found.sent - at));
                    }
                }
            }
        }
        packets.push(whole);
    }
    for (key, number) in last_equal {
        for again in came_out.remove(&key).unwrap_or_default() {
            for arrival in arrivals(&packets[number], again) {
                packets[number].arrive(arrival);
            }
        }
    }
    for (number, at) in vanished.into_iter().rev() {
        if last_out.is_none_or(|last| number > last) && at + longest > end {
            packets.remove(number);
        }
    }
    packets
}

/// All arrivals of a packet that was sent as `sent`, where `found` came out.
fn arrivals(sent: &Packet, found: &Packet) -> Vec<FurtherArrival> {
    let marked = sent.is_marked(found.ip.ecn, found.marked);
    let first = match found.fate {
        Fate::Delivered { at } => Some(FurtherArrival { at, marked }),
        Fate::QueueDrop | Fate::Loss => None,
    };
    first.into_iter().chain(copies(sent, found)).collect()
}

/// The further ones of these.
fn copies(sent: &Packet, found: &Packet) -> Vec<FurtherArrival> {
    let each = found.copies.iter();
    each.map(|it| FurtherArrival {
        marked: sent.is_marked(found.ip.ecn, it.marked),
        ..*it
    })
    .collect()
}

/// The first of packets with equal content that came out when this one had gone in.
fn next<'a>(equal: &mut VecDeque<&'a Packet>, at: Time) -> Option<&'a Packet> {
    while let Some(packet) = equal.pop_front() {
        if packet.sent >= at {
            return Some(packet);
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
            path: 0,
            flow: 0,
            direction: way,
            sent: Time::from_nanos(sent),
            ip: IpPacket::udp(IpVersion::V4, 0, Bytes::from_static(content)),
            fate,
            marked: false,
            copies: Vec::new(),
        }
    }

    fn at(nanos: u64) -> Fate {
        Fate::Delivered {
            at: Time::from_nanos(nanos),
        }
    }

    #[test]
    fn reordered_packets_are_counted_in_the_order_of_arrival() {
        // The first arrives behind the second and the third, the last together with the fourth.
        let arrivals = [(1, 30), (2, 20), (3, 25), (4, 40), (6, 40)];
        let arrive = |(sent, arrives)| packet(Direction::Forward, sent, at(arrives), b"any");
        let mut packets: Vec<Packet> = arrivals.into_iter().map(arrive).collect();
        packets.insert(4, packet(Direction::Forward, 5, Fate::Loss, b"lost"));
        packets.push(packet(Direction::Return, 1, at(50), b"any"));
        let [forward, back] = count_fates(&packets);
        assert_eq!((forward.reordered, forward.reorder_extent), (1, 2));
        assert_eq!((forward.delivered, forward.losses), (5, 1));
        assert_eq!((back.delivered, back.reordered), (1, 0));
        packets[1].flow = 1;
        assert_eq!(count_fates(&packets)[0].reorder_extent, 1);
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

    /// A packet that went into what is between once, and one that went in twice, which counts as
    /// having gone in once: of either, two came out, and of the second one again two arrived.
    #[test]
    fn what_came_out_twice_was_duplicated() {
        let copy = |at| FurtherArrival {
            at: Time::from_nanos(at),
            marked: false,
        };
        let mut first = [
            packet(Direction::Return, 1, at(2), b"once"),
            packet(Direction::Return, 3, at(4), b"twice"),
            packet(Direction::Return, 5, Fate::Loss, b"lost"),
        ];
        first[1].copies = vec![copy(6)];
        let mut last = [
            packet(Direction::Return, 10, Fate::Loss, b"once"),
            packet(Direction::Return, 11, at(21), b"once"),
            packet(Direction::Return, 12, at(24), b"twice"),
            packet(Direction::Return, 13, at(23), b"twice"),
        ];
        last[2].copies = vec![copy(25)];
        let found = whole_path(&first, &last);
        assert_eq!(fates(&found), [(1, at(21)), (3, at(23)), (5, Fate::Loss)]);
        let copies: Vec<_> = found.iter().map(|it| it.copies.clone()).collect();
        assert_eq!(copies, [vec![], vec![copy(24), copy(25)], vec![]]);
        let [_, back] = count_fates(&found);
        assert_eq!((back.delivered, back.losses, back.duplicated), (2, 1, 2));
    }

    /// One that was marked between, one by the last link, one that was sent with the mark, and one
    /// whose mark is not passed on; of the first, a copy and what comes out again are marked, too.
    #[test]
    fn what_comes_out_with_a_mark_was_marked_between() {
        let [ect, ce] = [2, 3];
        let with = |ecn, marked, packet: Packet| Packet {
            ip: IpPacket { ecn, ..packet.ip },
            marked,
            ..packet
        };
        let sent = |number, content| packet(Direction::Return, number, at(number + 1), content);
        let first = [
            with(ect, false, sent(1, b"between")),
            with(ect, false, sent(3, b"last link")),
            with(ce, false, sent(5, b"sent so")),
            with(ect, true, sent(7, b"not passed on")),
        ];
        let mut last = [
            with(ce, false, sent(11, b"between")),
            with(ect, true, sent(13, b"last link")),
            with(ce, false, sent(15, b"sent so")),
            with(ect, false, sent(17, b"not passed on")),
            with(ce, false, sent(19, b"between")),
        ];
        last[0].copies = vec![FurtherArrival {
            at: Time::from_nanos(14),
            marked: false,
        }];
        let found = whole_path(&first, &last);
        let marks: Vec<bool> = found.iter().map(|it| it.marked).collect();
        assert_eq!(marks, [true, true, false, false]);
        let copies: Vec<bool> = found[0].copies.iter().map(|it| it.marked).collect();
        assert_eq!(copies, [true, true], "a copy, and one that came out again");
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
        let two_lost = [(2, Fate::Loss), (3, Fate::Loss)];
        assert_eq!(
            found,
            [&[(1, at(11))][..], &two_lost].concat(),
            "the last was under way"
        );
        let last = [packet(Direction::Return, 10, at(11), b"other")];
        let found = fates(&whole_path(&sent, &last));
        let none_arrived = [1, 2, 3].map(|sent| (sent, Fate::Loss));
        assert_eq!(found, [&none_arrived[..], &[(4, at(11))]].concat());
    }

    #[test]
    fn where_nothing_comes_out_all_are_lost() {
        let first = [1, 2].map(|sent| packet(Direction::Return, sent, at(sent + 1), b"lost"));
        let answer = packet(Direction::Forward, 9, at(10), b"answer");
        let found = fates(&whole_path(&first, &[answer]));
        let lost = |sent| (sent, Fate::Loss);
        assert_eq!(found, [lost(1), lost(2)], "the answer was under way");
    }

    #[test]
    fn nothing_comes_out_before_it_went_in() {
        let first = [packet(Direction::Return, 5, at(9), b"again")];
        let last = [8, 9].map(|sent| packet(Direction::Return, sent, at(sent + 1), b"again"));
        assert_eq!(fates(&whole_path(&first, &last)), [(5, at(10))]);
    }
}
