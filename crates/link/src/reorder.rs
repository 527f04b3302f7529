//! Packets that others overtake.
//!
//! Reordering apart from jitter: a share of the packets, drawn from the seed, is held at the end of
//! a link, while others pass. What a packet then meets is the end, or the next link: packets leave
//! in the order of time.

use std::collections::VecDeque;
use std::fmt;

use bentpipe_units::{Ratio, Span, Time};
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Problem};
use crate::node::{Node, Step, Transit};
use crate::packets::Packets;
use crate::random::Dice;

/// Reordering at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// The share of packets that are held, each alike, independent of the others.
    pub share: Ratio,
    /// For how long.
    pub held: HoldingTime,
}

/// The time for which a packet is held while others pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldingTime {
    /// `distance = "3 packets", wait = "100 ms"`: until three that came later have passed, of
    /// whatever flow, but no longer than 100 ms. Others that are held do not count while they are.
    Distance {
        /// How many packets pass.
        distance: Packets,
        /// For how long it waits for them at most, 100 ms if left out.
        wait: Span,
    },
    /// `by = "5 ms"`: for 5 ms.
    By(Span),
}

const WAIT: Span = Span::from_millis(100);
const EXAMPLES: &str = "{ share = \"1 %\", distance = \"3 packets\" } or \
                        { share = \"1 %\", by = \"5 ms\" }";

impl Reorder {
    pub(crate) fn read(entry: Entry) -> Result<Self, Problem> {
        if !entry.is_table() {
            return Err(entry.problem(&format!("not reordering; write {EXAMPLES}")));
        }
        let mut fields = entry.table()?;
        let share = fields.required("share", "\"1 %\"")?.parse()?;
        let held = match (fields.take("distance"), fields.take("by")) {
            (Some(entry), None) => {
                let distance = entry.parse()?;
                if distance == Packets(0) {
                    return Err(entry.problem("nothing passes it; write \"3 packets\""));
                }
                let wait = fields.optional("wait")?.unwrap_or(WAIT);
                HoldingTime::Distance { distance, wait }
            }
            (None, Some(entry)) => match entry.parse()? {
                Span::ZERO => return Err(entry.problem("nothing passes it; write \"5 ms\"")),
                span => HoldingTime::By(span),
            },
            (Some(_), Some(by)) => {
                return Err(by.problem("either distance or by, not both; leave one out"));
            }
            (None, None) => {
                return Err(fields.missing("distance", "\"3 packets\", or by = \"5 ms\""));
            }
        };
        fields.finish()?;
        Ok(Self { share, held })
    }
}

impl Serialize for Reorder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut keys = vec![("share", self.share.to_string())];
        match self.held {
            HoldingTime::Distance { distance, wait } => {
                keys.push(("distance", distance.to_string()));
                keys.push(("wait", wait.to_string()));
            }
            HoldingTime::By(span) => keys.push(("by", span.to_string())),
        }
        serializer.collect_map(keys)
    }
}

/// As the record names it.
impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.held {
            HoldingTime::Distance { distance, .. } => {
                write!(f, "{} reordered by {distance}", self.share)
            }
            HoldingTime::By(span) => write!(f, "{} reordered by {span}", self.share),
        }
    }
}

/// The reordering of one link.
pub(crate) struct Reordering {
    config: Reorder,
    dice: Dice,
    held: VecDeque<HeldPacket>,
    /// Packets that were not held.
    passed: u64,
    /// Up to when all that arrives has been seen.
    now: Time,
}

/// A packet that waits: the first one is also the first to leave, since all have the same limits.
struct HeldPacket {
    transit: Transit,
    /// When it leaves at the latest.
    until: Time,
    /// How many others have passed when it leaves.
    passed: u64,
}

impl Reordering {
    pub fn new(config: Reorder, dice: Dice) -> Self {
        Self {
            config,
            dice,
            held: VecDeque::new(),
            passed: 0,
            now: Time::ZERO,
        }
    }

    fn hold(&mut self, transit: Transit) {
        let (until, passed) = match self.config.held {
            HoldingTime::Distance { distance, wait } => {
                (self.now + wait, self.passed.saturating_add(distance.0))
            }
            HoldingTime::By(span) => (self.now + span, u64::MAX),
        };
        self.held.push_back(HeldPacket {
            transit,
            until,
            passed,
        });
    }
}

impl Node for Reordering {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        self.now = now;
        if self.dice.chance(self.config.share) {
            self.hold(*transit);
            return Step::Hold;
        }
        self.passed += 1;
        Step::Leave { at: now }
    }

    fn holds(&self) -> bool {
        true
    }

    fn reorders(&self) -> bool {
        true
    }

    /// With a distance, the next packets that arrive may let it go.
    fn next_event(&self) -> Time {
        match (self.config.held, self.held.front()) {
            (_, None) => Time::NEVER,
            (HoldingTime::Distance { .. }, Some(_)) => self.now,
            (HoldingTime::By(_), Some(first)) => first.until,
        }
    }

    fn next_deadline(&self) -> Time {
        match self.held.front() {
            None => Time::NEVER,
            Some(first) if first.passed <= self.passed => self.now,
            Some(first) => first.until,
        }
    }

    fn release(&mut self, until: Time) -> Option<(Transit, Step)> {
        let at = self.next_deadline();
        if at > until || at == Time::NEVER {
            self.now = self.now.max(until);
            return None;
        }
        let first = self.held.pop_front()?;
        Some((first.transit, Step::Leave { at }))
    }
}
