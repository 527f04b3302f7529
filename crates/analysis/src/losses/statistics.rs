//! Intervals, and the tails of distributions that tests need.
//!
//! Wilson's interval: E. B. Wilson, Probable Inference, the Law of Succession, and Statistical
//! Inference, 1927. Tails of chi-square: the incomplete gamma function by its series and its
//! continued fraction (Abramowitz and Stegun, 6.5.29 and 6.5.31).

use serde::Serialize;

/// The quantile of the normal distribution that leaves 2.5 % on either side.
pub const Z: f64 = 1.959_963_984_540_054;

/// An estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The most likely value.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// Its upper end; None where that is infinite.
    pub high: Option<f64>,
}

impl Estimate {
    /// A proportion of independent trials, with Wilson's interval. None of no trials.
    #[must_use]
    pub fn proportion(successes: u64, trials: u64) -> Option<Self> {
        Self::wilson(count(successes), count(trials))
    }

    /// Wilson's interval of trials that are worth as much as this many independent ones.
    #[must_use]
    pub fn wilson(successes: f64, trials: f64) -> Option<Self> {
        if trials <= 0.0 {
            return None;
        }
        let (share, square) = (successes / trials, Z * Z);
        let middle = (share + square / (2.0 * trials)) / (1.0 + square / trials);
        let spread = share * (1.0 - share) / trials + square / (4.0 * trials * trials);
        let half = Z * spread.sqrt() / (1.0 + square / trials);
        Some(Self {
            value: share,
            // Rounding must not leave the share itself outside.
            low: (middle - half).max(0.0).min(share),
            high: Some((middle + half).min(1.0).max(share)),
        })
    }

    /// One divided by it: a mean length from a probability that a run ends. None of 0.
    #[must_use]
    pub fn inverse(self) -> Option<Self> {
        let inverse = |value: f64| (value > 0.0).then(|| 1.0 / value);
        Some(Self {
            value: inverse(self.value)?,
            low: 1.0 / self.high?,
            high: inverse(self.low),
        })
    }

    /// One minus it: of the event that is the other one.
    #[must_use]
    pub fn complement(self) -> Self {
        Self {
            value: 1.0 - self.value,
            low: 1.0 - self.high.unwrap_or(1.0),
            high: Some(1.0 - self.low),
        }
    }

    /// Whether the interval has a value.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && self.high.is_none_or(|high| value <= high)
    }
}

/// A count as a number to calculate with.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of packets are far below 2^53"
)]
pub fn count(count: u64) -> f64 {
    count as f64
}

/// The logarithms of the factorials of 0, 1, … up to a number.
#[derive(Debug)]
pub struct Factorials(Vec<f64>);

impl Factorials {
    /// The logarithms up to that of `last`.
    #[must_use]
    pub fn up_to(last: u64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=last).map(|number| {
            sum += count(number).ln();
            sum
        });
        Self(std::iter::once(0.0).chain(sums).collect())
    }

    /// The logarithm of the number of ways to choose `chosen` of `all`.
    #[must_use]
    pub fn choose(&self, all: u64, chosen: u64) -> f64 {
        if chosen > all {
            return f64::NEG_INFINITY;
        }
        let of = |number: u64| self.0[usize::try_from(number).expect("a number up to the last")];
        of(all) - of(chosen) - of(all - chosen)
    }

    /// The hypergeometric distribution: how many of `draws` from `all` are among the `marked`. Each
    /// count that is not negligible, with its probability.
    #[must_use]
    pub fn hypergeometric(&self, all: u64, marked: u64, draws: u64) -> Vec<(u64, f64)> {
        const NEGLIGIBLE: f64 = 1e-15;
        let least = (marked + draws).saturating_sub(all);
        let most = marked.min(draws);
        let whole = self.choose(all, draws);
        let probability = |it: u64| {
            (self.choose(marked, it) + self.choose(all - marked, draws - it) - whole).exp()
        };
        // The mode, which nothing negligible lies next to.
        let mode =
            u64::try_from(u128::from(marked + 1) * u128::from(draws + 1) / u128::from(all + 2))
                .unwrap_or(most)
                .clamp(least, most);
        let likely = |it: &(u64, f64)| it.1 > NEGLIGIBLE;
        let below = (least..mode).rev().map(|it| (it, probability(it)));
        let above = (mode..=most).map(|it| (it, probability(it)));
        let mut counts: Vec<_> = below.take_while(likely).collect();
        counts.reverse();
        counts.extend(above.take_while(likely));
        counts
    }
}

