//! The end of a worker, which others like it may outlive.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// After the time to drain: how long what closes connections may take to leave, and be answered.
const FAREWELL: Duration = Duration::from_secs(1);

/// The state of a worker's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// It serves.
    #[default]
    No,
    /// When nothing is left, or at this time.
    By(Duration),
    /// Nothing is left here, but of other workers; at this time at the latest. Until then it turns
    /// away the clients whose packets are its own.
    Last(Duration),
    /// At once.
    Now,
}

impl Ending {
    /// Ends when nothing is left, and soon after `until` at the latest.
    pub fn drain(&mut self, until: Duration) {
        *self = Self::By(until + FAREWELL);
    }

    /// Notes that nothing is left; `true`: of no other worker either, of which `busy` counts those
    /// that have something.
    pub fn note_drained(&mut self, busy: &AtomicUsize) -> bool {
        let Self::By(time) = *self else {
            return false;
        };
        *self = Self::Last(time);
        busy.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether it ends now.
    #[must_use]
    pub fn has_come(self, now: Duration) -> bool {
        match self {
            Self::No => false,
            Self::By(time) | Self::Last(time) => now >= time,
            Self::Now => true,
        }
    }

    /// The time of the end, if there is one.
    #[must_use]
    pub fn time(self) -> Option<Duration> {
        match self {
            Self::By(time) | Self::Last(time) => Some(time),
            Self::No | Self::Now => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_worker_that_has_nothing_left_ends_all() {
        let second = Duration::from_secs(1);
        let busy = AtomicUsize::new(2);
        let [mut one, mut other] = [Ending::default(); 2];
        assert!(!one.note_drained(&busy), "it does not drain");
        for ending in [&mut one, &mut other] {
            ending.drain(5 * second);
        }
        assert!(!one.note_drained(&busy));
        assert!(!one.note_drained(&busy), "it was counted already");
        assert!(other.note_drained(&busy));
        assert!(!one.has_come(5 * second), "the farewell takes its time");
        assert!(one.has_come(6 * second));
        assert_eq!(one.time(), Some(6 * second));
    }
}
