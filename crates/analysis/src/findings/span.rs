//! Spans of time, and what passes within them.

use crate::connection::Nanos;
use crate::durations::seconds;

use super::quantities::float;

/// From one time to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub from: Nanos,
    pub until: Nanos,
}

impl Span {
    pub(super) fn length(self) -> Nanos {
        self.until.saturating_sub(self.from)
    }

    /// The length of the part of it that lies within `other`.
    pub(super) fn overlap(self, other: Self) -> Nanos {
        let until = self.until.min(other.until);
        until.saturating_sub(self.from.max(other.from)).max(0)
    }

    pub(super) fn has(self, time: Nanos) -> bool {
        (self.from..self.until).contains(&time)
    }
}

/// The same times as spans in order that do not overlap.
pub(super) fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|span| span.from);
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.from <= last.until => last.until = last.until.max(span.until),
            _ => joined.push(span),
        }
    }
    joined
}

/// `percent` of a time. Damaged captures have times that no product of theirs fits.
pub(super) fn percent_of(time: Nanos, percent: Nanos) -> Nanos {
    let product = i128::from(time) * i128::from(percent) / 100;
    product.try_into().unwrap_or(Nanos::MAX)
}

/// The length of the parts of `spans`, which do not overlap, that lie within `of`.
pub(super) fn time_within(spans: impl IntoIterator<Item = Span>, of: Span) -> Nanos {
    let within = spans.into_iter().map(|span| span.overlap(of));
    within.fold(0, Nanos::saturating_add)
}

/// Bytes that a link of `rate` bit/s carries in `time`.
pub(super) fn at_rate(rate: u64, time: Nanos) -> u64 {
    let time = u128::try_from(time.max(0)).expect("not below 0");
    u64::try_from(u128::from(rate) * time / 8_000_000_000).unwrap_or(u64::MAX)
}

/// The rate in bit/s of `bytes` in a time; 0 if it has no length.
pub(super) fn rate_of(bytes: u64, time: Nanos) -> f64 {
    if time <= 0 {
        return 0.0;
    }
    float(bytes) * 8.0 / seconds(time)
}
