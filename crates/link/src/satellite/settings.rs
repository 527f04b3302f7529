//! Reads settings that both kinds of carriers have.

use std::ops::RangeInclusive;

use crate::fields::{Entry, Fields, Problem};

/// A switch, `"on"` or `"off"`; None: it is left out.
pub(super) fn read_switch(
    fields: &mut Fields,
    name: &'static str,
) -> Result<Option<bool>, Problem> {
    fields.take(name).as_ref().map(switch).transpose()
}

pub(super) fn switch(entry: &Entry) -> Result<bool, Problem> {
    match entry {
        entry if entry.is_text("on") => Ok(true),
        entry if entry.is_text("off") => Ok(false),
        entry => Err(entry.problem("write \"on\" or \"off\"")),
    }
}

/// A switch as it is written.
pub(super) fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A whole number in a range; `usual` if it is left out.
pub(super) fn read_count(
    fields: &mut Fields,
    name: &'static str,
    usual: u64,
    range: RangeInclusive<u64>,
) -> Result<u64, Problem> {
    let Some(entry) = fields.take(name) else {
        return Ok(usual);
    };
    let hint = format!("{name} is from {} to {}", range.start(), range.end());
    let count: Option<u64> = entry.parse().ok();
    count
        .filter(|it| range.contains(it))
        .ok_or_else(|| entry.problem(&hint))
}
