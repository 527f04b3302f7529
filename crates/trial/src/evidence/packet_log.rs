//! Every packet of a hop, in the order in which the coordinator saw them: the hash that shows
//! whether two trials were the same, the bytes that arrived over time, and the packets themselves,
//! for measurements and traces.

use bentpipe_link::{Direction, Fate};
use bentpipe_units::Time;
use bentpipe_wire::IpVersion;

use super::packet_hash::PacketHash;
use super::{Packet, Transport};

/// Points of the record's curve of received bytes.
const CURVE_POINTS: u64 = 200;
/// A datagram from this size on is not just acknowledgements, tokens or new connection IDs.
const FULL_SIZED: u64 = 1000;

/// A packet that reached the other side, or would have if the trial had gone on.
#[derive(Debug, Clone, Copy)]
struct Received {
    at: Time,
    bytes: u64,
    short_header: bool,
}

/// The log of a hop.
#[derive(Debug)]
pub struct PacketLog {
    /// Time zero of the trial, since the Unix epoch.
    epoch_unix_ns: u64,
    hash: PacketHash,
    /// The packets that each flow's server and client received, in the order of time, each packet
    /// once.
    received: Vec<[Vec<Received>; 2]>,
    packets: Vec<Packet>,
}

impl PacketLog {
    /// An empty log of `flows` flows, of a trial whose time zero is `epoch_unix_ns`.
    #[must_use]
    pub fn new(flows: usize, epoch_unix_ns: u64) -> Self {
        Self {
            epoch_unix_ns,
            hash: PacketHash::new(),
            received: vec![<[Vec<Received>; 2]>::default(); flows],
            packets: Vec::new(),
        }
    }

    /// Takes note of a packet.
    pub fn add(&mut self, packet: Packet) {
        let (fate, at) = match packet.fate {
            Fate::Delivered { at } => (0_u8, at),
            Fate::QueueDrop => (1, Time::NEVER),
            Fate::Loss => (2, Time::NEVER),
        };
        let mut head = [0_u8; 23];
        let flow = u8::try_from(packet.flow).expect("a job has fewer flows");
        head[0] = u8::from(packet.direction == Direction::Forward) | flow << 1;
        head[1..9].copy_from_slice(&packet.sent.as_nanos().to_le_bytes());
        head[9] = fate;
        head[10..18].copy_from_slice(&at.as_nanos().to_le_bytes());
        let transport = &packet.ip.transport;
        head[18] = packet.ip.ecn | version_bit(packet.ip.version) | kind_bits(transport);
        head[18] |= u8::from(packet.marked) << 5;
        let content = transport.content();
        let length = u32::try_from(content.len()).expect("a packet's length fits 16 bits");
        head[19..].copy_from_slice(&length.to_le_bytes());
        self.hash.update(head);
        if let Transport::Other { protocol, .. } = transport {
            self.hash.update([*protocol]);
        }
        self.hash.update(content);
        if let Ok(path @ 1..) = u8::try_from(packet.path) {
            // No head begins so, nor does a copy.
            self.hash.update([0xc0 | path]);
        }
        for copy in &packet.copies {
            // No head begins so.
            self.hash.update([0x80 | u8::from(copy.marked)]);
            self.hash.update(copy.at.as_nanos().to_le_bytes());
        }
        if fate == 0 {
            let way = usize::from(packet.direction == Direction::Forward);
            let received = &mut self.received[packet.flow][way];
            // Links may reorder packets; else it is the last.
            let later = received.iter().rev().take_while(|it| it.at > at);
            let place = received.len() - later.count();
            let arrival = Received {
                at,
                bytes: transport.payload_bytes(),
                short_header: transport.has_short_header(),
            };
            received.insert(place, arrival);
        }
        self.packets.push(packet);
    }

