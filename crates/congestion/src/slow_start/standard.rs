//! Slow start as RFC 9002 has it.
//!
//! Source: RFC 9002, section 7.3.1. Departures: none; without a loss it ends at the slow start
//! threshold alone, which a connection does not have at first.

use crate::acks::Acks;
use crate::path::PathState;
use crate::slow_start::{Exit, SlowStart, Step};

/// Standard slow start (RFC 9002): doubles the window in each round trip, until something is lost.
#[derive(Debug, Clone, Default)]
pub struct Standard;

impl SlowStart for Standard {
    fn name(&self) -> &'static str {
        "standard"
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        // > While a sender is in slow start, the congestion window increases by the number of bytes
        // > acknowledged when each acknowledgment is processed.
        let window = path.window.saturating_add(acks.credit);
        // > A NewReno sender is in slow start any time the congestion window is below the slow
        // > start threshold.
        match path.ssthresh {
            Some(ssthresh) if window >= ssthresh => Step::Leave(Exit {
                window,
                ssthresh,
                reason: "ssthresh",
            }),
            _ => Step::Grow(acks.credit),
        }
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
