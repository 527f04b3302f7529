//! The simplified Gilbert model: a packet is lost in the bad state and delivered in the good one.
//!
//! The state of each packet is therefore seen, and what a transition's probability is follows from
//! counting. P(s1|s2) is the probability that a packet finds the state s1 after one that found s2:
//! destination first, as in RFC 6534 and in table I of N. Kuhn et al., QUIC: Opportunities and
//! threats in SATCOM, ASMS 2020. The other notation is that of E. N. Gilbert, Capacity of a
//! Burst-Noise Channel, 1960: p is P(b|g), r is P(g|b), so that bursts last 1/r packets on average
//! and gaps 1/p. Intervals are Wilson's.

use serde::Serialize;

use super::sequence::LossRun;
use super::statistics::{Estimate, count};

/// The counts of how often each state came after each, where a lost packet is in the bad state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transitions {
    /// Delivered after delivered.
    pub good_good: u64,
    /// Lost after delivered.
    pub good_bad: u64,
    /// Delivered after lost.
    pub bad_good: u64,
    /// Lost after lost.
    pub bad_bad: u64,
    first_lost: bool,
}

impl Transitions {
    /// The transitions between the packets of these runs. None of no packets.
    #[must_use]
    pub fn of(runs: &[LossRun]) -> Option<Self> {
        let first_lost = runs.first()?.lost;
        let within = |lost: bool| {
            let own = runs.iter().filter(|it| it.lost == lost);
            own.map(|it| it.length - 1).sum()
        };
        let entered = |lost: bool| {
            let entered = runs.iter().skip(1).filter(|it| it.lost == lost);
            entered.map(|_| 1).sum()
        };
        Some(Self {
            good_good: within(false),
            good_bad: entered(true),
            bad_good: entered(false),
            bad_bad: within(true),
            first_lost,
        })
    }
}

/// A simplified Gilbert model, fitted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SimplifiedGilbert {
    /// P(g|g).
    pub p_good_given_good: Estimate,
    /// P(g|b): r.
    pub p_good_given_bad: Estimate,
    /// P(b|b).
    pub p_bad_given_bad: Estimate,
    /// P(b|g): p.
    pub p_bad_given_good: Estimate,
    /// 1/r, in packets. None if no burst was seen to end.
    pub mean_burst: Option<Estimate>,
    /// 1/p, in packets. None if no burst was seen to begin.
    pub mean_gap: Option<Estimate>,
}

impl SimplifiedGilbert {
    /// The model that is most likely after these transitions. None if one of the states was never
    /// left nor kept.
    #[must_use]
    pub fn fit(seen: &Transitions) -> Option<Self> {
        let p = Estimate::proportion(seen.good_bad, seen.good_good + seen.good_bad)?;
        let r = Estimate::proportion(seen.bad_good, seen.bad_good + seen.bad_bad)?;
        Some(Self {
            p_good_given_good: p.complement(),
            p_good_given_bad: r,
            p_bad_given_bad: r.complement(),
            p_bad_given_good: p,
            mean_burst: r.inverse(),
            mean_gap: p.inverse(),
        })
    }

    /// The logarithm of the likelihood of these transitions, the first packet's state being drawn
    /// from the stationary distribution.
    #[must_use]
    pub fn log_likelihood(&self, seen: &Transitions) -> f64 {
        let (p, r) = (self.p_bad_given_good.value, self.p_good_given_bad.value);
        let entered = if seen.first_lost { p } else { r };
        let first = entered / (p + r);
        let terms = [
            (1, first),
            (seen.good_bad, p),
            (seen.good_good, 1.0 - p),
            (seen.bad_good, r),
            (seen.bad_bad, 1.0 - r),
        ];
        terms
            .into_iter()
            .map(|(times, it)| log_power(it, times))
            .sum()
    }

    /// By which factor the loss rate spreads more than that of as many independent packets: how
    /// one packet goes with the next, added up over all distances. None where losses and deliveries
    /// alternate strictly, or one of them never ends.
    #[must_use]
    pub fn spread(&self) -> Option<f64> {
        let kept = 1.0 - self.p_bad_given_good.value - self.p_good_given_bad.value;
        let spread = (1.0 + kept) / (1.0 - kept);
        (spread.is_finite() && spread > 0.0).then_some(spread)
    }
}

/// The logarithm of a probability to a power. 0 to the power of 0 is 1.
pub fn log_power(probability: f64, times: u64) -> f64 {
    if times == 0 {
        0.0
    } else {
        count(times) * probability.ln()
    }
}
