//! Time cut into intervals, and a value drawn for each.

use bentpipe_units::{Span, Time};

use crate::fields::{Fields, Problem};
use crate::random::Dice;

/// Intervals of time, written `every = "15 s", first = "5 s"`: intervals of 15 s, the first of
/// which ends, however, after 5 s. Without `first` it is as long as the others. What changes at
/// handovers has the same intervals in both directions, in rate, delay and loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// From one change to the next.
    pub every: Span,
    /// The first change.
    pub first: Span,
}

/// No interval is shorter: each costs a draw, whether a packet passes in it or not.
const SHORTEST: Span = Span::from_millis(1);

impl Intervals {
    /// Reads `every` and `first`; None if there is neither.
    pub(crate) fn read(fields: &mut Fields, example: &str) -> Result<Option<Self>, Problem> {
        let every = fields.take("every");
        let first = fields.take("first");
        let Some(entry) = every else {
            return match first {
                Some(first) => Err(first.problem("needs an every beside it")),
                None => Ok(None),
            };
        };
        let every: Span = entry.parse()?;
        if every < SHORTEST {
            let message = format!("too short; write {SHORTEST} or more, as in \"{example}\"");
            return Err(entry.problem(&message));
        }
        let first = first.map(|entry| entry.parse()).transpose()?;
        let first = first.unwrap_or(every);
        Ok(Some(Self { every, first }))
    }

    /// The same where they must be there.
    pub(crate) fn required(fields: &mut Fields, example: &str) -> Result<Self, Problem> {
        match Self::read(fields, example)? {
            Some(intervals) => Ok(intervals),
            None => Err(fields.missing("every", &format!("\"{example}\""))),
        }
    }

    /// The number of changes up to a time, and the time of the next one.
    pub(crate) fn changes(&self, at: Time) -> (u64, Time) {
        let first = Time::ZERO + self.first;
        if at < first {
            return (0, first);
        }
        let count = 1 + (at - first).as_nanos() / self.every.as_nanos();
        (count, first + self.every * count)
    }

    /// The time since the last change; None before the first.
    pub(crate) fn since_change(&self, at: Time) -> Option<Span> {
        let first = Time::ZERO + self.first;
        (at >= first).then(|| Span::from_nanos((at - first).as_nanos() % self.every.as_nanos()))
    }

    /// The fields of a table for these intervals: `every`, and `first` where it differs.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, String)> {
        let first = (self.first != self.every).then(|| ("first", self.first.to_string()));
        std::iter::once(("every", self.every.to_string())).chain(first)
    }
}

/// A number from 0 to `most`, all alike, that holds for an interval. Which number holds when
/// depends on the seed alone, not on packets.
pub(crate) struct Drawn {
    intervals: Intervals,
    most: u64,
    dice: Dice,
    /// How many numbers have been drawn.
    draws: u64,
    value: u64,
}

impl Drawn {
    pub fn new(intervals: Intervals, most: u64, dice: Dice) -> Self {
        Self {
            intervals,
            most,
            dice,
            draws: 0,
            value: 0,
        }
    }

    /// The number that holds at a time, and when the next takes its place. Times must not go back
    /// by a change.
    pub fn at(&mut self, at: Time) -> (u64, Time) {
        let (changes, until) = self.intervals.changes(at);
        while self.draws <= changes {
            self.value = self.dice.up_to(self.most);
            self.draws += 1;
        }
        (self.value, until)
    }
}
