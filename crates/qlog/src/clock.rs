//! What the times of a trace count from.
//!
//! Up to 0.3, `common_fields.time_format` is `absolute` (the default), `relative` to
//! `reference_time`, or `delta`; since main-schema-09 it is `relative_to_epoch` (the default) or
//! `relative_to_previous_event`, and `reference_time` is an object. Draft-01 told the same by the
//! name of the column of times. A `reference_time` without `time_format` is taken as relative, as
//! qvis does. If the epoch is `unknown`, `wall_clock_time` is taken as the instant of time 0.
//!
//! Many logs count from an instant that they do not name. quinn writes neither format nor
//! reference, and noq empty strings for it: such times are [`Clock::Unknown`]. Times before 1990,
//! long before QUIC, are no Unix times whatever their format says.

use serde_json::{Map, Value};

use crate::time::{self, MICROSECOND, MILLISECOND};

/// 1 January 1990.
const OLDEST: i64 = 631_152_000 * time::SECOND;

/// The clock of a trace: what its times count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The Unix epoch.
    Unix,
    /// An instant that the file does not name.
    Unknown,
}

/// The rule by which an event's `time` becomes nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeFormat {
    /// Of time 0; of the event before the first, if each counts from the previous one.
    origin: i64,
    unit: i64,
    delta: bool,
}

impl Clock {
    /// The clock on which an instant is this far from 0.
    pub(crate) fn of(instant: i64) -> Self {
        if instant >= OLDEST {
            Self::Unix
        } else {
            Self::Unknown
        }
    }
}

impl TimeFormat {
    pub fn of(members: &Map<String, Value>, columns: &[String]) -> Self {
        let fields = members.get("common_fields").unwrap_or(&Value::Null);
        let configuration = members.get("configuration").unwrap_or(&Value::Null);
        let unit = match configuration.get("time_units").and_then(Value::as_str) {
            Some("us") => MICROSECOND,
            _ => MILLISECOND,
        };
        let has_column = |wanted: &str| {
            let names = members.get("event_fields").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|name| name == wanted))
        };
        let reference = fields
            .get("reference_time")
            .and_then(|value| instant(value, unit));
        let format = fields.get("time_format").and_then(Value::as_str);
        let absolute = format == Some("absolute")
            || (!columns.is_empty() && !has_column("relative_time") && !has_column("delta_time"));
        let offset = configuration
            .get("time_offset")
            .and_then(|value| number(value, unit));
        Self {
            origin: reference
                .filter(|_| !absolute)
                .unwrap_or(0)
                .saturating_add(offset.unwrap_or(0)),
            unit,
            delta: matches!(format, Some("delta" | "relative_to_previous_event"))
                || has_column("delta_time"),
        }
    }

    /// The clock, as far as the header tells.
    pub fn clock(&self) -> Clock {
        Clock::of(self.origin)
    }

    /// The instant of an event's `time`, after which the next one may count.
    pub fn next(&mut self, time: &str) -> Option<i64> {
        let time = time::nanoseconds(time, self.unit)?;
        let instant = self.origin.checked_add(time)?;
        if self.delta {
            self.origin = instant;
        }
        Some(instant)
    }
}

/// The instant that `reference_time` names: a number, a date, or an object of the current schema.
fn instant(value: &Value, unit: i64) -> Option<i64> {
    match value {
        Value::Object(reference) => ["epoch", "wall_clock_time"]
            .into_iter()
            .find_map(|key| time::of_date(reference.get(key)?.as_str()?)),
        Value::String(text) => time::of_date(text).or_else(|| time::nanoseconds(text, unit)),
        _ => number(value, unit),
    }
}

fn number(value: &Value, unit: i64) -> Option<i64> {
    time::nanoseconds(&value.to_string(), unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trace;

    /// The clock of a trace with these members, and the instants of its events in ms.
    fn instants(members: &str, times: &[&str]) -> (Clock, Vec<String>) {
        let members: Map<String, Value> = serde_json::from_str(members).unwrap();
        let mut trace = Trace::of(&members, &Map::new());
        let instants: Vec<i64> = times
            .iter()
            .map(|time| trace.times.next(time).unwrap())
            .collect();
        trace.learn_clock(instants[0]);
        (
            trace.clock,
            instants.into_iter().map(time::milliseconds).collect(),
        )
    }

    #[test]
    fn every_time_format_is_understood() {
        let year_2000 = "946684800000";
        for (members, times, clock, expected) in [
            (r"{}", ["5", "7.5"], Clock::Unknown, ["5", "7.5"]),
            (
                r"{}",
                [year_2000, "946684800001"],
                Clock::Unix,
                [year_2000, "946684800001"],
            ),
            (
                r#"{"common_fields":{"reference_time":946684800000,"time_format":"relative"}}"#,
                ["0", "1"],
                Clock::Unix,
                [year_2000, "946684800001"],
            ),
            (
                r#"{"common_fields":{"reference_time":"946684800000.5"}}"#,
                ["0", "1"],
                Clock::Unix,
                ["946684800000.5", "946684800001.5"],
            ),
            (
                r#"{"common_fields":{"reference_time":5,"time_format":"absolute"}}"#,
                [year_2000, "946684800001"],
                Clock::Unix,
                [year_2000, "946684800001"],
            ),
            (
                r#"{"common_fields":{"time_format":"delta"}}"#,
                ["1500", "5"],
                Clock::Unknown,
                ["1500", "1505"],
            ),
            (
                r#"{"common_fields":{"time_format":"relative_to_previous_event",
                    "reference_time":{"clock_type":"system","epoch":"2000-01-01T00:00:00Z"}}}"#,
                ["1", "1"],
                Clock::Unix,
                ["946684800001", "946684800002"],
            ),
            (
                r#"{"common_fields":{"reference_time":{"clock_type":"monotonic","epoch":"unknown",
                    "wall_clock_time":"2000-01-01T00:00:00.25Z"}}}"#,
                ["0", "1"],
                Clock::Unix,
                ["946684800250", "946684800251"],
            ),
            (
                r#"{"common_fields":{"reference_time":{"clock_type":"system","epoch":"1970-01-01T00:00:00.000Z"}}}"#,
                [year_2000, "946684800001"],
                Clock::Unix,
                [year_2000, "946684800001"],
            ),
            (
                r#"{"common_fields":{"reference_time":{"clock_type":"","epoch":""}}}"#,
                ["304.912", "305"],
                Clock::Unknown,
                ["304.912", "305"],
            ),
            (
                r#"{"configuration":{"time_units":"us","time_offset":100}}"#,
                ["5", "7"],
                Clock::Unknown,
                ["0.105", "0.107"],
            ),
            (
                r#"{"event_fields":["relative_time","CATEGORY"],"common_fields":{"reference_time":"946684800000"}}"#,
                ["0", "1"],
                Clock::Unix,
                [year_2000, "946684800001"],
            ),
            (
                r#"{"event_fields":["time","category"],"common_fields":{"reference_time":5}}"#,
                [year_2000, "946684800001"],
                Clock::Unix,
                [year_2000, "946684800001"],
            ),
            (
                r#"{"event_fields":["delta_time"]}"#,
                ["5", "7"],
                Clock::Unknown,
                ["5", "12"],
            ),
        ] {
            let found = instants(members, &times);
            assert_eq!(
                found,
                (clock, expected.map(str::to_owned).to_vec()),
                "{members}"
            );
        }
    }
}
