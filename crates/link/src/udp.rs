//! UDP that a network treats otherwise than the rest.

use bentpipe_units::{Ratio, Time};
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Fields, Problem};
use crate::node::{Node, Step, Transit};
use crate::queue::Queue;
use crate::random::Dice;
use crate::token_bucket::{TokenBucket, TokenBucketConfig};

/// The treatment of UDP alone on a link: `{ rate = "5 Mbit/s", burst = "64 kB", drop = "1 %",
/// priority = "low" }`, of which each may be left out, but `rate` and `burst` stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// UDP beyond this rate is dropped.
    pub policer: Option<TokenBucketConfig>,
    /// The share of UDP packets that is lost, each alike, before they meet the policer.
    pub drop: Ratio,
    /// The place of UDP in the link's queue; None: that of its arrival.
    pub priority: Option<Priority>,
}

/// The place in a queue of one kind of packets before or behind all others. No packet is
/// interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// They are sent when no others wait.
    Low,
    /// Others are sent when none of them wait.
    High,
}

impl Priority {
    fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
        }
    }

    fn read(entry: &Entry, queue: &Queue, has_rate: bool) -> Result<Self, Problem> {
        let wrong = |message| Err(entry.problem(message));
        if !has_rate {
            return wrong("a link without a rate has no queue; write a rate beside udp");
        }
        if queue.aqm.is_some() || queue.random_drop.is_some() {
            return wrong("needs a drop-tail queue; leave out aqm and drop_above of the queue");
        }
        match [Self::Low, Self::High]
            .into_iter()
            .find(|it| entry.is_text(it.name()))
        {
            Some(priority) => Ok(priority),
            None => wrong("write \"low\" or \"high\""),
        }
    }
}

impl UdpConfig {
    /// `queue` and `has_rate` are those of the link.
    pub(crate) fn read(entry: Entry, queue: &Queue, has_rate: bool) -> Result<Self, Problem> {
        let empty = entry
            .is_table()
            .then(|| entry.problem("does nothing; write a rate and burst, a drop, or a priority"));
        let mut fields = entry.table()?;
        let policer = (fields.has("rate") || fields.has("burst"))
            .then(|| TokenBucketConfig::read(&mut fields))
            .transpose()?;
        let drop = fields.optional("drop")?;
        let priority = fields.take("priority");
        let priority = priority.map(|entry| Priority::read(&entry, queue, has_rate));
        let priority = priority.transpose()?;
        finish(fields)?;
        match empty {
            Some(empty) if policer.is_none() && drop.is_none() && priority.is_none() => Err(empty),
            _ => Ok(Self {
                policer,
                drop: drop.unwrap_or(Ratio::ZERO),
                priority,
            }),
        }
    }

    /// Whether it does something beside the queue.
    pub(crate) fn is_node(&self) -> bool {
        self.policer.is_some() || self.drop > Ratio::ZERO
    }

    /// Its keys and values in scenario files.
    fn fields(&self) -> Vec<(&'static str, String)> {
        let bucket = self.policer.iter();
        let bucket = bucket.flat_map(|it| {
            [
                ("rate", it.rate.to_string()),
                ("burst", it.burst.to_string()),
            ]
        });
        let drop = (self.drop > Ratio::ZERO || self.policer.is_none() && self.priority.is_none())
            .then(|| ("drop", self.drop.to_string()));
        let priority = self.priority.map(|it| ("priority", it.name().to_owned()));
        bucket.chain(drop).chain(priority).collect()
    }
}

/// Ends the reading: all keys are known by then, also those of a policer that is left out.
fn finish(mut fields: Fields) -> Result<(), Problem> {
    for name in ["rate", "burst"] {
        fields.take(name);
    }
    fields.finish()
}

impl Serialize for UdpConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields())
    }
}

/// Loses and drops UDP packets; others pass.
pub(crate) struct Udp {
    drop: Ratio,
    dice: Dice,
    policer: Option<TokenBucket>,
}

impl Udp {
    pub fn new(config: UdpConfig, dice: Dice) -> Self {
        Self {
            drop: config.drop,
            dice,
            policer: config.policer.map(TokenBucket::new),
        }
    }
}

impl Node for Udp {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        if !transit.packet.is_udp {
            return Step::Leave { at: now };
        }
        if self.dice.chance(self.drop) {
            return Step::Lose;
        }
        let ip_bytes = transit.packet.ip_bytes;
        let policer = self.policer.as_mut();
        if policer.is_none_or(|bucket| bucket.take_now(now, ip_bytes)) {
            Step::Leave { at: now }
        } else {
            Step::Drop
        }
    }
}
