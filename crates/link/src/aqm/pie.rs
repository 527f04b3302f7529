//! Proportional Integral controller Enhanced (PIE): drops at arrival, with a probability that a
//! controller sets by the queueing delay.
//!
//! Source: RFC 8033, section 4 and appendix A, with timestamps in place of an estimated departure
//! rate (section 5.2): the delay is the sojourn time of the packet that was sent last. ECN-capable
//! packets are marked while the probability is at most 10 % (section 5.1). Probabilities are whole
//! trillionths, so nothing depends on a float.

use std::collections::VecDeque;

use bentpipe_units::{Ratio, Span, Time};

use super::{Discipline, Fifo, PieConfig, Queued};
use crate::node::Transit;
use crate::random::Dice;
use crate::waiting::Limit;

/// A probability of 1.
const ONE: i128 = 1_000_000_000_000;
/// Bytes that may always wait: two packets of mean size, as in the RFC's appendix A.
const TWO_PACKETS: u64 = 2 * 1500;
/// The largest step of a probability above 10 %.
const LARGEST_STEP: i128 = ONE / 50;
/// The probability above which packets are dropped that could be marked.
const MARK_UP_TO: i128 = ONE / 10;

/// A queue under PIE.
pub(crate) struct Pie {
    config: PieConfig,
    limit: Limit,
    dice: Dice,
    fifo: Fifo,
    /// `drop_prob_` of the RFC.
    probability: i128,
    /// `accu_prob_`: the sum of probabilities since the last drop.
    accumulated: i128,
    /// `burst_allowance_`: for how long nothing is dropped.
    burst_allowance: Span,
    /// The sojourn time of the packet that was sent last; 0 if nothing waits.
    delay: Span,
    /// `qdelay_old_`: the delay at the last update.
    delay_before: Span,
    next_update: Time,
}

impl Pie {
    pub fn new(config: PieConfig, limit: Limit, dice: Dice) -> Self {
        Self {
            config,
            limit,
            dice,
            fifo: Fifo::default(),
            probability: 0,
            accumulated: 0,
            burst_allowance: config.max_burst,
            delay: Span::ZERO,
            delay_before: Span::ZERO,
            next_update: Time::ZERO + config.update,
        }
    }

    /// Updates the probability as often as was due by now. Between events nothing changes.
    fn update_until(&mut self, now: Time) {
        while self.next_update <= now {
            if self.is_at_rest() {
                let periods = (now - self.next_update).as_nanos() / self.config.update.as_nanos();
                self.next_update += self.config.update * (periods + 1);
                return;
            }
            self.update();
            self.next_update += self.config.update;
        }
    }

    /// Whether an update would change nothing.
    fn is_at_rest(&self) -> bool {
        let delays = [self.delay, self.delay_before, self.burst_allowance];
        self.probability == 0 && delays == [Span::ZERO; 3]
    }

    /// `calculate_drop_prob` of the RFC.
    fn update(&mut self) {
        let nanos = |span: Span| i128::from(span.as_nanos());
        let (delay, before) = (nanos(self.delay), nanos(self.delay_before));
        // alpha = 0.125/s and beta = 1.25/s: this many trillionths a nanosecond.
        let step = 125 * (delay - nanos(self.config.target)) + 1250 * (delay - before);
        let mut step = step / scale(self.probability);
        if self.probability >= ONE / 10 {
            step = step.min(LARGEST_STEP);
        }
        self.probability += step;
        if delay == 0 && before == 0 {
            self.probability -= self.probability / 64;
        }
        self.probability = self.probability.clamp(0, ONE);
        self.delay_before = self.delay;
        self.burst_allowance = Span::from_nanos(
            self.burst_allowance
                .as_nanos()
                .saturating_sub(self.config.update.as_nanos()),
        );
    }

    /// `drop_early` of the RFC: whether an arriving packet is dropped or marked.
    fn acts(&mut self) -> bool {
        let is_short = self.delay_before.as_nanos() < self.config.target.as_nanos() / 2;
        if (is_short && self.probability < ONE / 5) || self.fifo.bytes <= TWO_PACKETS {
            return false;
        }
        if self.probability == 0 {
            self.accumulated = 0;
        }
        self.accumulated += self.probability;
        if self.accumulated < ONE * 85 / 100 {
            return false;
        }
        let acts = self.accumulated >= ONE * 85 / 10 || self.dice.chance(ratio(self.probability));
        if acts {
            self.accumulated = 0;
        }
        acts
    }
}

