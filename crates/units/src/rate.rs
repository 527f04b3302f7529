//! Bits per second.

use crate::text::{Form, text_form};
use crate::{Size, Span};

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub(crate) u64);

static FORM: Form = Form {
    what: "a rate",
    usual_units: &["Mbit/s"],
    example: "20 Mbit/s",
    finest: "1 bit/s",
    largest: u64::MAX,
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
    ],
    more_units: &[],
};
text_form!(Rate, FORM);

/// Bits per byte times nanoseconds per second: what turns bit/s times ns into bytes.
const BIT_NANOS_PER_BYTE: u128 = 8 * 1_000_000_000;

impl Rate {
    /// A rate of `bps` bits per second.
    #[must_use]
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// In bits per second.
    #[must_use]
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// The whole bytes that pass in a span, rounded down, at most `u64::MAX`.
    #[must_use]
    pub fn bytes_in(self, span: Span) -> Size {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / BIT_NANOS_PER_BYTE;
        Size::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// The time that a size takes at this rate, rounded up to a nanosecond; [`Span::MAX`] at rate
    /// 0.
    #[must_use]
    pub fn time_for(self, size: Size) -> Span {
        let bit_nanos = u128::from(size.bytes()) * BIT_NANOS_PER_BYTE;
        let nanos = match self.0 {
            0 => u128::MAX,
            bps => bit_nanos.div_ceil(u128::from(bps)),
        };
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