/// The probability that chi-square with `degrees` degrees of freedom exceeds `value`.
#[must_use]
pub fn chi_square_tail(value: f64, degrees: u32) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let (shape, x) = (f64::from(degrees) / 2.0, value / 2.0);
    let scale = (shape * x.ln() - x - ln_gamma_of_half(degrees)).exp();
    if x < shape + 1.0 {
        return (1.0 - scale * series(shape, x)).clamp(0.0, 1.0);
    }
    (scale * continued_fraction(shape, x)).clamp(0.0, 1.0)
}

const STEPS: u32 = 1000;
const CLOSE: f64 = 1e-14;

/// The lower incomplete gamma function over its leading factor.
fn series(shape: f64, x: f64) -> f64 {
    let mut term = 1.0 / shape;
    let mut sum = term;
    for step in 1..STEPS {
        term *= x / (shape + f64::from(step));
        sum += term;
        if term < sum * CLOSE {
            break;
        }
    }
    sum
}

/// The upper incomplete gamma function over its leading factor, by the method of Lentz.
fn continued_fraction(shape: f64, x: f64) -> f64 {
    let mut denominator = x + 1.0 - shape;
    let mut above = 1e300;
    let mut below = 1.0 / denominator;
    let mut product = below;
    for step in 1..STEPS {
        let step = f64::from(step);
        let numerator = step * (shape - step);
        denominator += 2.0;
        below = 1.0 / (numerator * below + denominator);
        above = denominator + numerator / above;
        product *= above * below;
        if (above * below - 1.0).abs() < CLOSE {
            break;
        }
    }
    product
}

/// The logarithm of the gamma function of half a whole number.
fn ln_gamma_of_half(halves: u32) -> f64 {
    let start = if halves.is_multiple_of(2) { 2 } else { 1 };
    let at_start = if start == 2 {
        0.0
    } else {
        std::f64::consts::PI.sqrt().ln()
    };
    let factors = (start..halves).step_by(2);
    at_start + factors.map(|it| (f64::from(it) / 2.0).ln()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of chi-square: 5 % and 0.1 %.
    #[test]
    fn chi_square_has_the_tails_of_tables() {
        for (value, degrees, tail) in [
            (3.841_459, 1, 0.05),
            (5.991_465, 2, 0.05),
            (18.307_04, 10, 0.05),
            (10.827_57, 1, 0.001),
            (0.102_587, 2, 0.95),
        ] {
            let found = chi_square_tail(value, degrees);
            assert!((found - tail).abs() < 1e-6, "{value} {degrees}: {found}");
        }
    }

    /// 10 of 100: Wilson gives 5.5 to 17.4 %.
    #[test]
    fn the_interval_of_a_proportion() {
        let ten = Estimate::proportion(10, 100).unwrap();
        assert!((ten.low - 0.055_229).abs() < 1e-5 && (ten.high.unwrap() - 0.174_366).abs() < 1e-5);
        let none = Estimate::proportion(0, 100).unwrap();
        assert!(none.low.abs() < 1e-12 && none.inverse().is_none());
        assert_eq!(Estimate::proportion(0, 0), None);
        let length = ten.inverse().unwrap();
        assert!((length.value - 10.0).abs() < 1e-9 && length.contains(1.0 / 0.06));
    }

    /// Of 5 red and 5 blue balls, 3 are drawn: no red one in 10 of 120 cases.
    #[test]
    fn the_hypergeometric_distribution_by_hand() {
        let found = Factorials::up_to(10).hypergeometric(10, 5, 3);
        let expected = [(0, 10.0), (1, 50.0), (2, 50.0), (3, 10.0)];
        assert_eq!(found.len(), 4);
        for ((red, probability), (expected_red, ways)) in found.into_iter().zip(expected) {
            assert_eq!(red, expected_red);
            assert!((probability - ways / 120.0).abs() < 1e-12);
        }
    }
}
