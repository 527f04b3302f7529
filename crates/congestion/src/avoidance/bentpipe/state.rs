//! The states of the sender, and what moves it from one to another at the end of a round trip.

use bentpipe_units::{Span, Time};

use super::watch::{RoundEnd, beyond};

/// Round trips without a queue after which nobody else is there, if [`FREE`] is over as well. From
/// 8 to 32 no path of the sweep shows a difference.
const FREE_ROUNDS: u32 = 16;
/// Time without a queue after which nobody else is there: CUBIC over a queue of a quarter of the
/// BDP leaves it empty for up to six seconds.
const FREE: Span = Span::from_secs(10);
/// Percent of the delivery that half of the window keeps, behind a queue, only if it has nine
/// tenths of the link.
const ALONE: u64 = 90;

/// A state; the head of the module describes them.
#[derive(Debug, Clone, Copy)]
pub enum State {
    Alone { free_rounds: u32 },
    Draining(Attempt),
    Probing(Attempt),
    Competing { free_rounds: u32, since: Time },
}

/// An attempt to make a queue drain.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// The window before.
    before: u64,
    /// The queue before.
    queue: Span,
    /// The delivery before, bytes per second.
    rate: u64,
    /// The round trip is over in which the window was reduced: the next one shows what came of it.
    settled: bool,
}

/// A change of the window at the end of a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Keep,
    /// To what the path was seen to carry.
    ToCarried,
    /// To what leaves no queue.
    Drain,
    Halve,
    /// Back to so many bytes: there is no queue of one's own, or none that halving it takes away.
    Restore(u64),
    /// As `Restore`, and the base RTT is longer by that.
    Lengthen(u64, Span),
    /// Back to so many bytes, as CUBIC.
    Compete(u64),
}

impl Default for State {
    fn default() -> Self {
        Self::Alone { free_rounds: 0 }
    }
}

impl State {
    /// The state after slow start: its queue leaves before anything is judged.
    pub fn after_slow_start(window: u64) -> Self {
        Self::Draining(Attempt {
            before: window,
            queue: Span::MAX,
            rate: 0,
            settled: false,
        })
    }

    /// Somebody else fills the queue.
    pub fn competing(now: Time) -> Self {
        Self::Competing {
            free_rounds: 0,
            since: now,
        }
    }

    /// In a word, for the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone { .. } => "alone",
            Self::Draining(_) => "draining",
            Self::Probing(_) => "probing",
            Self::Competing { .. } => "competing",
        }
    }

    /// A round trip has ended, with a window of so many bytes. `limit`: a longer queue stands.
    pub fn close_round(&mut self, now: Time, end: RoundEnd, window: u64, limit: Span) -> Change {
        let attempt = Attempt {
            before: window,
            queue: end.queue,
            rate: end.rate,
            settled: false,
        };
        let (state, change) = match *self {
            Self::Alone { .. } if end.stands => (Self::Draining(attempt), Change::ToCarried),
            Self::Alone { free_rounds } => {
                let free_rounds = if end.limited { 0 } else { free_rounds + 1 };
                (Self::Alone { free_rounds }, Change::Keep)
            }
            Self::Draining(tried) if !tried.settled => {
                (Self::Draining(tried.settle()), Change::Keep)
            }
            Self::Draining(_) if !end.stands => (Self::default(), Change::Keep),
            Self::Draining(tried) => tried.drain_further(end),
            Self::Probing(tried) if !tried.settled => (Self::Probing(tried.settle()), Change::Keep),
            Self::Probing(tried) if !end.stands => (Self::default(), Change::Restore(tried.before)),
            Self::Probing(tried) => tried.judge(now, end, limit),
            Self::Competing { .. } if end.stands => (Self::competing(now), Change::Keep),
            Self::Competing { free_rounds, since } => {
                let free_rounds = free_rounds + 1;
                let free = free_rounds >= FREE_ROUNDS && now - since >= FREE;
                let still = Self::Competing { free_rounds, since };
                (if free { Self::default() } else { still }, Change::Keep)
            }
        };
        *self = state;
        change
    }
}

impl Attempt {
    fn settle(self) -> Self {
        Self {
            settled: true,
            ..self
        }
    }

    /// It has helped, and not enough; or it has not helped, and half of the window tells why.
    fn drain_further(self, end: RoundEnd) -> (State, Change) {
        let next = self.go_on(end);
        if end.queue * 2 < self.queue {
            (State::Draining(next), Change::Drain)
        } else {
            (State::Probing(next), Change::Halve)
        }
    }

    /// Half of what was in flight is gone, and there is a queue all the same.
    fn judge(self, now: Time, end: RoundEnd, limit: Span) -> (State, Change) {
        let moved = beyond(self.queue, end.queue) + beyond(end.queue, self.queue);
        if moved * 2 < limit {
            // Nobody has to wait less: that is no queue, but a longer path.
            return (State::default(), Change::Lengthen(self.before, end.queue));
        }
        if end.rate * 100 >= self.rate * ALONE {
            // Half of the window gets as much of the link as all of it did: there is nobody else.
            return (State::Draining(self.go_on(end)), Change::Drain);
        }
        (State::competing(now), Change::Compete(self.before))
    }

    /// The same attempt, one step further.
    fn go_on(self, end: RoundEnd) -> Self {
        Self {
            before: self.before,
            queue: end.queue,
            rate: end.rate,
            settled: false,
        }
    }
}
