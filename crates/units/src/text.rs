//! The text form that all quantities share: an exact decimal number and a unit.

use std::fmt;

use crate::error::UnitError;

/// How a quantity is written.
pub(crate) struct Form {
    /// Its name, with the article.
    pub what: &'static str,
    /// The units to propose for a bare number; zero is printed in the first.
    pub usual_units: &'static [&'static str],
    pub example: &'static str,
    pub finest: &'static str,
    /// The largest value, in the smallest unit.
    pub largest: u64,
    /// Units to print, smallest first; each a power of ten of the smallest.
    pub units: &'static [(&'static str, u64)],
    /// Further units to read.
    pub more_units: &'static [(&'static str, u64)],
}

impl Form {
    /// Reads a text as a whole number of the smallest unit.
    pub fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let text = text.trim();
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, unit) = (&unsigned[..end], unsigned[end..].trim_start());
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return Err(self.not_a_number(text));
        }
        if negative {
            let (text, what, example) = (text.to_owned(), self.what, self.example);
            return Err(UnitError::Negative {
                text,
                what,
                example,
            });
        }
        let factor = self.factor(text, unit)?;
        self.scale(text, whole, fraction.trim_end_matches('0'), factor)
    }

    fn factor(&self, text: &str, unit: &str) -> Result<u64, UnitError> {
        let (text, what) = (text.to_owned(), self.what);
        if unit.is_empty() {
            return Err(UnitError::MissingUnit {
                text,
                what,
                units: self.usual_units,
            });
        }
        let mut all = self.units.iter().chain(self.more_units);
        if let Some((_, factor)) = all.clone().find(|(name, _)| *name == unit) {
            return Ok(*factor);
        }
        let first = all.next().map_or("", |(name, _)| name).to_owned();
        let known = all.fold(first, |list, (name, _)| list + ", " + name);
        let unit = unit.to_owned();
        Err(UnitError::UnknownUnit {
            text,
            what,
            unit,
            known,
        })
    }

    /// `whole.fraction * factor`, if that is a whole number that can be held.
    fn scale(
        &self,
        text: &str,
        whole: &str,
        fraction: &str,
        factor: u64,
    ) -> Result<u64, UnitError> {
        let too_large = || UnitError::TooLarge {
            text: text.to_owned(),
            what: self.what,
            largest: self.show(self.largest),
        };
        let too_fine = || UnitError::TooFine {
            text: text.to_owned(),
            what: self.what,
            finest: self.finest,
        };
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        // No decimal unit has more than 9 places above its smallest: 18 digits without trailing
        // zeros are too fine for all of them, and what has fewer cannot overflow.
        let digits = u32::try_from(fraction.len()).map_err(|_| too_fine())?;
        let parts = 10_u128
            .checked_pow(digits)
            .filter(|_| digits <= 18)
            .ok_or_else(too_fine)?;
        let numerator: u128 = if fraction.is_empty() {
            0
        } else {
            fraction.parse().map_err(|_| too_fine())?
        };
        let scaled = numerator * u128::from(factor);
        if !scaled.is_multiple_of(parts) {
            return Err(too_fine());
        }
        let value = u128::from(whole) * u128::from(factor) + scaled / parts;
        u64::try_from(value)
            .ok()
            .filter(|value| *value <= self.largest)
            .ok_or_else(too_large)
    }

    fn not_a_number(&self, text: &str) -> UnitError {
        UnitError::NotANumber {
            text: text.to_owned(),
            what: self.what,
            example: self.example,
        }
    }

    /// The value in the largest unit that is not larger than it, with all its decimals.
    pub fn show(&self, value: u64) -> String {
        let fitting = self.units.iter().rev().find(|(_, factor)| *factor <= value);
        let (name, factor) = fitting.unwrap_or(&self.units[self.zero_unit()]);
        let digits = factor.ilog10() as usize;
        let fraction = format!("{:0digits$}", value % factor);
        match fraction.trim_end_matches('0') {
            "" => format!("{} {name}", value / factor),
            fraction => format!("{}.{fraction} {name}", value / factor),
        }
    }

    /// The unit for values below the smallest one listed: only ratios have such values.
    fn zero_unit(&self) -> usize {
        self.units
            .iter()
            .position(|(name, _)| self.usual_units.first() == Some(name))
            .unwrap_or(0)
    }
}

/// Reads the text form; a number is answered with what to write instead.
pub(crate) struct TextVisitor(pub &'static Form);

impl serde::de::Visitor<'_> for TextVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} like \"{}\"", self.0.what, self.0.example)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<u64, E> {
        self.0.parse(text).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<u64, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<u64, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<u64, E> {
        self.visit_str(&number.to_string())
    }
}

/// Gives a one-integer type its text form.
macro_rules! text_form {
    ($type:ident, $form:expr) => {
        text_form!($type, $form, |value: u64| $form.show(value));
    };
    ($type:ident, $form:expr, $show:expr) => {
        impl std::str::FromStr for $type {
            type Err = $crate::UnitError;

            fn from_str(text: &str) -> Result<Self, $crate::UnitError> {
                $form.parse(text).map($type)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.pad(&($show)(self.0))
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_any($crate::text::TextVisitor(&$form))
                    .map($type)
            }
        }
    };
}
pub(crate) use text_form;
