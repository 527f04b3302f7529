//! Brings the recordings of places together, packet by packet.
//!
//! A packet is the same at two places if its identity and size are: decryption is not needed.
//! Copies that the network made are matched in the order in which they passed. Names tell which
//! place is at whose side, or else where the client's first packet was seen first. Of a connection
//! that was captured at more than two places, the first two are brought together. Places whose
//! clocks differ by a month are not: each has a separate connection.

use std::collections::HashMap;
use std::ops::Range;

use crate::tcp;
use bentpipe_wire::TlsRecords;
use bentpipe_wire::quic::{End, Identity};

use super::clock::{Clocks, since};
use super::copies;
use super::matching::Matches;
use super::observed::{Arrival, ObservedConnection, PacketObservation};
use super::order::{Place, arranged, in_time};
use super::outliers;
use super::recorder::Recording;
use super::vantage::end_named;
use super::{Connection, Fate, Frame, Nanos, Protocol, Vantage};

/// How many packets from its beginning on a connection is known by. One of which all of these were
/// lost between two places counts as two connections.
const FIRST: usize = 100;

/// Brings together the connections of any number of recordings, each with the name of its place.
#[must_use]
pub fn join(places: Vec<(Option<String>, Recording)>) -> Vec<Connection> {
    let recorded = places
        .into_iter()
        .enumerate()
        .flat_map(|(place, (name, recording))| {
            let connections = recording.connections.into_iter();
            connections.map(move |it| Some((place, name.clone(), it)))
        });
    let mut recorded: Vec<_> = recorded.collect();
    let starts = recorded.iter().flatten();
    let starts: Vec<u64> = starts
        .map(|(.., it)| first_time(&it.observations))
        .collect();
    let first_packets = FirstPackets::of(recorded.iter().flatten().map(|(_, _, it)| it));
    let mut connections = Vec::new();
    for at in 0..recorded.len() {
        let Some((place, name, one)) = recorded[at].take() else {
            continue;
        };
        let partner = first_packets.shared_with(&one).find(|other_at| {
            let other = recorded[*other_at].as_ref();
            let is_elsewhere = other.is_some_and(|(elsewhere, ..)| *elsewhere != place);
            is_elsewhere && starts[at].abs_diff(starts[*other_at]) < outliers::MONTH
        });
        let partner = partner.and_then(|other| recorded[other].take());
        connections.push(match partner {
            Some((_, other_name, other)) => {
                of_two_places([name.as_deref(), other_name.as_deref()], [one, other])
            }
            None => of_one_place(name.as_deref(), one),
        });
    }
    connections.sort_by_key(|it| it.start);
    for connection in &mut connections {
        if connection.protocol == Protocol::Tcp {
            tcp::translate(connection);
        }
    }
    connections
}

/// In which recorded connections the first packets of each occur.
struct FirstPackets {
    by_identity: HashMap<Identity, Vec<usize>>,
}

impl FirstPackets {
    fn of<'a>(recorded: impl Iterator<Item = &'a ObservedConnection>) -> Self {
        let mut by_identity: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, recorded) in recorded.enumerate() {
            for observation in recorded.observations.iter().take(FIRST) {
                by_identity
                    .entry(observation.identity)
                    .or_default()
                    .push(at);
            }
        }
        Self { by_identity }
    }

    fn shared_with(&self, recorded: &ObservedConnection) -> impl Iterator<Item = usize> {
        let first = recorded.observations.iter().take(FIRST);
        first.flat_map(|it| self.by_identity[&it.identity].iter().copied())
    }
}

fn of_one_place(name: Option<&str>, recorded: ObservedConnection) -> Connection {
    let vantage = Vantage::of(name, &recorded);
    let start = first_time(&recorded.observations);
    let seen = |time: Nanos| match vantage {
        Vantage::At(End::Client) => [Some(time), None],
        Vantage::At(End::Server) => [None, Some(time)],
        Vantage::Between | Vantage::Both => [Some(time), Some(time)],
    };
    let packets = in_time(&recorded, start, |observation| {
        let fate = match vantage {
            Vantage::At(end) if end != observation.sender => Fate::Delivered,
            _ => observation.fate.unwrap_or(Fate::Unknown),
        };
        let seen = seen(since(start, observation.time));
        let ecn = seen.map(|time| time.map(|_| observation.ecn));
        observation.packet(seen, ecn, fate)
    });
    Connection {
        protocol: recorded.protocol,
        ends: recorded.ends,
        initial_credit: recorded.initial_credit,
        handshake: recorded.handshake,
        wire_image: recorded.wire_image,
        tls: recorded.tls,
        subflow: recorded.subflow,
        vantage,
        start,
        clock_ahead: 0,
        packets,
        frames: recorded.frames,
        ranges: recorded.ranges,
    }
}

