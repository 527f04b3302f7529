//! Hybla: as fast over a long path as Reno over a short one.
//!
//! Source: C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", International Journal of Satellite
//! Communications and Networking 22, 2004: with ρ = RTT / RTT₀, RTT₀ = 25 ms, and ρ not below 1, the window grows by ρ² segments in each round trip; a loss
//! halves it. Departures:
//!
//! - ρ is that of the smallest round-trip time, so that a queue does not speed up what fills it.
//! - The window does not grow faster than in slow start. Over 600 ms ρ² is 576, and a window of 10 would grow by 576 segments in one round trip.
//! - Its slow start is chosen apart (`ss=hybla`).
//!
//! Where the path's bandwidth-delay product is not much larger than ρ², growth overshoots the queue in each cycle; that is Hybla's own.

use crate::acks::{Acks, Congestion};
use crate::avoidance::{Avoidance, Reduction};
use crate::path::Path;

/// `RTT₀` in nanoseconds.
const REFERENCE: u128 = 25_000_000;

/// The unit in which growth is counted: parts of a byte.
const PARTS: u128 = 1 << 16;

/// ρ² datagrams more in each round trip; half of the window after a congestion event.
#[derive(Debug, Clone, Default)]
pub struct Hybla {
    /// In `1/PARTS` of a byte, what the window has not grown by yet.
    rest: u128,
}

impl Avoidance for Hybla {
    fn name(&self) -> &'static str {
        "hybla"
    }

    fn begin(&mut self, _path: &Path) {
        self.rest = 0;
    }

    fn on_acks(&mut self, path: &Path, acks: &Acks<'_>) -> u64 {
        let rtt = u128::from(path.rtt.min.as_nanos()).clamp(REFERENCE, 400 * REFERENCE);
        let windows = u128::from(acks.credit) * u128::from(path.datagram) * PARTS
            / u128::from(path.window.max(1));
        let grown = windows * (rtt * rtt) / (REFERENCE * REFERENCE) + self.rest;
        self.rest = grown % PARTS;
        let grown = u64::try_from(grown / PARTS).unwrap_or(u64::MAX);
        path.window.saturating_add(grown.min(acks.credit))
    }

    fn on_congestion(&mut self, path: &Path, _event: &Congestion) -> Reduction {
        self.rest = 0;
        let half = path.window / 2;
        Reduction {
            window: half,
            ssthresh: half,
        }
    }

    fn clone_box(&self) -> Box<dyn Avoidance> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_units::Span;

    use super::*;
    use crate::avoidance::Feed;

    /// What 10 round trips add to a window of 1000 segments, in segments.
    fn grown(rtt: Span) -> u64 {
        let mut feed = Feed::new(1_000, 1_000_000, rtt);
        let mut hybla = Hybla::default();
        hybla.begin(&feed.path);
        for _ in 0..10 {
            let window = feed.path.window;
            for _ in 0..500 {
                feed.ack(&mut hybla, window / 500);
            }
        }
        (feed.path.window - 1_000_000) / 1_000
    }

    #[test]
    fn grows_by_rho_squared_in_each_round_trip() {
        // ρ = 4: 16 segments in each; a little less, as the window grows while it is acknowledged.
        assert!((157..=160).contains(&grown(Span::from_millis(100))));
    }

    #[test]
    fn is_reno_on_a_path_of_25_ms_or_less() {
        for rtt in [25, 5] {
            assert!((9..=10).contains(&grown(Span::from_millis(rtt))));
        }
    }

    #[test]
    fn is_no_faster_than_slow_start() {
        let mut feed = Feed::new(1_000, 10_000, Span::from_millis(600));
        let mut hybla = Hybla::default();
        feed.ack(&mut hybla, 10_000);
        assert_eq!(feed.path.window, 20_000);
        feed.congest(&mut hybla);
        assert_eq!(feed.path.window, 10_000);
    }
}
