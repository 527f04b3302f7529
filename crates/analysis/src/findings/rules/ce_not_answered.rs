//! Marks are reported to the sender, which does not slow down.

use super::super::quantities::{Bytes, Count, Seconds, float};
use super::super::signals::Signals;
use super::super::span::Span;
use super::super::transfer::{Missing, Transfer};
use super::{Judgement, Rule};
use crate::connection::Protocol;
use crate::marks::MarkedRound;

/// Marks were reported to the sender, which did not slow down. RFC 9002, section 7.1: a mark that
/// is reported is a congestion event; RFC 3168, section 6.1.2.
///
/// A round begins when a mark is reported to the sender and ends when a packet sent after that is
/// acknowledged. TCP says by CWR that it slowed down. QUIC did if, with a qlog, the logged window
/// fell in the round; else if the most bytes in flight in its second half were at least a packet
/// below the most in as long a time before it. Rounds in which new data ended or the sender was
/// without credit do not count.
///
/// - Yes: it slowed down in less than [`LEAST_PERCENT`] % of the rounds. After few marks, L4S (RFC
///   9331) reduces by less than a packet, which is not seen in all rounds.
/// - Not sure: without the sender's side; without secrets; fewer than [`LEAST_ROUNDS`] rounds of
///   QUIC; accurate ECN of TCP (RFC 9768).
pub(super) const RULE: Rule = Rule {
    id: "ce_not_answered",
    title: "Marks not answered",
    judge,
};

/// The algorithms of L4S were seen to answer in two rounds of three.
const LEAST_PERCENT: u64 = 25;
/// One round may have had another reason to keep its bytes in flight.
const LEAST_ROUNDS: u64 = 2;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    let (transfer, rounds) = (&signals.transfer, needs_rounds(signals)?);
    let Some(last) = rounds.last() else {
        return Ok(Judgement::no(
            "The sender heard of no marks while it had data to send.".to_owned(),
        ));
    };
    let answered = rounds.iter().filter(|it| is_answered(transfer, it));
    let (all, answered) = (rounds.len() as u64, answered.count() as u64);
    let first = rounds.iter().find(|it| !is_answered(transfer, it));
    let said = first.map_or(String::new(), |round| unanswered(transfer, round));
    let text = format!(
        "The sender heard of marks in {} from {} on, and slowed down in {answered} of them{said}.",
        Count(all, "round"),
        Seconds(rounds[0].from),
    );
    let is_ignored = answered * 100 < all * LEAST_PERCENT;
    let is_quic = transfer.view.connection.protocol != Protocol::Tcp;
    if is_ignored && is_quic && all < LEAST_ROUNDS {
        return Missing::because(format!(
            "the sender heard of marks in {} only, and no reduction was seen",
            Count(all, "round")
        ));
    }
    let span = Span {
        from: rounds[0].from,
        until: last.until,
    };
    let judgement = Judgement::yes_if(is_ignored, text)
        .over(span, "rounds with marks", float(all), "rounds")
        .over(span, "rounds with an answer", float(answered), "rounds");
    Ok(if is_ignored {
        judgement.shown_in("in_flight", span)
    } else {
        judgement
    })
}

/// The rounds in which an answer can be seen.
pub(super) fn needs_rounds<'a>(signals: &'a Signals<'_>) -> Result<Vec<&'a MarkedRound>, Missing> {
    signals.transfer.needs_sender_side()?;
    let Some(rounds) = &signals.marks.rounds else {
        return Missing::because("the counters of accurate ECN are not read");
    };
    let is_free =
        |round: &&MarkedRound| round.answered.is_some() && signals.blocked.within(span(round)) == 0;
    Ok(rounds.iter().filter(is_free).collect())
}

pub(super) fn span(round: &MarkedRound) -> Span {
    Span {
        from: round.from,
        until: round.until,
    }
}

/// By what the sender said or logged; else by its bytes in flight.
fn is_answered(transfer: &Transfer<'_>, round: &MarkedRound) -> bool {
    let logged = transfer.logged_reductions(span(round), 0);
    round.answered == Some(true) || logged.is_some_and(|count| count > 0)
}

/// The evidence of a round without an answer, as a clause.
fn unanswered(transfer: &Transfer<'_>, round: &MarkedRound) -> String {
    let at = Seconds(round.from);
    match transfer.view.connection.protocol {
        Protocol::Tcp => format!("; in that at {at}, no segment had CWR"),
        Protocol::Quic(_) => format!(
            "; in that at {at}, by {}, it had {} in flight before and {} after",
            Count(round.marks, "mark"),
            Bytes(round.before),
            Bytes(round.after)
        ),
    }
}