/// The records of that place of two where more could be read. A capture may have gaps.
fn fuller(one: Option<&TlsRecords>, other: Option<&TlsRecords>) -> Option<TlsRecords> {
    let all = [one, other].into_iter().flatten();
    all.max_by_key(|it| (it.readable, it.read_to.iter().sum::<u64>()))
        .cloned()
}

fn of_two_places(names: [Option<&str>; 2], pair: [ObservedConnection; 2]) -> Connection {
    let [client, server] = in_order(names, pair);
    let start = first_time(&client.observations);
    let matches = Matches::of(&client.observations, &server.observations);
    let clocks = Clocks::of(start, &client, &server, matches.pairs());
    let mut connection = Connection {
        protocol: match client.protocol {
            Protocol::Quic(0) => server.protocol, // which may have seen the handshake
            seen => seen,
        },
        ends: client.ends,
        initial_credit: [0, 1].map(|end| client.initial_credit[end].or(server.initial_credit[end])),
        handshake: client.handshake.or(server.handshake),
        wire_image: client.wire_image.or(server.wire_image.clone()),
        subflow: client.subflow.max(server.subflow),
        tls: fuller(client.tls.as_ref(), server.tls.as_ref()),
        vantage: Vantage::Both,
        start,
        clock_ahead: clocks.ahead,
        packets: Vec::new(),
        frames: client.frames,
        ranges: client.ranges,
    };
    // Packets of the same instant are in the order in which their sender's side saw them.
    let order = (0..matches.len()).zip(0..).map(|(at, number)| {
        let observed = matches.observed(at);
        let sender = observed.either().sender;
        let seen = clocks.seen(observed.here, observed.there);
        let time = seen[sender as usize].or(seen[sender.other() as usize]);
        Place {
            time: time.expect("a packet was seen at one side at least"),
            position: copies::index(matches.position(at, sender == End::Server)),
            number,
        }
    });
    let packet = |number: usize| {
        let observed = matches.observed(number);
        let (either, both) = (observed.either(), [observed.here, observed.there]);
        let seen = clocks.seen(observed.here, observed.there);
        let ecn = both.map(|it| it.map(|it| it.ecn));
        let mut says = both.iter().flatten().filter_map(|it| it.fate);
        let fate = clocks.fate(either.sender, seen, says.next());
        let mut packet = either.packet(seen, ecn, fate);
        if observed.here.is_none() {
            packet.frames = connection.copy_frames(&server, either);
        }
        packet
    };
    let identity = |number: usize| matches.observed(number).either().identity;
    connection.packets = arranged(client.protocol, order.collect(), packet, identity);
    connection
}

/// The client's place first.
fn in_order(names: [Option<&str>; 2], pair: [ObservedConnection; 2]) -> [ObservedConnection; 2] {
    let [one, other] = pair;
    let sides = names.map(end_named);
    let first = |recorded: &ObservedConnection| {
        let mut of_client = recorded
            .observations
            .iter()
            .filter(|it| it.sender == End::Client);
        of_client.next().map_or(u64::MAX, |it| it.time)
    };
    let swapped = match sides {
        [Some(left), right] if right != Some(left) => left == End::Server,
        [None, Some(right)] => right == End::Client,
        _ => first(&other) < first(&one),
    };
    if swapped { [other, one] } else { [one, other] }
}

impl Connection {
    /// A connection as captured at a place where every packet passed on leaving its sender; `fate`
    /// gives, by the number of the captured packet, the fate of each, and its arrival.
    #[must_use]
    pub fn of_senders(
        recorded: ObservedConnection,
        fate: impl Fn(u32) -> (Fate, Option<Arrival>),
    ) -> Self {
        let start = first_time(&recorded.observations);
        let packets = in_time(&recorded, start, |observation| {
            let (fate, arrival) = fate(observation.frame);
            let mut seen = [Some(since(start, observation.time)); 2];
            let mut ecn = [Some(observation.ecn); 2];
            let receiver = observation.sender.other() as usize;
            seen[receiver] = arrival.map(|it| since(start, it.time));
            ecn[receiver] = arrival.map(|it| it.ecn);
            observation.packet(seen, ecn, fate)
        });
        let mut connection = Self {
            protocol: recorded.protocol,
            ends: recorded.ends,
            initial_credit: recorded.initial_credit,
            handshake: recorded.handshake,
            wire_image: recorded.wire_image,
            tls: recorded.tls,
            subflow: recorded.subflow,
            vantage: Vantage::Both,
            start,
            clock_ahead: 0,
            packets,
            frames: recorded.frames,
            ranges: recorded.ranges,
        };
        if connection.protocol == Protocol::Tcp {
            tcp::translate(&mut connection);
        }
        connection
    }

