//! Decibels.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::UnitError;
use crate::text::Form;

/// A ratio of powers in thousandths of a decibel, which may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decibel(i64);

static FORM: Form = Form {
    what: "a ratio of powers",
    usual_units: &["dB"],
    example: "12.5 dB",
    finest: "0.001 dB",
    largest: 1_000_000,
    units: &[("dB", 1_000)],
    more_units: &[],
};

impl Decibel {
    /// 0 dB.
    pub const ZERO: Self = Self(0);

    /// A number of thousandths of a decibel.
    #[must_use]
    pub const fn from_thousandths(thousandths: i64) -> Self {
        Self(thousandths)
    }

    /// In thousandths of a decibel.
    #[must_use]
    pub const fn thousandths(self) -> i64 {
        self.0
    }
}

impl Add for Decibel {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Decibel {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl FromStr for Decibel {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let (sign, size) = match text.strip_prefix('-') {
            Some(size) if size.starts_with(|c: char| c.is_ascii_digit()) => (-1, size),
            _ => (1, text),
        };
        let thousandths = FORM.parse(size)?;
        Ok(Self(
            sign * i64::try_from(thousandths).expect("it is bounded"),
        ))
    }
}

impl fmt::Display for Decibel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let size = self.0.unsigned_abs();
        let fraction = format!("{:03}", size % 1_000);
        f.pad(&match fraction.trim_end_matches('0') {
            "" => format!("{sign}{} dB", size / 1_000),
            fraction => format!("{sign}{}.{fraction} dB", size / 1_000),
        })
    }
}

impl Serialize for Decibel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Decibel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_exact_and_come_back() {
        for (text, thousandths) in [("-2.35 dB", -2350), ("0dB", 0), ("16.05 dB", 16_050)] {
            let decibel: Decibel = text.parse().expect(text);
            assert_eq!(decibel.thousandths(), thousandths);
            assert_eq!(decibel.to_string().parse(), Ok(decibel));
        }
        for text in [
            "12",
            "--1 dB",
            "NaN dB",
            "0.0001 dB",
            "dB",
            "99999 dB",
            "- 1 dB",
        ] {
            assert!(text.parse::<Decibel>().is_err(), "{text}");
        }
    }
}
