//! The congestion window left the link idle.
//!
//! Names what Endres 2022 shows in figures 5.9 and 5.13 (a window that never reaches the BDP, or is cut again and again) and
//! Kosek 2022 section III calls "ACK-locked": the sender has data and credit, but must wait for ACKs.
//!
//! Rule: a round ([`super::super::rounds`]) is short of window if no more than [`FULL_PERCENT`] of the BDP was ever in flight in
//! it, and neither credit nor pauses nor a silence of more than a round trip explain half of it. Yes, if such rounds took at
//! least [`SHARE_PERCENT`] of the time in which there were new data to send, and two RTTs, and left at least
//! [`EMPTY_PERCENT`] of the link empty over that whole time. With a qlog, in flight must also have come close to the logged
//! window, or the round does not count.
//!
//! Not sure without the sender's side, or without the link's rate.

use super::super::rounds::Round;
use super::super::say::{Bytes, Percent, Seconds, in_seconds, share};
use super::super::signals::{Missing, Signals, Span, at_rate, time_within};
use super::super::slow_start::SlowStart;
use super::{Judgement, Rule, idle_gaps};
use crate::connection::Nanos;

pub(super) const RULE: Rule = Rule {
    id: "limited_by_cwnd",
    title: "Limited by the congestion window",
    judge,
};

/// In flight below this share of the BDP cannot fill the link for a whole round.
const FULL_PERCENT: u64 = 90;
/// A transfer that has to find its rate spends some rounds on it; a quarter of the time is more than that.
const SHARE_PERCENT: i64 = 25;
/// And less than a tenth of the link is not worth a finding.
const EMPTY_PERCENT: u64 = 10;
/// In flight within this share of a logged window means that the window is what holds it.
const WINDOW_PERCENT: u64 = 80;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.needs_sender_side()?;
    let (rate, bdp, rtt) = (
        signals.needs_rate()?,
        signals.needs_bdp()?,
        signals.needs_rtt()?,
    );
    let sending = signals.sending;
    let gaps: Vec<Span> = idle_gaps::of(signals, rtt);
    let short: Vec<&Round> = signals
        .rounds
        .iter()
        .filter(|it| it.span.until <= sending.until)
        .filter(|it| signals.on_link(it.in_flight) * 100 < bdp * FULL_PERCENT)
        .filter(|it| is_by_window(signals, it, &gaps))
        .collect();
    // What credit, pauses or silences took of such a round is not the window's.
    let length = |round: &Round| round.span.length() - explained(signals, round, &gaps);
    let time: Nanos = short.iter().map(|it| length(it)).sum();
    let empty: u64 = short
        .iter()
        .map(|it| at_rate(rate, length(it)).saturating_sub(it.ip_bytes))
        .sum();
    let end = slow_start_end(signals);
    let in_slow_start: Nanos = short
        .iter()
        .filter(|it| it.span.from < end)
        .map(|it| length(it))
        .sum();
    let whole = at_rate(rate, sending.length());
    let largest = short.iter().map(|it| it.in_flight).max().unwrap_or(0);
    let text = format!(
        "For {} of {} the window held less than the path's {} ({} at most) though there were data and credit: {} of the \
         link stayed empty; {} of that time was slow start.",
        Seconds(time),
        Seconds(sending.length()),
        Bytes(bdp),
        Bytes(signals.on_link(largest)),
        Percent(share(empty, whole)),
        Seconds(in_slow_start),
    );
    let is_limited = time * 100 >= sending.length() * SHARE_PERCENT
        && time >= 2 * rtt
        && empty * 100 >= whole * EMPTY_PERCENT;
    let judgement = Judgement::yes_if(is_limited, text)
        .over(sending, "time short of window", in_seconds(time), "s")
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

fn is_by_window(signals: &Signals<'_>, round: &Round, gaps: &[Span]) -> bool {
    let logged = signals.logged_window(round.span);
    let is_near = logged.is_none_or(|window| round.in_flight * 100 >= window * WINDOW_PERCENT);
    is_near && explained(signals, round, gaps) * 2 < round.span.length()
}

/// How much of a round the sender was without credit, paused or silent.
fn explained(signals: &Signals<'_>, round: &Round, gaps: &[Span]) -> Nanos {
    let pauses = signals.pauses.iter().map(|it| it.span);
    let sum = signals.blocked.within(round.span)
        + time_within(pauses, round.span)
        + time_within(gaps.iter().copied(), round.span);
    // A silence may be a pause too.
    sum.min(round.span.length())
}

/// When slow start ended; with the data, if it did not.
fn slow_start_end(signals: &Signals<'_>) -> Nanos {
    match &signals.slow_start {
        Ok(SlowStart::Left(exit)) => exit.at,
        Ok(SlowStart::HeldByCredit(held) | SlowStart::HeldByPauses(held)) => held.at,
        Ok(SlowStart::OutOfData(_)) | Err(_) => signals.sending.until,
    }
}
