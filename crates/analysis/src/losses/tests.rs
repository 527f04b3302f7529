//! Models that are fitted to sequences drawn from a model give it back.

use super::chance::Draws;
use super::gilbert_elliott::Likelihood;
use super::*;

mod coverage;
mod of_tests;

/// A sequence of losses drawn from a model.
fn drawn(seed: u64, model: &Parameters, packets: usize) -> LossSequence {
    let mut lost = vec![false; packets];
    for at in Draws::new(seed).losses(model, packets) {
        lost[at] = true;
    }
    sequence(lost)
}

/// The simplified Gilbert model with these p and r.
fn simplified(p: f64, r: f64) -> Parameters {
    Parameters {
        p_bad_given_good: p,
        p_good_given_bad: r,
        loss_in_good: 0.0,
        loss_in_bad: 1.0,
    }
}

/// Packets sent a millisecond apart.
fn sequence(lost: Vec<bool>) -> LossSequence {
    let sent = (0..).map(|it| it * 1_000_000);
    LossSequence {
        sent: sent.take(lost.len()).collect(),
        lost,
        ..LossSequence::default()
    }
}

/// A sequence in words: `.` is delivered, `x` is lost.
fn of_word(word: &str) -> LossSequence {
    sequence(word.bytes().map(|it| it == b'x').collect())
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9 * (1.0 + other.abs())
}
