//! Distributions of the sizes of transfers.

use std::fmt;
use std::str::FromStr;

use bentpipe_units::Size;

use crate::random::Dice;

/// The sizes of transfers: one size for all, or a named distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferSizes {
    /// `"100 kB"`.
    Fixed(Size),
    /// `"web"`: files of web servers as SURGE has them (Barford and Crovella 1998): 93 % lognormal
    /// (mu = 9.357, sigma = 1.318) up to 133 kB, the rest Pareto (alpha = 1.1, k = 133 kB), here up
    /// to 72.5 MB. Half are below 12.4 kB; the mean is 75.1 kB.
    Web,
}

/// Billionths of all transfers that are smaller than a number of bytes; linear in between.
const WEB: [(u64, u64); 34] = [
    (0, 100),
    (10_000_000, 550),
    (20_000_000, 790),
    (50_000_000, 1_359),
    (100_000_000, 2_204),
    (150_000_000, 3_057),
    (200_000_000, 3_967),
    (250_000_000, 4_964),
    (300_000_000, 6_075),
    (350_000_000, 7_330),
    (400_000_000, 8_765),
    (450_000_000, 10_430),
    (500_000_000, 12_388),
    (550_000_000, 14_732),
    (600_000_000, 17_593),
    (650_000_000, 21_179),
    (700_000_000, 25_825),
    (750_000_000, 32_132),
    (800_000_000, 41_301),
    (850_000_000, 56_231),
    (900_000_000, 86_785),
    (920_000_000, 112_238),
    (930_000_000, 133_000),
    (965_000_000, 249_756),
    (982_500_000, 469_007),
    (991_250_000, 880_729),
    (995_625_000, 1_653_888),
    (997_812_500, 3_105_774),
    (998_906_250, 5_832_214),
    (999_453_125, 10_952_092),
    (999_726_562, 20_566_515),
    (999_863_281, 38_621_073),
    (999_931_641, 72_525_038),
    (1_000_000_000, 72_525_038),
];
const BILLION: u64 = 1_000_000_000;

impl TransferSizes {
    /// The mean, in bytes, rounded down.
    #[must_use]
    pub fn mean_bytes(self) -> u64 {
        match self {
            Self::Fixed(size) => size.bytes(),
            Self::Web => {
                let parts = WEB.windows(2).map(|ends| {
                    let [(from, low), (to, high)] = [ends[0], ends[1]];
                    u128::from(to - from) * u128::from(low + high)
                });
                u64::try_from(parts.sum::<u128>() / u128::from(2 * BILLION)).expect("it is small")
            }
        }
    }

    /// The largest, in bytes.
    pub(super) fn largest_bytes(self) -> u64 {
        match self {
            Self::Fixed(size) => size.bytes(),
            Self::Web => WEB[WEB.len() - 1].1,
        }
    }

    /// Draws one, in bytes.
    pub(super) fn draw(self, dice: &mut Dice) -> u64 {
        match self {
            Self::Fixed(size) => size.bytes(),
            Self::Web => {
                let share = dice.up_to(BILLION - 1);
                let next = WEB.partition_point(|(below, _)| *below <= share);
                let [(from, low), (to, high)] = [WEB[next - 1], WEB[next]];
                low + (high - low) * (share - from) / (to - from)
            }
        }
    }
}

impl FromStr for TransferSizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "web" {
            return Ok(Self::Web);
        }
        let size: Size = text.parse().map_err(|_| {
            format!("{text}: no distribution of sizes; write \"web\", or one size like \"100 kB\"")
        })?;
        if size.bytes() == 0 {
            return Err(format!(
                "{text}: a transfer has bytes; write a size above 0 B"
            ));
        }
        Ok(Self::Fixed(size))
    }
}

impl fmt::Display for TransferSizes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Fixed(size) => size.fmt(f),
            Self::Web => f.write_str("web"),
        }
    }
}
