//! Which satellite serves a terminal over time.
//!
//! No packet meets it: what an orbit does to packets stands in the delay and the handovers. It is
//! read beside the delay so that figures of a trial can show it.

use serde::ser::{Serialize, SerializeTuple, Serializer};

use crate::fields::{Entry, Problem};

/// The satellite that serves a terminal from a step of the delay on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingSatellite {
    /// Its name; empty: none serves the terminal.
    pub satellite: String,
    /// Its elevation at the terminal, in thousandths of a degree; 0 where none serves it.
    pub elevation: i64,
    /// How many satellites the terminal could use.
    pub in_view: u32,
}

/// The columns of a trace of delays that say which satellite serves.
pub(crate) const COLUMNS: [&str; 3] = ["satellite", "elevation_deg", "in_view"];
const EXAMPLE: &str = "[[\"12-7\", \"67.5\", \"19\"]], one for each step";

impl ServingSatellite {
    /// Reads a row of [`COLUMNS`]; an error says what is wrong.
    pub(crate) fn read([satellite, elevation, in_view]: [&str; 3]) -> Result<Self, String> {
        let wrong = |value: &str, what: &str| format!("{value}: {what}");
        Ok(Self {
            satellite: satellite.to_owned(),
            elevation: match elevation {
                "" if satellite.is_empty() => 0,
                given => thousandths(given)
                    .ok_or_else(|| wrong(given, "an elevation is in degrees, like 67.5"))?,
            },
            in_view: in_view
                .parse()
                .map_err(|_| wrong(in_view, "the satellites in view are a number, like 19"))?,
        })
    }

    /// Reads the satellites of as many steps.
    pub(crate) fn read_all(entry: &Entry, steps: usize) -> Result<Vec<Self>, Problem> {
        let wrong = || entry.problem(&format!("write them like {EXAMPLE}"));
        let rows = entry.value().as_array().ok_or_else(wrong)?;
        if rows.len() != steps {
            let (rows, message) = (rows.len(), "there must be one for each step");
            let key = entry.problem("");
            let message = format!("{rows} satellites for {steps} steps: {message}");
            return Err(Problem { message, ..key });
        }
        let each = rows.iter().map(|row| {
            let row = row.as_array().ok_or_else(wrong)?;
            let texts: Option<Vec<&str>> = row.iter().map(toml::Value::as_str).collect();
            let texts: [&str; 3] = texts.ok_or_else(wrong)?.try_into().map_err(|_| wrong())?;
            Self::read(texts).map_err(|what| Problem {
                message: what,
                ..entry.problem("")
            })
        });
        each.collect()
    }
}

/// A decimal number in thousandths, cut off there.
fn thousandths(text: &str) -> Option<i64> {
    let (sign, size) = text.strip_prefix('-').map_or((1, text), |size| (-1, size));
    let (whole, fraction) = size.split_once('.').unwrap_or((size, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || whole.len() > 3 {
        return None;
    }
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    let (whole, fraction): (i64, i64) = (whole.parse().ok()?, fraction.parse().ok()?);
    Some(sign * (whole * 1_000 + fraction))
}

impl Serialize for ServingSatellite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sign = if self.elevation < 0 { "-" } else { "" };
        let size = self.elevation.unsigned_abs();
        let elevation = format!("{sign}{}.{:03}", size / 1_000, size % 1_000);
        let mut row = serializer.serialize_tuple(3)?;
        row.serialize_element(&self.satellite)?;
        row.serialize_element(elevation.trim_end_matches('0').trim_end_matches('.'))?;
        row.serialize_element(&self.in_view.to_string())?;
        row.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elevations_are_decimals() {
        for (text, expected) in [
            ("67.5", 67_500),
            ("-0.25", -250),
            ("8", 8_000),
            ("9.12345", 9_123),
        ] {
            assert_eq!(thousandths(text), Some(expected), "{text}");
        }
        for text in ["", ".", "5.", ".5", "-", "1e1", "1000", "5 deg"] {
            assert_eq!(thousandths(text), None, "{text}");
        }
    }

    #[test]
    fn a_row_is_what_it_is_written_as() {
        for row in [["12-7", "67.5", "19"], ["", "0", "0"], ["a", "-0.005", "3"]] {
            let read = ServingSatellite::read(row).unwrap();
            let written = serde_json::to_value(&read).unwrap();
            assert_eq!(written, serde_json::json!(row));
        }
        let nothing = ServingSatellite::read(["", "", "0"]).unwrap();
        assert_eq!((nothing.elevation, nothing.in_view), (0, 0));
        assert!(ServingSatellite::read(["a", "", "0"]).is_err());
        assert!(ServingSatellite::read(["a", "5", "-1"]).is_err());
    }
}
