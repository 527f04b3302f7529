//! How slow start ended.
//!
//! In slow start the window doubles every round (RFC 9002 section 7.3.1), or grows by half in the
//! conservative slow start of RFC 9406; in congestion avoidance, a large window hardly grows within
//! one round. The window shows as the most bytes in flight in a round, or in the sender's own log.
//! Slow start ends with the first round that has not grown, if the next has not either or a loss
//! was declared: a loss that does not stop growth does not end it (BBR).
//!
//! A logged window tells more: slow start ends no later than its first drop, if that is not made
//! good within two round trips.
//!
//! Without the beginning of the connection in the capture, or without ACKs, nothing can be said.
//!
//! What else stops growth is told apart: a sender without credit, and one that paused. A loss that
//! comes only after that ended no growth.

use crate::connection::Nanos;

use super::credit::Blocked;
use super::pauses::Pause;
use super::quantities::Seconds;
use super::rounds::Round;
use super::span::{Span, time_within};
use super::transfer::{Missing, Transfer};
use super::transfer_bounds;

/// A round grows if its window is this many percent of the largest before. Conservative slow start
/// of RFC 9406 gives 150 with ACKs of every packet and at least 125; CUBIC at 50 packets and more
/// gives less than 110 right after slow start.
const GROWTH_PERCENT: u64 = 120;
/// Credit or pauses explain a round without growth if they took at least this part of it.
const HELD: Nanos = 8;

/// A logged window fell if it has this many percent left. CUBIC leaves 70 (RFC 9438 section 4.6);
/// stacks that count acknowledged bytes in fractions of a packet wobble by less than one.
const FALLEN_PERCENT: u64 = 90;
/// A sender logs its window this long after the ACK that showed the loss, at most.
const LOGGED_WITHIN: Nanos = 5_000_000;
/// Rounds need ACKs. Without any for this many round trips, what the window did cannot be told.
const SILENT_RTTS: Nanos = 3;

/// The end of slow start.
///
/// Once growth was held, only new growth makes a later end one of slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlowStart {
    /// The window stopped growing.
    Left(Exit),
    /// Slow start still went on when the last new data were sent; the most bytes in flight.
    OutOfData(u64),
    /// Growth stopped because the credit was used up.
    HeldByCredit(HeldWindow),
    /// Growth stopped because the sender paused.
    HeldByPauses(HeldWindow),
}

/// A window that something else kept from growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldWindow {
    /// The time at which growth stopped.
    pub at: Nanos,
    /// The most bytes in flight until then.
    pub in_flight: u64,
    /// The first loss that was declared later.
    pub loss: Option<Nanos>,
}

/// The end of slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit {
    /// The time at which the first loss was declared, or the first round without growth began.
    pub at: Nanos,
    /// The most bytes in flight until then, as QUIC packets.
    pub in_flight: u64,
    /// Whether a loss ended it.
    pub by_loss: bool,
    /// Packets sent in the round that it ended in and the one before.
    pub packets: u64,
    /// The number of these that did not arrive.
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

/// The history of a sender's window, and what limited it.
pub(super) struct WindowHistory<'a> {
    pub transfer: &'a Transfer<'a>,
    pub rounds: &'a [Round],
    pub blocked: &'a Blocked,
    pub pauses: &'a [Pause],
}

/// The end of the data sender's slow start.
pub(super) fn of(history: &WindowHistory<'_>) -> Result<SlowStart, Missing> {
    let transfer = history.transfer;
    transfer.needs_sender_side()?;
    if transfer_bounds::began_earlier(transfer.view, &transfer.data) {
        return Missing::because(
            "the capture began after the connection, so the start of slow start is not in it",
        );
    }
    let seen = by_rounds(history);
    let seen_until = match &seen {
        SlowStart::Left(exit) if exit.by_loss => Nanos::MAX,
        // The log tells when in that round.
        SlowStart::Left(exit) => round_at(history.rounds, exit.at).map_or(exit.at, |it| it.until),
        SlowStart::HeldByCredit(held) | SlowStart::HeldByPauses(held) => held.at,
        SlowStart::OutOfData(_) => Nanos::MAX,
    };
    if let Some(drop) = logged_drop(history)
        && drop < seen_until
    {
        return Ok(SlowStart::Left(exit(
            history.rounds,
            drop,
            by_loss(history, drop),
        )));
    }
    match (seen, unacknowledged(history)) {
        (SlowStart::OutOfData(_), Some(from)) => Missing::because(format!(
            "from {} on nothing that was sent was acknowledged",
            Seconds(from)
        )),
        (seen, _) => Ok(seen),
    }
}