    /// Time zero of the trial, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn epoch_unix_ns(&self) -> u64 {
        self.epoch_unix_ns
    }

    /// The packets.
    #[must_use]
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }

    /// The curve of the first flow's bytes that arrived by way of `direction` from `start` until
    /// before `end`: its step in nanoseconds, and the sum after each. What was still under way when
    /// the flow ended does not count.
    #[must_use]
    pub fn received(&self, direction: Direction, start: Time, end: Time) -> (u64, Vec<u64>) {
        let arrived = self.between(0, direction, start, end);
        let Some(last) = arrived.last() else {
            return (0, Vec::new());
        };
        let step = (last.at - start).as_nanos().div_ceil(CURVE_POINTS).max(1);
        (step, curve(arrived, start, step, CURVE_POINTS))
    }

    /// The same of any flow, by steps that are given, until all of it has arrived.
    #[must_use]
    pub fn received_by(
        &self,
        (flow, direction): (usize, Direction),
        step: u64,
        start: Time,
        end: Time,
    ) -> Vec<u64> {
        let arrived = self.between(flow, direction, start, end);
        let points = arrived.last().filter(|_| step > 0);
        let points = points.map_or(0, |last| (last.at - start).as_nanos().div_ceil(step).max(1));
        curve(arrived, start, step, points)
    }

    fn between(&self, flow: usize, way: Direction, start: Time, end: Time) -> &[Received] {
        let all = self.arrived(flow, way);
        let by = |time: Time| all.partition_point(|arrival| arrival.at < time);
        &all[by(start).min(by(end))..by(end)]
    }

    fn arrived(&self, flow: usize, direction: Direction) -> &[Received] {
        &self.received[flow][usize::from(direction == Direction::Forward)]
    }

    /// The time at which the first packet of a reply reached the client: the first full-sized one
    /// with a short header (RFC 9000 section 17.3) that came at `earliest` or later.
    #[must_use]
    pub fn first_of_reply(&self, earliest: Time) -> Option<Time> {
        let is_reply =
            |it: &&Received| it.at >= earliest && it.short_header && it.bytes >= FULL_SIZED;
        self.arrived(0, Direction::Forward)
            .iter()
            .find(is_reply)
            .map(|arrival| arrival.at)
    }

    /// The hash over flow, direction, times, fate, ECN, IP version, transport, content and further
    /// arrivals of every packet.
    #[must_use]
    pub fn hash(&self) -> String {
        self.hash.in_words()
    }
}

/// In the hash, IPv4 is not to be seen: hashes are older than IPv6 in trials.
fn version_bit(version: IpVersion) -> u8 {
    match version {
        IpVersion::V4 => 0,
        IpVersion::V6 => 1 << 2,
    }
}

/// In the hash, nor is UDP.
fn kind_bits(transport: &Transport) -> u8 {
    match transport {
        Transport::Udp(_) => 0,
        Transport::Tcp(_) => 1 << 3,
        Transport::Other { .. } => 2 << 3,
    }
}

/// The sums of bytes after each of `points` steps.
fn curve(arrived: &[Received], start: Time, step: u64, points: u64) -> Vec<u64> {
    let mut sum = 0;
    let mut packets = arrived.iter().peekable();
    let sums = (1..=points).map(|point| {
        let by = |arrival: &&Received| (arrival.at - start).as_nanos() <= point * step;
        while let Some(arrival) = packets.next_if(by) {
            sum += arrival.bytes;
        }
        sum
    });
    sums.collect()
}

#[cfg(test)]
mod tests {
    use bentpipe_link::FurtherArrival;
    use bytes::Bytes;

    use super::*;
    use crate::evidence::IpPacket;

    fn packet(sent: u64, at: Option<u64>, payload: &'static [u8]) -> Packet {
        let fate = at.map_or(Fate::Loss, |at| Fate::Delivered {
            at: Time::from_nanos(at),
        });
        let (direction, sent) = (Direction::Forward, Time::from_nanos(sent));
        Packet {
            flow: 0,
            direction,
            path: 0,
            sent,
            ip: IpPacket::udp(IpVersion::V4, 0, Bytes::from_static(payload)),
            fate,
            marked: false,
            copies: Vec::new(),
        }
    }

    fn copy(at: u64, marked: bool) -> FurtherArrival {
        let at = Time::from_nanos(at);
        FurtherArrival { at, marked }
    }

