//! The Gilbert–Elliott model by maximum likelihood.
//!
//! A Markov chain of a good and a bad state takes a step for every packet, and either state loses
//! packets at its own ratio: E. O. Elliott, Estimates of Error Rates for Codes on Burst-Noise
//! Channels, 1963, with k = 1 - the loss in the good state and h = 1 - that in the bad one. States
//! are not seen. The likelihood of the sequence is that of a hidden Markov model (the forward
//! algorithm; L. R. Rabiner, A Tutorial on Hidden Markov Models, 1989), the first state being drawn
//! from the stationary distribution. Of a run of packets that met the same it takes a power of one
//! matrix, so it costs as much as there are bursts, not packets.
//!
//! Its maximum is sought by Newton's method from several starts, not by the steps of Baum and
//! Welch: where states can hardly be told apart, those need thousands. Where they stand still is
//! the same place, which a test holds. Intervals are those of the profile likelihood: all values
//! for which some values of the other three are no less likely than the best by 1.92, half of the
//! 95 % quantile of chi-square with one degree of freedom.

use std::collections::BTreeMap;

use serde::Serialize;

use super::gilbert::SimplifiedGilbert;
use super::maximum::{self, Maximum, Point, VARIABLES};
use super::sequence::LossRun;
use super::statistics::{Estimate, count};

/// Fewer losses, or deliveries, than this say nothing of four parameters.
pub const LEAST: u64 = 10;
/// Half of the 95 % quantile of chi-square with one degree of freedom.
const DROP: f64 = 1.920_729;
const BEST_STARTS: usize = 4;
const ALL: [usize; VARIABLES] = [0, 1, 2, 3];

/// The parameters of a Gilbert–Elliott model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Parameters {
    /// P(b|g): p.
    pub p_bad_given_good: f64,
    /// P(g|b): r.
    pub p_good_given_bad: f64,
    /// The loss ratio in the good state: 1 - k.
    pub loss_in_good: f64,
    /// The loss ratio in the bad state: 1 - h.
    pub loss_in_bad: f64,
}

impl Parameters {
    /// The model that loses each packet alike.
    #[must_use]
    pub fn uniform(rate: f64) -> Self {
        Self {
            p_bad_given_good: 0.0,
            p_good_given_bad: 1.0,
            loss_in_good: rate,
            loss_in_bad: rate,
        }
    }

    /// The share of packets that find the bad state.
    #[must_use]
    pub fn bad_share(&self) -> f64 {
        self.p_bad_given_good / (self.p_bad_given_good + self.p_good_given_bad)
    }

    /// The share of packets that are lost.
    #[must_use]
    pub fn loss_rate(&self) -> f64 {
        let bad = self.bad_share();
        bad * self.loss_in_bad + (1.0 - bad) * self.loss_in_good
    }

    fn at(point: &Point) -> Self {
        let [p, r, good, bad] = point.map(|odds| 1.0 / (1.0 + (-odds).exp()));
        Self {
            p_bad_given_good: p,
            p_good_given_bad: r,
            loss_in_good: good,
            loss_in_bad: bad,
        }
    }

    fn point(&self) -> Point {
        let all = [
            self.p_bad_given_good,
            self.p_good_given_bad,
            self.loss_in_good,
            self.loss_in_bad,
        ];
        all.map(|it| {
            (it / (1.0 - it))
                .ln()
                .clamp(-maximum::BOUND, maximum::BOUND)
        })
    }
}

/// A Gilbert–Elliott model, fitted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GilbertElliott {
    /// P(b|g): p.
    pub p_bad_given_good: Estimate,
    /// P(g|b): r.
    pub p_good_given_bad: Estimate,
    /// The loss ratio in the good state: 1 - k.
    pub loss_in_good: Estimate,
    /// The loss ratio in the bad state: 1 - h.
    pub loss_in_bad: Estimate,
    /// The natural logarithm of the likelihood.
    pub log_likelihood: f64,
}

