//! Packets that a link delivers twice.
//!
//! A share of the packets, drawn from the seed, goes on as two: the packet, and a copy of it, which
//! leaves at the same time, right behind it, or later by a time. Behind the node both are packets
//! like any others: each may be dropped or lost, and may be duplicated again. Which of them counts
//! as the packet is settled where they arrive ([`Copies`]).

use std::collections::{HashMap, VecDeque};
use std::fmt;

use bentpipe_units::{Ratio, Span, Time};
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Problem};
use crate::node::{Node, Step, Transit};
use crate::random::Dice;

/// Duplication at the end of a link: `"0.1 %"`, or `{ share = "0.1 %", after = "1 ms" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The share of packets of which there are two behind it, each alike, independent of the
    /// others.
    pub share: Ratio,
    /// How much later the copy leaves than the packet; 0 if left out: right behind it.
    pub after: Span,
}

impl Duplicate {
    pub(crate) fn read(entry: Entry) -> Result<Self, Problem> {
        if !entry.is_table() {
            let share = entry.parse()?;
            let after = Span::ZERO;
            return Ok(Self { share, after });
        }
        let mut fields = entry.table()?;
        let duplicate = Self {
            share: fields.required("share", "\"0.1 %\"")?.parse()?,
            after: fields.optional("after")?.unwrap_or(Span::ZERO),
        };
        fields.finish()?;
        Ok(duplicate)
    }
}

impl Serialize for Duplicate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.after == Span::ZERO {
            return self.share.serialize(serializer);
        }
        let share = ("share", self.share.to_string());
        serializer.collect_map([share, ("after", self.after.to_string())])
    }
}

/// As the record names it.
impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} duplicated", self.share)?;
        match self.after {
            Span::ZERO => Ok(()),
            after => write!(f, " after {after}"),
        }
    }
}

/// The duplication of one link.
pub(crate) struct Duplication {
    config: Duplicate,
    dice: Dice,
    /// Copies with the times at which they leave, in their order, since all are as late.
    copies: VecDeque<(Time, Transit)>,
}

impl Duplication {
    pub fn new(config: Duplicate, dice: Dice) -> Self {
        Self {
            config,
            dice,
            copies: VecDeque::new(),
        }
    }
}

impl Node for Duplication {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        if !self.dice.chance(self.config.share) {
            return Step::Leave { at: now };
        }
        let copy = Transit {
            is_copy: true,
            ..*transit
        };
        self.copies.push_back((now + self.config.after, copy));
        Step::LeaveTwice { at: now }
    }

    fn holds(&self) -> bool {
        true
    }

    /// Where the packet itself is lost on the way, its copy stands for it, and is late.
    fn reorders(&self) -> bool {
        self.config.after > Span::ZERO
    }

    fn next_event(&self) -> Time {
        self.copies.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    fn release(&mut self, until: Time) -> Option<(Transit, Step)> {
        let (at, transit) = self
            .copies
            .front()
            .filter(|(at, _)| *at <= until)
            .copied()?;
        self.copies.pop_front();
        Some((transit, Step::Leave { at }))
    }
}

/// The packets of a path that are under way more than once.
///
/// As RFC 5560 has it, a packet is lost if nothing of it arrives, and duplicated if more than one
/// does. So the first that arrives is the packet, whichever it is, and those that follow are
/// copies; where none arrives the last fate is the packet's.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// By the packets' numbers.
    open: HashMap<u64, OpenCopies>,
}

#[derive(Debug)]
struct OpenCopies {
    /// How many are under way.
    under_way: u32,
    has_arrived: bool,
}

impl Copies {
    /// A packet, or one that is under way of it, goes on as two.
    pub fn duplicate(&mut self, number: u64) {
        let one = OpenCopies {
            under_way: 1,
            has_arrived: false,
        };
        self.open.entry(number).or_insert(one).under_way += 1;
    }

    /// One that is under way of a packet has arrived, or come to another end. Tells whether it is a
    /// copy, and how many are still under way.
    pub fn end(&mut self, number: u64, has_arrived: bool) -> (bool, u32) {
        let Some(open) = self.open.get_mut(&number) else {
            return (false, 0);
        };
        open.under_way -= 1;
        let under_way = open.under_way;
        let is_last_hope = under_way == 0 && !open.has_arrived;
        let is_copy = open.has_arrived || !(has_arrived || is_last_hope);
        open.has_arrived |= has_arrived;
        if under_way == 0 {
            self.open.remove(&number);
        }
        (is_copy, under_way)
    }
}
