//! From captures at both ends of a path to its packets and their fates.
//!
//! A packet is known by what it carries: on its way a NAT may write another address and port into its headers. Of packets that
//! are alike, as TCP's can be, the first is joined with the first. One that is not seen at the other end was lost; whether a
//! queue dropped it, nobody can tell. What was sent after the last packet that was seen to arrive was still under way.

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::path::Path;

use bentpipe_link::{Counters, Direction, Fate};
use bentpipe_trial::{
    Fidelity, FlowLifetime, HopPackets, IpPacket, Packet, PacketLog, TestbedObservation, Transport,
};
use bentpipe_units::{Span, Time};
use bentpipe_wire::IpLayer;
use bentpipe_wire::capture::{CapturedPacket, Input, Item, Piece};

use super::ended::time;
use super::observed::Observed;
use super::segments::{self, Alone};

/// A path as both its ends saw it.
pub struct Joined {
    pub observation: TestbedObservation,
    /// Packets that were seen to arrive, and not to be sent: the sender's capture is not complete.
    unsent: usize,
    /// Packets in which are several, which could not be told apart.
    merged: usize,
    /// Packets that came before they were sent, by what is known of the clocks.
    early: usize,
    /// How long the fastest packet took towards the client, and towards the server, by these clocks.
    least_ns: [Option<i64>; 2],
}

/// A packet where it was seen.
struct Seen {
    at: Time,
    ip: IpPacket,
}

impl Joined {
    pub fn is_doubtful(&self) -> bool {
        self.unsent + self.merged + self.early > 0
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

/// The path of a trial, by its captures; without any, nothing was seen of it.
pub fn observation(observed: &Observed) -> Result<Joined, Box<dyn Error>> {
    let epoch = u64::try_from(observed.begun_unix_ns)?;
    let mut path = HopPackets {
        log: PacketLog::new(1, epoch),
        forward: Counters::default(),
        back: Counters::default(),
    };
    let mut joined = Joined {
        unsent: 0,
        merged: 0,
        early: 0,
        least_ns: [None; 2],
        observation: TestbedObservation {
            flows: Vec::new(),
            hops: Vec::new(),
            tunnel: None,
            end: time(observed, observed.ended_unix_ns),
            epochs: 0,
            fidelity: Fidelity::default(),
            unfaithful: Vec::new(),
        },
    };
    let mut packets = Vec::new();
    if let Some([client, server]) = &observed.captures {
        let [own, theirs] = observed.stamps_ns;
        let near = seen(client, observed.port, |at| time(observed, at + own))?;
        let clock = observed.server_clock;
        let far = seen(server, observed.port, |at| {
            time(observed, clock.corrected(at + theirs))
        })?;
        let [near_sent, near_got] = near;
        let [far_got, far_sent] = far;
        packets.extend(joined.both(Direction::Return, near_sent, far_got));
        packets.extend(joined.both(Direction::Forward, far_sent, near_got));
    }
    packets.sort_by_key(|packet| packet.sent);
    for packet in packets {
        let counters = match packet.direction {
            Direction::Forward => &mut path.forward,
            Direction::Return => &mut path.back,
        };
        counters.count(packet.fate, packet.ip.bytes);
        path.log.add(packet);
    }
    let mut sent = path.log.packets().iter();
    let first = sent.find(|it| it.direction == Direction::Return);
    let observation = &mut joined.observation;
    observation.flows.push(FlowLifetime {
        first_sent: Some(first.map_or(Time::ZERO, |packet| packet.sent)),
        end: observation.end,
    });
    observation.hops.push(path);
    Ok(joined)
}

/// The packets of a capture, those towards the server and those from it.
fn seen(
    capture: &Path,
    port: u16,
    stamp: impl Fn(i64) -> Time,
) -> Result<[Vec<Seen>; 2], Box<dyn Error>> {
    let mut both = [Vec::new(), Vec::new()];
    let mut take = |item: Item<'_>| {
        if let Item::Packet(packet) = item
            && let Some((is_from_server, ip)) = of_server(&packet, port)
            && let Some(at) = packet.time
        {
            let at = stamp(at.cast_signed());
            both[usize::from(is_from_server)].push(Seen { at, ip });
        }
    };
    let input = Input::open(capture)?;
    let mut pieces = input.pieces()?;
    let mut piece = Piece::default();
    while pieces.next(&mut piece, &mut take) {}
    if let Some(error) = pieces.failure() {
        return Err(format!("{}: {error}", capture.display()).into());
    }
    Ok(both)
}

/// Whether it is from the server, and the packet; None of nobody's port.
fn of_server(packet: &CapturedPacket<'_>, port: u16) -> Option<(bool, IpPacket)> {
    let path = IpLayer::of(packet).ok()??.path()?;
    let is_from_server = match (path.source.port() == port, path.destination.port() == port) {
        (true, _) => true,
        (_, true) => false,
        _ => return None,
    };
    let ip = IpPacket::parse(&without_link(packet)?)?;
    let has_ports = !matches!(ip.transport, Transport::Other { .. });
    has_ports.then_some((is_from_server, ip))
}

/// The packet without what its link puts around it, cut to the length that IP says: links fill up what is short.
fn without_link<'a>(packet: &CapturedPacket<'a>) -> Option<CapturedPacket<'a>> {
    const RAW: u16 = 101;
    let bytes = packet.bytes;
    let start = (0..=bytes.len().min(24)).find(|start| is_ip(&bytes[*start..], packet))?;
    let ip = &bytes[start..];
    let length = match ip[0] >> 4 {
        4 => usize::from(u16::from_be_bytes([ip[2], ip[3]])),
        _ => 40 + usize::from(u16::from_be_bytes([ip[4], ip[5]])),
    };
    Some(CapturedPacket {
        link_type: RAW,
        bytes: ip.get(..length)?,
        ..*packet
    })
}

