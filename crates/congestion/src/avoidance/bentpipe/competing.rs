//! The window beside others: it grows by the same for all that share a queue, so that shares
//! become equal, and gives way where the queue is long.
//!
//! The growth is the convex part of CUBIC (RFC 9438, section 4.10) from the last reduction on, 0.4
//! packets times the cube of the seconds since, whatever the window. Two senders that lose at the
//! same time thus grow by the same, and each reduction by 30 % takes 30 % of their difference.
//! CUBIC itself returns to the window of before, and grows by the same only beyond: ten of this
//! sender, started a second apart over 0.25 BDP, then had a Jain's index of 0.83 and 0.88 after
//! 70 s in place of 0.99.

use bentpipe_units::Span;

use crate::acks::Acks;
use crate::avoidance::{Avoidance, Cubic, Reduction};
use crate::path::PathState;

/// Reductions for a long queue, one after another. Two leave a quarter of the window: if the queue
/// is still there, those who fill it do not give way.
const YIELDS: u32 = 2;
/// Round trips from one of them to the next: the queue has to become shorter first.
const BETWEEN: u64 = 4;
/// Round trips after which it tries again. From 8 to 32 no path of the sweep shows a difference.
const AGAIN: u64 = 16;

/// The window of a sender that is not alone.
#[derive(Debug, Clone, Default)]
pub struct Competition {
    growth: Cubic,
    /// Reductions for a long queue that have not helped yet.
    yields: u32,
    /// The round trip of the last one.
    yielded: u64,
}

impl Competition {
    /// Begins to grow from this window, in bytes.
    pub fn begin_at(&mut self, bytes: u64) -> Reduction {
        self.growth.restart_at(bytes)
    }

    /// Answers a loss or a mark, at a window of `bytes`.
    pub fn reduce(&mut self, bytes: u64) -> Reduction {
        let reduction = self.growth.reduce_from(bytes);
        self.growth.restart_at(reduction.window)
    }

    /// The window after these ACKs.
    pub fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> u64 {
        self.growth.on_acks(path, acks)
    }

    /// Half of the window, at the end of a round trip, if the queue is longer than the path: that
    /// helps nobody. If all that share it give up half, it drains, and
    /// those who have never seen it empty learn the base RTT.
    pub fn yield_to(&mut self, path: &PathState, queue: Span, base: Span) -> Option<u64> {
        if queue <= base {
            self.yields = 0;
            return None;
        }
        let since = path.round - self.yielded;
        if self.yields == YIELDS && since >= AGAIN {
            self.yields = 0;
        }
        if self.yields == YIELDS || since < BETWEEN {
            return None;
        }
        self.yields += 1;
        self.yielded = path.round;
        Some(self.begin_at(path.window / 2).window)
    }
}
