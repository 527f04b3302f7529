//! Brings the recordings of places together, packet by packet.
//!
//! A packet is the same at two places if its identity and size are: decryption is not needed. Copies that the network
//! made are matched in the order in which they passed. Which place is at whose side is told by their names, or by where
//! the client's first packet was seen first. Of a connection that was captured at more than two places, the first two
//! are brought together.

use std::collections::HashMap;
use std::ops::Range;

use crate::quic::{End, Identity};
use crate::tcp;

use super::recorder::{Recorded, Recording, Sighting};
use super::vantage::named;
use super::{Connection, Fate, Frame, Nanos, Packet, Protocol, Vantage};

/// How many packets from its beginning on a connection is known by. One of which all of these were lost between two places
/// counts as two connections.
const FIRST: usize = 100;

/// The connections of any number of recordings, each with the name of its place.
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
    let beginnings = Beginnings::of(recorded.iter().flatten().map(|(_, _, it)| it));
    let mut connections = Vec::new();
    for at in 0..recorded.len() {
        let Some((place, name, one)) = recorded[at].take() else {
            continue;
        };
        let partner = beginnings.shared_with(&one).find(|other| {
            let other = recorded[*other].as_ref();
            other.is_some_and(|(elsewhere, ..)| *elsewhere != place)
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
            tcp::retell(connection);
        }
    }
    connections
}

/// In which recorded connections the first packets of each occur.
struct Beginnings {
    by_identity: HashMap<Identity, Vec<usize>>,
}

impl Beginnings {
    fn of<'a>(recorded: impl Iterator<Item = &'a Recorded>) -> Self {
        let mut by_identity: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, recorded) in recorded.enumerate() {
            for sighting in recorded.sightings.iter().take(FIRST) {
                by_identity.entry(sighting.identity).or_default().push(at);
            }
        }
        Self { by_identity }
    }

    fn shared_with(&self, recorded: &Recorded) -> impl Iterator<Item = usize> {
        let first = recorded.sightings.iter().take(FIRST);
        first.flat_map(|it| self.by_identity[&it.identity].iter().copied())
    }
}

fn of_one_place(name: Option<&str>, recorded: Recorded) -> Connection {
    let vantage = Vantage::of(name, &recorded);
    let start = recorded.sightings.first().map_or(0, |it| it.time);
    let seen = |time: Nanos| match vantage {
        Vantage::At(End::Client) => [Some(time), None],
        Vantage::At(End::Server) => [None, Some(time)],
        Vantage::Between | Vantage::Both => [Some(time), Some(time)],
    };
    let packets = recorded.sightings.into_iter().map(|sighting| {
        let fate = match vantage {
            Vantage::At(end) if end != sighting.sender => Fate::Delivered,
            _ => sighting.fate.unwrap_or(Fate::Unknown),
        };
        let seen = seen(since(start, sighting.time));
        packet(&sighting, seen, fate)
    });
    let mut packets: Vec<Packet> = packets.collect();
    packets.sort_by_key(Packet::time);
    Connection {
        protocol: recorded.protocol,
        ends: recorded.ends,
        vantage,
        start,
        packets,
        frames: recorded.frames,
        ranges: recorded.ranges,
    }
}

fn of_two_places(names: [Option<&str>; 2], pair: [Recorded; 2]) -> Connection {
    let [client, server] = in_order(names, pair);
    let first_sent = client.sightings.iter().find(|it| it.sender == End::Client);
    let start = first_sent
        .or(client.sightings.first())
        .map_or(0, |it| it.time);
    let mut at_server = Unmatched::of(&server.sightings);
    let mut connection = Connection {
        protocol: client.protocol,
        ends: client.ends,
        vantage: Vantage::Both,
        start,
        packets: Vec::with_capacity(client.sightings.len()),
        frames: client.frames,
        ranges: client.ranges,
    };
    for sighting in &client.sightings {
        let there = at_server.take(sighting).map(|at| &server.sightings[at]);
        let seen = [Some(sighting.time), there.map(|it| it.time)];
        let seen = seen.map(|time| time.map(|time| since(start, time)));
        let says = sighting.fate.or(there.and_then(|it| it.fate));
        connection
            .packets
            .push(packet(sighting, seen, fate(sighting.sender, seen, says)));
    }
    for at in at_server.rest() {
        let sighting = &server.sightings[at];
        let seen = [None, Some(since(start, sighting.time))];
        let mut packet = packet(sighting, seen, fate(sighting.sender, seen, sighting.fate));
        packet.frames = connection.adopt(&server, sighting);
        connection.packets.push(packet);
    }
    connection.packets.sort_by_key(Packet::time);
    connection
}

