//! The path's properties that a connection saves for the next one: the Observe Phase of Careful
//! Resume.
//!
//! Source: RFC 9959, sections 3.1 and 4.1. What is saved is the smallest round-trip time, and the
//! rate at which data is acknowledged times that: the highest rate over a quarter of a round trip,
//! in the last ten of them. Unlike the congestion window it does not know of slow start's
//! overshoot: what the path does not carry is not acknowledged. Why not the volume of a whole round
//! trip: slow start fills a part of one, and overflows the queue in the next; with a short queue
//! there is none in between. What was delivered before a link became slower is forgotten.

use std::collections::VecDeque;

use bentpipe_units::{Span, Time};

use crate::acks::Acks;
use crate::path::PathState;
use crate::saved::SavedPath;

/// Round trips after which a volume is forgotten.
const ROUNDS: u64 = 10;

/// A rate is taken over the quarter of a round trip, in so many steps …
const STEPS: u64 = 16;

/// … but not over less than this, if the round trip is not shorter: ACKs come in bursts.
const LEAST_SPAN: Span = Span::from_millis(50);

/// A link has become slower if behind a queue it delivers less than so many percent of what it did.
const STILL: u64 = 80;

/// Behind a queue a link delivers what it can: if that is much less than before, it has become
/// slower, as by adaptive coding and modulation, or others share it. `volume` is what it delivered
/// lately, `before` the most that it did. A queue is a round trip that is longer by a quarter.
fn has_slowed(path: &PathState, volume: u64, before: Option<u64>) -> bool {
    let rtt = &path.rtt;
    let is_queued = rtt.latest.as_nanos() > rtt.min.as_nanos() / 4 * 5;
    let is_less = before.is_some_and(|before| volume < before / 100 * STILL);
    is_queued && is_less && !path.limited
}

/// The observer of the bytes that are acknowledged.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    /// Bytes delivered by some time, over the last quarter of a round trip.
    marks: VecDeque<(Time, u64)>,
    /// Rounds, and the largest volume in each of them.
    volumes: VecDeque<(u64, u64)>,
    /// The largest volume while packets waited in a queue for all of that quarter.
    queued: Option<u64>,
}

impl Observer {
    /// Packets were acknowledged.
    pub fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) {
        let rtt = path.rtt.min;
        let quarter = Span::from_nanos(rtt.as_nanos() / 4);
        let span = quarter.max(LEAST_SPAN).min(rtt);
        let is_step = |(last, _): &(Time, u64)| (acks.now - *last) * STEPS >= span;
        if self.marks.back().is_none_or(is_step) {
            self.marks.push_back((acks.now, path.delivered));
        }
        while self.marks.get(1).is_some_and(|it| acks.now - it.0 >= span) {
            self.marks.pop_front();
        }
        let Some(&(since, before)) = self.marks.front() else {
            return;
        };
        let taken = acks.now - since;
        if taken < span || taken.as_nanos() == 0 {
            return;
        }
        let bytes = u128::from(path.delivered - before) * u128::from(rtt.as_nanos());
        let volume = u64::try_from(bytes / u128::from(taken.as_nanos())).unwrap_or(u64::MAX);
        // The bottleneck was busy all that time, be there more to send now or not.
        if path.rtt.latest > rtt + span {
            self.queued = self.queued.max(Some(volume));
        }
        if has_slowed(path, volume, self.largest()) {
            self.volumes.clear();
        }
        // What was not sent says nothing of the path, nor that it has changed.
        if !path.limited || Some(volume) > self.largest() {
            self.note(path.round, volume);
        }
    }

    /// Whether queues have shown that the path carries much less than so many bytes in a round
    /// trip. Other than a sample of the rate, that counts for a file that is over at once.
    pub fn has_slowed_from(&self, window: u64) -> bool {
        self.queued.is_some_and(|it| it < window / 100 * STILL)
    }

    fn largest(&self) -> Option<u64> {
        self.volumes.iter().map(|(_, volume)| *volume).max()
    }

    fn note(&mut self, round: u64, volume: u64) {
        self.volumes.retain(|(old, _)| old + ROUNDS > round);
        match self.volumes.back_mut() {
            Some((last, largest)) if *last == round => *largest = volume.max(*largest),
            _ => self.volumes.push_back((round, volume)),
        }
    }

    /// The measurements that are worth remembering.
    pub fn observed(&self, path: &PathState) -> Option<SavedPath> {
        let saved = SavedPath {
            window: self.largest()?,
            rtt: path.rtt.min,
        };
        saved.is_worthwhile(path.initial_window).then_some(saved)
    }
}
