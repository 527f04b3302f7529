//! Connections that are measured together, on one time axis.
//!
//! One that was opened later begins later on it: all count from the first packet of the first.

use super::milestones::Milestones;
use super::reply::Reply;
use crate::connection::{Connection, Nanos, Protocol, Subflow};
use crate::ledger::{LedgerEntry, is_in_flight};
use crate::link_facts::LinkFacts;
use bentpipe_wire::quic::End;

/// A connection that is measured, with its [ledger](Connection::ledger).
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// Its packets.
    pub connection: &'a Connection,
    /// An entry per packet.
    pub entries: &'a [LedgerEntry],
}

/// Each of the connections, with when it begins on the axis that they share.
pub(super) fn on_one_axis<'a>(all: &[Measured<'a>]) -> Vec<(Nanos, Measured<'a>)> {
    let first = all.iter().map(|it| it.connection.start).min();
    let since = |start: u64| (start - first.unwrap_or(start)).cast_signed();
    all.iter()
        .map(|it| (since(it.connection.start), *it))
        .collect()
}

/// The replies of the client and the server on the streams of all connections, and the milestones
/// of all.
pub(super) fn replies(all: &[(Nanos, Measured<'_>)], from: End) -> ([Reply; 2], Milestones) {
    let of_each = all.iter().filter_map(|(offset, it)| {
        let sent = Reply::both(it.connection, it.entries, from);
        // A subflow that carried none of it has nothing to end.
        let is_joined = it.connection.subflow == Some(Subflow::Joined);
        if is_joined && sent[from as usize].bytes == 0 {
            return None;
        }
        let times = Milestones::between(it.connection, &sent, from).later(*offset);
        // One that joins finds the handshake of the connection done.
        let times = if is_joined {
            times.without_handshake()
        } else {
            times
        };
        Some((sent.map(|reply| reply.later(*offset)), times))
    });
    let joined = of_each.reduce(|(sent, times), (more, and)| {
        let ([upload, reply], [other_upload, other_reply]) = (sent, more);
        let both = [upload.joined(&other_upload), reply.joined(&other_reply)];
        (both, times.joined(and))
    });
    joined.unwrap_or_default()
}

/// The RTT samples of the end that is judged, and the most that it had in flight at one time.
pub(super) fn of_senders(
    all: &[(Nanos, Measured<'_>)],
    facts: &LinkFacts,
) -> (Vec<Nanos>, Option<u64>) {
    let (mut samples, mut most) = (Vec::new(), None);
    for (_, it) in all {
        let end = facts.data_sender(it.connection, it.entries);
        for (packet, entry) in it.connection.packets.iter().zip(it.entries) {
            if packet.sender == end {
                most = most.max(entry.in_flight.count());
            } else {
                samples.extend(entry.rtt.nanos());
            }
        }
    }
    if all.len() > 1 {
        most = most.and_then(|_| in_flight(all, facts));
    }
    (samples, most)
}

/// The most bytes that senders of TCP had in flight at one time, over all connections: what a
/// packet has is in flight from when it was sent until it was acknowledged at its sender, or
/// declared lost. QUIC forgets packets with their keys beside; of several connections of QUIC
/// nothing is said.
pub(super) fn in_flight(all: &[(Nanos, Measured<'_>)], facts: &LinkFacts) -> Option<u64> {
    let mut steps = Vec::new();
    for (offset, it) in all {
        if it.connection.protocol != Protocol::Tcp {
            return None;
        }
        let end = facts.data_sender(it.connection, it.entries);
        for (packet, entry) in it.connection.packets.iter().zip(it.entries) {
            let own = packet.sender == end && !packet.copy;
            if let Some(sent) = packet
                .sent()
                .filter(|_| own && is_in_flight(it.connection, packet))
            {
                let size = i64::from(packet.size);
                steps.push((offset + sent, size));
                let left = [entry.acked.nanos(), entry.declared_lost.nanos()]
                    .into_iter()
                    .flatten()
                    .min();
                steps.extend(left.map(|at| (offset + at, -size)));
            }
        }
    }
    // Departures from the flight come first: a sender knows, when it sends, what it received at
    // that instant.
    steps.sort_unstable();
    let levels = steps.iter().scan(0, |level, (_, step)| {
        *level += step;
        Some(*level)
    });
    levels.max().and_then(|most| u64::try_from(most).ok())
}
