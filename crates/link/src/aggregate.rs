//! Packets that are held and released together.
//!
//! Links whose layer below takes several packets at a time, as Wi-Fi and DOCSIS do, and receivers
//! that merge them, hand acknowledgements on in groups. The model is what BBR's `extra_acked` is
//! made for (draft-ietf-ccwg-bbr): no acknowledgement comes for a while, and then many at once.

use std::collections::VecDeque;
use std::fmt;

use bentpipe_units::{Span, Time};
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Problem};
use crate::node::{Node, Step, Transit};

/// Aggregation at the end of a link: packets wait there until the first has waited for `hold`, or
/// until there are enough of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// For how long the first packet waits at most.
    pub hold: Span,
    /// How many packets go on at once; None: however many there are.
    pub packets: Option<u64>,
}

const EXAMPLE: &str = "{ hold = \"5 ms\", packets = 16 }";

impl Aggregate {
    pub(crate) fn read(entry: Entry) -> Result<Self, Problem> {
        if !entry.is_table() {
            return Err(entry.problem(&format!("not aggregation; write {EXAMPLE}")));
        }
        let mut fields = entry.table()?;
        let entry = fields.required("hold", "\"5 ms\"")?;
        let hold = entry.parse()?;
        if hold == Span::ZERO {
            return Err(entry.problem("nothing waits; write \"5 ms\", or leave aggregate out"));
        }
        let packets = match fields.take("packets") {
            None => None,
            Some(entry) => match entry.parse()? {
                0 | 1 => return Err(entry.problem("at least two go on together; write 16")),
                packets => Some(packets),
            },
        };
        fields.finish()?;
        Ok(Self { hold, packets })
    }
}

impl Serialize for Aggregate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hold = ("hold", self.hold.to_string());
        let packets = self.packets.map(|packets| ("packets", packets.to_string()));
        serializer.collect_map(std::iter::once(hold).chain(packets))
    }
}

/// As the record names it.
impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.packets {
            Some(packets) => write!(f, "{packets} packets together, after {} at most", self.hold),
            None => write!(f, "together every {}", self.hold),
        }
    }
}

/// The aggregation of one link.
pub(crate) struct Aggregation {
    config: Aggregate,
    /// Packets that wait for more, in the order in which they came.
    waiting: VecDeque<Transit>,
    /// When the first of these came.
    first: Time,
    /// Packets that go on, and when.
    leaving: VecDeque<Transit>,
    at: Time,
    /// Up to when all that arrives has been seen.
    now: Time,
}

impl Aggregation {
    pub fn new(config: Aggregate) -> Self {
        Self {
            config,
            waiting: VecDeque::new(),
            first: Time::ZERO,
            leaving: VecDeque::new(),
            at: Time::ZERO,
            now: Time::ZERO,
        }
    }

    fn let_go(&mut self, at: Time) {
        self.at = at;
        self.leaving.append(&mut self.waiting);
    }
}

impl Node for Aggregation {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        self.now = now;
        if self.waiting.is_empty() {
            self.first = now;
        }
        self.waiting.push_back(*transit);
        let is_full = |packets| self.waiting.len() as u64 >= packets;
        if self.config.packets.is_some_and(is_full) {
            self.let_go(now);
        }
        Step::Hold
    }

    fn holds(&self) -> bool {
        true
    }

    /// The next packets that arrive may complete them.
    fn next_event(&self) -> Time {
        match self.next_deadline() {
            Time::NEVER => Time::NEVER,
            deadline if self.config.packets.is_some() => deadline.min(self.now),
            deadline => deadline,
        }
    }

    fn next_deadline(&self) -> Time {
        if !self.leaving.is_empty() {
            self.at
        } else if self.waiting.is_empty() {
            Time::NEVER
        } else {
            self.first + self.config.hold
        }
    }

    fn release(&mut self, until: Time) -> Option<(Transit, Step)> {
        let at = self.next_deadline();
        if at > until || at == Time::NEVER {
            self.now = self.now.max(until);
            return None;
        }
        if self.leaving.is_empty() {
            self.let_go(at);
        }
        let transit = self.leaving.pop_front()?;
        Some((transit, Step::Leave { at }))
    }
}
