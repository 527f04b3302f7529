//! The receiver's reports of the marks that it got.

use std::collections::HashMap;

use bentpipe_wire::quic::{EcnCounts, End, Space};

use crate::connection::{Connection, Frame, Nanos, Packet, PathSpace, Protocol};

/// The reports of a receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Echo {
    /// ACK frames of QUIC that it sent in packets of the application's packet number space.
    pub acks: u64,
    /// ACKs among them with ECN counts.
    pub with_counts: u64,
    /// The largest sum of the three counts in one of these; of several paths, summed.
    pub most_counted: u64,
    /// Marks reported. QUIC: the largest CE count of each packet number space, summed (RFC 9000
    /// section 19.3.2); each path has one. TCP: episodes of ECN-Echo, each from a mark to the
    /// sender's CWR (RFC 3168 section 6.1.3). None: accurate ECN of TCP, whose counters are not
    /// read.
    pub ce: Option<u64>,
}

impl Echo {
    /// The reports of `receiver`, as it sent them.
    pub(super) fn of(connection: &Connection, receiver: End) -> Self {
        match connection.protocol {
            Protocol::Quic(_) => Self::of_counts(connection, receiver),
            Protocol::Tcp => Self {
                ce: episodes(connection, receiver),
                ..Self::default()
            },
        }
    }

    fn of_counts(connection: &Connection, receiver: End) -> Self {
        let (mut ce, mut all) = (LargestCounts::default(), LargestCounts::default());
        let (mut acks, mut with_counts) = (0, 0);
        for packet in connection.packets.iter().filter(|it| it.sender == receiver) {
            for (space, counts) in reported(connection, packet) {
                let is_application = space.0 == Space::Application;
                acks += u64::from(is_application);
                let Some(counts) = counts else { continue };
                ce.rise(space, counts.ce);
                if is_application {
                    with_counts += 1;
                    let sum = counts.ect0.saturating_add(counts.ect1);
                    all.rise(space, sum.saturating_add(counts.ce));
                }
            }
        }
        Self {
            acks,
            with_counts,
            most_counted: all.sum(),
            ce: Some(ce.sum()),
        }
    }
}

/// The ACKs in a packet: the packet number space that each is about, and its ECN counts.
pub(super) fn reported<'a>(
    connection: &'a Connection,
    packet: &'a Packet,
) -> impl Iterator<Item = (PathSpace, Option<&'a EcnCounts>)> {
    let frames = connection.frames(packet).iter();
    frames.filter_map(|frame| match frame {
        Frame::Ack { path_id, ecn, .. } => {
            Some((packet.acknowledged_space(*path_id)?, ecn.as_deref()))
        }
        _ => None,
    })
}

/// The largest count of each packet number space.
#[derive(Debug, Default)]
pub(super) struct LargestCounts(HashMap<PathSpace, u64>);

impl LargestCounts {
    /// Takes note of a count; by how much it is above the largest before.
    pub(super) fn rise(&mut self, space: PathSpace, count: u64) -> u64 {
        let largest = self.0.entry(space).or_default();
        let before = std::mem::replace(largest, count.max(*largest));
        *largest - before
    }

    fn sum(&self) -> u64 {
        self.0.values().copied().fold(0, u64::saturating_add)
    }
}

/// Whether a segment of TCP has a flag, or sets something up, by the name of its frame.
pub(super) fn has(connection: &Connection, packet: &Packet, name: &str) -> bool {
    let mut frames = connection.frames(packet).iter();
    frames.any(|it| it.name() == name)
}

/// How often a receiver of TCP began to echo marks: with the first ECE, and with each after the
/// sender's CWR had come, or after a segment without.
fn episodes(connection: &Connection, receiver: End) -> Option<u64> {
    let passed = || connection.packets.iter().filter(|it| !it.copy);
    if passed().any(|it| has(connection, it, "ACCURATE_ECN_SETUP")) {
        return None;
    }
    let events = passed().filter_map(|it| {
        let time: Nanos = connection.seen_at(it, receiver)?;
        // A packet that arrives at an instant is known to one that is sent at the same instant.
        Some((time, it.sender == receiver, it))
    });
    let mut events: Vec<_> = events.collect();
    events.sort_by_key(|(time, is_answer, _)| (*time, *is_answer));
    let (mut episodes, mut echoes) = (0, false);
    for (_, is_answer, packet) in events {
        let has_echo = is_answer && has(connection, packet, "ECE");
        episodes += u64::from(has_echo && !echoes);
        if is_answer {
            echoes = has_echo;
        } else if has(connection, packet, "CWR") {
            echoes = false;
        }
    }
    Some(episodes)
}
