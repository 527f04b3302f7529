//! How many spans were how long, to 1 %: an `HdrHistogram` of nanoseconds.

use bentpipe_units::Span;
use hdrhistogram as hdr;

/// Decimal digits that a span is known by.
const DIGITS: u8 = 2;

/// Counts of spans.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    nanos: hdr::Histogram<u64>,
    longest: Span,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            nanos: hdr::Histogram::new(DIGITS).expect("0 to 5 digits can be kept"),
            longest: Span::ZERO,
        }
    }
}

impl Histogram {
    /// Counts a span.
    pub fn add(&mut self, span: Span) {
        let nanos = span.as_nanos();
        self.nanos.record(nanos).expect("it grows as is needed");
        self.longest = self.longest.max(span);
    }

    /// Adds the counts of another one.
    pub fn merge(&mut self, other: &Self) {
        let added = self.nanos.add(&other.nanos);
        added.expect("it grows as is needed");
        self.longest = self.longest.max(other.longest);
    }

    /// The number of spans.
    pub fn count(&self) -> u64 {
        self.nanos.len()
    }

    /// The longest.
    pub fn longest(&self) -> Span {
        self.longest
    }

    /// The span that `permille` of a thousand do not exceed; of none, no time. Up to 1 % more than
    /// exact, never less.
    pub fn permille(&self, permille: u64) -> Span {
        #[expect(clippy::cast_precision_loss, reason = "at most 1000")]
        let quantile = permille as f64 / 1000.0;
        let nanos = self.nanos.value_at_quantile(quantile);
        Span::from_nanos(nanos).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn permilles_are_those_of_the_sorted_spans(
            mut nanos in proptest::collection::vec(0_u64..10_000_000, 1..300),
            permille in 1_u64..=1000,
        ) {
            let mut histogram = Histogram::default();
            for nanos in &nanos {
                histogram.add(Span::from_nanos(*nanos));
            }
            nanos.sort_unstable();
            let rank = (nanos.len() * usize::try_from(permille).unwrap()).div_ceil(1000);
            let exact = nanos[rank - 1];
            let found = histogram.permille(permille).as_nanos();
            prop_assert!((exact..=exact + exact / 100).contains(&found), "{found} for {exact}");
            prop_assert_eq!(histogram.longest().as_nanos(), *nanos.last().unwrap());
        }
    }

    #[test]
    fn of_nothing_there_is_nothing_and_merging_adds() {
        let mut sum = Histogram::default();
        assert_eq!((sum.permille(999), sum.count()), (Span::ZERO, 0));
        for nanos in [1_000_000, 3] {
            let mut other = Histogram::default();
            other.add(Span::from_nanos(nanos));
            sum.merge(&other);
        }
        assert_eq!(sum.count(), 2);
        assert_eq!(sum.permille(500), Span::from_nanos(3));
        assert_eq!(sum.permille(999), Span::from_nanos(1_000_000));
    }
}
