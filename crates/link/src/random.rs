//! Where the randomness of links comes from.

use bentpipe_units::Ratio;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::direction::{Direction, SegmentName};

/// The seed of one link, which names its random streams.
///
/// A generator is `ChaCha8`. Its 256-bit key is the trial's seed (8 bytes, little-endian), the
/// ASCII text `bentpipe link` and zeros; its 64-bit stream number is `6 * direction + 2 * segment +
/// use`, with forward 0, return 1; access 0, satellite 1, ground 2; queue 0, loss 1, rate 12, delay
/// 13, reordering 36, bit errors 37. No stream moves when another draws more or less: with the same
/// seed, the third packet over the satellite gets the same random draw whatever the queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSeed {
    /// The trial's seed.
    pub seed: u64,
    /// The link's direction.
    pub direction: Direction,
    /// The link's segment.
    pub segment: SegmentName,
}

/// The purpose of a random stream.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    Queue = 0,
    Loss = 1,
    Rate = 12,
    Delay = 13,
    Reorder = 36,
    BitErrors = 37,
}

impl LinkSeed {
    pub(crate) fn stream(self, what: Use) -> Dice {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..21].copy_from_slice(b"bentpipe link");
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(6 * self.direction as u64 + 2 * self.segment as u64 + what as u64);
        Dice(generator)
    }
}

/// A stream of chances and numbers.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    /// True with the given probability. One 64-bit draw each, whatever the probability, held
    /// against `floor(2^64 * ratio)`: 0 % and 100 % are exact, the rest to 2^-64.
    pub fn chance(&mut self, ratio: Ratio) -> bool {
        self.chance_of((u128::from(ratio.ppb()) << 64) / u128::from(Ratio::ONE.ppb()))
    }

    /// True with a probability in units of 2^-64. One 64-bit draw each.
    pub fn chance_of(&mut self, limit: u128) -> bool {
        u128::from(self.0.next_u64()) < limit
    }

    /// A number from 0 to `most`, all alike to 2^-64. One 64-bit draw each.
    pub fn up_to(&mut self, most: u64) -> u64 {
        let scaled = u128::from(self.0.next_u64()) * (u128::from(most) + 1);
        u64::try_from(scaled >> 64).expect("2^64 numbers at most")
    }
}
