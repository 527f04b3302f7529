//! The line of offsets over time bends: the transfer goes on at a lower rate, and does not recover.

use super::super::deliveries::Deliveries;
use super::super::quantities::{Count, Percent, Rate, Seconds, float};
use super::super::signals::Signals;
use super::super::span::Span;
use super::super::transfer::Missing;
use super::{Judgement, Rule};
use crate::connection::Nanos;
use crate::durations::seconds;

/// The line of offsets over time bends, and the rate does not recover. Endres, figures 5.11 and
/// 5.18 to 5.20.
///
/// The bend is where the line is farthest above the chord from the beginning of its fastest
/// [`PHASE_RTTS`] RTTs to its end. The last [`TAIL_PERCENT`] % of the bytes are left out, for
/// `long_tail` has them; if the transfer is not whole, the line goes on to the end of the capture
/// instead.
///
/// - Yes: no [`PHASE_RTTS`] RTTs after the bend reach more than [`LOWER_PERCENT`] % of the goodput
///   of those before it; at least [`PART_PERCENT`] % of the bytes came before it; what follows
///   lasts at least [`PHASE_RTTS`] RTTs and [`PART_PERCENT`] % of the time.
/// - Not sure: without an RTT; if data arrived in fewer than [`PACKETS`] packets.
pub(super) const RULE: Rule = Rule {
    id: "bends_to_lower_rate",
    title: "Bends to a lower rate",
    judge,
};

/// A loss halves a window for a few round trips; what is lower for five does not come back soon.
const PHASE_RTTS: Nanos = 5;
/// A bend is seen in a plot of the whole transfer if both of its arms are.
const PART_PERCENT: u64 = 15;
/// `NewReno` halves its window, CUBIC takes 70 %: one reduction of CUBIC is no bend, unless more
/// follow.
const LOWER_PERCENT: f64 = 60.0;
const TAIL_PERCENT: u64 = 2;
/// As in rule `long_tail`: a line of fewer points has no shape.
const PACKETS: usize = 50;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_data()?;
    let rtt = signals.transfer.needs_rtt()?;
    let deliveries = &signals.deliveries;
    let Some((all, end)) = arms(signals) else {
        return Missing::because("no data were seen to arrive");
    };
    let arrivals = deliveries.times().count();
    if arrivals < PACKETS {
        return Missing::because(format!(
            "data arrived in {} only, too few for a line",
            Count(arrivals as u64, "packet")
        ));
    }
    let phase = rtt.saturating_mul(PHASE_RTTS);
    if end - all.from < phase.saturating_mul(2) {
        return Ok(Judgement::no(format!(
            "{} came within {}, too short for two phases of {}.",
            if signals.transfer.is_whole {
                "All but the tail"
            } else {
                "All data"
            },
            Seconds(end - all.from),
            Seconds(phase),
        )));
    }
    let fastest = phases(deliveries, all.from, end, phase).max_by(|a, b| a.1.total_cmp(&b.1));
    let from = fastest.map_or(all.from, |(span, _)| span.from);
    let bend = bend(deliveries, Span { from, until: end });
    let before = Span {
        from: (bend - phase).max(all.from),
        until: bend,
    };
    let after = Span {
        from: bend,
        until: end,
    };
    let (was, is) = (deliveries.rate(before), deliveries.rate(after));
    let best = phases(deliveries, bend, end, phase).map(|(_, rate)| rate);
    let best = best.fold(is, f64::max);
    let text = format!(
        "In the {} before {} data came at {}, in the {} from then on at {} ({}), and at no more \
         than {} over any {} RTTs.",
        Seconds(before.length()),
        Seconds(bend),
        Rate(was),
        Seconds(after.length()),
        Rate(is),
        Percent(is / was.max(f64::MIN_POSITIVE)),
        Rate(best),
        PHASE_RTTS,
    );
    let is_seen = deliveries.by(bend) * 100 >= deliveries.bytes() * PART_PERCENT
        && after.length() >= phase
        && seconds(after.length()) * 100.0 >= seconds(all.length()) * float(PART_PERCENT);
    let is_bent = is_seen && best * 100.0 <= was * LOWER_PERCENT;
    let judgement = Judgement::yes_if(is_bent, text)
        .over(before, "goodput before", was, "bit/s")
        .over(after, "goodput after", is, "bit/s")
        .at(bend, "bend", seconds(bend), "s");
    Ok(if is_bent {
        judgement.shown_in("offset", all)
    } else {
        judgement
    })
}

/// From the first arrival to the last, and where the tail begins. A transfer that was cut has no
/// tail: its line goes on to the end of the capture.
fn arms(signals: &Signals<'_>) -> Option<(Span, Nanos)> {
    let deliveries = &signals.deliveries;
    let all = deliveries.span()?;
    if signals.transfer.is_whole {
        let most = deliveries.bytes() - deliveries.bytes() * TAIL_PERCENT / 100;
        return Some((all, deliveries.when(most)?));
    }
    let until = all.until.max(signals.transfer.sending.until);
    Some((Span { until, ..all }, until))
}

/// The phases that begin with an arrival, and their goodput.
fn phases(
    deliveries: &Deliveries,
    from: Nanos,
    until: Nanos,
    length: Nanos,
) -> impl Iterator<Item = (Span, f64)> {
    let starts = deliveries
        .times()
        .filter(move |time| (from..=until - length).contains(time));
    starts.map(move |from| {
        let span = Span {
            from,
            until: from + length,
        };
        (span, deliveries.rate(span))
    })
}

/// Where the line of offsets is farthest above its chord.
fn bend(deliveries: &Deliveries, span: Span) -> Nanos {
    let base = deliveries.by(span.from);
    let rate = deliveries.rate(span) / 8.0;
    let above = |time: Nanos| {
        let chord = rate * seconds(time - span.from);
        float(deliveries.by(time) - base) - chord
    };
    let times = deliveries.times().filter(|time| span.has(*time));
    let heights = times.map(|time| (time, above(time)));
    let highest = heights.max_by(|a, b| a.1.total_cmp(&b.1));
    highest.map_or(span.from, |(time, _)| time)
}
