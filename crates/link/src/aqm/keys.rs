//! Reads values that queue disciplines have in common.

use std::fmt::Display;
use std::str::FromStr;

use crate::fields::{Fields, Problem};

/// A switch, which is on if it is left out.
pub(super) fn is_on(fields: &mut Fields, key: &'static str) -> Result<bool, Problem> {
    match fields.take(key) {
        None => Ok(true),
        Some(entry) if entry.is_text("on") => Ok(true),
        Some(entry) if entry.is_text("off") => Ok(false),
        Some(entry) => Err(entry.problem("write \"on\" or \"off\"")),
    }
}

pub(super) fn on_or_off(switch: bool) -> String {
    if switch { "on" } else { "off" }.to_owned()
}

/// A value that may be left out, and that must be in its range, which an error names by `range`.
pub(super) fn value<T: FromStr<Err: Display>>(
    fields: &mut Fields,
    key: &'static str,
    usual: T,
    is_valid: impl Fn(&T) -> bool,
    range: &str,
) -> Result<T, Problem> {
    let Some(entry) = fields.take(key) else {
        return Ok(usual);
    };
    let value = entry.parse()?;
    if is_valid(&value) {
        return Ok(value);
    }
    Err(entry.problem(&format!("not valid: {key} is {range}")))
}

/// A value that may be left out, from the first to the second of `range`.
pub(super) fn within<T: FromStr<Err: Display> + Display + PartialOrd>(
    fields: &mut Fields,
    key: &'static str,
    usual: T,
    range: [T; 2],
) -> Result<T, Problem> {
    let Some(entry) = fields.take(key) else {
        return Ok(usual);
    };
    let value = entry.parse()?;
    let [least, most] = range;
    if least <= value && value <= most {
        return Ok(value);
    }
    Err(entry.problem(&format!("not valid: {key} is from {least} to {most}")))
}
