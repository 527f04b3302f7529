//! How fast packets are sent within the window.

use bentpipe_units::Span;

use crate::acks::per_second;
use crate::path::PathState;

/// The speed at which a window is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// This percentage of a window per smoothed round-trip time.
    ///
    /// > Using a value for "N" that is small, but at least 1 (for example, 1.25) ensures that
    /// > variations in RTT do not result in underutilization of the congestion window. (RFC 9002,
    /// > section 7.7)
    Gain(u64),
    /// Bytes per second, whatever the window is.
    Rate(u64),
    /// As fast as the stack can: a burst.
    Unpaced,
}

/// No stack sends faster (100 Gbit/s). A rate that is infinite would make a pacer wait for zero
/// time, again and again.
pub(crate) const LINE_RATE: u64 = 12_500_000_000;

impl Pacing {
    /// In bytes per second. Before the first sample of the RTT a gain says nothing: the initial
    /// window may leave as a burst, as RFC 9002, section 7.7, allows.
    #[must_use]
    pub fn per_second(self, path: &PathState) -> u64 {
        match self {
            Self::Rate(rate) => rate.clamp(1, LINE_RATE),
            Self::Unpaced => LINE_RATE,
            Self::Gain(_) if path.rtt.smoothed == Span::ZERO => LINE_RATE,
            Self::Gain(percent) => {
                let bytes = u128::from(path.window) * u128::from(percent) / 100;
                let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
                per_second(bytes, path.rtt.smoothed).clamp(1, LINE_RATE)
            }
        }
    }
}
