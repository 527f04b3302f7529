//! No data arrived around a handover or an outage of a link.

use super::super::quantities::{Count, Short, float};
use super::super::signals::Signals;
use super::super::span::Span;
use super::super::transfer::Missing;
use super::{Judgement, Rule, cut_of, link_events};
use crate::connection::{Fate, Nanos};
use crate::durations::seconds;
use crate::link_events::{InterruptionKind, LinkEvents};

/// No data arrived around a handover or an outage of a link. While a link hands over it sends
/// nothing, and what is under way may be lost; a sender that then waits for a timer makes the stall
/// longer than the link did. Where both directions stop together, that is one handover.
///
/// - Yes: around one that began when data had arrived for two RTTs, up to an RTT after its end, no
///   new data arrived for [`LEAST_MS`] ms or more, and for [`USUAL_TIMES`] times as long as in the
///   two RTTs before it. The text says how long the link sent nothing, and whether the stall was longer than that
///   and an RTT.
/// - Not sure: if nobody knows what the links did. Trials in virtual and in real time keep it
///   ([link events](link-events.md)).
pub(super) const RULE: Rule = Rule {
    id: "stalled_at_handovers",
    title: "Stalled at handovers or outages",
    judge,
};

/// A shorter stop is within what jitter and frames of links do all the time.
const LEAST_MS: Nanos = 10;
/// Data of a small window come in bursts: pauses alike to those before are not the link's.
const USUAL_TIMES: Nanos = 2;
/// The time before an interruption that shows what is usual, in RTTs.
const USUAL_RTTS: Nanos = 2;

/// An interruption of the links, and what came of it.
#[derive(Debug, Clone, Copy)]
struct Interrupted {
    kind: InterruptionKind,
    /// The time in which a link sent nothing.
    gap: Span,
    /// The longest time without new data around it.
    pause: Span,
    /// Whether data stopped because of it.
    is_stall: bool,
}

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_data()?;
    let events = link_events(signals)?;
    let rtt = signals.transfer.needs_rtt()?;
    if events.interruptions.is_empty() {
        return Ok(Judgement::no(
            "The links had neither handovers nor outages in this trial.".to_owned(),
        ));
    }
    let all = of(signals, events, rtt);
    let Some(longest) = all.iter().max_by_key(|it| (it.is_stall, it.pause.length())) else {
        return Ok(Judgement::no(format!(
            "None of the handovers and outages of the links, {} in all, began while data \
             arrived.{}",
            events.interruptions.len(),
            cut_of(events),
        )));
    };
    let place = format!("the {} at {}", longest.kind.name(), Short(longest.gap.from));
    if !longest.is_stall {
        return Ok(Judgement::no(format!(
            "Data did not stop arriving around {}: for {} at most, around {place}.{}",
            kinds(&all),
            Short(longest.pause.length()),
            cut_of(events),
        )));
    }
    Ok(stalled(signals, rtt, &all, longest, &place, cut_of(events)))
}

fn stalled(
    signals: &Signals<'_>,
    rtt: Nanos,
    all: &[Interrupted],
    longest: &Interrupted,
    place: &str,
    cut: &str,
) -> Judgement {
    let stalls: Vec<_> = all.iter().filter(|it| it.is_stall).collect();
    let sum: Nanos = stalls.iter().map(|it| it.pause.length()).sum();
    let (lost, dropped) = losses(signals, &stalls, rtt);
    let beyond = longest.pause.length() - longest.gap.length() - rtt;
    let senders = if beyond > 0 {
        format!(
            ", so for {} more the sender was late, not the link",
            Short(beyond)
        )
    } else {
        String::new()
    };
    let in_all = if all.len() == 1 {
        String::new()
    } else {
        format!(
            " It stalled at {} of {}, for {} in all.",
            stalls.len(),
            kinds(all),
            Short(sum)
        )
    };
    let text = format!(
        "The transfer stalled at {place} for {}: the link sent nothing for {}, and an RTT is \
         {}{senders}.{in_all} {} lost on the way{}.{cut}",
        Short(longest.pause.length()),
        Short(longest.gap.length()),
        Short(rtt),
        were(lost),
        match dropped {
            0 => String::new(),
            _ => format!(", and {} dropped by full queues", were(dropped)),
        },
    );
    let over = signals.transfer.sending;
    Judgement::yes(text)
        .over(
            longest.pause,
            "longest stall",
            seconds(longest.pause.length()),
            "s",
        )
        .over(
            longest.gap,
            "the link sent nothing",
            seconds(longest.gap.length()),
            "s",
        )
        .over(over, "stalls", float(stalls.len() as u64), "stalls")
        .over(over, "stalls in all", seconds(sum), "s")
        .over(over, "packets lost at them", float(lost), "packets")
        .shown_in("offset", longest.pause)
}

