//! A slow start that sent more than the path carries, and the marks that outlive its queue.

use bentpipe_units::{Span, Time};

use crate::avoidance::Reduction;
use crate::path::PathState;

/// For so long a queue discipline may mark after its queue is gone: the probability of `DualPI2`
/// falls by `alpha` times its target, 0.0024, every 16 ms (RFC 9332, appendix A.1), from 1 to 0 in
/// 6.7 s.
const MARKS_OUTLIVE: Span = Span::from_secs(7);
/// Slow start has sent too much if so many percent of the window that it leaves were on their way.
const TOO_MUCH: u64 = 105;
/// Round trips after slow start in which deliveries may be slower than the path: the packets of a
/// first flight left before anything of it was acknowledged.
const LAGGING: u64 = 2;
/// Percent of the window that these marks leave altogether (RFC 8511, section 3.1).
const MARKED: u64 = 85;

/// A record of how much slow start has sent, and until when its marks may come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Overshoot {
    /// The most bytes on their way in slow start.
    most: u64,
    /// Marks without a queue may be about them until then; none: slow start did not send too much.
    until: Option<Time>,
    /// The round trip in which slow start has ended.
    ended_in: u64,
    answered: bool,
}

impl Overshoot {
    /// Packets were acknowledged in slow start.
    pub fn on_acks_in_slow_start(&mut self, path: &PathState) {
        self.most = self.most.max(path.in_flight);
    }

    /// Slow start has ended, with the window that it measured, or because of a loss or a mark.
    pub fn on_slow_start_end(&mut self, path: &PathState) {
        let most = std::mem::take(&mut self.most);
        let is_too_much = most / TOO_MUCH > path.window / 100;
        self.until = is_too_much.then(|| path.now + MARKS_OUTLIVE);
        self.ended_in = path.round;
        self.answered = false;
    }

    /// Deliveries may still be slower than the path.
    pub fn lags(&self, path: &PathState) -> bool {
        self.until.is_some() && path.round - self.ended_in <= LAGGING
    }

    /// The window was reduced because of a loss or a mark.
    pub fn on_reduction(&mut self) {
        self.answered = true;
    }

    /// The answer to a mark without a queue, if it may be about one that is gone: one reduction for
    /// all such marks, since slow start has given up the rest of its window already.
    pub fn answer(&mut self, path: &PathState) -> Option<Reduction> {
        self.until.filter(|&until| path.now <= until)?;
        let first = !std::mem::replace(&mut self.answered, true);
        let left = if first {
            path.window / 100 * MARKED
        } else {
            path.window
        };
        Some(Reduction::to(left))
    }
}
