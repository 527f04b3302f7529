//! Bytes.

use std::ops::Add;

use crate::text::{Form, text_form};

/// A number of bytes. Printed in units of 1024 if it is a whole number of MiB, else in units of
/// 1000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u64);

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

static FORM: Form = Form {
    what: "a size",
    usual_units: &["MB"],
    example: "36 MB",
    finest: "1 B",
    largest: u64::MAX,
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
    ],
    more_units: &[("KiB", KIB), ("MiB", MIB), ("GiB", GIB)],
};
text_form!(Size, FORM, |bytes: u64| match bytes {
    0 => FORM.show(bytes),
    _ if bytes.is_multiple_of(GIB) => format!("{} GiB", bytes / GIB),
    _ if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
    _ => FORM.show(bytes),
});

impl Size {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// A size of `bytes` bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl Add for Size {
    type Output = Self;

    /// Saturates.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
