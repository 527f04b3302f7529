//! A transfer cut into rounds of a round trip each.
//!
//! Source: RFC 9406 section 4.2: a round ends when a packet that was sent after its beginning is
//! acknowledged. So rounds grow with the RTT, and a window that doubles per round trip doubles per
//! round.

use crate::connection::Nanos;

use super::span::Span;
use super::transfer::{Transfer, arrived};

/// A round trip of the data sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round {
    pub span: Span,
    /// Packets that ask for an ACK sent in it.
    pub packets: u64,
    /// The number of these that did not arrive.
    pub lost: u64,
    /// Their IP packets' bytes.
    pub ip_bytes: u64,
    /// The most bytes in flight, as QUIC packets.
    pub in_flight: u64,
    /// The first time in it at which the sender had to take one of its packets for lost.
    pub loss_declared: Option<Nanos>,
}

/// The rounds from the first stream data to the last that were acknowledged.
pub(super) fn of(transfer: &Transfer<'_>) -> Vec<Round> {
    let sent: Vec<_> = transfer.sent_in_flight().collect();
    let mut declared: Vec<_> = sent
        .iter()
        .filter_map(|(_, it)| it.declared_lost.nanos())
        .collect();
    declared.sort_unstable();
    let mut rounds = Vec::new();
    let mut first = 0;
    while let Some((packet, _)) = sent.get(first) {
        let from = packet.time();
        let mut acks = sent[first..]
            .iter()
            .filter_map(|(_, entry)| entry.acked.nanos());
        let Some(until) = acks.next() else { break };
        let length = sent[first..].partition_point(|(packet, _)| packet.time() < until);
        // A packet that was acknowledged before it was seen to leave would make no round at all.
        let length = length.max(1);
        let span = Span { from, until };
        let mut round = Round {
            span,
            packets: 0,
            lost: 0,
            ip_bytes: 0,
            in_flight: 0,
            loss_declared: None,
        };
        for (packet, entry) in &sent[first..first + length] {
            round.packets += 1;
            round.lost += u64::from(arrived(packet, entry) == Some(false));
            round.ip_bytes += u64::from(packet.ip_size.unwrap_or(0));
            round.in_flight = round.in_flight.max(entry.in_flight.count().unwrap_or(0));
        }
        let next = declared.partition_point(|time| *time < from);
        let in_round = declared.get(next).copied();
        round.loss_declared = in_round.filter(|time| span.has(*time));
        rounds.push(round);
        first += length;
    }
    rounds
}