/// "3 handovers and 1 outage".
fn kinds(all: &[Interrupted]) -> String {
    let count = |kind| all.iter().filter(|it| it.kind == kind).count() as u64;
    let counted = [InterruptionKind::Handover, InterruptionKind::Outage].map(|it| (it, count(it)));
    let told = counted.into_iter().filter(|(_, count)| *count > 0);
    let told = told.map(|(kind, count)| Count(count, kind.name()).to_string());
    told.collect::<Vec<_>>().join(" and ")
}

fn were(packets: u64) -> String {
    match packets {
        0 => "No packet was".to_owned(),
        1 => "1 packet was".to_owned(),
        _ => format!("{packets} packets were"),
    }
}

/// The interruptions that began while data arrived.
fn of(signals: &Signals<'_>, events: &LinkEvents, rtt: Nanos) -> Vec<Interrupted> {
    let mut times: Vec<Nanos> = signals.deliveries.times().collect();
    // With data left at the end of the capture, the pause until then counts.
    times.extend((!signals.transfer.is_whole).then_some(signals.transfer.sending.until));
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Vec::new();
    };
    let arriving = Span {
        // Before, nobody knows what is usual.
        from: *first + USUAL_RTTS * rtt,
        until: *last,
    };
    let gaps = gaps(signals, events).into_iter();
    gaps.filter(|(_, gap)| arriving.has(gap.from))
        .map(|(kind, gap)| {
            let around = Span {
                until: gap.until + rtt,
                ..gap
            };
            let before = Span {
                from: gap.from - USUAL_RTTS * rtt,
                until: gap.from,
            };
            let pause = longest_pause(&times, around, false);
            let usual = longest_pause(&times, before, true).length();
            let is_long = pause.length() >= LEAST_MS * 1_000_000;
            Interrupted {
                kind,
                gap,
                pause,
                is_stall: is_long && pause.length() >= USUAL_TIMES * usual,
            }
        })
        .collect()
}

/// The interruptions of both directions; those that overlap are one.
fn gaps(signals: &Signals<'_>, events: &LinkEvents) -> Vec<(InterruptionKind, Span)> {
    let connection = signals.transfer.view.connection;
    let gaps = events.interruptions.iter().map(|it| {
        let span = Span {
            from: events.time_in(connection, it.from_ns),
            until: events.time_in(connection, it.until_ns),
        };
        (it.kind, span)
    });
    let mut gaps: Vec<_> = gaps.collect();
    gaps.sort_by_key(|(_, span)| span.from);
    let mut joined: Vec<(InterruptionKind, Span)> = Vec::new();
    for (kind, gap) in gaps {
        match joined.last_mut() {
            Some((_, last)) if gap.from <= last.until => last.until = last.until.max(gap.until),
            _ => joined.push((kind, gap)),
        }
    }
    joined
}

/// The longest pause between two of `times` that touches a span; `within`: and ends in it.
fn longest_pause(times: &[Nanos], span: Span, within: bool) -> Span {
    let first = times.partition_point(|it| *it <= span.from);
    let pauses = times[first.saturating_sub(1)..].windows(2);
    let pauses = pauses.map(|pair| Span {
        from: pair[0],
        until: pair[1],
    });
    let touching = pauses.take_while(|it| it.from < span.until.max(span.from + 1));
    let counted = touching.filter(|it| !within || it.until <= span.until);
    let longest = counted.max_by_key(|it| it.length());
    longest.unwrap_or(Span {
        from: span.from,
        until: span.from,
    })
}

/// The packets, of both ends, that were lost on the way and dropped by queues at stalls: of those
/// sent from an RTT before it on, the RTT with what waited then.
fn losses(signals: &Signals<'_>, stalls: &[&Interrupted], rtt: Nanos) -> (u64, u64) {
    let samples: Vec<(Nanos, Nanos)> = signals.transfer.rtt_samples().collect();
    let around = |stall: &&Interrupted| {
        let before = samples.partition_point(|(at, _)| *at <= stall.gap.from);
        let latest = before.checked_sub(1).map_or(rtt, |at| samples[at].1);
        Span {
            from: stall.gap.from - latest.max(rtt),
            until: stall.gap.until.max(stall.pause.until),
        }
    };
    let spans = super::super::span::union(stalls.iter().map(around).collect());
    let (mut lost, mut dropped) = (0, 0);
    for (packet, _) in signals.transfer.view.packets() {
        let Some(sent) = packet.sent() else { continue };
        let before = spans.partition_point(|it| it.from <= sent);
        if !before.checked_sub(1).is_some_and(|at| spans[at].has(sent)) {
            continue;
        }
        match packet.fate {
            Fate::Loss | Fate::NotReceived => lost += 1,
            Fate::QueueDrop => dropped += 1,
            Fate::Delivered | Fate::Unknown => {}
        }
    }
    (lost, dropped)
}
