//! Intervals, counted from the first data.

use std::time::Duration;

/// The timer of the intervals of one side.
#[derive(Debug, Clone)]
pub struct IntervalTimer {
    begun: Duration,
    length: Duration,
    next: u32,
}

impl IntervalTimer {
    pub fn new(begun: Duration, length: Duration) -> Self {
        Self {
            begun,
            length,
            next: 0,
        }
    }

    /// When the current interval ends.
    pub fn wake(&self) -> Duration {
        self.begun + self.length * (self.next + 1)
    }

    /// The index of an interval that has ended, if there is one that was not asked for yet.
    pub fn ended(&mut self, now: Duration) -> Option<u32> {
        (now >= self.wake()).then(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// The index of the last interval, which ends now, and how long it was; `None`: one has just
    /// ended.
    pub fn last(&self, now: Duration) -> Option<(u32, Duration)> {
        let rest = now.saturating_sub(self.begun + self.length * self.next);
        (!rest.is_zero()).then_some((self.next, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn each_interval_ends_once() {
        let mut timer = IntervalTimer::new(ms(50), ms(100));
        assert_eq!(timer.wake(), ms(150));
        assert_eq!(timer.ended(ms(149)), None);
        assert_eq!(timer.ended(ms(380)), Some(0));
        assert_eq!(timer.ended(ms(380)), Some(1));
        assert_eq!(timer.ended(ms(380)), Some(2));
        assert_eq!(timer.ended(ms(380)), None);
        assert_eq!(timer.last(ms(380)), Some((3, ms(30))));
        assert_eq!(timer.last(ms(350)), None);
    }
}
