//! The sender slows down more than once in a round trip.

use super::super::quantities::{Bytes, Count, Seconds, float};
use super::super::signals::Signals;
use super::super::transfer::{Missing, Transfer};
use super::ce_not_answered::{needs_rounds, span};
use super::{Judgement, Rule};
use crate::connection::Protocol;
use crate::marks::MarkedRound;

/// The sender slowed down for marks more than once in a round trip: its window collapses. RFC 9002,
/// section 7.3.2: once per recovery period; RFC 3168, section 6.1.2: once per window of data.
///
/// Of the rounds of `ce_not_answered`, those count in which several ACKs reported more marks, and
/// no packet was lost by the rules of RFC 9002.
///
/// - Yes: in at least [`LEAST_PERCENT`] % of them TCP sent several segments with CWR; or QUIC, with
///   a qlog, lowered the logged window several times, each by [`STEP_PERCENT`] % or more; without
///   one, had less than [`LEFT_PERCENT`] % of the bytes in flight left, and no more in as long a
///   time after the round, where one reduction leaves half.
/// - Not sure: without the sender's side; without secrets; accurate ECN of TCP (RFC 9768).
pub(super) const RULE: Rule = Rule {
    id: "ce_answered_often",
    title: "Marks answered too often",
    judge,
};

/// Fewer may have another reason, such as an application without data.
const LEAST_PERCENT: u64 = 50;
/// Smaller steps are of a reduction that is spread over the round.
const STEP_PERCENT: u64 = 10;
/// RFC 9002 section 7.3.2 halves; less than this is left by two reductions to 70 % and one packet.
const LEFT_PERCENT: u64 = 45;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    let (transfer, mut rounds) = (&signals.transfer, needs_rounds(signals)?);
    rounds.retain(|it| it.reports > 1 && !has_loss(transfer, it));
    if rounds.is_empty() {
        return Ok(Judgement::no(
            "In no round did several ACKs report marks and nothing was lost.".to_owned(),
        ));
    }
    let often: Vec<_> = rounds
        .iter()
        .filter(|it| reduces_often(transfer, it))
        .collect();
    let (all, count) = (rounds.len() as u64, often.len() as u64);
    let text = |said: &str| {
        format!(
            "In {count} of {} with several reports of marks, the sender slowed down more than \
             once{said}.",
            Count(all, "round"),
        )
    };
    let Some(worst) = often.iter().max_by_key(|it| it.reports) else {
        return Ok(Judgement::no(text("")));
    };
    let is_often = count * 100 >= all * LEAST_PERCENT;
    let span = span(worst);
    let judgement = Judgement::yes_if(is_often, text(&reductions(transfer, worst)))
        .over(span, "reports of marks in it", float(worst.reports), "ACKs")
        .over(span, "in flight before", float(worst.before), "bytes")
        .over(span, "in flight after", float(worst.after), "bytes");
    Ok(if is_often {
        judgement.shown_in("in_flight", span)
    } else {
        judgement
    })
}

fn has_loss(transfer: &Transfer<'_>, round: &MarkedRound) -> bool {
    let mut sent = transfer.sent_in_flight();
    sent.any(|(_, entry)| {
        entry
            .declared_lost
            .nanos()
            .is_some_and(|at| span(round).has(at))
    })
}

fn reduces_often(transfer: &Transfer<'_>, round: &MarkedRound) -> bool {
    if transfer.view.connection.protocol == Protocol::Tcp {
        return round.cwr > 1;
    }
    match transfer.logged_reductions(span(round), STEP_PERCENT) {
        Some(count) => count > 1,
        None => round.after.max(round.later) * 100 < round.before * LEFT_PERCENT,
    }
}

/// The evidence of reductions in a round, as a clause.
fn reductions(transfer: &Transfer<'_>, round: &MarkedRound) -> String {
    let at = Seconds(round.from);
    if transfer.view.connection.protocol == Protocol::Tcp {
        return format!("; in that at {at}, {} had CWR", Count(round.cwr, "segment"));
    }
    if let Some(count) = transfer.logged_reductions(span(round), STEP_PERCENT) {
        return format!(
            "; in that at {at}, the logged window fell {}",
            Count(count, "time")
        );
    }
    format!(
        "; in that at {at}, {} reported {}, and of {} in flight {} were left",
        Count(round.reports, "ACK"),
        Count(round.marks, "mark"),
        Bytes(round.before),
        Bytes(round.after)
    )
}
