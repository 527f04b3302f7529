//! The congestion window left the link idle.

use super::super::quantities::{Bytes, Percent, Seconds, share};
use super::super::rounds::Round;
use super::super::signals::Signals;
use super::super::slow_start::SlowStart;
use super::super::span::{Span, at_rate, percent_of, time_within, union};
use super::super::transfer::Missing;
use super::{Judgement, Rule, idle_gaps};
use crate::connection::Nanos;
use crate::durations::seconds;

/// There were data and credit, but the window was too small for the link. Endres, figures 5.9 and
/// 5.13; Kosek, section III ("ACK-locked").
///
/// - Yes: rounds with less than [`FULL_PERCENT`] % of the BDP in flight took at least
///   [`SHARE_PERCENT`] % of the time in which there were new data, and two RTTs, and left at least
///   a tenth of the link empty. Time without credit, pauses and silences (`idle_gaps`) are taken
///   off; a round of which they are half does not count. With a qlog, a round counts only if
///   [`WINDOW_PERCENT`] % of the logged window was in flight. Slow start counts, and the text says
///   how much it was, if that is known.
/// - Not sure: without the sender's side; without the link's rate.
pub(super) const RULE: Rule = Rule {
    id: "limited_by_cwnd",
    title: "Limited by the congestion window",
    judge,
};

/// In flight below this share of the BDP cannot fill the link for a whole round.
const FULL_PERCENT: u64 = 90;
/// A transfer that has to find its rate spends some rounds on it; a quarter of the time is more
/// than that.
const SHARE_PERCENT: i64 = 25;
/// And less than a tenth of the link is not worth a finding.
const EMPTY: f64 = 0.1;
/// In flight within this share of a logged window means that the window is what holds it.
const WINDOW_PERCENT: u64 = 80;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_sender_side()?;
    let (rate, bdp, rtt) = (
        signals.transfer.needs_rate()?,
        signals.transfer.needs_bdp()?,
        signals.transfer.needs_rtt()?,
    );
    let sending = signals.transfer.sending;
    let other = OtherLimits::of(signals, rtt);
    let short: Vec<&Round> = signals
        .rounds
        .iter()
        .filter(|it| it.span.until <= sending.until)
        .filter(|it| signals.transfer.on_link(it.in_flight) * 100 < bdp * FULL_PERCENT)
        .filter(|it| is_by_window(signals, it, &other))
        .collect();
    // Time of such a round that was lost to credit, pauses or silences is not due to the window.
    let length = |round: &Round| round.span.length() - other.within(round);
    let time: Nanos = short.iter().map(|it| length(it)).sum();
    let empty: u64 = short
        .iter()
        .map(|it| at_rate(rate, length(it)).saturating_sub(it.ip_bytes))
        .sum();
    let in_slow_start = slow_start_end(signals).map(|end| {
        let rounds = short.iter().filter(|it| it.span.from < end);
        let time: Nanos = rounds.map(|it| length(it)).sum();
        format!("; {} of that time was slow start", Seconds(time))
    });
    let whole = at_rate(rate, sending.length());
    let most = |rounds: &mut dyn Iterator<Item = &Round>| {
        Bytes(
            signals
                .transfer
                .on_link(rounds.map(|it| it.in_flight).max().unwrap_or(0)),
        )
    };
    let text = if short.is_empty() {
        format!(
            "No round with data and credit had less than {FULL_PERCENT} % of the path's {} in \
             flight.",
            Bytes(bdp)
        )
    } else {
        format!(
            "For {} of {} less than {FULL_PERCENT} % of the path's {} was in flight though there \
             were data and credit, {} at most in these rounds and {} in the whole transfer: {} of \
             the link stayed empty{}.",
            Seconds(time),
            Seconds(sending.length()),
            Bytes(bdp),
            most(&mut short.iter().copied()),
            most(&mut signals.rounds.iter()),
            Percent(share(empty, whole)),
            in_slow_start.unwrap_or_default(),
        )
    };
    let is_limited = time >= percent_of(sending.length(), SHARE_PERCENT)
        && time / 2 >= rtt
        && share(empty, whole) >= EMPTY;
    let judgement = Judgement::yes_if(is_limited, text)
        .over(sending, "time short of window", seconds(time), "s")
        .over(
            sending,
            "share of the link left empty",
            share(empty, whole) * 100.0,
            "%",
        );
    Ok(if is_limited {
        judgement.shown_in("in_flight", sending)
    } else {
        judgement
    })
}

fn is_by_window(signals: &Signals<'_>, round: &Round, other: &OtherLimits) -> bool {
    let logged = signals.transfer.logged_window(round.span);
    let is_near = logged.is_none_or(|window| round.in_flight * 100 >= window * WINDOW_PERCENT);
    is_near && other.within(round) < round.span.length() / 2
}

/// When something other than the window held the sender.
struct OtherLimits(Vec<Span>);

impl OtherLimits {
    /// When it was without credit, paused or silent; one may be the other too.
    fn of(signals: &Signals<'_>, rtt: Nanos) -> Self {
        let mut spans = signals.blocked.spans.clone();
        spans.extend(signals.pauses.iter().map(|it| it.span));
        spans.extend(idle_gaps::of(signals, rtt));
        Self(union(spans))
    }

    /// How much of a round that was.
    fn within(&self, round: &Round) -> Nanos {
        time_within(self.0.iter().copied(), round.span)
    }
}

/// When slow start ended; with the data, if it did not. None if that is not known.
fn slow_start_end(signals: &Signals<'_>) -> Option<Nanos> {
    match signals.slow_start.as_ref().ok()? {
        SlowStart::Left(exit) => Some(exit.at),
        SlowStart::HeldByCredit(held) | SlowStart::HeldByPauses(held) => Some(held.at),
        SlowStart::OutOfData(_) => Some(signals.transfer.sending.until),
    }
}
