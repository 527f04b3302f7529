//! The round trips in which marks were reported to a sender, and its answers.
//!
//! A round begins when a mark is reported to the sender and ends when a packet sent after that is
//! acknowledged: the recovery period of RFC 9002 section 7.3.2, and the window of data of RFC 3168
//! section 6.1.2, for which one answer is due. Marks reported in between belong to it.
//!
//! **The answer.** A sender of TCP says it by CWR. One of QUIC says nothing; it has answered if the
//! most bytes in flight in the second half of the round are at least a full-sized packet below the
//! most in the time before that was as long as the round, and behind the middle of the marked round
//! before. The first half does not count: a sender
//! that halves its window is silent then, or sends a packet for every two that are acknowledged.
//!
//! Departures: a reduction of less than a packet cannot be seen, and a sender that has less in
//! flight for another reason, loss, lack of credit or an algorithm that goes down by itself, seems
//! to have answered. Of a round in which new data ended, nothing is said.

use bentpipe_wire::quic::{End, Space};

use super::echo::{LargestCounts, has, reported};
use crate::connection::{Connection, Nanos, Packet, Protocol};
use crate::ledger::LedgerEntry;

/// A round trip in which marks were reported to a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MarkedRound {
    /// When the first was reported.
    pub from: Nanos,
    /// When a packet sent after that was acknowledged, or the connection's last packet passed.
    pub until: Nanos,
    /// ACKs that reported more marks.
    pub reports: u64,
    /// QUIC: by how much the CE count rose.
    pub marks: u64,
    /// The most bytes in flight in a time before that was as long, and after the middle of the
    /// marked round before.
    pub before: u64,
    /// The most in its second half; where nothing was sent then, what was in flight with the next
    /// packet.
    pub after: u64,
    /// The most in as long a time after it.
    pub later: u64,
    /// TCP: segments with CWR that it sent.
    pub cwr: u64,
    /// Whether it answered. None: new data ended before the round did.
    pub answered: Option<bool>,
}

/// The rounds of `sender`, by the ledger's `entries`.
pub(super) fn of(
    connection: &Connection,
    entries: &[LedgerEntry],
    sender: End,
) -> Vec<MarkedRound> {
    let sent = Sent::of(connection, entries, sender);
    let mut rounds: Vec<MarkedRound> = Vec::new();
    for (heard, marks) in reports(connection, sender) {
        match rounds.last_mut() {
            Some(round) if heard < round.until => {
                round.reports += 1;
                round.marks += marks;
            }
            _ => rounds.push(MarkedRound {
                from: heard,
                until: sent.round_end(heard).unwrap_or(sent.end).max(heard),
                reports: 1,
                marks,
                before: 0,
                after: 0,
                later: 0,
                cwr: 0,
                answered: None,
            }),
        }
    }
    let mut before: Option<MarkedRound> = None;
    for round in &mut rounds {
        sent.complete(round, before.as_ref(), connection.protocol);
        before = Some(*round);
    }
    rounds
}

/// When marks were reported to the sender, and how many more than before: by ACKs whose CE count
/// rose, of TCP by those with ECE.
fn reports(connection: &Connection, sender: End) -> Vec<(Nanos, u64)> {
    let heard = connection.packets.iter().filter(|it| it.sender != sender);
    let heard = heard.filter_map(|it| Some((it.received().filter(|_| !it.copy)?, it)));
    let mut heard: Vec<(Nanos, &Packet)> = heard.collect();
    heard.sort_by_key(|(time, _)| *time);
    let mut known = LargestCounts::default();
    let risen = heard.into_iter().filter_map(|(time, packet)| {
        let rise = match connection.protocol {
            Protocol::Tcp => u64::from(has(connection, packet, "ECE")),
            Protocol::Quic(_) => reported(connection, packet)
                .filter(|(space, _)| space.0 == Space::Application)
                .map(|(space, counts)| known.rise(space, counts.map_or(0, |it| it.ce)))
                .fold(0, u64::saturating_add),
        };
        (rise > 0).then_some((time, rise))
    });
    risen.collect()
}

