//! Time cut into intervals, and a value drawn for each.

use std::collections::BTreeMap;
use std::fmt;

use bentpipe_units::{Span, Time};

use crate::fields::{Fields, Problem};
use crate::random::{Dice, LinkSeed};

/// Intervals of time, written `every = "15 s", first = "5 s"`: intervals of 15 s, the first of
/// which ends, however, after 5 s. Without `first` it is as long as the others. What changes at
/// handovers has the same intervals in both directions, in rate, delay and loss.
///
/// With `phase = "random"` in place of `first`, that time is drawn for each trial: any whole number
/// of nanoseconds above 0 up to `every`, all alike. On a segment, all intervals of one length that
/// have a random phase have the same, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// From one change to the next.
    pub every: Span,
    /// The first change; of a random phase, the latest that it may be.
    pub first: Span,
    /// Whether the first change is drawn for each trial.
    pub is_random: bool,
}

/// No interval is shorter: each costs a draw, whether a packet passes in it or not.
const SHORTEST: Span = Span::from_millis(1);

impl Intervals {
    /// Reads `every` and `first`; None if there is neither.
    pub(crate) fn read(fields: &mut Fields, example: &str) -> Result<Option<Self>, Problem> {
        let every = fields.take("every");
        let first = fields.take("first");
        let phase = fields.take("phase");
        let Some(entry) = every else {
            return match first.or(phase) {
                Some(first) => Err(first.problem("needs an every beside it")),
                None => Ok(None),
            };
        };
        let every: Span = entry.parse()?;
        if every < SHORTEST {
            let message = format!("too short; write {SHORTEST} or more, as in \"{example}\"");
            return Err(entry.problem(&message));
        }
        let is_random = match (&phase, &first) {
            (None, _) => false,
            (Some(phase), Some(_)) => {
                return Err(phase.problem("either first or phase, not both; leave one out"));
            }
            (Some(phase), None) if phase.is_text("random") => true,
            (Some(phase), None) => return Err(phase.problem("write \"random\"")),
        };
        let first = first.map(|entry| entry.parse()).transpose()?;
        Ok(Some(Self {
            every,
            first: first.unwrap_or(every),
            is_random,
        }))
    }

    /// Reads `within`: a list of tables, each with a value and intervals for which it holds.
    pub(crate) fn read_within<T>(
        fields: &mut Fields,
        value: impl Fn(&mut Fields) -> Result<T, Problem>,
    ) -> Result<Vec<(T, Self)>, Problem> {
        let Some(entry) = fields.take("within") else {
            return Ok(Vec::new());
        };
        let wrong = entry.problem("write a list of tables, each with an every = \"100 ms\"");
        let mut within = Vec::new();
        for item in entry.items().ok_or(wrong)? {
            let mut fields = item.table()?;
            let value = value(&mut fields)?;
            within.push((value, Self::required(&mut fields, "100 ms")?));
            fields.finish()?;
        }
        Ok(within)
    }

    /// The intervals of a trial, whose first change is known.
    pub(crate) fn in_trial(self, seed: LinkSeed) -> Self {
        if !self.is_random {
            return self;
        }
        let past = seed.phase(self.every).up_to(self.every.as_nanos() - 1);
        Self {
            first: Span::from_nanos(past + 1),
            is_random: false,
            ..self
        }
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
        debug_assert!(!self.is_random, "the phase is not known");
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

    /// The fields of a table for these intervals: `every`, and `first` where it differs, or
    /// `phase`.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, String)> {
        let first = (self.first != self.every).then(|| ("first", self.first.to_string()));
        let phase = self.is_random.then(|| ("phase", "random".to_owned()));
        let every = ("every", self.every.to_string());
        std::iter::once(every).chain(phase).chain(first)
    }

    /// A table with these intervals and a value.
    pub(crate) fn row(&self, name: &'static str, value: String) -> BTreeMap<&'static str, String> {
        self.fields().chain([(name, value)]).collect()
    }
}

/// For people.
impl fmt::Display for Intervals {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "every {}", self.every)?;
        if self.is_random {
            f.write_str(" from a random time on")?;
        }
        Ok(())
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
