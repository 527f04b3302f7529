//! Whether losses return at equal distances of time, as those of handovers do.
//!
//! Time is cut into equal bins, and of each is taken how many more packets were lost than the rate
//! lets expect of those sent in it. A period shows in the power of this series at its frequency and
//! the multiples of it. These are added up to the statistic H of O. C. de Jager, B. C.
//! Raubenheimer, J. W. H. Swanepoel, A powerful test for weak periodic signals with unknown light
//! curve shape, 1989: the most that any number of harmonics up to ten exceeds what noise would
//! have, over all periods.
//!
//! Fisher's test of the highest ordinate of a periodogram takes noise to be white and Gaussian.
//! Losses in bursts are not, nor are counts of packets that a sender sends once in a round trip. So
//! the statistic is compared with that of 499 sequences which the model that fits best draws for
//! packets sent at the same times: p is the share of them, the measured one included, that reach
//! as far.

use serde::Serialize;

use super::chance::Draws;
use super::gilbert_elliott::Parameters;
use super::markov::{FEW, LEVEL};
use super::spectrum;
use super::statistics::count;
use crate::connection::Nanos;
use crate::durations::seconds;

/// Sequences that are drawn for comparison.
const DRAWN: usize = 499;
const BINS: usize = 2048;
/// Less time than this, in which bins would be of a nanosecond, has no period.
const SHORTEST: Nanos = 2048;
/// Zeros make frequencies lie closer than one turn in the whole time.
const CLOSER: usize = 4;
/// Harmonics lie at multiples, so the first has to be known more finely than the power is.
const FINER: usize = 4;
const HARMONICS: u32 = 10;
/// The number of lower frequencies of which the one that was found may be a harmonic.
const MOST_PARTS: u32 = 20;
/// Periods that would be seen fewer times than this are not sought, nor those of fewer bins.
const TURNS: usize = 3;
const BINS_OF_PERIOD: usize = 4;
const SEED: u64 = 1;

/// The outcome of the search for a period.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Periodicity {
    /// The statistic H.
    pub statistic: f64,
    /// The share of sequences without a period that reach as far.
    pub p_value: f64,
    /// The period, if p is below 5 %.
    pub period_s: Option<f64>,
    /// The largest error of the period, in seconds: half of what makes one turn over the whole
    /// time.
    pub period_within_s: Option<f64>,
    /// The shortest period that was sought.
    pub shortest_s: f64,
    /// The longest.
    pub longest_s: f64,
}

impl Periodicity {
    /// Seeks a period in losses among packets that were sent at these times. None if there are too
    /// few losses, or all packets were sent at once.
    #[must_use]
    pub fn of(sent: &[Nanos], lost: &[bool], model: &Parameters) -> Option<Self> {
        let losses: Vec<usize> = (0..lost.len()).filter(|it| lost[*it]).collect();
        let span = sent.iter().max()?.saturating_add(1);
        if (losses.len() as u64) < FEW || span < SHORTEST {
            return None;
        }
        let bins = Bins::of(sent, span);
        let mut generator = Draws::new(SEED);
        let drawn: Vec<Vec<f64>> = (0..DRAWN)
            .map(|_| bins.power(&generator.losses(model, sent.len())))
            .collect();
        let mut noise = vec![0.0; drawn[0].len()];
        for power in &drawn {
            for (sum, it) in noise.iter_mut().zip(power) {
                *sum += it / count(DRAWN as u64);
            }
        }
        let power = bins.power(&losses);
        let (statistic, frequency) = highest(&power, &noise);
        let reach = drawn.iter().filter(|it| highest(it, &noise).0 >= statistic);
        let p_value = count(reach.count() as u64 + 1) / count(DRAWN as u64 + 1);
        let span_s = seconds(span);
        let turns = fundamental(&power, &noise, frequency) / count(CLOSER as u64);
        let found = (p_value < LEVEL).then_some(span_s / turns);
        Some(Self {
            statistic,
            p_value,
            period_s: found,
            period_within_s: found.map(|it| it * it / span_s / 2.0),
            shortest_s: span_s / count((BINS / BINS_OF_PERIOD) as u64),
            longest_s: span_s / count(TURNS as u64),
        })
    }
}