impl GilbertElliott {
    /// The model that is most likely after these runs, and its intervals. None if there are too few
    /// losses or deliveries.
    #[must_use]
    pub fn fit(runs: &[LossRun]) -> Option<Self> {
        let [losses, deliveries] = [true, false].map(|lost| {
            let own = runs.iter().filter(|it| it.lost == lost);
            own.map(|it| it.length).sum::<u64>()
        });
        if losses.min(deliveries) < LEAST {
            return None;
        }
        let likelihood = Likelihood::of(runs);
        let function = |point: &Point| likelihood.log(&Parameters::at(point));
        let mut top = highest(
            &function,
            starts(count(losses) / count(losses + deliveries), runs),
        );
        // A profile may find a higher maximum than all that were found before.
        top.at = good_first(top.at);
        let mut intervals = top.at.map(|value| estimate(value, [None; 2]));
        'again: for _ in 0..4 {
            for (variable, interval) in intervals.iter_mut().enumerate() {
                match maximum::profile(&function, &top, variable, DROP) {
                    Ok(ends) => *interval = estimate(top.at[variable], ends),
                    Err(higher) => {
                        top = maximum::climb(&function, higher.at, &ALL);
                        top.at = good_first(top.at);
                        // Where it does not come to an end, anything may be.
                        intervals = top.at.map(|value| estimate(value, [None; 2]));
                        continue 'again;
                    }
                }
            }
            break;
        }
        let [p, r, good, bad] = intervals;
        Some(Self {
            p_bad_given_good: p,
            p_good_given_bad: r,
            loss_in_good: good,
            loss_in_bad: bad,
            log_likelihood: top.value,
        })
    }

    /// The most likely parameters.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        Parameters {
            p_bad_given_good: self.p_bad_given_good.value,
            p_good_given_bad: self.p_good_given_bad.value,
            loss_in_good: self.loss_in_good.value,
            loss_in_bad: self.loss_in_bad.value,
        }
    }
}

/// The likelihood of a sequence.
#[derive(Debug)]
pub struct Likelihood {
    /// The lengths that occur, from the smallest, of deliveries and of losses.
    lengths: [Vec<u64>; 2],
    /// The runs in order: which of these lengths.
    runs: Vec<(usize, usize)>,
}

impl Likelihood {
    /// The likelihood of these runs.
    #[must_use]
    pub fn of(runs: &[LossRun]) -> Self {
        let mut places = [BTreeMap::new(), BTreeMap::new()];
        for run in runs {
            places[usize::from(run.lost)].insert(run.length, 0);
        }
        for of_kind in &mut places {
            for (number, place) in of_kind.values_mut().enumerate() {
                *place = number;
            }
        }
        let place = |run: &LossRun| {
            let kind = usize::from(run.lost);
            (kind, places[kind][&run.length])
        };
        Self {
            runs: runs.iter().map(place).collect(),
            lengths: places.each_ref().map(|it| it.keys().copied().collect()),
        }
    }

    /// Its logarithm.
    #[must_use]
    pub fn log(&self, model: &Parameters) -> f64 {
        // A logarithm for each run would cost more than all the rest.
        const IN_RANGE: std::ops::Range<f64> = 1e-200..1e200;
        let powers = [false, true].map(|lost| {
            let matrix = Transfer::of(model, lost);
            let lengths = self.lengths[usize::from(lost)].iter();
            lengths.map(|it| matrix.power(*it)).collect::<Vec<_>>()
        });
        let bad = model.bad_share();
        let (mut state, mut sum, mut product) = ([1.0 - bad, bad], 0.0, 1.0);
        for (kind, place) in &self.runs {
            let (matrix, log_scale) = &powers[*kind][*place];
            let next = [
                state[0] * matrix[0][0] + state[1] * matrix[1][0],
                state[0] * matrix[0][1] + state[1] * matrix[1][1],
            ];
            let whole = next[0] + next[1];
            state = [next[0] / whole, next[1] / whole];
            sum += log_scale;
            product *= whole;
            if !IN_RANGE.contains(&product) {
                sum += product.ln();
                product = 1.0;
            }
        }
        sum + product.ln()
    }
}

/// The effect of a lost packet, or of a delivered one, on the state: a step of the chain, and the
/// probability of that fate.
struct Transfer {
    matrix: [[f64; 2]; 2],
    larger: f64,
    smaller: f64,
}

