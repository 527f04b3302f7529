//! The data sender was silent for longer than a round trip though it had data to send.

use super::super::quantities::{Count, Seconds, float};
use super::super::signals::Signals;
use super::super::span::{Span, percent_of};
use super::super::transfer::Missing;
use super::{Judgement, Rule};
use crate::connection::Nanos;
use crate::durations::seconds;

/// The sender was silent for longer than a round trip, with data to send. Endres, figures 5.12 and
/// 5.18: the server "even stops and waits for some time until it resumes".
///
/// - Yes: a silence of more than [`RTTS_PERCENT`] % of an RTT (the larger of the smallest and the
///   latest sample) before the last new data, of which less than half was without credit. If the
///   transfer is not whole, silence at the end of the capture counts too. Waiting for the ACKs of a
///   whole window takes one RTT; more means that all was lost, or that a timer ran.
/// - Not sure: without the sender's side.
pub(super) const RULE: Rule = Rule {
    id: "idle_gaps",
    title: "Silent with data to send",
    judge,
};

/// A window sent at once comes back after an RTT, the transmission of its first packets, and a
/// delayed ACK.
const RTTS_PERCENT: Nanos = 150;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_sender_side()?;
    let rtt = signals.transfer.needs_rtt()?;
    let gaps = of(signals, rtt);
    let Some(longest) = gaps.iter().max_by_key(|it| it.length()) else {
        let longest = silences(signals, 0, 0).into_iter().map(Span::length).max();
        return Ok(Judgement::no(format!(
            "With data to send and credit, the sender was never silent for longer than {}, {} of \
             an RTT at most.",
            Seconds(longest.unwrap_or(0)),
            super::super::quantities::Percent(seconds(longest.unwrap_or(0)) / seconds(rtt)),
        )));
    };
    let sum: Nanos = gaps.iter().map(|it| it.length()).sum();
    let text = format!(
        "The sender was silent {} for {} in all though it had data to send and credit; the longest \
         silence began at {} and took {}, the RTT is {}.",
        Count(gaps.len() as u64, "time"),
        Seconds(sum),
        Seconds(longest.from),
        Seconds(longest.length()),
        Seconds(rtt),
    );
    Ok(Judgement::yes(text)
        .over(*longest, "longest silence", seconds(longest.length()), "s")
        .over(
            signals.transfer.sending,
            "silences",
            float(gaps.len() as u64),
            "silences",
        )
        .shown_in("offset", *longest))
}

/// The silences of more than a round trip that flow control does not explain.
pub(super) fn of(signals: &Signals<'_>, rtt: Nanos) -> Vec<Span> {
    silences(signals, percent_of(rtt, RTTS_PERCENT), RTTS_PERCENT)
}

/// The silences of more than `least`, and of more than `percent` of the latest RTT sample before.
fn silences(signals: &Signals<'_>, least: Nanos, percent: Nanos) -> Vec<Span> {
    let samples: Vec<(Nanos, Nanos)> = signals.transfer.rtt_samples().collect();
    let latest = |time: Nanos| {
        let before = samples.partition_point(|(at, _)| *at <= time);
        before.checked_sub(1).map_or(0, |at| samples[at].1)
    };
    let sent = signals
        .transfer
        .sent_in_flight()
        .map(|(packet, _)| packet.time());
    // With data left at the end of the capture, the silence until then counts.
    let end = (!signals.transfer.is_whole).then_some(signals.transfer.sending.until);
    let mut silences = Vec::new();
    let mut before: Option<Nanos> = None;
    for until in sent.chain(end) {
        if let Some(from) = before.replace(until) {
            let span = Span { from, until };
            let blocked = signals.blocked.within(span);
            let is_long = span.length() > least.max(percent_of(latest(from), percent));
            if signals.transfer.has_more(from) && is_long && blocked < span.length() / 2 {
                silences.push(span);
            }
        }
    }
    silences
}
