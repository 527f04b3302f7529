//! Slow start whose growth the RTT judges: the window grows by what is acknowledged, less the share
//! by which the RTT has risen from one round to the next.
//!
//! Source: the WPI report on SEARCH in QUIC (2024), section 7.1.2, which proposes to multiply the
//! bytes acknowledged "by some variable based on the RTT change in previous rounds", and has not
//! tried it. What is chosen here: rounds and their least RTT are as `HyStart++` has them (RFC 9406,
//! section 4.2); the factor is 1 − (last − before) / before, of the last round that is complete and
//! the one before, and not outside of 0 to 1: a round that is no longer than the one before doubles
//! the window, and after one that is twice as long it does not grow.

use bentpipe_units::Span;

use crate::acks::Acks;
use crate::path::PathState;
use crate::slow_start::{SlowStart, Step};

/// Slow start that grows less while the RTT rises; the head of this file describes it.
#[derive(Debug, Clone, Default)]
pub struct RttGrowth {
    /// The least RTT of the round under way, of the last one, and of the one before.
    current: Option<Span>,
    last: Option<Span>,
    before: Option<Span>,
}

impl RttGrowth {
    /// The window's growth by `bytes` that were acknowledged.
    fn growth(&self, bytes: u64) -> u64 {
        let (Some(last), Some(before)) = (self.last, self.before) else {
            return bytes;
        };
        let before = u128::from(before.as_nanos().max(1));
        let risen = u128::from(last.as_nanos()).saturating_sub(before);
        let left = before.saturating_sub(risen);
        u64::try_from(u128::from(bytes) * left / before).expect("no more than the bytes")
    }
}

impl SlowStart for RttGrowth {
    fn name(&self) -> &'static str {
        "rtt-growth"
    }

    fn on_acks(&mut self, _path: &PathState, acks: &Acks<'_>) -> Step {
        if acks.new_round && self.current.is_some() {
            self.before = self.last;
            self.last = self.current.take();
        }
        self.current = self.current.into_iter().chain(acks.rtt).min();
        Step::Grow(self.growth(acks.credit))
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
