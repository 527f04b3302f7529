//! Tests of how far losses depend on what was lost before.
//!
//! Order 0 against 1: whether a loss depends on the packet before. Order 1 against 2: whether it
//! depends on the one before that as well, given the one before; that is the Markov assumption of
//! the simplified Gilbert model. Each has the likelihood-ratio statistic G², which is about
//! chi-square distributed (T. W. Anderson, L. A. Goodman, Statistical Inference about Markov
//! Chains, 1957). The few losses of a good link make that a bad guess, so p is counted instead: the
//! probability of all that is no likelier than what was seen, among the sequences that say the same
//! of the smaller model.
//!
//! - Among all sequences of as many losses, the number of bursts is hypergeometric (A. Wald, J.
//!   Wolfowitz, On a Test Whether Two Samples are from the Same Population, 1940).
//! - Among all that have as many transitions of each kind, the losses are spread over the bursts
//!   in any way alike, and so are the deliveries over the gaps. The numbers of bursts and of gaps
//!   that are one packet long, which is what a second order changes, are hypergeometric too.
//!
//! Lengths of bursts and gaps are geometric under that assumption: chi-square of goodness of fit,
//! over classes of lengths that are expected at least five times each.

use serde::Serialize;

use super::gilbert::log_power;
use super::sequence::LossRun;
use super::statistics::{Factorials, chi_square_tail, count};

/// Fewer losses than this decide nothing, unless they refuse.
pub const FEW: u64 = 10;
/// A test refuses below this.
pub const LEVEL: f64 = 0.05;
/// How often a class of lengths is expected at least.
const EXPECTED: f64 = 5.0;
const CLASSES: f64 = 20.0;

/// A test with its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Test {
    /// The statistic: G² of orders, X² of lengths.
    pub statistic: f64,
    /// Its degrees of freedom.
    pub degrees_of_freedom: u32,
    /// The probability of what is no likelier, if what is tested holds.
    pub p_value: f64,
}

/// The tests of a sequence; what there are too few losses for is None.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MarkovTests {
    /// Order 0, independent losses, against order 1.
    pub order_0_against_1: Option<Test>,
    /// Order 1, the simplified Gilbert model, against order 2.
    pub order_1_against_2: Option<Test>,
    /// Whether lengths of bursts are geometric.
    pub geometric_bursts: Option<Test>,
    /// Whether lengths of gaps are geometric.
    pub geometric_gaps: Option<Test>,
    /// Whether losses are independent: `yes`, `no` or `not_sure`.
    pub independent: Answer,
    /// Whether the Markov assumption of order 1 holds.
    pub markov: Answer,
}

/// The answer of a test: "yes" says only that nothing speaks against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Nothing speaks against it.
    Yes,
    /// The model is rejected.
    No,
    /// There are too few losses.
    NotSure,
}

impl MarkovTests {
    /// The tests of these runs.
    #[must_use]
    pub fn of(runs: &[LossRun]) -> Self {
        let of_kind = |lost: bool| {
            let own = runs.iter().filter(|it| it.lost == lost);
            own.map(|it| it.length).collect::<Vec<_>>()
        };
        let (bursts, gaps) = (of_kind(true), of_kind(false));
        let losses = bursts.iter().sum::<u64>();
        let few = losses.min(gaps.iter().sum()) < FEW;
        let ways = Factorials::up_to(runs.iter().map(|it| it.length).sum::<u64>() + 1);
        let order_0_against_1 = against_independence(&bursts, &gaps, runs, &ways);
        let order_1_against_2 = against_order_1(&bursts, &gaps, runs, &ways);
        let geometric_bursts = geometric(&bursts);
        // The first and the last gap were not seen whole.
        let whole = runs
            .get(1..runs.len().saturating_sub(1))
            .unwrap_or_default();
        let whole = whole.iter().filter(|it| !it.lost);
        let geometric_gaps = geometric(&whole.map(|it| it.length).collect::<Vec<_>>());
        let of_markov = [order_1_against_2, geometric_bursts, geometric_gaps];
        Self {
            order_0_against_1,
            order_1_against_2,
            geometric_bursts,
            geometric_gaps,
            independent: answer(&[order_0_against_1], few),
            markov: answer(&of_markov, few || order_1_against_2.is_none()),
        }
    }
}

/// Refused if any test refuses at its share of the level (Bonferroni).
fn answer(tests: &[Option<Test>], few: bool) -> Answer {
    let made: Vec<_> = tests.iter().flatten().collect();
    let level = LEVEL / count(made.len() as u64);
    if made.iter().any(|it| it.p_value < level) {
        Answer::No
    } else if few || made.is_empty() {
        Answer::NotSure
    } else {
        Answer::Yes
    }
}

fn against_independence(
    bursts: &[u64],
    gaps: &[u64],
    runs: &[LossRun],
    ways: &Factorials,
) -> Option<Test> {
    let (losses, deliveries) = (bursts.iter().sum::<u64>(), gaps.iter().sum::<u64>());
    if losses == 0 || deliveries == 0 {
        return None;
    }
    let likely = ways.hypergeometric(losses + deliveries, deliveries + 1, losses);
    let seen = bursts.len() as u64;
    let (statistic, tables) = ratio(&[transitions(runs)]);
    (tables > 0).then(|| Test {
        statistic,
        degrees_of_freedom: tables,
        p_value: no_likelier(&[likely], &[seen]),
    })
}