/// Which bin of time each packet was sent in.
struct Bins {
    of: Vec<u16>,
    packets: Vec<f64>,
}

impl Bins {
    fn of(sent: &[Nanos], span: Nanos) -> Self {
        let bin = |it: &Nanos| {
            let bin = i128::from(*it) * BINS as i128 / i128::from(span);
            u16::try_from(bin.min(BINS as i128 - 1)).expect("a bin of those there are")
        };
        let of: Vec<u16> = sent.iter().map(bin).collect();
        let mut packets = vec![0.0; BINS];
        for bin in &of {
            packets[usize::from(*bin)] += 1.0;
        }
        Self { of, packets }
    }

    /// The power of what is lost beyond the rate.
    fn power(&self, losses: &[usize]) -> Vec<f64> {
        let rate = count(losses.len() as u64) / count(self.of.len() as u64);
        let mut series: Vec<f64> = self.packets.iter().map(|it| -rate * it).collect();
        for at in losses {
            series[usize::from(self.of[*at])] += 1.0;
        }
        spectrum::power(&series, BINS * CLOSER)
    }
}

/// The highest H, and at which frequency, in turns over the time with its zeros.
fn highest(power: &[f64], noise: &[f64]) -> (f64, f64) {
    let mut best = (0.0, 1.0);
    let (first, last) = (
        TURNS * CLOSER * FINER,
        BINS * CLOSER * FINER / BINS_OF_PERIOD,
    );
    for step in first..=last {
        let base = count(step as u64) / count(FINER as u64);
        let mut sum = 0.0;
        for harmonic in 1..=HARMONICS {
            let Some(over_noise) = over_noise(power, noise, base * f64::from(harmonic)) else {
                break;
            };
            // Over its mean, power of noise is chi-square with two degrees of freedom, halved.
            sum += 2.0 * over_noise;
            let h = sum - 4.0 * f64::from(harmonic - 1);
            if h > best.0 {
                best = (h, base);
            }
        }
    }
    best
}

/// The frequency of which `found` is a harmonic. Short losses have as much power at high harmonics
/// as at low ones, so any of them may stand out. A lower frequency is believed if those of its
/// harmonics that no frequency between has as well are half as strong as the ones in common.
fn fundamental(power: &[f64], noise: &[f64], found: f64) -> f64 {
    let lowest = count((TURNS * CLOSER) as u64);
    let mean = |part: u32, counts: &dyn Fn(u32) -> bool| {
        let harmonics = (1..=HARMONICS * part).filter(|it| counts(*it));
        let all = harmonics
            .map_while(|it| over_noise(power, noise, found * f64::from(it) / f64::from(part)));
        let all: Vec<f64> = all.collect();
        all.iter().sum::<f64>() / count(all.len().max(1) as u64)
    };
    let parts = (2..=MOST_PARTS).rev();
    let believed = parts
        .filter(|part| found / f64::from(*part) >= lowest)
        .find(|part| {
            let own = mean(*part, &|it| greatest_common_divisor(it, *part) == 1);
            own >= 0.5 * mean(*part, &|it| it.is_multiple_of(*part))
        });
    found / f64::from(believed.unwrap_or(1))
}

/// Power at a frequency over that of noise. None beyond the highest frequency.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "frequencies are above 0, and not many"
)]
fn over_noise(power: &[f64], noise: &[f64], frequency: f64) -> Option<f64> {
    let at = frequency.round() as usize;
    Some(power.get(at)? / noise[at].max(f64::MIN_POSITIVE))
}

fn greatest_common_divisor(one: u32, other: u32) -> u32 {
    if other == 0 {
        one
    } else {
        greatest_common_divisor(other, one % other)
    }
}
