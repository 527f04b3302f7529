//! Values that hold from a time on until the next.

use std::str::FromStr;

use bentpipe_units::{Span, Time};
use toml::Value;

use crate::fields::{Entry, Fields, Problem};

/// Whether the last step may follow those before it.
pub(crate) fn check_order<T>(steps: &[(Time, T)]) -> Result<(), String> {
    match steps {
        [(first, _)] if *first > Time::ZERO => Err("the first time must be 0".to_owned()),
        [.., (before, _), (last, _)] if before >= last => Err("times must increase".to_owned()),
        _ => Ok(()),
    }
}

/// Reads steps: at least one, from time 0, in order. `examples` are two values.
pub(crate) fn read<T: FromStr>(
    entry: &Entry,
    examples: [&str; 2],
) -> Result<Vec<(Time, T)>, Problem> {
    let [first, second] = examples;
    let message = format!("write steps like [[\"0 s\", \"{first}\"], [\"15 s\", \"{second}\"]]");
    let wrong = || entry.problem(&message);
    let mut steps = Vec::new();
    for row in entry.value().as_array().ok_or_else(wrong)? {
        let row: Option<Vec<_>> = row
            .as_array()
            .ok_or_else(wrong)?
            .iter()
            .map(Value::as_str)
            .collect();
        let Some([time, value]) = row.as_deref() else {
            return Err(wrong());
        };
        steps.push((
            time.parse().map_err(|_| wrong())?,
            value.parse().map_err(|_| wrong())?,
        ));
        check_order(&steps).map_err(|what| entry.problem(&what))?;
    }
    if steps.is_empty() {
        Err(wrong())
    } else {
        Ok(steps)
    }
}

/// Reads the `period` after which steps begin again; None: the last one holds for ever.
pub(crate) fn read_period<T>(
    fields: &mut Fields,
    steps: &[(Time, T)],
) -> Result<Option<Span>, Problem> {
    let Some(entry) = fields.take("period") else {
        return Ok(None);
    };
    let length: Span = entry.parse()?;
    let last = steps[steps.len() - 1].0;
    if Time::ZERO + length <= last {
        let message = format!("must be longer than the time of the last step, {last}");
        return Err(entry.problem(&message));
    }
    Ok(Some(length))
}

/// The value that holds at a time, and until when. The first step must be at 0.
pub(crate) fn at<T: Copy>(steps: &[(Time, T)], period: Option<Span>, at: Time) -> (T, Time) {
    let (index, until) = in_period(steps, period, at);
    (steps[index].1, until)
}

/// The step that holds at a time: its index. The first step must be at 0.
pub(crate) fn holding<T>(steps: &[(Time, T)], at: Time) -> usize {
    steps.partition_point(|(from, _)| *from <= at) - 1
}

/// The step that holds at a time, its index, and until when, where steps begin again after each
/// period, if there is one.
pub(crate) fn in_period<T>(steps: &[(Time, T)], period: Option<Span>, at: Time) -> (usize, Time) {
    let past = period.map_or(0, |period| at.as_nanos() % period.as_nanos());
    let (begin, within) = match period {
        Some(_) => (at - Span::from_nanos(past), Time::from_nanos(past)),
        None => (Time::ZERO, at),
    };
    let index = holding(steps, within);
    let next = steps.get(index + 1).map(|(next, _)| *next - Time::ZERO);
    let until = next.or(period).map_or(Time::NEVER, |span| begin + span);
    (index, until)
}