fn against_order_1(
    bursts: &[u64],
    gaps: &[u64],
    runs: &[LossRun],
    ways: &Factorials,
) -> Option<Test> {
    let lengths = [gaps, bursts].into_iter().filter(|it| !it.is_empty());
    let lengths: Vec<_> = lengths.collect();
    let single = |of: &[u64]| of.iter().filter(|it| **it == 1).count() as u64;
    let distribution = |of: &[u64]| {
        let (number, sum) = (of.len() as u64, of.iter().sum::<u64>());
        if number == sum {
            return vec![(number, 1.0)]; // each has one packet, and none is left to spread
        }
        ways.hypergeometric(sum - 1, number, number - 1)
    };
    let likely: Vec<_> = lengths.iter().map(|it| distribution(it)).collect();
    let seen: Vec<_> = lengths.iter().map(|it| single(it)).collect();
    let (statistic, tables) = ratio(&triples(runs));
    (tables > 0).then(|| Test {
        statistic,
        degrees_of_freedom: tables,
        p_value: no_likelier(&likely, &seen),
    })
}

/// Counts by the fate of the packet before (row) and behind (column) in a sequence.
type Table = [[u64; 2]; 2];

/// How often each of delivered and lost came after each.
fn transitions(runs: &[LossRun]) -> Table {
    let mut table = Table::default();
    for run in runs {
        table[usize::from(run.lost)][usize::from(run.lost)] += run.length - 1;
    }
    for run in runs.iter().skip(1) {
        table[usize::from(!run.lost)][usize::from(run.lost)] += 1;
    }
    table
}

/// The fates around a delivered packet, and around a lost one.
fn triples(runs: &[LossRun]) -> [Table; 2] {
    let mut tables = [Table::default(); 2];
    for (position, run) in runs.iter().enumerate() {
        let (same, other) = (usize::from(run.lost), usize::from(!run.lost));
        let table = &mut tables[same];
        let (before, behind) = (position > 0, position + 1 < runs.len());
        if run.length == 1 {
            table[other][other] += u64::from(before && behind);
        } else {
            table[other][same] += u64::from(before);
            table[same][same] += run.length - 2;
            table[same][other] += u64::from(behind);
        }
    }
    tables
}

/// G² of tables, and how many of them there is a degree of freedom in.
fn ratio(tables: &[Table]) -> (f64, u32) {
    let (mut sum, mut degrees) = (0.0, 0);
    for table in tables {
        let rows = table.map(|row| row.iter().sum::<u64>());
        let columns = [0, 1].map(|it| table[0][it] + table[1][it]);
        let all = rows[0] + rows[1];
        if rows.contains(&0) || columns.contains(&0) {
            continue;
        }
        degrees += 1;
        for (row, line) in table.iter().enumerate() {
            for (column, seen) in line.iter().enumerate() {
                let expected = count(rows[row]) * count(columns[column]) / count(all);
                sum += 2.0 * log_power(count(*seen) / expected, *seen);
            }
        }
    }
    (sum.max(0.0), degrees)
}

/// The probability of all outcomes of one or two independent counts that are no likelier than
/// `seen`.
fn no_likelier(likely: &[Vec<(u64, f64)>], seen: &[u64]) -> f64 {
    let of = |(counts, seen): (&Vec<(u64, f64)>, &u64)| {
        counts
            .iter()
            .find(|(it, _)| it == seen)
            .map_or(0.0, |(_, probability)| *probability)
    };
    let bound = likely.iter().zip(seen).map(of).product::<f64>() * (1.0 + 1e-9);
    let certain = vec![(0, 1.0)];
    let (one, other) = (&likely[0], likely.get(1).unwrap_or(&certain));
    let mut other: Vec<f64> = other.iter().map(|it| it.1).collect();
    other.sort_by(f64::total_cmp);
    let mut below = vec![0.0];
    for probability in &other {
        below.push(below.last().copied().unwrap_or(0.0) + probability);
    }
    let within = |(_, probability): &(u64, f64)| {
        let places = other.partition_point(|it| it * probability <= bound);
        probability * below[places]
    };
    one.iter().map(within).sum::<f64>().min(1.0)
}

/// Whether lengths are geometric with their mean. None if they fall into fewer than three classes.
fn geometric(lengths: &[u64]) -> Option<Test> {
    let number = count(lengths.len() as u64);
    let end = number / count(lengths.iter().sum::<u64>()).max(1.0);
    let least = (EXPECTED / number).max(1.0 / CLASSES);
    if end >= 1.0 || 3.0 * least > 1.0 {
        return None;
    }
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let longer = |length: f64| (length * (-end).ln_1p()).exp();
    let (mut statistic, mut classes) = (0.0, 0);
    let (mut from, mut reached) = (1.0, 0);
    loop {
        // The shortest last length of a class that is expected often enough.
        let left = longer(from - 1.0);
        let next = ((left - least).max(0.0).ln() / (-end).ln_1p())
            .ceil()
            .max(from);
        let final_class = left < least * 2.0 || longer(next) < least;
        let expected = number
            * if final_class {
                left
            } else {
                left - longer(next)
            };
        let behind = if final_class {
            sorted.len()
        } else {
            sorted.partition_point(|it| count(*it) <= next)
        };
        let seen = count((behind - reached) as u64);
        statistic += (seen - expected) * (seen - expected) / expected;
        classes += 1;
        reached = behind;
        if final_class {
            break;
        }
        from = next + 1.0;
    }
    (classes >= 3).then(|| Test {
        statistic,
        degrees_of_freedom: classes - 2,
        p_value: chi_square_tail(statistic, classes - 2),
    })
}
