//! Integers of a trial as the floating-point numbers of its files.

use bentpipe_units::Span;

/// Seconds as a span, rounded to a nanosecond.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times of a trial are not negative, and far below 2^53 ns"
)]
pub fn nanos(seconds: f64) -> Span {
    Span::from_nanos((seconds * 1e9).round() as u64)
}

/// Nanoseconds as seconds, for reading; nothing is decided by them any more.
#[expect(clippy::cast_precision_loss, reason = "2^53 ns are 104 days")]
pub fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// A count as a number.
#[expect(clippy::cast_precision_loss, reason = "for a record, far below 2^53")]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// The percentile of `count` values by the nearest rank, the least that `percent` percent do not
/// exceed. `sorted` has the finite ones; none: it is an infinite one.
pub(crate) fn nearest_rank(sorted: &[u64], count: usize, percent: usize) -> Option<&u64> {
    let rank = (count * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_what_never_came() {
        let all: Vec<u64> = (1..=100).collect();
        assert_eq!(nearest_rank(&all, 100, 99), Some(&99));
        assert_eq!(nearest_rank(&all[..99], 100, 99), Some(&99));
        assert_eq!(nearest_rank(&all[..98], 100, 99), None);
        assert_eq!(nearest_rank(&all[..50], 100, 50), Some(&50));
        assert_eq!(nearest_rank(&[], 1, 50), None);
        assert_eq!(nearest_rank(&[7], 1, 1), Some(&7));
    }
}
