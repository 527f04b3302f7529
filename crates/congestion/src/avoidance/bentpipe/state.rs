//! The states of the sender, and what moves it from one to another at the end of a round trip.

use bentpipe_units::{Span, Time};

use super::watch::{RoundEnd, beyond};

/// Round trips without a queue after which nobody else is there, if [`FREE`] is over as well. From
/// 8 to 32 no path of the sweep takes 4 % longer.
const FREE_ROUNDS: u32 = 16;
/// Time without a queue after which nobody else is there: CUBIC over a queue of a quarter of the
/// BDP leaves it empty for up to six seconds.
const FREE: Span = Span::from_secs(10);
/// Round trips after which a sender that competes may be alone, if [`LOOK`] is over as well: if its
/// delivery has been the same behind a queue, as on a link of its own, or the queue has not changed
/// although its window has, as on a longer path.
const LOOK_ROUNDS: u32 = 16;
/// The time after which it may be alone: in low orbit sixteen round trips are less than a second.
const LOOK: Span = Span::from_secs(4);
/// After so many times that it looks anyway: each look beside others costs a part of the share.
const ANYWAY: u32 = 16;
/// A look that shows others makes the next one wait twice as long, up to so many times.
const MOST_DOUBLINGS: u32 = 4;
/// Deliveries are the same if the least is that many percent of the most.
const SAME: u64 = 97;
/// Round trips behind a queue that tell.
const TELLING: u32 = 8;
/// A queue that falls to less than that part when the window is halved is the sender's own.
const OWN: u64 = 4;
/// Percent of the delivery that half of the window keeps, behind a queue, only if it has nine
/// tenths of the link.
const ALONE: u64 = 90;

/// Packets per round trip from which on its fastest delivery is that of the link. Without a limit
/// ten senders over 1 BDP had a Jain's index of 0.74 and 0.999 in two trials, with it 0.94 in both;
/// with 0 a sender over 10 Mbit/s and 30 ms had 6 % less.
const COARSE: u64 = 64;
/// Packets per round trip of which one more or less is too much to be drained twice: a path of
/// 3 Mbit/s and 10 ms, which holds three packets, then took four times as long as with CUBIC.
const TINY: u64 = 16;

/// A state; the head of the module describes them.
#[derive(Debug, Clone, Copy)]
pub enum State {
    Alone { free_rounds: u32 },
    Draining(Attempt),
    Probing(Attempt),
    Competing(Competing),
}

/// Somebody else fills the queue, as it seems.
#[derive(Debug, Clone, Copy)]
pub struct Competing {
    /// Round trips without a queue, and since when.
    free_rounds: u32,
    free_since: Time,
    /// Round trips since the last look, and since when.
    rounds: u32,
    since: Time,
    /// Such times that are over.
    times: u32,
    /// Looks that have shown others, one after another.
    looks: u32,
    /// Of round trips behind a queue since then.
    seen: Option<Seen>,
    /// A queue stood in the last round trip.
    stood: bool,
}

/// The extremes of the delivery, bytes per second, and of the queue.
#[derive(Debug, Clone, Copy)]
struct Seen {
    rounds: u32,
    rates: [u64; 2],
    queues: [Span; 2],
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
    /// Packets were lost: if others are there, that costs what a loss costs.
    lost: bool,
    /// The steps of probing that are over. Half of the window may leave a part of one's own queue,
    /// and may leave it full, as if the path were longer; a quarter does not.
    steps: u32,
    /// Looks that have shown others before.
    looks: u32,
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
    /// Back to so many bytes, beside others.
    Compete(u64),
    /// The same, as before the look.
    GoOn(u64),
    /// The same after a loss.
    CompeteAfterLoss(u64),
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
            lost: false,
            steps: 0,
            looks: 0,
        })
    }

    /// Somebody else fills the queue.
    pub fn competing(now: Time) -> Self {
        Self::Competing(Competing::begin(now, 0))
    }

    /// Whether a loss is no news: the queue that drains already has dropped what left before, and
    /// half of the window is left while it probes.
    pub fn explains(&mut self, left_before: bool) -> bool {
        match self {
            Self::Draining(_) => left_before,
            Self::Probing(tried) => {
                tried.lost |= !left_before;
                true
            }
            _ => false,
        }
    }

    /// In a word, for the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone { .. } => "alone",
            Self::Draining(_) => "draining",
            Self::Probing(_) => "probing",
            Self::Competing(_) => "competing",
        }
    }

    /// A round trip has ended, with a window of so many bytes. `limit`: a longer queue stands.
    pub fn close_round(&mut self, now: Time, end: RoundEnd, window: u64, limit: Span) -> Change {
        let attempt = Attempt {
            before: window,
            queue: end.queue,
            rate: end.rate,
            settled: false,
            lost: false,
            steps: 0,
            looks: 0,
        };
        let (state, change) = match *self {
            Self::Alone { .. } if end.stands => (Self::Draining(attempt), Change::ToCarried),
            Self::Alone { free_rounds } => {
                let free_rounds = if end.limited { 0 } else { free_rounds + 1 };
                (Self::Alone { free_rounds }, Change::Keep)
            }
            Self::Draining(tried) if !tried.settled => {
                (Self::Draining(tried.settle(end)), Change::Keep)
            }
            Self::Draining(_) if !end.stands => (Self::default(), Change::Keep),
            Self::Draining(tried) => tried.drain_further(end),
            Self::Probing(tried) if !tried.settled => {
                (Self::Probing(tried.settle(end)), Change::Keep)
            }
            Self::Probing(tried) if !end.stands => (Self::default(), Change::Restore(tried.before)),
            // Who has little to send learns nothing.
            Self::Probing(tried) if end.limited => (Self::default(), Change::Restore(tried.before)),
            Self::Probing(tried) => tried.judge(now, end, limit),
            Self::Competing(so_far) => so_far.close_round(now, end, attempt, limit),
        };
        *self = state;
        change
    }
}

