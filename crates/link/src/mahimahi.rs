//! Traces of a rate in the format of mahimahi's `mm-link`.
//!
//! Source: R. Netravali et al., Mahimahi: Accurate Record-and-Replay for HTTP, USENIX ATC 2015, and
//! the manual of `mm-link`. A line is a whole number of milliseconds since the start at which 1500
//! bytes may leave; equal lines add up, lines do not go back, and after the last the trace begins
//! again. Departure: here the bytes leave evenly over the millisecond that ends at that time,
//! instead of at once at its end. `frame = "1 ms"` beside it brings that back.

use std::path::Path;

use bentpipe_units::{Rate, Span, Time};

use crate::packed_text::file_text;

/// 1500 bytes in a millisecond.
const OPPORTUNITY_BPS: u64 = 12_000_000;
/// A day: each millisecond takes memory.
const LONGEST_MS: u64 = 86_400_000;

/// Reads a trace as steps and a period.
pub(crate) fn read(path: &Path) -> Result<(Vec<(Time, Rate)>, Span), String> {
    let text =
        file_text(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut times: Vec<u64> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("line {}: {line}: {what}", index + 1);
        let time = line.trim().parse().ok().filter(|time| *time <= LONGEST_MS);
        let time =
            time.ok_or_else(|| wrong("a line is a whole number of milliseconds, up to a day"))?;
        if times.last().is_some_and(|last| *last > time) {
            return Err(wrong("times must not go back"));
        }
        times.push(time);
    }
    match times.last() {
        None => Err("no line".to_owned()),
        Some(0) => Err("the last time must be above 0: the trace begins again there".to_owned()),
        Some(last) => Ok((rates(&times, *last), Span::from_millis(*last))),
    }
}

/// The rate in each millisecond, equal ones put together. What may leave at 0 leaves at the end of
/// each period.
fn rates(times: &[u64], period: u64) -> Vec<(Time, Rate)> {
    let mut counts = vec![0_u64; usize::try_from(period).expect("a day of milliseconds")];
    for time in times {
        let ends = if *time == 0 { period } else { *time };
        counts[usize::try_from(ends - 1).expect("below the period")] += 1;
    }
    let mut steps: Vec<(Time, Rate)> = Vec::new();
    for (from, count) in (0..).zip(counts) {
        let rate = Rate::from_bps(count * OPPORTUNITY_BPS);
        if steps.last().is_none_or(|(_, before)| *before != rate) {
            steps.push((Time::ZERO + Span::from_millis(from), rate));
        }
    }
    steps
}
