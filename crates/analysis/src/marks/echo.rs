//! The receiver's reports of the marks that it got.

use bentpipe_wire::quic::{End, Space};

use crate::connection::{Connection, Frame, Nanos, Packet, Protocol};

/// The reports of a receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Echo {
    /// ACK frames of QUIC that it sent in packets of the application's packet number space.
    pub acks: u64,
    /// ACKs among them with ECN counts.
    pub with_counts: u64,
    /// The largest sum of the three counts in one of these.
    pub most_counted: u64,
    /// Marks reported. QUIC: the largest CE count of each packet number space, summed (RFC 9000
    /// section 19.3.2). TCP: episodes of ECN-Echo, each from a mark to the sender's CWR (RFC 3168
    /// section 6.1.3). None: accurate ECN of TCP, whose counters are not read.
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
        let (mut echo, mut largest) = (Self::default(), [0; 3]);
        for packet in connection.packets.iter().filter(|it| it.sender == receiver) {
            let Some(space) = packet.space() else {
                continue;
            };
            for frame in connection.frames(packet) {
                let Frame::Ack { ecn, .. } = frame else {
                    continue;
                };
                let is_application = space == Space::Application;
                echo.acks += u64::from(is_application);
                let Some(counts) = ecn else { continue };
                let known: &mut u64 = &mut largest[space as usize];
                *known = (*known).max(counts.ce);
                if is_application {
                    let sum = counts.ect0.saturating_add(counts.ect1);
                    echo.with_counts += 1;
                    echo.most_counted = echo.most_counted.max(sum.saturating_add(counts.ce));
                }
            }
        }
        echo.ce = Some(largest.into_iter().fold(0, u64::saturating_add));
        echo
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
