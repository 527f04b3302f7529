//! Symbols per second, and the bandwidth that they need.

use crate::Ratio;
use crate::text::{Form, text_form};

/// A symbol rate in baud, symbols per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolRate(pub(crate) u64);

static SYMBOLS: Form = Form {
    what: "a symbol rate",
    usual_units: &["MBd"],
    example: "40 MBd",
    finest: "1 Bd",
    largest: 1_000_000_000_000,
    units: &[
        ("Bd", 1),
        ("kBd", 1_000),
        ("MBd", 1_000_000),
        ("GBd", 1_000_000_000),
    ],
    more_units: &[],
};
text_form!(SymbolRate, SYMBOLS);

impl SymbolRate {
    /// A rate of `baud` symbols per second.
    #[must_use]
    pub const fn from_baud(baud: u64) -> Self {
        Self(baud)
    }

    /// In symbols per second.
    #[must_use]
    pub const fn baud(self) -> u64 {
        self.0
    }
}

/// A bandwidth in hertz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(pub(crate) u64);

static HERTZ: Form = Form {
    what: "a bandwidth",
    usual_units: &["MHz"],
    example: "54 MHz",
    finest: "1 Hz",
    largest: 1_000_000_000_000,
    units: &[
        ("Hz", 1),
        ("kHz", 1_000),
        ("MHz", 1_000_000),
        ("GHz", 1_000_000_000),
    ],
    more_units: &[],
};
text_form!(Bandwidth, HERTZ);

impl Bandwidth {
    /// In hertz.
    #[must_use]
    pub const fn hertz(self) -> u64 {
        self.0
    }

    /// The symbols per second that it carries with a roll-off, rounded down: bandwidth / (1 +
    /// roll-off).
    #[must_use]
    pub fn symbol_rate(self, roll_off: Ratio) -> SymbolRate {
        let one = u128::from(Ratio::ONE.ppb());
        let symbols = u128::from(self.0) * one / (one + u128::from(roll_off.ppb()));
        SymbolRate(u64::try_from(symbols).expect("no more than the bandwidth"))
    }
}
