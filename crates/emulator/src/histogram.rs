//! How many spans were how long, to 3 %.
//!
//! Model: a bucket for every span below 32 ns, and 32 buckets for each doubling from there on, as in `HdrHistogram`.

use bentpipe_units::Span;

/// Buckets of a doubling.
const FINENESS: u64 = 32;
const FINENESS_BITS: u32 = FINENESS.trailing_zeros();

/// Counts of spans.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    longest: Span,
}

impl Histogram {
    /// Counts a span.
    pub fn add(&mut self, span: Span) {
        let bucket = bucket(span.as_nanos());
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.longest = self.longest.max(span);
    }

    /// Adds the counts of another one.
    pub fn merge(&mut self, other: &Self) {
        let buckets = self.buckets.len().max(other.buckets.len());
        self.buckets.resize(buckets, 0);
        for (sum, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += count;
        }
        self.count += other.count;
        self.longest = self.longest.max(other.longest);
    }

    /// How many spans there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest.
    pub fn longest(&self) -> Span {
        self.longest
    }

    /// The span that so many of a thousand do not exceed; of none, no time. Up to 3 % more than exact, never less.
    pub fn permille(&self, permille: u64) -> Span {
        let rank = (self.count * permille).div_ceil(1000).max(1);
        let mut sum = 0;
        let bucket = self.buckets.iter().position(|count| {
            sum += count;
            sum >= rank
        });
        let end = bucket.map_or(Span::ZERO, |bucket| Span::from_nanos(end(bucket)));
        end.min(self.longest)
    }
}

/// The bucket of a number.
fn bucket(nanos: u64) -> usize {
    let doublings = nanos.max(1).ilog2().saturating_sub(FINENESS_BITS);
    let within = nanos >> doublings;
    usize::try_from(u64::from(doublings) * FINENESS + within).expect("fewer than 2000")
}

/// The largest number of a bucket.
fn end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let doublings = (bucket / FINENESS).saturating_sub(1);
    let within = bucket - doublings * FINENESS;
    (u128::from(within + 1) << doublings)
        .saturating_sub(1)
        .try_into()
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_ends_at_most_3_percent_above_what_is_in_it(nanos: u64) {
            let end = end(bucket(nanos));
            prop_assert!(end >= nanos);
            prop_assert!(end - nanos <= nanos / FINENESS);
            prop_assert!(nanos == u64::MAX || end == u64::MAX || bucket(end + 1) == bucket(nanos) + 1);
        }

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
            prop_assert!((exact..=exact + exact / FINENESS).contains(&found), "{found} for {exact}");
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
