//! How long bursts and gaps are.
//!
//! A burst is a run of lost packets, one after the other in the order of sending; a gap is a run of
//! delivered ones between two bursts. `B_max`, as in table I of Kuhn et al. 2020, is the longest
//! burst.

use serde::Serialize;

use super::sequence::LossRun;
use super::statistics::count;

/// A length, and how many runs have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LengthCount {
    /// In packets.
    pub length: u64,
    /// The number of runs of that length.
    pub count: u64,
}

/// The lengths of bursts or of gaps, in packets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lengths {
    /// The number of bursts or gaps.
    pub count: u64,
    /// The mean length.
    pub mean: f64,
    /// The shortest.
    pub min: u64,
    /// A quarter is no longer than this.
    pub quartile: u64,
    /// Half are no longer than this.
    pub median: u64,
    /// Three quarters are no longer than this.
    pub upper_quartile: u64,
    /// 95 % are no longer than this.
    pub percentile_95: u64,
    /// The longest: of bursts, `B_max`.
    pub max: u64,
    /// All lengths that occur, from the smallest.
    pub distribution: Vec<LengthCount>,
}

impl Lengths {
    /// The lengths of all bursts.
    #[must_use]
    pub fn of_bursts(runs: &[LossRun]) -> Option<Self> {
        Self::of(runs.iter().filter(|it| it.lost))
    }

    /// The lengths of all gaps that lie between two bursts.
    #[must_use]
    pub fn of_gaps(runs: &[LossRun]) -> Option<Self> {
        let inner = runs.get(1..runs.len().saturating_sub(1))?;
        Self::of(inner.iter().filter(|it| !it.lost))
    }

    fn of<'a>(runs: impl Iterator<Item = &'a LossRun>) -> Option<Self> {
        let mut lengths: Vec<u64> = runs.map(|it| it.length).collect();
        lengths.sort_unstable();
        let (min, max) = (*lengths.first()?, *lengths.last()?);
        let number = lengths.len();
        // The smallest length that `percent` of a hundred do not exceed.
        let quantile = |percent: usize| lengths[(number * percent).div_ceil(100).max(1) - 1];
        let equal = lengths.chunk_by(|one, next| one == next);
        let distribution = equal.map(|it| LengthCount {
            length: it[0],
            count: it.len() as u64,
        });
        Some(Self {
            count: number as u64,
            mean: count(lengths.iter().sum()) / count(number as u64),
            min,
            quartile: quantile(25),
            median: quantile(50),
            upper_quartile: quantile(75),
            percentile_95: quantile(95),
            max,
            distribution: distribution.collect(),
        })
    }
}
