//! `NewReno` as RFC 9002 has it.
//!
//! Source: RFC 9002, sections 7.3.2 and 7.3.3, and the pseudocode of appendix B. Departures: none.

use crate::acks::{Acks, CongestionEvent};
use crate::avoidance::{Avoidance, Reduction};
use crate::path::PathState;

/// `NewReno`: a datagram more in each round trip; half of the window after a congestion event.
#[derive(Debug, Clone, Default)]
pub struct NewReno {
    /// Bytes acknowledged that the window has not grown by yet.
    acked: u64,
}

impl Avoidance for NewReno {
    fn name(&self) -> &'static str {
        "newreno"
    }

    fn begin(&mut self, _path: &PathState) {
        self.acked = 0;
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> u64 {
        // > A sender in congestion avoidance uses an Additive Increase Multiplicative Decrease
        // > (AIMD) approach that MUST limit the increase to the congestion window to at most one
        // > maximum datagram size for each congestion window that is acknowledged.
        let mut window = path.window;
        self.acked += acks.credit;
        while self.acked >= window {
            self.acked -= window;
            window += path.datagram;
        }
        window
    }

    fn on_congestion(&mut self, path: &PathState, _event: &CongestionEvent) -> Reduction {
        self.acked = 0;
        // > On entering a recovery period, a sender MUST set the slow start threshold to half the
        // > value of the congestion window when loss is detected. The congestion window MUST be set
        // > to the reduced value of the slow start threshold before exiting the recovery period.
        Reduction::to(path.window / 2)
    }

    fn clone_box(&self) -> Box<dyn Avoidance> {
        Box::new(self.clone())
    }
}
