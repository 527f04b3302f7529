//! Nanoseconds as seconds and milliseconds, for reading.

use crate::connection::Nanos;

/// The least, the middle and the greatest, in milliseconds. The middle of an even number is the
/// mean of the middle two.
pub(crate) fn spread_ms(times: &mut [Nanos]) -> [Option<f64>; 3] {
    if times.is_empty() {
        return [None; 3];
    }
    let middle = times.len() / 2;
    let even = times.len().is_multiple_of(2);
    let (below, upper, above) = times.select_nth_unstable(middle);
    let below_max = below.iter().max();
    let lower = below_max.filter(|_| even).unwrap_or(upper);
    let least = below.iter().min().unwrap_or(upper);
    let greatest = above.iter().max().unwrap_or(upper);
    let median = f64::midpoint(milliseconds(*lower), milliseconds(*upper));
    [
        Some(milliseconds(*least)),
        Some(median),
        Some(milliseconds(*greatest)),
    ]
}

/// Nanoseconds as seconds, for reading; nothing is decided by them any more.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "2^53 ns are 104 days")]
pub fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

/// The same as milliseconds.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "2^53 ns are 104 days")]
pub fn milliseconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e6
}
