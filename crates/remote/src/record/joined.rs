//! Two sides of a path, joined to its packets and their fates.
//!
//! A packet is known by what it carries: on its way a NAT may write another address and port into
//! its headers. Of packets that are alike, as TCP's can be, the first is joined with the first. One
//! that is not seen at the other end was lost; whether a queue dropped it, nobody can tell. What
//! was sent after the last packet that was seen to arrive was still under way.
//!
//! The delay of packets is measured only with those that are like no other: which of two alike came
//! first, nobody can tell.

use std::collections::{HashMap, VecDeque};

use bentpipe_link::{Direction, Fate};
use bentpipe_trial::{Packet, Transport};
use bentpipe_units::{Span, Time};

use super::seen::Seen;
use super::segments::{self, SingleDatagrams};

/// The comparison of the captures at both ends of a path.
#[derive(Default)]
pub struct Joined {
    /// Packets that were seen to arrive, and not to be sent: the sender's capture is not complete.
    unsent: usize,
    /// Packets in which are several, which could not be told apart.
    merged: usize,
    /// Segments that were seen to arrive more often than to be sent.
    twice: usize,
    /// Packets that came before they were sent, by what is known of the clocks.
    early: usize,
    /// Whether, in each direction, packets were seen at its ends, and none at both.
    is_apart: [bool; 2],
    /// How long the fastest packet took towards the client, and towards the server, by these
    /// clocks.
    least_ns: [Option<i64>; 2],
}

impl Joined {
    /// The direction in which nothing that was sent was seen to arrive.
    pub fn apart_towards(&self) -> Option<&'static str> {
        let directions = self.is_apart.iter().zip(["client", "server"]);
        directions
            .into_iter()
            .find_map(|(is_apart, to)| is_apart.then_some(to))
    }

    /// The difference between the delay of the fastest packet towards the client and that of the
    /// fastest towards the server.
    pub fn difference_ms(&self) -> Option<f64> {
        let [forward, back] = self.least_ns;
        let difference = Span::from_nanos(forward?.abs_diff(back?)).as_secs_f64() * 1e3;
        Some(if forward < back {
            -difference
        } else {
            difference
        })
    }

    /// The doubts about captures, each in words.
    pub fn doubts(&self) -> Vec<String> {
        let said = [
            (self.unsent, "packets were not seen to be sent"),
            (
                self.merged,
                "packets were captured before they were cut up, and could not be (turn \
                 segmentation offload off)",
            ),
            (
                self.twice,
                "packets arrived more often than they were sent (name the devices in the file of \
                 links)",
            ),
            (
                self.early,
                "packets arrived before they were sent, by the clocks",
            ),
        ];
        let said = said.iter().filter(|it| it.0 > 0);
        said.map(|(count, what)| format!("{count} {what}"))
            .collect()
    }
}

impl Joined {
    /// The packets of a direction, by what was seen where they were sent and where they arrived,
    /// each datagram by itself.
    pub fn both(&mut self, direction: Direction, sent: Vec<Seen>, got: Vec<Seen>) -> Vec<Packet> {
        let mut alone = SingleDatagrams::default();
        for seen in sent.iter().chain(&got) {
            alone.add(&seen.ip);
        }
        let [sent, got] = [sent, got].map(|all| self.apart(all, &alone));
        self.join(direction, sent, &got)
    }