impl Transfer {
    fn of(model: &Parameters, lost: bool) -> Self {
        let (to_bad, to_good) = (model.p_bad_given_good, model.p_good_given_bad);
        let met = |loss: f64| if lost { loss } else { 1.0 - loss };
        let (good, bad) = (met(model.loss_in_good), met(model.loss_in_bad));
        let matrix = [
            [(1.0 - to_bad) * good, to_bad * bad],
            [to_good * good, (1.0 - to_good) * bad],
        ];
        let apart = matrix[0][0] - matrix[1][1];
        let root = (apart * apart + 4.0 * matrix[0][1] * matrix[1][0]).sqrt();
        let larger = f64::midpoint(matrix[0][0] + matrix[1][1], root);
        // The product of the two is the determinant; a difference would lose digits.
        let determinant = matrix[0][0] * matrix[1][1] - matrix[0][1] * matrix[1][0];
        Self {
            matrix,
            larger,
            smaller: determinant / larger,
        }
    }

    /// Its power, divided by a scale whose logarithm comes with it.
    fn power(&self, exponent: u64) -> ([[f64; 2]; 2], f64) {
        let times = i32::try_from(exponent).unwrap_or(i32::MAX);
        let ratio = self.smaller / self.larger;
        let gone = ratio.powi(times);
        // By Cayley and Hamilton a power is a multiple of the matrix and one of the identity.
        let apart = 1.0 - ratio;
        let (of_matrix, of_identity) = if apart.abs() < 1e-9 {
            (f64::from(times), 1.0 - f64::from(times))
        } else {
            ((1.0 - gone) / apart, (gone - ratio) / apart)
        };
        let mut power = self.matrix;
        for (row, line) in power.iter_mut().enumerate() {
            for value in line.iter_mut() {
                *value *= of_matrix / self.larger;
            }
            line[row] = (line[row] + of_identity).max(0.0);
        }
        (power, count(exponent) * self.larger.ln())
    }
}

/// Where searches begin: the simplified model, and bad states that last long or short, lose much or
/// little, and together make up the rate.
fn starts(rate: f64, runs: &[LossRun]) -> Vec<Point> {
    let mut starts = Vec::new();
    let simple = super::gilbert::Transitions::of(runs).and_then(|it| SimplifiedGilbert::fit(&it));
    if let Some(simple) = simple {
        starts.push(Parameters {
            p_bad_given_good: simple.p_bad_given_good.value,
            p_good_given_bad: simple.p_good_given_bad.value,
            loss_in_good: rate * 0.01,
            loss_in_bad: 0.99,
        });
    }
    for lasts in [2.0, 8.0, 40.0, 200.0, 1000.0] {
        for loss_in_bad in [1.5 * rate, 0.2, 0.5, 0.9] {
            if !(1.2 * rate..1.0).contains(&loss_in_bad) {
                continue;
            }
            let loss_in_good = 0.3 * rate;
            let bad = (rate - loss_in_good) / (loss_in_bad - loss_in_good);
            let p = bad / (1.0 - bad) / lasts;
            starts.push(Parameters {
                p_bad_given_good: p.min(0.9),
                p_good_given_bad: 1.0 / lasts,
                loss_in_good,
                loss_in_bad,
            });
        }
    }
    starts.iter().map(Parameters::point).collect()
}

/// The highest top that is reached from the best of these starts.
fn highest(function: &impl Fn(&Point) -> f64, starts: Vec<Point>) -> Maximum {
    let mut starts: Vec<_> = starts.into_iter().map(|at| (function(&at), at)).collect();
    starts.sort_by(|one, other| other.0.total_cmp(&one.0));
    let tops = starts.iter().take(BEST_STARTS);
    let tops = tops.map(|(_, at)| maximum::climb(function, *at, &ALL));
    tops.max_by(|one, other| one.value.total_cmp(&other.value))
        .expect("there is a start for any rate")
}

/// The same model, with that state called good which loses less.
fn good_first(at: Point) -> Point {
    let [p, r, good, bad] = at;
    if good <= bad { at } else { [r, p, bad, good] }
}

fn estimate(value: f64, ends: [Option<f64>; 2]) -> Estimate {
    let probability = |odds: f64| 1.0 / (1.0 + (-odds).exp());
    Estimate {
        value: probability(value),
        low: ends[0].map_or(0.0, probability),
        high: Some(ends[1].map_or(1.0, probability)),
    }
}
