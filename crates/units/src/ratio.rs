//! Parts per billion.

use crate::text::{Form, text_form};

const BILLION: u64 = 1_000_000_000;

/// A ratio from 0 to 1 in parts per billion, written in per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(pub(crate) u64);

static FORM: Form = Form {
    what: "a ratio",
    usual_units: &["%"],
    example: "1 %",
    finest: "0.0000001 %",
    largest: BILLION,
    units: &[("%", 10_000_000)],
    more_units: &[],
};
text_form!(Ratio, FORM);

impl Ratio {
    /// 0 %.
    pub const ZERO: Self = Self(0);
    /// 100 %.
    pub const ONE: Self = Self(BILLION);

    /// A ratio of `ppb` parts per billion, at most 1.
    #[must_use]
    pub const fn from_ppb(ppb: u64) -> Self {
        Self(if ppb < BILLION { ppb } else { BILLION })
    }

    /// In parts per billion.
    #[must_use]
    pub const fn ppb(self) -> u64 {
        self.0
    }
}