    fn apart(&mut self, all: Vec<Seen>, alone: &SingleDatagrams) -> Vec<Seen> {
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
        let alike = [EqualPackets::of(&sent), EqualPackets::of(got)];
        for seen in sent {
            let known = open.entry(seen.identity()).or_default();
            if !known.is_empty() && seen.is_datagram() {
                continue;
            }
            known.push_back(packets.len());
            packets.push(Packet {
                flow: 0,
                direction,
                path: 0,
                sent: seen.at,
                ip: seen.ip,
                fate: Fate::Loss,
                marked: false,
                copies: Vec::new(),
            });
        }
        let mut fastest: Option<i64> = None;
        for seen in got {
            let identity = seen.identity();
            let Some(known) = open.get_mut(&identity) else {
                self.unsent += 1;
                continue;
            };
            let Some(number) = known.pop_front() else {
                self.twice += usize::from(!seen.is_datagram());
                continue;
            };
            let packet = &mut packets[number];
            self.early += usize::from(seen.at < packet.sent);
            if alike.iter().all(|it| it.has_one(&identity)) {
                let took = signed(seen.at) - signed(packet.sent);
                fastest = Some(fastest.map_or(took, |known| known.min(took)));
            }
            packet.fate = Fate::Delivered {
                at: seen.at.max(packet.sent),
            };
        }
        let way = usize::from(direction == Direction::Return);
        self.least_ns[way] = fastest;
        let delivered = |packet: &Packet| matches!(packet.fate, Fate::Delivered { .. });
        let last = packets.iter().rposition(delivered);
        self.is_apart[way] = last.is_none() && !(packets.is_empty() && got.is_empty());
        packets.truncate(last.map_or(packets.len(), |last| last + 1));
        packets
    }
}

/// How many packets of an end are alike.
struct EqualPackets(HashMap<Transport, usize>);

impl EqualPackets {
    fn of(all: &[Seen]) -> Self {
        let mut counts = HashMap::new();
        for seen in all {
            *counts.entry(seen.identity()).or_default() += 1;
        }
        Self(counts)
    }

    fn has_one(&self, identity: &Transport) -> bool {
        self.0.get(identity) == Some(&1)
    }
}

fn signed(time: Time) -> i64 {
    time.as_nanos().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::super::seen::tests::{datagram as seen, segment};
    use super::*;

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
        assert!(joined.doubts().is_empty());
    }

    #[test]
    fn segments_that_come_too_often_are_told() {
        let mut joined = Joined::default();
        let sent = vec![segment(0, b"a"), segment(250, b"a")];
        let got = [segment(300, b"a"), segment(550, b"a")];
        joined.join(Direction::Forward, sent, &got);
        assert!(joined.doubts().is_empty(), "it was sent again");
        joined.join(Direction::Forward, vec![segment(0, b"a")], &got);
        assert!(joined.doubts()[0].starts_with("1 packets arrived more often"));
    }

    #[test]
    fn a_direction_whose_ends_saw_others_is_apart() {
        let mut joined = Joined::default();
        joined.join(Direction::Return, vec![], &[]);
        assert_eq!(joined.apart_towards(), None, "nothing was sent");
        joined.join(Direction::Return, vec![seen(0, b"a")], &[seen(300, b"a")]);
        assert_eq!(joined.apart_towards(), None);
        joined.join(Direction::Return, vec![seen(0, b"a")], &[seen(300, b"b")]);
        assert_eq!(joined.apart_towards(), Some("server"));
        joined.join(Direction::Forward, vec![], &[seen(300, b"b")]);
        assert_eq!(joined.apart_towards(), Some("client"));
    }

    #[test]
    fn packets_that_are_alike_tell_no_times() {
        let mut joined = Joined::default();
        joined.join(Direction::Return, vec![seen(0, b"a")], &[seen(300, b"a")]);
        // The first was lost, so that the second seems to take 1 ms.
        let sent = vec![segment(0, b""), segment(299, b"")];
        joined.join(Direction::Forward, sent, &[segment(300, b"")]);
        assert_eq!(joined.difference_ms(), None);
        let sent = vec![segment(0, b""), segment(299, b""), segment(301, b"c")];
        let got = [segment(300, b""), segment(621, b"c")];
        joined.join(Direction::Forward, sent, &got);
        assert_eq!(joined.difference_ms(), Some(20.0));
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
        assert_eq!(joined.doubts(), ["1 packets were not seen to be sent"]);
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
}