/// Whether an IP packet begins here: that which was decoded of the whole.
fn is_ip(bytes: &[u8], whole: &CapturedPacket<'_>) -> bool {
    let Some(Ok(Some(known))) = Some(IpLayer::of(whole)) else {
        return false;
    };
    let raw = CapturedPacket {
        link_type: 101,
        bytes,
        ..*whole
    };
    let Ok(Some(here)) = IpLayer::of(&raw) else {
        return false;
    };
    here.path() == known.path() && here.transport() == known.transport()
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

impl Joined {
    /// The same, each datagram by itself.
    fn both(&mut self, direction: Direction, sent: Vec<Seen>, got: Vec<Seen>) -> Vec<Packet> {
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

    /// The packets of a direction, by what was seen of them where they were sent and where they arrived.
    fn join(&mut self, direction: Direction, sent: Vec<Seen>, got: &[Seen]) -> Vec<Packet> {
        let mut open: HashMap<Transport, VecDeque<usize>> = HashMap::new();
        let mut packets = Vec::with_capacity(sent.len());
        for seen in sent {
            let alike = open.entry(identity(&seen.ip.transport)).or_default();
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
            let alike = open.get_mut(&identity(&seen.ip.transport));
            let Some(number) = alike.and_then(VecDeque::pop_front) else {
                self.unsent += 1;
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

    fn nothing() -> Joined {
        Joined {
            observation: TestbedObservation {
                flows: Vec::new(),
                hops: Vec::new(),
                tunnel: None,
                end: Time::ZERO,
                epochs: 0,
                fidelity: Fidelity::default(),
                unfaithful: Vec::new(),
            },
            unsent: 0,
            merged: 0,
            early: 0,
            least_ns: [None; 2],
        }
    }

    #[test]
    fn packets_are_joined_by_what_they_carry() {
        let mut joined = nothing();
        let sent = vec![seen(0, b"a"), seen(1, b"b"), seen(2, b"a"), seen(3, b"c")];
        let got = [seen(300, b"a"), seen(302, b"a"), seen(310, b"never sent")];
        let packets = joined.join(Direction::Forward, sent, &got);
        let fates: Vec<Fate> = packets.iter().map(|it| it.fate).collect();
        let at = |ms: u64| Fate::Delivered {
            at: Time::from_nanos(ms * 1_000_000),
        };
        assert_eq!(fates, [at(300), Fate::Loss, at(302)], "c was under way");
        assert_eq!(joined.unsent, 1);
        assert_eq!(joined.doubt(""), "1 packets were not seen to be sent");
    }

    #[test]
    fn clocks_that_are_wrong_make_ways_unequal() {
        let mut joined = nothing();
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
