//! Times in which the data sender paused though its window was not full.
//!
//! What the window was, a capture does not say. But it was at least as large as the most bytes that
//! were in flight since the last loss: only losses make a window smaller (RFC 9002 section 7),
//! apart from senders that model the path and drain it on purpose (BBR). So a sender that sends
//! nothing for half a round trip while less than half of that is in flight waits for something
//! else: credit, its application, or a timer.

use crate::connection::{Nanos, Packet};

use super::span::Span;
use super::transfer::Transfer;

/// In flight is at most this part of the largest since the last loss: half, which is more than a
/// loss or a burst's granularity explains.
const ROOM: u64 = 2;
/// Silence counts from this part of an RTT on: half, for pacing spreads a window over less than one
/// RTT.
const SILENCE: Nanos = 2;
/// The least window, in full packets: with fewer, half of it is one packet or two.
const SMALLEST_WINDOW: u64 = 4;
/// A packet of less than this share of a full one, in percent, is not full: headers differ by a few
/// bytes.
const FULL_PERCENT: u32 = 90;

/// A pause while the window was not full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pause {
    pub span: Span,
    /// The most bytes in flight since the last loss: the window was no smaller.
    pub window: u64,
    /// Whether the packet before it could have held more: the sender had run out of data.
    pub ran_dry: bool,
}

/// The pauses before the last new data.
pub(super) fn of(transfer: &Transfer<'_>) -> Vec<Pause> {
    let Some(rtt) = transfer.rtt.filter(|rtt| *rtt > 0) else {
        return Vec::new();
    };
    let sent: Vec<_> = transfer.sent_in_flight().collect();
    let mut tracker = FlightTracker::of(transfer);
    let mut pauses = Vec::new();
    for pair in sent.windows(2) {
        let [(before, entry), (after, _)] = pair else {
            continue;
        };
        let (from, until) = (before.time(), after.time());
        if !transfer.has_more(from) {
            break;
        }
        let in_flight = entry.in_flight.count().unwrap_or(0);
        tracker.sent(from, in_flight);
        if until - from < rtt / SILENCE {
            continue;
        }
        let window = tracker.window;
        let full = u64::from(transfer.full_size);
        let roomy = tracker.falls_to(from, in_flight, window / ROOM);
        if let Some(roomy) = roomy
            && window >= SMALLEST_WINDOW * full
            && until - roomy >= rtt / SILENCE
        {
            pauses.push(Pause {
                span: Span { from: roomy, until },
                window,
                ran_dry: is_underfull(before, transfer.full_size),
            });
        }
    }
    pauses
}

/// Bytes in flight over time, and their maximum since the last loss.
struct FlightTracker {
    /// When how many bytes are acknowledged or declared lost.
    leaving: Vec<(Nanos, u64)>,
    losses: Vec<Nanos>,
    seen_losses: usize,
    window: u64,
}

impl FlightTracker {
    fn of(transfer: &Transfer<'_>) -> Self {
        let sent = transfer.sent_in_flight();
        let mut leaving: Vec<_> = sent
            .filter_map(|(packet, entry)| {
                let gone = [entry.acked.nanos(), entry.declared_lost.nanos()]
                    .into_iter()
                    .flatten()
                    .min();
                Some((gone?, u64::from(packet.size)))
            })
            .collect();
        leaving.sort_unstable();
        let mut losses: Vec<_> = transfer
            .sent_in_flight()
            .filter_map(|(_, it)| it.declared_lost.nanos())
            .collect();
        losses.sort_unstable();
        Self {
            leaving,
            losses,
            seen_losses: 0,
            window: 0,
        }
    }

    /// A packet was sent at `now`; with it, `in_flight` bytes are in flight.
    fn sent(&mut self, now: Nanos, in_flight: u64) {
        let losses = self.losses.partition_point(|time| *time <= now);
        if losses > self.seen_losses {
            self.seen_losses = losses;
            self.window = 0;
        }
        self.window = self.window.max(in_flight);
    }

    /// When, after `from` and with nothing sent, no more than `level` is in flight. A loss on the
    /// way may have made the window smaller: then never.
    fn falls_to(&self, from: Nanos, mut in_flight: u64, level: u64) -> Option<Nanos> {
        let first = self.leaving.partition_point(|(time, _)| *time <= from);
        let next_loss = self.losses.get(self.seen_losses);
        for (time, bytes) in &self.leaving[first..] {
            if next_loss.is_some_and(|loss| loss <= time) {
                return None;
            }
            in_flight = in_flight.saturating_sub(*bytes);
            if in_flight <= level {
                return Some(*time);
            }
        }
        None
    }
}

fn is_underfull(packet: &Packet, full: u32) -> bool {
    packet.size * 100 < full * FULL_PERCENT
}
