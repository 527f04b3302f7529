//! Two sides of a path, joined to its packets and their fates.
//!
//! A packet is known by what it carries: on its way a NAT may write another address and port into its headers. Of packets that
//! are alike, as TCP's can be, the first is joined with the first. One that is not seen at the other end was lost; whether a
//! queue dropped it, nobody can tell. What was sent after the last packet that was seen to arrive was still under way.
//!
//! No two datagrams of QUIC are alike: one that was captured twice, on two devices that it passed, counts once. Segments of TCP
//! may be, so that of these it is only said.

use std::collections::{HashMap, VecDeque};

use bentpipe_link::{Direction, Fate};
use bentpipe_trial::{IpPacket, Packet, Transport};
use bentpipe_units::{Span, Time};

use super::segments::{self, Alone};

/// Two devices see a segment within this time; nothing sends it again so soon.
const AT_ONCE_NS: i64 = 1_000_000;

/// The comparison of the captures at both ends of a path.
#[derive(Default)]
pub struct Joined {
    /// Packets that were seen to arrive, and not to be sent: the sender's capture is not complete.
    unsent: usize,
    /// Packets in which are several, which could not be told apart.
    merged: usize,
    /// Segments that were seen twice at one end.
    twice: usize,
    /// Packets that came before they were sent, by what is known of the clocks.
    early: usize,
    /// How long the fastest packet took towards the client, and towards the server, by these clocks.
    least_ns: [Option<i64>; 2],
}

/// A packet where it was seen.
pub struct Seen {
    pub at: Time,
    pub ip: IpPacket,
}

impl Joined {
    pub fn is_doubtful(&self) -> bool {
        self.unsent + self.merged + self.twice + self.early > 0
    }

    /// By how much the fastest packet towards the client took longer than the fastest towards the server.
    pub fn difference_ms(&self) -> Option<f64> {
        let [forward, back] = self.least_ns;
        let difference = Span::from_nanos(forward?.abs_diff(back?)).as_secs_f64() * 1e3;
        Some(if forward < back {
            -difference
        } else {
            difference
        })
    }

    /// What is to be said of captures that are not as they should be.
    pub fn doubt(&self, detail: &str) -> String {
        let said = [
            (self.unsent, "packets were not seen to be sent"),
            (
                self.merged,
                "packets were captured before they were cut up, and could not be (turn segmentation offload off)",
            ),
            (
                self.twice,
                "packets were captured twice (name the device of the host in the file of links)",
            ),
            (
                self.early,
                "packets arrived before they were sent, by the clocks",
            ),
        ];
        let said = said.iter().filter(|it| it.0 > 0);
        let mut words: Vec<String> = said
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !detail.is_empty() {
            words.insert(0, detail.to_owned());
        }
        words.join("; ")
    }
}

/// What a packet is known by: of UDP its payload, of TCP its segment without what a NAT writes anew, the ports and the checksum.
fn identity(transport: &Transport) -> Transport {
    match transport {
        Transport::Tcp(segment) => {
            let mut known = segment.to_vec();
            for part in [0..4, 16..18] {
                if let Some(bytes) = known.get_mut(part) {
                    bytes.fill(0);
                }
            }
            Transport::Tcp(known.into())
        }
        other => other.clone(),
    }
}

fn is_datagram(packet: &IpPacket) -> bool {
    matches!(packet.transport, Transport::Udp(_))
}

/// Whether a segment of TCP carries data: its header says how long that itself is.
fn has_data(packet: &IpPacket) -> bool {
    let Transport::Tcp(segment) = &packet.transport else {
        return false;
    };
    let header = segment.get(12).map(|byte| usize::from(byte >> 4) * 4);
    header.is_some_and(|header| segment.len() > header)
}

impl Joined {
    /// The packets of a direction, by what was seen where they were sent and where they arrived, each datagram by itself.
    pub fn both(&mut self, direction: Direction, sent: Vec<Seen>, got: Vec<Seen>) -> Vec<Packet> {
        let mut alone = Alone::default();
        for seen in sent.iter().chain(&got) {
            alone.add(&seen.ip);
        }
        let [sent, got] = [sent, got].map(|all| self.apart(all, &alone));
        self.join(direction, sent, &got)
    }

    fn apart(&mut self, all: Vec<Seen>, alone: &Alone) -> Vec<Seen> {
        let each = all.into_iter().flat_map(|seen| {
            let parts = segments::apart(&seen.ip, alone);
            self.merged += usize::from(parts.is_none());
            let parts = parts.unwrap_or_else(|| vec![seen.ip]).into_iter();
            parts.map(move |ip| Seen { at: seen.at, ip })
        });
        each.collect()
    }

