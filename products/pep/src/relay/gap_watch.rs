//! Peers that leave a gap open in a stream whose buffer is full.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use noq_proto::StreamId;

use super::direction::DirectionRelay;

/// The streams with a gap, and where it begins.
type Gaps = BTreeSet<(StreamId, u64)>;

/// The watch on gaps that hold up a stream whose buffer is full.
#[derive(Debug, Default)]
pub struct GapWatch {
    /// The gaps that there were when the timer was set.
    timer: Option<(Instant, Gaps)>,
}

impl GapWatch {
    /// Sets or removes the timer, as there are gaps or not.
    pub fn look(&mut self, now: Instant, gap_timeout: Duration, relays: &[DirectionRelay; 2]) {
        if !relays.iter().any(DirectionRelay::has_open_gap) {
            self.timer = None;
        } else if self.timer.is_none() {
            let gaps = relays.iter().flat_map(DirectionRelay::gaps).collect();
            self.timer = Some((now + gap_timeout, gaps));
        }
    }

    /// When [`Self::is_stuck`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.timer.as_ref().map(|(until, _)| *until)
    }

    /// Whether the time is over and one of the gaps is still there.
    pub fn is_stuck(
        &mut self,
        now: Instant,
        gap_timeout: Duration,
        relays: &[DirectionRelay; 2],
    ) -> bool {
        let Some((_, before)) = self.timer.take_if(|(until, _)| *until <= now) else {
            return false;
        };
        self.look(now, gap_timeout, relays);
        let still = |(_, gaps): &(Instant, Gaps)| !gaps.is_disjoint(&before);
        self.timer.as_ref().is_some_and(still)
    }
}