    #[test]
    fn a_copy_of_a_packet_brings_nothing_new() {
        let mut log = PacketLog::new(1, 0);
        let copies = vec![copy(5_000, false)];
        log.add(Packet {
            copies,
            ..packet(0, Some(1_000), b"12345")
        });
        let (_, curve) = log.received(Direction::Forward, Time::ZERO, Time::NEVER);
        assert_eq!(curve.last(), Some(&5));
    }

    #[test]
    fn the_hash_sees_every_field() {
        let reference = packet(1, Some(2), b"abc");
        let content = Bytes::from_static(b"abc");
        let with = |ip: IpPacket| Packet {
            ip,
            ..reference.clone()
        };
        let carrying = |transport: Transport| {
            with(IpPacket {
                transport,
                ..reference.ip.clone()
            })
        };
        let other = |protocol: u8| Transport::Other {
            protocol,
            bytes: content.clone(),
        };
        let with_copies = |copies: &[(u64, bool)]| Packet {
            copies: copies.iter().map(|it| copy(it.0, it.1)).collect(),
            ..reference.clone()
        };
        let variants = [
            packet(2, Some(2), b"abc"),
            packet(1, Some(3), b"abc"),
            packet(1, None, b"abc"),
            packet(1, Some(2), b"abd"),
            packet(1, Some(2), b"abcd"),
            with(IpPacket::udp(IpVersion::V4, 1, content.clone())),
            with(IpPacket::udp(IpVersion::V6, 0, content.clone())),
            carrying(Transport::Tcp(content.clone())),
            carrying(other(1)),
            carrying(other(2)),
            Packet {
                flow: 1,
                ..reference.clone()
            },
            Packet {
                path: 1,
                ..reference.clone()
            },
            Packet {
                marked: true,
                ..reference.clone()
            },
            Packet {
                direction: Direction::Return,
                ..reference.clone()
            },
            with_copies(&[(3, false)]),
            with_copies(&[(4, false)]),
            with_copies(&[(3, true)]),
            with_copies(&[(3, false), (3, false)]),
        ];
        let hash = |packet: &Packet| {
            let mut log = PacketLog::new(2, 0);
            log.add(packet.clone());
            log.hash()
        };
        assert_eq!(hash(&reference), hash(&reference.clone()));
        for variant in variants {
            assert_ne!(hash(&reference), hash(&variant), "{variant:?}");
        }
    }

    #[test]
    fn the_curve_ends_with_all_bytes_and_counts_from_the_start() {
        let mut log = PacketLog::new(1, 0);
        log.add(packet(0, Some(1_000), b"12345"));
        log.add(packet(0, None, b"lost"));
        log.add(packet(0, Some(21_000), b"678"));
        let (step, curve) = log.received(Direction::Forward, Time::from_nanos(1_000), Time::NEVER);
        assert_eq!(step, 100);
        assert_eq!(curve.len(), 200);
        assert_eq!((curve[0], curve[198], curve[199]), (5, 5, 8));
        let (step, curve) = log.received(
            Direction::Forward,
            Time::from_nanos(1_000),
            Time::from_nanos(21_000),
        );
        assert_eq!(
            (step, curve[199]),
            (1, 5),
            "what arrives at the end or later is not there yet"
        );
    }

    #[test]
    fn a_reply_begins_with_a_full_sized_packet_behind_the_handshake() {
        const LONG: [u8; 1200] = [0xc0; 1200];
        const SHORT: [u8; 1200] = [0x40; 1200];
        let mut log = PacketLog::new(1, 0);
        // Half a round trip early: not in answer to the request.
        log.add(packet(0, Some(10), &SHORT));
        log.add(packet(0, Some(20), &LONG));
        log.add(packet(0, Some(21), &SHORT[..999]));
        log.add(packet(0, None, &SHORT));
        assert_eq!(log.first_of_reply(Time::from_nanos(20)), None);
        log.add(packet(0, Some(22), &SHORT));
        log.add(packet(0, Some(23), &SHORT));
        assert_eq!(
            log.first_of_reply(Time::from_nanos(20)),
            Some(Time::from_nanos(22))
        );
    }
}