    fn join(&mut self, direction: Direction, sent: Vec<Seen>, got: &[Seen]) -> Vec<Packet> {
        let mut open: HashMap<Transport, VecDeque<usize>> = HashMap::new();
        let mut packets = Vec::with_capacity(sent.len());
        for seen in sent {
            let alike = open.entry(identity(&seen.ip.transport)).or_default();
            if let Some(&last) = alike.back() {
                if is_datagram(&seen.ip) {
                    continue;
                }
                let last: &Packet = &packets[last];
                self.twice += usize::from(
                    has_data(&seen.ip) && signed(seen.at) - signed(last.sent) < AT_ONCE_NS,
                );
            }
            alike.push_back(packets.len());
            packets.push(Packet {
                flow: 0,
                direction,
                sent: seen.at,
                ip: seen.ip,
                fate: Fate::Loss,
            });
        }
        for seen in got {
            let Some(alike) = open.get_mut(&identity(&seen.ip.transport)) else {
                self.unsent += 1;
                continue;
            };
            let Some(number) = alike.pop_front() else {
                self.twice += usize::from(!is_datagram(&seen.ip));
                continue;
            };
            let packet = &mut packets[number];
            self.early += usize::from(seen.at < packet.sent);
            let took = signed(seen.at) - signed(packet.sent);
            let least = &mut self.least_ns[usize::from(direction == Direction::Return)];
            *least = Some(least.map_or(took, |known| known.min(took)));
            packet.fate = Fate::Delivered {
                at: seen.at.max(packet.sent),
            };
        }
        let delivered = |packet: &Packet| matches!(packet.fate, Fate::Delivered { .. });
        let last = packets.iter().rposition(delivered);
        packets.truncate(last.map_or(packets.len(), |last| last + 1));
        packets
    }
}

fn signed(time: Time) -> i64 {
    time.as_nanos().cast_signed()
}

#[cfg(test)]
mod tests {
    use bentpipe_wire::IpVersion;
    use bytes::Bytes;

    use super::*;

    fn seen(ms: u64, content: &'static [u8]) -> Seen {
        Seen {
            at: Time::from_nanos(ms * 1_000_000),
            ip: IpPacket::udp(IpVersion::V4, 0, Bytes::from_static(content)),
        }
    }

    fn at(ms: u64) -> Fate {
        let at = Time::from_nanos(ms * 1_000_000);
        Fate::Delivered { at }
    }

    #[test]
    fn a_datagram_that_two_devices_saw_counts_once() {
        let mut joined = Joined::default();
        let sent = vec![seen(0, b"a"), seen(0, b"a"), seen(1, b"b"), seen(1, b"b")];
        let got = [seen(300, b"a"), seen(300, b"a"), seen(301, b"b")];
        let packets = joined.join(Direction::Forward, sent, &got);
        assert_eq!(packets.len(), 2);
        let arrived = packets.iter().map(|it| it.fate);
        assert!(arrived.eq([at(300), at(301)]));
        assert!(!joined.is_doubtful());
    }

    #[test]
    fn of_segments_that_two_devices_saw_it_is_said() {
        let segment = |ms: u64, data: &[u8]| {
            let mut bytes = vec![0; 20];
            bytes[12] = 5 << 4; // words of its header
            bytes.extend_from_slice(data);
            let mut seen = seen(ms, b"");
            seen.ip.transport = Transport::Tcp(bytes.into());
            seen
        };
        let mut joined = Joined::default();
        // Acknowledgements may be alike, and what is sent again later.
        let sent = vec![
            segment(0, b""),
            segment(0, b""),
            segment(5, b"a"),
            segment(250, b"a"),
        ];
        joined.join(Direction::Forward, sent, &[]);
        assert!(!joined.is_doubtful());
        let sent = vec![segment(0, b"a"), segment(0, b"a")];
        joined.join(Direction::Forward, sent, &[segment(300, b"a")]);
        assert!(
            joined
                .doubt("")
                .starts_with("1 packets were captured twice")
        );
        // At the other end.
        joined.join(
            Direction::Forward,
            vec![segment(0, b"b")],
            &[segment(300, b"b"), segment(300, b"b")],
        );
        assert!(
            joined
                .doubt("")
                .starts_with("2 packets were captured twice")
        );
    }

    #[test]
    fn packets_are_joined_by_what_they_carry() {
        let mut joined = Joined::default();
        let sent = vec![seen(0, b"a"), seen(1, b"b"), seen(2, b"d"), seen(3, b"c")];
        let got = [seen(300, b"a"), seen(302, b"d"), seen(310, b"never sent")];
        let packets = joined.join(Direction::Forward, sent, &got);
        let fates: Vec<Fate> = packets.iter().map(|it| it.fate).collect();
        assert_eq!(fates, [at(300), Fate::Loss, at(302)], "c was under way");
        assert_eq!(joined.unsent, 1);
        assert_eq!(joined.doubt(""), "1 packets were not seen to be sent");
    }

    #[test]
    fn clocks_that_are_wrong_make_ways_unequal() {
        let mut joined = Joined::default();
        assert_eq!(joined.difference_ms(), None);
        // Both take 300 ms, and the server's clock is taken to be 10 ms less ahead than it is.
        joined.join(
            Direction::Return,
            vec![seen(0, b"a"), seen(9, b"b")],
            &[seen(310, b"a"), seen(330, b"b")],
        );
        joined.join(
            Direction::Forward,
            vec![seen(320, b"c")],
            &[seen(610, b"c")],
        );
        assert_eq!(joined.difference_ms(), Some(-20.0));
        // So wrong that a packet comes before it was sent.
        joined.join(
            Direction::Forward,
            vec![seen(700, b"d")],
            &[seen(690, b"d")],
        );
        assert_eq!(joined.difference_ms(), Some(-320.0));
    }

    #[test]
    fn what_a_nat_writes_anew_does_not_matter() {
        let segment = |ports: u8, checksum: u8| {
            let mut bytes = vec![0; 20];
            (bytes[0], bytes[16], bytes[7]) = (ports, checksum, 9);
            Transport::Tcp(bytes.into())
        };
        assert_eq!(identity(&segment(1, 2)), identity(&segment(3, 4)));
    }
}
