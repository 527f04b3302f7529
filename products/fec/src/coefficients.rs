//! The coefficients of a repair symbol: the symbols that it is of, and how often each.

use cu_fec::{DensityThreshold, Field, generate_coding_coefficients};

use crate::gf256;

/// The density at which no coefficient is 0.
pub const FULL: u8 = 15;
/// The most symbols of a block and of its repairs together: elements of the field.
pub const MOST_OF_BLOCK: usize = 256;

/// The symbols of which a repair symbol is a combination, counted from the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combination {
    /// All symbols in a sliding window, with coefficients of a generator (RFC 8681 section 3.6).
    Sliding {
        /// The seed of its coefficients.
        key: u16,
        /// The number of coefficients in 16 that are not 0, less one.
        density: u8,
        /// The number of symbols.
        count: u16,
    },
    /// The symbols of a block, every `stride`-th, with a row of a Cauchy matrix: a Reed-Solomon
    /// code, as each square part of such a matrix has an inverse.
    Block {
        /// The number of the repair, of those of the block.
        row: u8,
        /// The number of symbols.
        count: u8,
        /// The number of blocks that are interleaved.
        stride: u8,
    },
}

impl Combination {
    /// How far the last symbol is behind the first; None: a repair of nothing, or of a block with
    /// more rows than there are.
    #[must_use]
    pub fn span(self) -> Option<u32> {
        match self {
            Self::Sliding { count, .. } => u32::from(count).checked_sub(1),
            Self::Block { row, count, stride } => {
                let is_in_field = usize::from(row) + usize::from(count) < MOST_OF_BLOCK;
                let steps = u32::from(count).checked_sub(1).filter(|_| stride > 0);
                steps
                    .filter(|_| is_in_field)
                    .map(|it| it * u32::from(stride))
            }
        }
    }

    /// The symbols with a coefficient other than 0: how far each is behind the first, and its
    /// coefficient.
    pub fn factors(self) -> impl Iterator<Item = (u32, u8)> {
        let (all, stride) = match self {
            Self::Sliding {
                key,
                density,
                count,
            } => {
                let mut all = vec![0; usize::from(count)];
                let density = DensityThreshold::new(density).unwrap_or(DensityThreshold::FULL);
                generate_coding_coefficients(Field::Gf256, key, density, &mut all);
                (all, 1)
            }
            Self::Block { row, count, stride } => {
                let all = (0..count).map(|symbol| gf256::inverse((255 - row) ^ symbol));
                (all.collect(), u32::from(stride))
            }
        };
        let behind = (0..).map(move |steps: u32| steps * stride);
        behind.zip(all).filter(|(_, factor)| *factor != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sliding(key: u16, count: u16, density: u8) -> Vec<(u32, u8)> {
        let combination = Combination::Sliding {
            key,
            density,
            count,
        };
        combination.factors().collect()
    }

    #[test]
    fn density_says_how_many_are_not_0() {
        let share = |density| sliding(7, 4000, density).len();
        assert_eq!(share(15), 4000);
        assert!((1850..2150).contains(&share(7)), "{}", share(7));
        assert!((200..300).contains(&share(0)), "{}", share(0));
    }

    #[test]
    fn a_key_is_a_sequence() {
        assert_eq!(sliding(3, 10, 15), sliding(3, 20, 15)[..10]);
        assert_ne!(sliding(3, 10, 15), sliding(4, 10, 15));
    }

    #[test]
    fn rows_of_blocks_are_in_the_field_or_no_repair() {
        let block = |row, count, stride| Combination::Block { row, count, stride };
        assert_eq!(block(3, 5, 2).span(), Some(8));
        let factors: Vec<_> = block(0, 2, 7).factors().collect();
        assert_eq!(factors.iter().map(|it| it.0).collect::<Vec<_>>(), [0, 7]);
        assert_eq!(gf256::mul(factors[1].1, 254), 1);
        for (row, count, stride) in [(0, 0, 1), (0, 1, 0), (1, 255, 1), (255, 255, 255)] {
            assert_eq!(block(row, count, stride).span(), None);
        }
        assert_eq!(block(0, 255, 255).span(), Some(254 * 255));
        assert_eq!(block(0, 255, 1).factors().count(), 255);
    }
}
