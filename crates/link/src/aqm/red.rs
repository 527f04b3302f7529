//! Random Early Detection (RED): drops at arrival, with a probability that grows with the mean
//! length of the queue.
//!
//! Source: Floyd and Jacobson, Random Early Detection Gateways for Congestion Avoidance, IEEE/ACM
//! Transactions on Networking 1(4), 1993, figure 2; above the upper threshold the probability goes
//! on to grow up to 1 at twice of it (Floyd, Recommendation on using the gentle variant of RED,
//! 2000). Means and probabilities are whole numbers, so nothing depends on a float.

use std::collections::VecDeque;

use bentpipe_units::{Ratio, Time};

use super::{Discipline, Fifo, Queued, RedConfig};
use crate::node::Transit;
use crate::random::Dice;
use crate::waiting::Limit;

/// The mean is kept in this part of a packet or byte.
const PART: u128 = 1 << 16;
/// A probability of 1, in billionths.
const ONE: u128 = 1_000_000_000;

/// A queue under RED.
pub(crate) struct Red {
    config: RedConfig,
    limit: Limit,
    thresholds: [u128; 2],
    dice: Dice,
    fifo: Fifo,
    /// The mean length, in [`PART`]s.
    mean: u128,
    /// Packets since the last drop; None: below the lower threshold.
    count: Option<u128>,
    /// The time from which on nothing waits.
    idle_since: Option<Time>,
    /// When the last packet was sent.
    sent_at: Time,
    /// How long the one before it took, as far as it is known.
    packet_nanos: u64,
}

impl Red {
    /// `thresholds` are those of the configuration for the link's rate.
    pub fn new(config: RedConfig, limit: Limit, thresholds: [Limit; 2], dice: Dice) -> Self {
        let amount = |it| match it {
            Limit::Packets(amount) | Limit::Bytes(amount) => u128::from(amount) * PART,
        };
        Self {
            config,
            limit,
            thresholds: thresholds.map(amount),
            dice,
            fifo: Fifo::default(),
            mean: 0,
            count: None,
            idle_since: Some(Time::ZERO),
            sent_at: Time::ZERO,
            packet_nanos: 0,
        }
    }

    /// Takes an arrival into the mean. While the queue was empty, it falls as if small packets had
    /// passed.
    fn observe(&mut self, now: Time) {
        if let Some(since) = self.idle_since.take() {
            let passed = (now - since).as_nanos() / self.packet_nanos.max(1);
            for _ in 0..passed {
                if self.mean == 0 {
                    break;
                }
                self.mean -= self.mean.div_ceil(u128::from(self.config.weight));
            }
        }
        if self.fifo.is_empty() {
            return;
        }
        let length = match self.limit {
            Limit::Packets(_) => self.fifo.packets.len() as u64,
            Limit::Bytes(_) => self.fifo.bytes,
        };
        let (length, weight) = (u128::from(length) * PART, u128::from(self.config.weight));
        if length >= self.mean {
            self.mean += (length - self.mean) / weight;
        } else {
            self.mean -= (self.mean - length) / weight;
        }
    }

    /// The probability for this mean, in billionths (`p_b` of the paper).
    fn probability(&self) -> u128 {
        let [min, max] = self.thresholds;
        let most = u128::from(self.config.max_probability.ppb());
        if self.mean < max {
            most * (self.mean - min) / (max - min)
        } else {
            most + (ONE - most) * (self.mean - max).min(max) / max
        }
    }

    /// Whether an arriving packet is dropped or marked.
    fn acts(&mut self) -> bool {
        if self.mean < self.thresholds[0] {
            self.count = None;
            return false;
        }
        let count = self.count.map_or(0, |count| count + 1);
        let base = self.probability();
        // Spread evenly: p_a = p_b / (1 - count * p_b).
        let left = ONE.saturating_sub(count * base);
        let ppb = (base * ONE).checked_div(left).unwrap_or(ONE).min(ONE);
        let ppb = u64::try_from(ppb).expect("it is at most 1");
        let acts = self.dice.chance(Ratio::from_ppb(ppb));
        self.count = Some(if acts { 0 } else { count });
        acts
    }
}

impl Discipline for Red {
    fn enqueue(&mut self, mut queued: Queued, dropped: &mut VecDeque<Transit>) {
        self.observe(queued.arrived);
        if self.fifo.is_full_for(&queued, self.limit) {
            self.count = Some(0);
            dropped.push_back(queued.transit);
            return;
        }
        if self.acts() {
            let is_below = self.mean < self.thresholds[1];
            if !(self.config.ecn && is_below && queued.mark()) {
                self.idle_since = self.fifo.is_empty().then_some(queued.arrived);
                dropped.push_back(queued.transit);
                return;
            }
        }
        self.fifo.push(queued);
    }

    fn dequeue(&mut self, now: Time, _: &mut VecDeque<Transit>) -> Option<Queued> {
        let queued = self.fifo.pop()?;
        let since = (now - self.sent_at.max(queued.arrived)).as_nanos();
        if since > 0 {
            self.packet_nanos = since;
        }
        self.sent_at = now;
        if self.fifo.is_empty() {
            self.idle_since = Some(now);
        }
        Some(queued)
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes
    }
}