/// The client's place first.
fn in_order(names: [Option<&str>; 2], pair: [Recorded; 2]) -> [Recorded; 2] {
    let [one, other] = pair;
    let sides = names.map(named);
    let first = |recorded: &Recorded| {
        let mut of_client = recorded
            .sightings
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

/// The packets of a place for which no sighting elsewhere was found yet.
struct Unmatched {
    /// By what they are, copies in the order in which they passed.
    sorted: Vec<(Identity, u32, usize)>,
    taken: Vec<bool>,
}

impl Unmatched {
    fn of(sightings: &[Sighting]) -> Self {
        let sorted = sightings.iter().enumerate();
        let mut sorted: Vec<_> = sorted.map(|(at, it)| (it.identity, it.size, at)).collect();
        sorted.sort_unstable();
        Self {
            taken: vec![false; sorted.len()],
            sorted,
        }
    }

    /// The first of the same packet that has not been taken.
    fn take(&mut self, sighting: &Sighting) -> Option<usize> {
        let key = (sighting.identity, sighting.size);
        let first = self.sorted.partition_point(|it| (it.0, it.1) < key);
        let same = self.sorted[first..]
            .iter()
            .take_while(|it| (it.0, it.1) == key);
        let free = same.zip(first..).find(|(_, at)| !self.taken[*at]);
        let ((.., sighting), at) = free?;
        self.taken[at] = true;
        Some(*sighting)
    }

    /// Those that were not taken, in order.
    fn rest(self) -> Vec<usize> {
        let free = self
            .sorted
            .iter()
            .zip(&self.taken)
            .filter(|(_, taken)| !**taken);
        let mut rest: Vec<usize> = free.map(|((.., at), _)| *at).collect();
        rest.sort_unstable();
        rest
    }
}

impl Connection {
    /// What a place saw where every packet passed on leaving its sender; `fate` says, by the number of its datagram, what
    /// became of each, and when it arrived (nanoseconds since the Unix epoch).
    #[must_use]
    pub fn of_senders(recorded: Recorded, fate: impl Fn(u32) -> (Fate, Option<u64>)) -> Self {
        let start = recorded.sightings.first().map_or(0, |it| it.time);
        let packets = recorded.sightings.iter().map(|sighting| {
            let (fate, arrival) = fate(sighting.datagram);
            let mut seen = [Some(since(start, sighting.time)); 2];
            seen[sighting.sender.other() as usize] = arrival.map(|time| since(start, time));
            packet(sighting, seen, fate)
        });
        let mut packets: Vec<Packet> = packets.collect();
        packets.sort_by_key(Packet::time);
        Self {
            protocol: recorded.protocol,
            ends: recorded.ends,
            vantage: Vantage::Both,
            start,
            packets,
            frames: recorded.frames,
            ranges: recorded.ranges,
        }
    }

    /// Takes over the frames of a packet that only the server's side saw.
    fn adopt(&mut self, from: &Recorded, sighting: &Sighting) -> Range<u32> {
        let index = |length: usize| u32::try_from(length).expect("fewer than 2^32 frames");
        let start = index(self.frames.len());
        for frame in &from.frames[sighting.frames.start as usize..sighting.frames.end as usize] {
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

fn fate(sender: End, seen: [Option<Nanos>; 2], says: Option<Fate>) -> Fate {
    match seen[sender.other() as usize] {
        Some(_) => Fate::Delivered,
        None => says.unwrap_or(Fate::NotReceived),
    }
}

fn packet(sighting: &Sighting, seen: [Option<Nanos>; 2], fate: Fate) -> Packet {
    Packet {
        sender: sighting.sender,
        kind: sighting.kind,
        number: sighting.number,
        size: sighting.size,
        ip_size: sighting.ip_size,
        seen,
        fate,
        decoded: sighting.decoded,
        frames: sighting.frames.clone(),
    }
}

fn since(start: u64, time: u64) -> Nanos {
    let ahead = i128::from(time) - i128::from(start);
    Nanos::try_from(ahead).expect("a capture shorter than 292 years")
}
