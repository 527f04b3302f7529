//! RTT samples by the spin bit, which everybody on the path may read.
//!
//! Source: RFC 9000 section 17.4 (the bit), RFC 9312 section 3.8.2 (how to measure with it). Where
//! both ends take part, the bit of packets in one direction changes once per round trip; the time
//! between two changes, the *edges*, is a sample of the RTT, delays of the ends included. It is
//! read in the direction with more packets, where edges are sharpest.
//!
//! RFC 9312 leaves the rejection of bad samples to heuristics. Ours:
//!
//! - a change that comes sooner after an edge than [`HOLD`]th of the reference is reordering: the
//!   bit of the packet that came late. It is no edge, nor is the change back;
//! - a sample within which nobody sent for longer than the reference is one of the application: it
//!   had nothing to send, and the bit rested;
//! - the reference is the round trip of the handshake or, if it is shorter or that was not seen,
//!   the time between changes in which half of the connection lies.
//!
//! An end that does not take part leaves the bit as it is, or draws it for each packet or
//! connection ID (RFC 9000 section 17.4): then there are no edges, or far too many.

use bentpipe_wire::quic::{End, PacketType};
use serde::Serialize;

use crate::connection::{Connection, Kind, Nanos, Packet};

/// An edge that comes sooner than this part of the reference is ignored.
const HOLD: Nanos = 4;
/// With more than one change per this many packets, the bit is drawn at random: half would change.
const RANDOM: usize = 4;
/// Fewer packets than this say nothing of that.
const ENOUGH: usize = 16;

/// The behaviour of the spin bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpinBit {
    /// There are no packets that have one.
    Absent,
    /// It does not change.
    Constant,
    /// It changes from packet to packet.
    Random,
    /// It changes as round trips go by.
    Spins,
}

/// The RTT samples of the spin bit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spin {
    /// Whether it spins.
    pub bit: SpinBit,
    /// RTT samples: the index of the packet with the edge that ended it, and how long it took.
    pub samples: Vec<(usize, Nanos)>,
    /// The number of samples that were left out, since the application had nothing to send.
    pub rejected: u64,
}

/// A packet with a spin bit as it passed.
struct SpinPacket {
    at: usize,
    time: Nanos,
    spin: bool,
}

impl Spin {
    /// Reads a connection whose handshake took `handshake`.
    #[must_use]
    pub fn of(connection: &Connection, handshake: Option<Nanos>) -> Self {
        let end = end_with_more_packets(connection);
        let place = place(connection, end);
        let passing = passing(connection, end, place);
        let raw = changes(&passing);
        let bit = if passing.is_empty() {
            SpinBit::Absent
        } else if raw.is_empty() {
            SpinBit::Constant
        } else if passing.len() >= ENOUGH && raw.len() * RANDOM > passing.len() {
            SpinBit::Random
        } else {
            SpinBit::Spins
        };
        let mut spin = Self {
            bit,
            samples: Vec::new(),
            rejected: 0,
        };
        let reference = reference(&passing, &raw, handshake);
        if let (SpinBit::Spins, Some(reference)) = (bit, reference) {
            let mut all: Vec<Nanos> = seen_at(connection, place).collect();
            all.sort_unstable();
            spin.measure(&passing, &all, reference);
            // As packets stand in the connection.
            spin.samples.sort_unstable();
        }
        spin
    }

    /// `all` are the times at which packets passed, in order.
    fn measure(&mut self, passing: &[SpinPacket], all: &[Nanos], reference: Nanos) {
        let mut edge: Option<&SpinPacket> = None;
        let mut value = passing[0].spin;
        for now in passing {
            let too_soon = edge.is_some_and(|edge| now.time - edge.time < reference / HOLD);
            if now.spin == value || too_soon {
                continue;
            }
            value = now.spin;
            if let Some(before) = edge.replace(now) {
                if longest_silence(all, before.time, now.time) > reference {
                    self.rejected += 1;
                } else {
                    self.samples.push((now.at, now.time - before.time));
                }
            }
        }
    }
}

/// The end that sent more 1-RTT packets.
fn end_with_more_packets(connection: &Connection) -> End {
    let one_rtt = connection.packets.iter().filter(|it| it.spin().is_some());
    let of_client = one_rtt.clone().filter(|it| it.sender == End::Client);
    if of_client.count() * 2 > one_rtt.count() {
        End::Client
    } else {
        End::Server
    }
}

/// Where packets of an end are looked at: at its own side, unless the other saw more of them. Times
/// of two places must not be mixed.
fn place(connection: &Connection, end: End) -> End {
    let own = connection.packets.iter().filter(|it| it.sender == end);
    let seen = |place: End| {
        let there = own.clone().filter(|it| it.seen[place as usize].is_some());
        there.count()
    };
    if seen(end.other()) > seen(end) {
        end.other()
    } else {
        end
    }
}

/// When packets passed a place.
fn seen_at(connection: &Connection, place: End) -> impl Iterator<Item = Nanos> {
    let packets = connection.packets.iter();
    packets.filter_map(move |it| it.seen[place as usize])
}

/// The 1-RTT packets of an end as they passed a place.
fn passing(connection: &Connection, end: End, place: End) -> Vec<SpinPacket> {
    let packets = connection.packets.iter().enumerate();
    let own = packets.filter(|(_, it)| it.sender == end && !it.copy);
    let passing = own.filter_map(|(at, packet)| {
        Some(SpinPacket {
            at,
            time: packet.seen[place as usize]?,
            spin: packet.spin()?,
        })
    });
    let mut passing: Vec<_> = passing.collect();
    passing.sort_by_key(|it| it.time);
    passing
}

/// The times between changes of the bit, whatever made them.
fn changes(passing: &[SpinPacket]) -> Vec<Nanos> {
    let pairs = passing.windows(2).filter(|it| it[0].spin != it[1].spin);
    let times: Vec<Nanos> = pairs.map(|it| it[1].time).collect();
    match times[..] {
        [] => Vec::new(),
        // One edge ends nothing, but the bit did change.
        [_] => vec![0],
        _ => times.windows(2).map(|it| it[1] - it[0]).collect(),
    }
}

/// About how long a round trip is. None if the capture says nothing of it.
fn reference(passing: &[SpinPacket], changes: &[Nanos], handshake: Option<Nanos>) -> Option<Nanos> {
    let mut sorted = changes.to_vec();
    sorted.sort_unstable();
    let half = sorted.iter().sum::<Nanos>() / 2;
    let mut sum = 0;
    let usual = sorted.into_iter().find(|length| {
        sum += length;
        sum >= half
    });
    let usual = usual.filter(|usual| *usual > 0 && passing.len() > 1);
    let handshake = handshake.filter(|it| *it > 0);
    [usual, handshake].into_iter().flatten().min()
}

/// The longest time between packets of either end, from one time to another; `all` are the times of
/// all packets, in order.
fn longest_silence(all: &[Nanos], from: Nanos, until: Nanos) -> Nanos {
    let first = all.partition_point(|time| *time < from);
    let behind = all.partition_point(|time| *time <= until);
    let within = all[first..behind].windows(2);
    within.map(|it| it[1] - it[0]).max().unwrap_or(0)
}

impl Packet {
    /// Its spin bit (RFC 9000 section 17.3.1); only packets with a short header have one.
    #[must_use]
    pub fn spin(&self) -> Option<bool> {
        (self.kind == Kind::Quic(PacketType::OneRtt)).then_some(self.first_byte & 0x20 != 0)
    }
}