    /// Takes over the frames of a packet that only the server's side saw.
    fn copy_frames(
        &mut self,
        from: &ObservedConnection,
        observation: &PacketObservation,
    ) -> Range<u32> {
        let index = |length: usize| u32::try_from(length).expect("fewer than 2^32 frames");
        let start = index(self.frames.len());
        for frame in
            &from.frames[observation.frames.start as usize..observation.frames.end as usize]
        {
            let mut frame = frame.clone();
            if let Frame::Ack { ranges, .. } = &mut frame {
                let first = index(self.ranges.len());
                let theirs = &from.ranges[ranges.start as usize..ranges.end as usize];
                self.ranges.extend_from_slice(theirs);
                *ranges = first..index(self.ranges.len());
            }
            self.frames.push(frame);
        }
        start..index(self.frames.len())
    }
}

/// When the first packet was seen. Packets that could not be decoded at once stand behind later
/// ones.
fn first_time(observations: &[PacketObservation]) -> u64 {
    observations.iter().map(|it| it.time).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::connection::{Codepoint, Kind, Packet, Ranges};
    use bentpipe_wire::quic::PacketType;

    const EPOCH: u64 = 1_000_000_000;

    /// A packet that is sent `at` a time and arrives after `delay`, if at all.
    #[derive(Debug, Clone)]
    struct Sent {
        sender: End,
        at: u64,
        delay: Option<u64>,
        copies: usize,
    }

    fn packets() -> impl Strategy<Value = Vec<Sent>> {
        let delay = prop_oneof![1 => Just(None), 4 => (0_u64..500).prop_map(Some)];
        let one = (any::<bool>(), 0_u64..20, delay, 1_usize..3);
        prop::collection::vec(one, 1..80).prop_map(|packets| {
            let mut now = 0;
            let sent = packets.into_iter().map(|(by_client, gap, delay, copies)| {
                now += gap;
                let sender = if by_client { End::Client } else { End::Server };
                Sent {
                    sender,
                    at: now,
                    delay,
                    copies,
                }
            });
            sent.collect()
        })
    }

    fn observation(number: u64, sender: End, time: u64) -> PacketObservation {
        let mut identity = [0; 16];
        identity[..8].copy_from_slice(&number.to_le_bytes());
        PacketObservation {
            time: EPOCH + time,
            frame: 0,
            identity,
            sender,
            kind: Kind::Quic(PacketType::OneRtt),
            number: Some(number).into(),
            path_id: 0,
            size: 1200,
            first_byte: 0x40,
            ip_size: Some(1228),
            ecn: Codepoint::NotEct,
            fate: None,
            decoded: true,
            frames: 0..0,
        }
    }

    /// A recording of the packets at one end, its clock ahead by `ahead`.
    fn place(packets: &[Sent], at: End, ahead: u64) -> Recording {
        let mut observations = Vec::new();
        for (number, packet) in (0..).zip(packets) {
            if packet.sender == at {
                observations.push(observation(number, packet.sender, packet.at + ahead));
            } else if let Some(delay) = packet.delay {
                for _ in 0..packet.copies {
                    let arrival = packet.at + delay + ahead;
                    observations.push(observation(number, packet.sender, arrival));
                }
            }
        }
        observations.sort_by_key(|it| it.time);
        recording(observations)
    }

    fn recording(observations: Vec<PacketObservation>) -> Recording {
        let recorded = ObservedConnection {
            protocol: Protocol::Quic(1),
            ends: [
                "192.0.2.1:1".parse().unwrap(),
                "192.0.2.2:2".parse().unwrap(),
            ],
            initial_credit: [None; 2],
            handshake: bentpipe_wire::quic::Handshake::default(),
            wire_image: crate::connection::WireImage::default(),
            tls: None,
            subflow: None,
            observations,
            frames: Vec::new(),
            ranges: Ranges::new(),
        };
        Recording {
            connections: vec![recorded],
            ..Recording::default()
        }
    }

    proptest! {
        #[test]
        fn every_packet_is_there_once_with_both_its_times(
            packets in packets(),
            ahead in 0_u64..1000,
            swapped in any::<bool>(),
        ) {
            let mut places = vec![
                (Some("client".to_owned()), place(&packets, End::Client, 0)),
                (Some("server".to_owned()), place(&packets, End::Server, ahead)),
            ];
            prop_assume!(places.iter().all(|(_, it)| !it.connections[0].observations.is_empty()));
            // Where all packets from either side were lost, the places share none.
            prop_assume!(packets.iter().any(|it| it.delay.is_some()));
            if swapped {
                places.reverse();
            }
            let connections = join(places);
            prop_assert_eq!(connections.len(), 1);
            let found = &connections[0];
            prop_assert_eq!(found.vantage, Vantage::Both);
            prop_assert!(found.packets.is_sorted_by_key(Packet::time));
            for (number, sent) in (0..).zip(&packets) {
                let observations = found.packets.iter().filter(|it| it.number == Some(number));
                let (originals, copies): (Vec<_>, Vec<_>) = observations.partition(
                    |it| it.sent().is_some());
                prop_assert_eq!(originals.len(), 1);
                let expected_copies = sent.delay.map_or(0, |_| sent.copies - 1);
                prop_assert_eq!(copies.len(), expected_copies, "what the network doubled");
                let original = originals[0];
                let start = i64::try_from(found.start - EPOCH).unwrap();
                let ahead = i64::try_from(ahead).unwrap() - found.clock_ahead;
                let clock = |end: End| if end == End::Server { ahead } else { 0 } - start;
                let left = i64::try_from(sent.at).unwrap();
                prop_assert_eq!(original.sent(), Some(left + clock(sent.sender)));
                let arrival = sent.delay.map(|delay| left + i64::try_from(delay).unwrap()
                    + clock(sent.sender.other()));
                prop_assert_eq!(original.received(), arrival);
                prop_assert_eq!(original.fate == Fate::Delivered, sent.delay.is_some());
                prop_assert!(!original.copy && copies.iter().all(|it| it.copy));
            }
        }
    }

    fn sent(sender: End, at: u64, delay: Option<u64>) -> Sent {
        Sent {
            sender,
            at,
            delay,
            copies: 1,
        }
    }

    fn both(packets: &[Sent], ahead: u64) -> Connection {
        let client = (Some("client".to_owned()), place(packets, End::Client, 0));
        let server = (
            Some("server".to_owned()),
            place(packets, End::Server, ahead),
        );
        join(vec![client, server]).remove(0)
    }

    #[test]
    fn what_was_under_way_at_the_end_of_a_capture_is_not_known_to_be_lost() {
        let packets = [
            sent(End::Client, 0, Some(300)),
            sent(End::Server, 300, Some(300)),
            sent(End::Server, 400, None),
            sent(End::Server, 500, Some(300)),
            sent(End::Server, 501, None),
        ];
        let fates: Vec<_> = both(&packets, 0).packets.iter().map(|it| it.fate).collect();
        let delivered = Fate::Delivered;
        // The client's side saw its last packet at 800, so that of 501 would not have been seen.
        assert_eq!(
            fates,
            [
                delivered,
                delivered,
                Fate::NotReceived,
                delivered,
                Fate::Unknown
            ]
        );
    }

    #[test]
    fn clocks_are_set_only_where_they_are_certain_to_differ() {
        let packets = [
            sent(End::Client, 0, Some(300)),
            sent(End::Server, 300, Some(300)),
        ];
        let a_little = both(&packets, 200);
        assert_eq!(a_little.clock_ahead, 0);
        assert_eq!(a_little.packets[1].seen, [Some(600), Some(500)]);
        let much = both(&packets, 5000);
        assert_eq!(much.clock_ahead, 5000);
        assert_eq!(much.packets[0].seen, [Some(0), Some(300)]);
        assert_eq!(much.packets[1].seen, [Some(600), Some(300)]);
    }

    #[test]
    fn without_names_the_first_to_see_the_client_is_at_its_side() {
        let packets = [
            Sent {
                sender: End::Client,
                at: 0,
                delay: Some(300),
                copies: 1,
            },
            Sent {
                sender: End::Server,
                at: 300,
                delay: Some(300),
                copies: 1,
            },
        ];
        for swapped in [false, true] {
            let mut places = vec![
                (None, place(&packets, End::Client, 0)),
                (None, place(&packets, End::Server, 0)),
            ];
            if swapped {
                places.reverse();
            }
            let connections = join(places);
            let seen: Vec<_> = connections[0].packets.iter().map(|it| it.seen).collect();
            assert_eq!(seen, [[Some(0), Some(300)], [Some(600), Some(300)]]);
        }
    }

    #[test]
    fn one_place_is_where_answers_come_at_once() {
        let times = |reply, answer| {
            let client = |number, time| observation(number, End::Client, time);
            recording(vec![
                client(0, 0),
                observation(1, End::Server, reply),
                client(2, answer),
            ])
        };
        for (reply, answer, vantage) in [
            (600, 601, Vantage::At(End::Client)),
            (1, 601, Vantage::At(End::Server)),
            (300, 600, Vantage::Between),
        ] {
            let connections = join(vec![(None, times(reply, answer))]);
            assert_eq!(connections[0].vantage, vantage);
        }
        let connections = join(vec![(Some("server".to_owned()), times(600, 601))]);
        assert_eq!(
            connections[0].vantage,
            Vantage::At(End::Server),
            "a name says more"
        );
    }
}