/// How much smaller the controller's steps are while the probability is small (section 4.2).
fn scale(probability: i128) -> i128 {
    match probability {
        0..1_000_000 => 2048,
        1_000_000..10_000_000 => 512,
        10_000_000..100_000_000 => 128,
        100_000_000..1_000_000_000 => 32,
        1_000_000_000..10_000_000_000 => 8,
        10_000_000_000..100_000_000_000 => 2,
        _ => 1,
    }
}

fn ratio(probability: i128) -> Ratio {
    Ratio::from_ppb(u64::try_from(probability / 1000).expect("it is at most 1"))
}

impl Discipline for Pie {
    fn enqueue(&mut self, mut queued: Queued, dropped: &mut VecDeque<Transit>) {
        self.update_until(queued.arrived);
        let half = self.config.target.as_nanos() / 2;
        let is_calm = |delay: Span| delay.as_nanos() < half;
        if self.probability == 0 && is_calm(self.delay) && is_calm(self.delay_before) {
            self.burst_allowance = self.config.max_burst;
        }
        if self.fifo.is_full_for(&queued, self.limit) {
            // A drop like any other, as in Linux (`pie_qdisc_enqueue` of 6.12).
            self.accumulated = 0;
            dropped.push_back(queued.transit);
            return;
        }
        if self.burst_allowance == Span::ZERO && self.acts() {
            let may_mark = self.config.ecn && self.probability <= MARK_UP_TO;
            if !(may_mark && queued.mark()) {
                dropped.push_back(queued.transit);
                return;
            }
        }
        self.fifo.push(queued);
    }

    fn dequeue(&mut self, now: Time, _: &mut VecDeque<Transit>) -> Option<Queued> {
        self.update_until(now);
        let queued = self.fifo.pop()?;
        self.delay = if self.fifo.is_empty() {
            Span::ZERO
        } else {
            now - queued.arrived
        };
        Some(queued)
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::LinkSeed;
    use crate::{Direction, SegmentName};

    fn pie() -> Pie {
        let seed = LinkSeed {
            seed: 1,
            direction: Direction::Forward,
            segment: SegmentName::Satellite,
        };
        let config = PieConfig {
            target: Span::from_millis(15),
            update: Span::from_millis(15),
            max_burst: Span::from_millis(150),
            ecn: true,
        };
        Pie::new(
            config,
            Limit::Packets(1000),
            seed.stream(crate::random::Purpose::Queue),
        )
    }

    /// Section 4.2 by hand: `p = 0.125 * (delay - 15 ms) + 1.25 * (delay - delay before)`, divided
    /// by 2048 below 0.000001, by 128 from 0.00001 on.
    #[test]
    fn the_probability_follows_the_rfc() {
        let mut pie = pie();
        pie.delay = Span::from_millis(20);
        pie.update();
        // 0.125 * 0.005 + 1.25 * 0.02 = 0.025625; / 2048 = 0.000012512.
        assert_eq!(pie.probability, 12_512_207);
        pie.update();
        // 0.000625 / 128 = 0.0000048828 more.
        assert_eq!(pie.probability, 12_512_207 + 4_882_812);
        assert_eq!(pie.burst_allowance, Span::from_millis(120));
        (pie.delay, pie.delay_before) = (Span::ZERO, Span::ZERO);
        pie.update();
        // 0.125 * -0.015 / 128 = -0.0000146484, and of the rest a 64th less: nothing waits.
        assert_eq!(pie.probability, 2_746_582 - 42_915);
        pie.probability = ONE / 2;
        pie.delay = Span::from_millis(500);
        pie.update();
        assert_eq!(pie.probability, ONE / 2 + ONE / 50, "no step above 2 %");
    }

    /// The sum of probabilities begins anew with a drop by a full queue, as with any other.
    #[test]
    fn an_overflow_is_a_drop_like_any_other() {
        let mut pie = pie();
        let mut dropped = VecDeque::new();
        for number in 0..1001 {
            pie.accumulated = ONE / 2;
            pie.enqueue(Queued::arriving(number, 0, 1500, Time::ZERO), &mut dropped);
        }
        assert_eq!(dropped.len(), 1);
        assert_eq!(pie.accumulated, 0);
    }
}
