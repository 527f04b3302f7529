//! Means and medians of values that hold for a time each.

use std::collections::BTreeMap;

use bentpipe_units::Time;

/// The value that half of the time is not exceeded.
pub(crate) fn median(held: &BTreeMap<i64, u128>, length: u128) -> i64 {
    let mut passed = 0;
    let half = held.iter().find(|(_, nanos)| {
        passed += **nanos;
        2 * passed >= length
    });
    half.map_or(0, |(value, _)| *value)
}

/// The mean of values that hold for a number of nanoseconds each.
pub(crate) fn weighted(values: impl Iterator<Item = (i64, u128)>) -> i64 {
    let (sum, nanos) = values.fold((0, 0), |(sum, all), (value, nanos)| {
        (sum + i128::from(value) * signed(nanos), all + nanos)
    });
    mean(sum, nanos)
}

/// A sum over `nanos` nanoseconds, for each of them, rounded down.
fn mean(sum: i128, nanos: u128) -> i64 {
    let mean = sum.div_euclid(signed(nanos.max(1)));
    i64::try_from(mean).unwrap_or(i64::MAX)
}

fn signed(nanos: u128) -> i128 {
    i128::try_from(nanos).unwrap_or(i128::MAX)
}

/// The value in each part.
pub(crate) struct Parts {
    length: u64,
    sums: Vec<i128>,
}

impl Parts {
    /// Divides a length in nanoseconds into this number of parts.
    pub fn new(length: u64, count: usize) -> Self {
        Self {
            length,
            sums: vec![0; count],
        }
    }

    /// Where a part begins, rounded down.
    fn begin(&self, part: usize) -> u64 {
        let begin = u128::from(self.length) * part as u128 / self.sums.len() as u128;
        u64::try_from(begin).unwrap_or(u64::MAX)
    }

    /// A value holds from `from` until `until`.
    pub fn add(&mut self, value: i64, from: u64, until: u64) {
        let first = u128::from(from) * self.sums.len() as u128 / u128::from(self.length);
        let first = usize::try_from(first).unwrap_or(0);
        for part in first..self.sums.len() {
            let (begin, end) = (self.begin(part), self.begin(part + 1));
            if begin >= until {
                break;
            }
            let nanos = end.min(until).saturating_sub(begin.max(from));
            self.sums[part] += i128::from(value) * i128::from(nanos);
        }
    }

    /// The mean of each; 0 for an empty part, as in a timeline of less than 60 ns.
    pub fn means(&self) -> Vec<i64> {
        let each = self.sums.iter().enumerate().map(|(part, sum)| {
            let nanos = u128::from(self.begin(part + 1) - self.begin(part));
            mean(*sum, nanos)
        });
        each.collect()
    }

    /// The mean of each, with its beginning.
    pub fn with_begins(&self) -> Vec<(Time, i64)> {
        let means = self.means().into_iter().enumerate();
        means
            .map(|(part, mean)| (Time::from_nanos(self.begin(part)), mean))
            .collect()
    }
}
