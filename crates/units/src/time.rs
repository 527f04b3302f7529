//! Nanoseconds: instants of a trial, and lengths of time.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

use crate::text::{Form, text_form};

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// An instant in nanoseconds since the start of the trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

static FORM: Form = Form {
    what: "a time",
    usual_units: &["ms", "s"],
    example: "300 ms",
    finest: "1 ns",
    largest: u64::MAX,
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ],
    // Both characters for micro are in use: the micro sign and the Greek letter.
    more_units: &[
        ("\u{b5}s", 1_000),
        ("\u{3bc}s", 1_000),
        ("min", 60_000_000_000),
    ],
};
text_form!(Span, FORM);
text_form!(Time, FORM);

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The longest span, about 584 years.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `millis` milliseconds; saturates.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A span of `secs` seconds; saturates.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// In nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// In seconds, for records and people: rounded to what a float can hold, so never for ordering.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "documented")]
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Time {
    /// The start of the trial.
    pub const ZERO: Self = Self(0);
    /// Later than every instant: what never happens. `NEVER` plus a span is `NEVER`.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the start of the trial.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// In nanoseconds since the start of the trial.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
}

impl Add<Span> for Time {
    type Output = Self;

    /// Saturates at [`Time::NEVER`].
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub for Time {
    type Output = Span;

    /// The span since an earlier instant; none since a later one.
    fn sub(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Sub<Span> for Time {
    type Output = Self;

    /// Saturates at [`Time::ZERO`].
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;

    /// Saturates.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Self;

    /// Saturates.
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}
