//! The rules, one per file. The comment above a `RULE` is its section of
//! `docs/reference/findings.md`, where links to constants become their values.

mod acks_overload_return_link;
mod bends_to_lower_rate;
mod ce_answered_often;
mod ce_not_answered;
mod ce_not_echoed;
mod ecn_given_up;
mod ecn_not_used;
mod handshake_retransmitted;
mod idle_gaps;
mod limited_by_application;
mod limited_by_cwnd;
mod limited_by_flow_control;
mod long_tail;
mod loss_storm;
mod no_pacing;
mod non_monotonic_packet_numbers;
mod packet_size_below_path;
mod sent_out_of_order;
mod sent_twice;
mod slow_start_left;
mod spurious_retransmissions;
mod stalled_at_handovers;
mod waited_for_grants;

use crate::connection::Nanos;

use super::signals::Signals;
use super::span::Span;
use super::transfer::Missing;
use super::{Evidence, Finding, PlotPlace, Verdict};
use crate::durations::seconds;
use crate::link_events::LinkEvents;

/// All rules, in the order of a transfer: its start, its course, its end.
pub(super) const ALL: [Rule; 25] = [
    // The start
    handshake_retransmitted::RULE,
    slow_start_left::EARLY,
    slow_start_left::AT_CHOKE_POINT,
    slow_start_left::LATE,
    // Its course
    limited_by_cwnd::RULE,
    limited_by_flow_control::RULE,
    limited_by_application::RULE,
    idle_gaps::RULE,
    no_pacing::RULE,
    packet_size_below_path::RULE,
    loss_storm::RULE,
    spurious_retransmissions::RULE,
    sent_twice::RULE,
    sent_out_of_order::RULE,
    non_monotonic_packet_numbers::RULE,
    acks_overload_return_link::RULE,
    bends_to_lower_rate::RULE,
    // Events of links
    stalled_at_handovers::RULE,
    waited_for_grants::RULE,
    // Marks of queues (ECN)
    ecn_not_used::RULE,
    ecn_given_up::RULE,
    ce_not_echoed::RULE,
    ce_not_answered::RULE,
    ce_answered_often::RULE,
    // Its end
    long_tail::RULE,
];

/// A flaw, and how to tell it.
pub(super) struct Rule {
    pub id: &'static str,
    pub title: &'static str,
    judge: fn(&Signals<'_>) -> Result<Judgement, Missing>,
}

impl Rule {
    pub(super) fn finding(&self, signals: &Signals<'_>) -> Finding {
        let judged = signals
            .transfer
            .needs_most_packets()
            .and_then(|()| (self.judge)(signals));
        let judgement = judged
            .unwrap_or_else(|Missing(what)| Judgement::not_sure(format!("Not sure: {what}.")));
        Finding {
            rule: self.id,
            verdict: judgement.verdict,
            title: self.title,
            text: judgement.text,
            evidence: judgement.evidence,
            plot: judgement.plot,
        }
    }
}

/// The events of the links.
fn link_events<'a>(signals: &Signals<'a>) -> Result<&'a LinkEvents, Missing> {
    let events = signals.transfer.view.link.events.as_ref();
    events.ok_or_else(|| Missing("what the links did is not known".to_owned()))
}

/// A remark for texts where not all events of the links are known.
fn cut_of(events: &LinkEvents) -> &'static str {
    if events.cut {
        " Of the events of the links only the first are known."
    } else {
        ""
    }
}

/// A rule's verdict, its text and its evidence.
struct Judgement {
    verdict: Verdict,
    text: String,
    evidence: Vec<Evidence>,
    plot: Option<PlotPlace>,
}

impl Judgement {
    fn new(verdict: Verdict, text: String) -> Self {
        Self {
            verdict,
            text,
            evidence: Vec::new(),
            plot: None,
        }
    }

    fn yes(text: String) -> Self {
        Self::new(Verdict::Yes, text)
    }

    fn no(text: String) -> Self {
        Self::new(Verdict::No, text)
    }

    fn not_sure(text: String) -> Self {
        Self::new(Verdict::NotSure, text)
    }

    /// Yes or no: the same sentence serves both.
    fn yes_if(condition: bool, text: String) -> Self {
        let verdict = if condition { Verdict::Yes } else { Verdict::No };
        Self::new(verdict, text)
    }

    /// Adds a number that held at a time.
    fn at(mut self, time: Nanos, what: &'static str, value: f64, unit: &'static str) -> Self {
        self.evidence.push(Evidence {
            what,
            at_s: seconds(time),
            until_s: None,
            value,
            unit,
        });
        self
    }

    /// Adds a number that held over a span.
    fn over(mut self, span: Span, what: &'static str, value: f64, unit: &'static str) -> Self {
        self.evidence.push(Evidence {
            what,
            at_s: seconds(span.from),
            until_s: Some(seconds(span.until)),
            value,
            unit,
        });
        self
    }

    /// Says where to see it; a plot that shows only the very place shows nothing, so a fifth is
    /// added at both sides.
    fn shown_in(mut self, kind: &'static str, span: Span) -> Self {
        let (from, to) = (seconds(span.from), seconds(span.until));
        let margin = (to - from) / 5.0;
        self.plot = Some(PlotPlace {
            kind,
            from_s: (from - margin).max(0.0),
            to_s: to + margin,
        });
        self
    }
}
