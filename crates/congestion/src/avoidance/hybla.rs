//! Hybla: as fast over a long path as Reno over a short one.
//!
//! Source: C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks",
//! International Journal of Satellite Communications and Networking 22, 2004: with ρ = RTT / RTT₀,
//! RTT₀ = 25 ms, and ρ not below 1, the window grows by ρ² segments in each round trip; a loss
//! halves it. Departures:
//!
//! - ρ is that of the smallest round-trip time, so that a queue does not speed up what fills it.
//! - The window does not grow faster than in slow start. Over 600 ms ρ² is 576, and a window of 10
//!   would grow by 576 segments in one round trip.
//! - Its slow start is chosen apart (`ss=hybla`).
//!
//! Where the path's bandwidth-delay product is not much larger than ρ², growth overshoots the queue
//! in each cycle; that is Hybla's own.

use crate::acks::{Acks, CongestionEvent};
use crate::avoidance::{Avoidance, Reduction};
use crate::path::PathState;

/// `RTT₀` in nanoseconds.
const REFERENCE: u128 = 25_000_000;

/// The unit in which growth is counted: parts of a byte.
const PARTS: u128 = 1 << 16;

/// Hybla: ρ² datagrams more in each round trip; half of the window after a congestion event.
#[derive(Debug, Clone, Default)]
pub struct Hybla {
    /// In `1/PARTS` of a byte, what the window has not grown by yet.
    rest: u128,
}

impl Avoidance for Hybla {
    fn name(&self) -> &'static str {
        "hybla"
    }

    fn begin(&mut self, _path: &PathState) {
        self.rest = 0;
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> u64 {
        let rtt = u128::from(path.rtt.min.as_nanos()).clamp(REFERENCE, 400 * REFERENCE);
        let windows = u128::from(acks.credit) * u128::from(path.datagram) * PARTS
            / u128::from(path.window.max(1));
        let grown = windows * (rtt * rtt) / (REFERENCE * REFERENCE) + self.rest;
        self.rest = grown % PARTS;
        let grown = u64::try_from(grown / PARTS).unwrap_or(u64::MAX);
        path.window.saturating_add(grown.min(acks.credit))
    }

    fn on_congestion(&mut self, path: &PathState, _event: &CongestionEvent) -> Reduction {
        self.rest = 0;
        Reduction::to(path.window / 2)
    }

    fn clone_box(&self) -> Box<dyn Avoidance> {
        Box::new(self.clone())
    }
}