impl Competing {
    fn begin(now: Time, looks: u32) -> Self {
        Self {
            free_rounds: 0,
            free_since: now,
            rounds: 0,
            since: now,
            times: 0,
            looks,
            seen: None,
            stood: false,
        }
    }

    /// Ends if there is no queue for long, and looks for one's own queue from time to time.
    fn close_round(
        mut self,
        now: Time,
        end: RoundEnd,
        attempt: Attempt,
        limit: Span,
    ) -> (State, Change) {
        self.rounds += 1;
        self.free_rounds += 1;
        if end.stands {
            (self.free_rounds, self.free_since) = (0, now);
        }
        if self.free_rounds >= FREE_ROUNDS && now - self.free_since >= FREE {
            return (State::default(), Change::Keep);
        }
        if end.stands && self.stood {
            self.seen = Some(Seen::with(self.seen, end));
        }
        self.stood = end.stands;
        if end.stands && self.is_time_to_look(now, limit + end.wander) {
            let looks = self.looks + 1;
            return (State::Probing(Attempt { looks, ..attempt }), Change::Halve);
        }
        (State::Competing(self), Change::Keep)
    }

    fn is_time_to_look(&mut self, now: Time, limit: Span) -> bool {
        if self.rounds < LOOK_ROUNDS || now - self.since < LOOK {
            return false;
        }
        self.times += 1;
        (self.rounds, self.since) = (0, now);
        let seen = self.seen.take();
        let wait = 1 << self.looks.min(MOST_DOUBLINGS);
        let is_alone = seen.is_some_and(|seen| seen.is_of_one(limit));
        self.times >= if is_alone { wait } else { ANYWAY * wait }
    }
}

impl Seen {
    fn with(before: Option<Self>, end: RoundEnd) -> Self {
        let Some(Self {
            rounds,
            rates,
            queues,
        }) = before
        else {
            return Self {
                rounds: 1,
                rates: [end.rate; 2],
                queues: [end.queue; 2],
            };
        };
        Self {
            rounds: rounds + 1,
            rates: [rates[0].min(end.rate), rates[1].max(end.rate)],
            queues: [queues[0].min(end.queue), queues[1].max(end.queue)],
        }
    }

    fn is_of_one(&self, limit: Span) -> bool {
        let [least, most] = self.rates;
        let same = least * 100 >= most * SAME || beyond(self.queues[1], self.queues[0]) < limit;
        self.rounds >= TELLING && same
    }
}

impl Attempt {
    /// The round trip is over whose packets left before the window was reduced. Part of its ACKs
    /// may be of those that left afterwards.
    fn settle(self, end: RoundEnd) -> Self {
        Self {
            rate: self.rate.max(end.rate),
            settled: true,
            ..self
        }
    }

    /// It has helped, and not enough; or it has not helped, and half of the window tells why.
    fn drain_further(self, end: RoundEnd) -> (State, Change) {
        let next = self.go_on(end);
        if end.queue * 2 < self.queue {
            return (State::Draining(next), Change::Drain);
        }
        if self.steps == 0 && (TINY..COARSE).contains(&end.packets) {
            // Deliveries may have seemed too fast: now by the queue that is there.
            return (State::Draining(Self { steps: 1, ..next }), Change::Drain);
        }
        (State::Probing(Self { steps: 0, ..next }), Change::Halve)
    }

    /// Half of what was in flight is gone, and there is a queue all the same.
    fn judge(self, now: Time, end: RoundEnd, limit: Span) -> (State, Change) {
        if end.packets >= TINY && end.rate * 100 >= self.rate * ALONE {
            // Half of the window gets as much of the link as all of it did: there is nobody else.
            return (State::Draining(self.go_on(end)), Change::Drain);
        }
        if end.queue * OWN < self.queue {
            return (State::default(), Change::Restore(self.before));
        }
        let moved = beyond(self.queue, end.queue) + beyond(end.queue, self.queue);
        if (self.steps > 0 || self.looks == 0) && moved * 2 < limit + end.wander {
            // Nobody has to wait less: that is no queue, but a longer path.
            return (State::default(), Change::Lengthen(self.before, end.queue));
        }
        if self.steps == 0 && self.looks > 0 {
            let next = Self {
                steps: 1,
                ..self.go_on(end)
            };
            return (State::Probing(next), Change::Halve);
        }
        let state = State::Competing(Competing::begin(now, self.looks));
        let change = match self {
            Self { lost: true, .. } => Change::CompeteAfterLoss(self.before),
            Self { looks: 0, .. } => Change::Compete(self.before),
            _ => Change::GoOn(self.before),
        };
        (state, change)
    }

    /// The same attempt, one step further.
    fn go_on(self, end: RoundEnd) -> Self {
        Self {
            queue: end.queue,
            rate: end.rate,
            settled: false,
            ..self
        }
    }
}
