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
/// - Yes: at one that began when data had arrived for two RTTs, no new data arrived for
///   [`LEAST_MS`] ms or more, and for [`USUAL_TIMES`] times as long as in the two RTTs before it.
///   That pause began with it, and is the link's: [`LEAST_LOST`] packets or more, and half of those
///   under way or sent meanwhile, were lost, or the next data to arrive had been sent before the
///   link sent again. The text says how long the link sent nothing, and whether the stall was
///   longer than that and the latest RTT.
/// - Not sure: if nobody knows what the links did, or not to the end. Trials in virtual and in real
///   time keep it ([link events](link-events.md)).
pub(super) const RULE: Rule = Rule {
    id: "stalled_at_handovers",
    title: "Stalled at handovers or outages",
    judge,
};

/// A shorter stop is within what jitter and frames of links do all the time.
const LEAST_MS: Nanos = 10;
/// Data of a small window come in bursts: pauses alike to those before are not the link's.
const USUAL_TIMES: Nanos = 2;
/// Fewer losses are those of any moment.
const LEAST_LOST: usize = 2;
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
    let gaps = gaps(signals, events);
    if gaps.is_empty() {
        return Ok(Judgement::no(
            "The links had neither handovers nor outages in this trial.".to_owned(),
        ));
    }
    let told = gaps.len();
    let all = of(signals, gaps, rtt);
    let longest = all.iter().max_by_key(|it| (it.is_stall, it.pause.length()));
    if events.cut && !longest.is_some_and(|it| it.is_stall) {
        return Missing::because("only the first handovers and outages of the links are known");
    }
    let Some(longest) = longest else {
        return Ok(Judgement::no(format!(
            "None of the handovers and outages of the links, {told} in all, began when data had \
             arrived for two RTTs.",
        )));
    };
    let place = format!("the {} at {}", longest.kind.name(), Short(longest.gap.from));
    if !longest.is_stall {
        return Ok(Judgement::no(format!(
            "Data did not stop arriving because of {}: for {} at most, around {place}.",
            kinds(&all),
            Short(longest.pause.length()),
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
    let latest = latest_rtt(signals, longest.gap.from, rtt);
    let beyond = longest.pause.length() - longest.gap.length() - latest;
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
        "The transfer stalled at {place} for {}: the link sent nothing for {}, and an RTT was \
         {}{senders}.{in_all} {} lost on the way{}.{cut}",
        Short(longest.pause.length()),
        Short(longest.gap.length()),
        Short(latest),
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

/// The interruptions that began when data had arrived for long enough to know what is usual.
fn of(signals: &Signals<'_>, gaps: Vec<(InterruptionKind, Span)>, rtt: Nanos) -> Vec<Interrupted> {
    let mut times: Vec<Nanos> = signals.deliveries.times().collect();
    // With data left at the end of the capture, the pause until then counts.
    times.extend((!signals.transfer.is_whole).then_some(signals.transfer.sending.until));
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Vec::new();
    };
    let arriving = Span {
        from: *first + USUAL_RTTS * rtt,
        until: *last,
    };
    let sent = Sent::of(signals);
    let gaps = gaps.into_iter();
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
            let notable = LEAST_MS * 1_000_000;
            let begins_with_it = pause.from >= gap.from - usual.max(notable);
            let is_long = pause.length() >= notable && pause.length() >= USUAL_TIMES * usual;
            Interrupted {
                kind,
                gap,
                pause,
                is_stall: begins_with_it && is_long && sent.were_held_by(gap, pause),
            }
        })
        .collect()
}

/// The data sender's packets in the order in which they were sent: when, when they arrived, and
/// whether they were lost on the way.
struct Sent(Vec<(Nanos, Option<Nanos>, bool)>);

impl Sent {
    fn of(signals: &Signals<'_>) -> Self {
        let all = signals.transfer.view.packets();
        let own = all.filter(|(packet, _)| packet.sender == signals.transfer.sender);
        let mut sent: Vec<_> = own
            .filter_map(|(packet, _)| {
                let is_lost = matches!(packet.fate, Fate::Loss | Fate::NotReceived);
                Some((packet.sent()?, packet.received(), is_lost))
            })
            .collect();
        sent.sort_by_key(|it| it.0);
        Self(sent)
    }

    /// Whether a pause of deliveries comes from the link: it lost what was under way or sent
    /// meanwhile, or what ends the pause had been sent before the link sent again.
    fn were_held_by(&self, gap: Span, pause: Span) -> bool {
        let arrived_at = |at: Nanos| {
            let mut these = self.0.iter().filter(move |it| it.1 == Some(at));
            these.next().map(|it| it.0)
        };
        let Some(before) = arrived_at(pause.from) else {
            return false;
        };
        if gap.length() > 0 && arrived_at(pause.until).is_some_and(|sent| sent <= gap.until) {
            return true;
        }
        let first = self.0.partition_point(|it| it.0 <= before);
        let meanwhile = self.0[first..].iter().take_while(|it| it.0 <= gap.until);
        let (mut all, mut lost) = (0, 0);
        for (_, _, is_lost) in meanwhile {
            all += 1;
            lost += usize::from(*is_lost);
        }
        lost >= LEAST_LOST && 2 * lost >= all
    }
}

/// The last RTT sample before a time, or without any the path's.
fn latest_rtt(signals: &Signals<'_>, at: Nanos, rtt: Nanos) -> Nanos {
    let samples = signals.transfer.rtt_samples();
    let latest = samples.take_while(|(when, _)| *when <= at).last();
    latest.map_or(rtt, |(_, sample)| sample.max(rtt))
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
    let around = |stall: &&Interrupted| Span {
        from: stall.gap.from - latest_rtt(signals, stall.gap.from, rtt),
        until: stall.gap.until.max(stall.pause.until),
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