fn round_at(rounds: &[Round], time: Nanos) -> Option<Span> {
    let mut spans = rounds.iter().map(|it| it.span);
    spans.find(|span| span.has(time))
}

/// How slow start ended by the growth from round to round.
fn by_rounds(history: &WindowHistory<'_>) -> SlowStart {
    let all = history.rounds;
    // The round in which the data end is no measure of the window.
    let whole = all.partition_point(|it| it.span.until <= history.transfer.sending.until);
    let rounds = &all[..whole];
    let windows: Vec<u64> = rounds.iter().map(|it| window(history, it)).collect();
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
            return SlowStart::Left(exit(rounds, loss, true));
        }
        if held.is_some() {
            continue;
        }
        let stopped = HeldWindow {
            at: round.span.from,
            in_flight: in_flight(&rounds[..=at]),
            loss: rounds[at..].iter().find_map(|it| it.loss_declared),
        };
        if takes_part(history.blocked.spans.iter().copied(), round.span) {
            held = Some(SlowStart::HeldByCredit(stopped));
        } else if takes_part(history.pauses.iter().map(|it| it.span), round.span) {
            held = Some(SlowStart::HeldByPauses(stopped));
        } else if windows.get(at + 1).is_some_and(|next| !grows(*next)) {
            return SlowStart::Left(exit(rounds, round.span.from, false));
        }
    }
    held.unwrap_or(SlowStart::OutOfData(in_flight(all)))
}

/// When the logged window first fell, and had not regained its size two round trips later.
fn logged_drop(history: &WindowHistory<'_>) -> Option<Nanos> {
    let log = history.transfer.view.windows[history.transfer.sender as usize]?;
    let regained = history.transfer.rtt.unwrap_or(0).saturating_mul(2);
    // Windows logged before the data belong to the handshake.
    let began = log.partition_point(|(time, _)| *time < history.transfer.sending.from);
    let log = &log[began.saturating_sub(1)..];
    let fell = log.windows(2).enumerate().find(|(at, pair)| {
        let (before, (time, window)) = (pair[0].1, pair[1]);
        let near = log[at + 1..].iter();
        let near = near.take_while(|it| it.0 <= time.saturating_add(regained));
        window * 100 <= before * FALLEN_PERCENT && !near.into_iter().any(|it| it.1 >= before)
    });
    fell.map(|(_, pair)| pair[1].0)
}

/// Whether a loss was declared within a round trip before the window fell, or with that.
fn by_loss(history: &WindowHistory<'_>, fell: Nanos) -> bool {
    let from = fell.saturating_sub(history.transfer.rtt.unwrap_or(0));
    let mut declared = history
        .transfer
        .sent_in_flight()
        .filter_map(|(_, it)| it.declared_lost.nanos());
    declared.any(|time| (from..=fell.saturating_add(LOGGED_WITHIN)).contains(&time))
}

/// The time from which on nothing was acknowledged, if that is more than [`SILENT_RTTS`] before the
/// end of the data.
fn unacknowledged(history: &WindowHistory<'_>) -> Option<Nanos> {
    let last = history.rounds.last().map(|it| it.span.until);
    let from = last.unwrap_or(history.transfer.sending.from);
    let silent = history.transfer.sending.until.saturating_sub(from);
    (silent > history.transfer.rtt?.saturating_mul(SILENT_RTTS)).then_some(from)
}

fn takes_part(spans: impl Iterator<Item = Span>, round: Span) -> bool {
    time_within(spans, round) * HELD >= round.length()
}

/// The congestion window of a round, or what was in flight of it.
fn window(history: &WindowHistory<'_>, round: &Round) -> u64 {
    history
        .transfer
        .logged_window(round.span)
        .unwrap_or(round.in_flight)
}

/// The first loss that was declared in round `at` or the one before.
fn loss_around(rounds: &[Round], at: usize) -> Option<Nanos> {
    let around = &rounds[at.saturating_sub(1)..=at];
    around.iter().find_map(|it| it.loss_declared)
}

/// The most bytes in flight in any of these rounds.
fn in_flight(rounds: &[Round]) -> u64 {
    let windows = rounds.iter().map(|it| it.in_flight);
    windows.max().unwrap_or(0)
}

/// The exit at that time.
fn exit(rounds: &[Round], at: Nanos, by_loss: bool) -> Exit {
    let until = rounds.partition_point(|it| it.span.from <= at);
    // Packets of the round of the loss and of the one before were in flight when it was declared.
    let around = &rounds[until.saturating_sub(2)..until];
    Exit {
        at,
        in_flight: in_flight(&rounds[..until]),
        by_loss,
        packets: around.iter().map(|it| it.packets).sum(),
        lost: around.iter().map(|it| it.lost).sum(),
    }
}
