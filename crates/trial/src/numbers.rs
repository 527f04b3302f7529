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