/// A packet of the sender that asks for an ACK, in the application's packet number space.
struct SentPacket {
    time: Nanos,
    acked: Option<Nanos>,
    in_flight: u64,
    has_cwr: bool,
}

/// A sender's packets, in order.
struct Sent {
    packets: Vec<SentPacket>,
    /// When it sent its last data that it had never sent before.
    last_new: Nanos,
    full_size: u64,
    /// When the connection's last packet passed.
    end: Nanos,
}

impl Sent {
    fn of(connection: &Connection, entries: &[LedgerEntry], sender: End) -> Self {
        let mut sent = Self {
            packets: Vec::new(),
            last_new: Nanos::MIN,
            full_size: 0,
            end: connection.packets.last().map_or(0, Packet::time),
        };
        let all = connection.packets.iter().zip(entries);
        for (packet, entry) in all.filter(|(it, _)| it.sender == sender && !it.copy) {
            let Some(time) = packet.sent() else { continue };
            if entry.stream_bytes > entry.retransmitted {
                sent.last_new = sent.last_new.max(time);
            }
            let is_application = packet.space() == Some(Space::Application);
            if !is_application || !connection.is_ack_eliciting(packet) {
                continue;
            }
            sent.full_size = sent.full_size.max(u64::from(packet.size));
            sent.packets.push(SentPacket {
                time,
                acked: entry.acked.nanos(),
                in_flight: entry.in_flight.count().unwrap_or(0),
                has_cwr: connection.protocol == Protocol::Tcp && has(connection, packet, "CWR"),
            });
        }
        sent
    }

    /// When a packet sent after `from` was first acknowledged; of TCP, when the first segment with
    /// CWR was, if it was sent until then: before that, the receiver goes on to echo.
    /// None: it was not.
    fn round_end(&self, from: Nanos) -> Option<Nanos> {
        let later = &self.packets[self.packets.partition_point(|it| it.time <= from)..];
        let end = later.iter().find_map(|it| it.acked)?.max(from);
        let cwr = self.between(from, end).iter().find(|it| it.has_cwr);
        Some(cwr.and_then(|it| it.acked).unwrap_or(end))
    }

    /// The packets sent from one time until before another.
    fn between(&self, from: Nanos, until: Nanos) -> &[SentPacket] {
        let index = |time| self.packets.partition_point(|it| it.time < time);
        &self.packets[index(from)..index(until).max(index(from))]
    }

    /// Measures a round. `last` is the marked round before it.
    fn complete(&self, round: &mut MarkedRound, last: Option<&MarkedRound>, protocol: Protocol) {
        let length = round.until.saturating_sub(round.from);
        let most = |packets: &[SentPacket]| packets.iter().map(|it| it.in_flight).max();
        // Bytes in flight before the answer to the last round are no measure for this one.
        let middle = last.map_or(Nanos::MIN, |last| last.from + (last.until - last.from) / 2);
        let begin = round.from.saturating_sub(length).max(middle);
        let before = most(self.between(begin, round.from));
        round.before = before.unwrap_or_else(|| last.map_or(0, |last| last.after));
        let later = self.between(round.from + length / 2, round.until);
        let next = || self.between(round.until, Nanos::MAX).first();
        let after = most(later).or_else(|| next().map(|it| it.in_flight));
        round.after = after.unwrap_or(0);
        round.later =
            most(self.between(round.until, round.until.saturating_add(length))).unwrap_or(0);
        let within = self.between(round.from, round.until);
        round.cwr = within.iter().filter(|it| it.has_cwr).count() as u64;
        let answered = match protocol {
            Protocol::Tcp => round.cwr > 0,
            Protocol::Quic(_) => round.after + self.full_size <= round.before,
        };
        let has_ended = self.round_end(round.from).is_some() && after.is_some();
        let has_more = has_ended && round.until <= self.last_new;
        round.answered = (has_more || round.cwr > 0).then_some(answered);
    }
}
