//! Sequences drawn from a loss model, the same in every run.
//!
//! Numbers come from `SplitMix64` (Steele, Lea, Flood, Fast Splittable Pseudorandom Number
//! Generators, 2014). They decide what a test of periodicity compares with, never a trial.

use super::gilbert_elliott::Parameters;

/// A generator of random numbers with a fixed seed.
#[derive(Debug)]
pub struct Draws(u64);

impl Draws {
    /// The generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number above 0 and up to 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn number(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// The number of trials that fail before one succeeds, with this probability of success.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what is too large becomes the largest number there is"
    )]
    pub fn failures(&mut self, probability: f64) -> usize {
        if probability >= 1.0 {
            return 0;
        }
        if probability <= 0.0 {
            return usize::MAX;
        }
        (self.number().ln() / (-probability).ln_1p()) as usize
    }

    /// The positions of the lost packets among `packets` packets.
    pub fn losses(&mut self, model: &Parameters, packets: usize) -> Vec<usize> {
        let mut losses = Vec::new();
        let mut bad = self.number() <= model.bad_share();
        let mut at = 0;
        while at < packets {
            let (leave, loss) = if bad {
                (model.p_good_given_bad, model.loss_in_bad)
            } else {
                (model.p_bad_given_good, model.loss_in_good)
            };
            let end = at
                .saturating_add(self.failures(leave))
                .saturating_add(1)
                .min(packets);
            at = at.saturating_add(self.failures(loss));
            while at < end {
                losses.push(at);
                at = at.saturating_add(1).saturating_add(self.failures(loss));
            }
            at = end;
            bad = !bad;
        }
        losses
    }
}
