//! How slow start ended.
//!
//! In slow start the window doubles every round (RFC 9002 section 7.3.1), or grows by half in the conservative slow start of
//! RFC 9406; in congestion avoidance, a large window hardly grows within one round. The window shows as the most bytes in
//! flight in a round, or in the sender's own log. Slow start ends with the first round that has not grown, if the next has
//! not either or a loss was declared: a loss that does not stop growth does not end it (BBR).
//!
//! What else stops growth is told apart: a sender without credit, and one that paused. A loss that comes only after that ended
//! no growth.

use crate::connection::Nanos;

use super::rounds::Round;
use super::signals::{Missing, Signals, Span, time_within};

/// A round grows if its window is this many percent of the largest before. Conservative slow start of RFC 9406 gives 150
/// with ACKs of every packet and at least 125; CUBIC at 50 packets and more gives less than 110 right after slow start.
const GROWTH_PERCENT: u64 = 120;
/// Credit or pauses explain a round without growth if they took at least this part of it.
const HELD: Nanos = 8;

/// How slow start ended.
///
/// Once growth was held, only new growth makes a later end one of slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlowStart {
    /// The window stopped growing.
    Left(Exit),
    /// It still grew when the last new data were sent; the most bytes in flight.
    OutOfData(u64),
    /// Growth stopped because the credit was used up.
    HeldByCredit(Held),
    /// Growth stopped because the sender paused.
    HeldByPauses(Held),
}

/// A window that something else kept from growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    /// When growth stopped.
    pub at: Nanos,
    /// The most bytes in flight until then.
    pub in_flight: u64,
    /// The first loss that was declared later.
    pub loss: Option<Nanos>,
}

/// The end of slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit {
    /// When the first loss was declared, or the first round without growth began.
    pub at: Nanos,
    /// The most bytes in flight until then, as QUIC packets.
    pub in_flight: u64,
    /// Whether a loss ended it.
    pub by_loss: bool,
    /// Packets sent in the round that it ended in and the one before.
    pub packets: u64,
    /// How many of these did not arrive.
    pub lost: u64,
}

impl SlowStart {
    pub(super) fn exit(&self) -> Option<&Exit> {
        match self {
            Self::Left(exit) => Some(exit),
            _ => None,
        }
    }
}

/// How the data sender's slow start ended.
pub(super) fn of(signals: &Signals<'_>) -> Result<SlowStart, Missing> {
    signals.needs_sender_side()?;
    let all = &signals.rounds;
    // The round in which the data end is no measure of the window.
    let whole = all.partition_point(|it| it.span.until <= signals.sending.until);
    let rounds = &all[..whole];
    let windows: Vec<u64> = rounds.iter().map(|it| window(signals, it)).collect();
    let (mut largest, mut held) = (0, None);
    for (at, round) in rounds.iter().enumerate() {
        let grows = |window: u64| window * 100 >= largest * GROWTH_PERCENT;
        if largest == 0 || grows(windows[at]) {
            largest = largest.max(windows[at]);
            held = None;
            continue;
        }
        if held.is_none()
            && let Some(loss) = loss_around(rounds, at)
        {
            return Ok(SlowStart::Left(exit(rounds, at, Some(loss))));
        }
        if held.is_some() {
            continue;
        }
        let stopped = Held {
            at: round.span.from,
            in_flight: in_flight(rounds, at + 1),
            loss: rounds[at..].iter().find_map(|it| it.loss_declared),
        };
        if takes_part(signals.blocked.spans.iter().copied(), round.span) {
            held = Some(SlowStart::HeldByCredit(stopped));
        } else if takes_part(signals.pauses.iter().map(|it| it.span), round.span) {
            held = Some(SlowStart::HeldByPauses(stopped));
        } else if windows.get(at + 1).is_some_and(|next| !grows(*next)) {
            return Ok(SlowStart::Left(exit(rounds, at, None)));
        }
    }
    Ok(held.unwrap_or(SlowStart::OutOfData(in_flight(all, all.len()))))
}

fn takes_part(spans: impl Iterator<Item = Span>, round: Span) -> bool {
    time_within(spans, round) * HELD >= round.length()
}

/// The congestion window of a round, or what was in flight of it.
fn window(signals: &Signals<'_>, round: &Round) -> u64 {
    signals.logged_window(round.span).unwrap_or(round.in_flight)
}

/// The first loss that was declared in round `at` or the one before.
fn loss_around(rounds: &[Round], at: usize) -> Option<Nanos> {
    let around = &rounds[at.saturating_sub(1)..=at];
    around.iter().find_map(|it| it.loss_declared)
}

fn in_flight(rounds: &[Round], before: usize) -> u64 {
    let windows = rounds[..before].iter().map(|it| it.in_flight);
    windows.max().unwrap_or(0)
}

fn exit(rounds: &[Round], at: usize, loss: Option<Nanos>) -> Exit {
    // What was sent in the round of the loss stood in flight when it was declared.
    let around = &rounds[at.saturating_sub(1)..=at];
    Exit {
        at: loss.unwrap_or(rounds[at].span.from),
        in_flight: in_flight(rounds, at + 1),
        by_loss: loss.is_some(),
        packets: around.iter().map(|it| it.packets).sum(),
        lost: around.iter().map(|it| it.lost).sum(),
    }
}
