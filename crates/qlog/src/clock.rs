//! The clock of a trace: what its times count from.
//!
//! Before draft-02, `configuration.time_units` says the unit of all times, of round trips too: `ms`
//! (the default) or `us`; some loggers write `ns`. Later all are milliseconds, but a unit that is
//! said holds. What a trace does not say of its times, its file may.
//!
//! Up to 0.3, `common_fields.time_format` is `absolute` (the default), `relative` to
//! `reference_time`, or `delta`; an event may say its own. Since main-schema-09 it is
//! `relative_to_epoch` (the default) or `relative_to_previous_event`, and `reference_time` is an
//! object. In draft-00 and -01 the name of the column of times said so. A `reference_time` without
//! `time_format` is taken as relative, as qvis does. If the epoch is `unknown`, `wall_clock_time`
//! is taken as the instant of time 0.
//!
//! Many logs count from an instant that they do not name. quinn writes neither format nor
//! reference, and noq empty strings for it: such times are [`Clock::Unknown`]. Times before 1990,
//! long before QUIC, are no Unix times whatever their format says.

use serde_json::{Map, Value};

use crate::time::{self, MICROSECOND, MILLISECOND, SECOND};

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

/// The origin of a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Origin {
    #[default]
    Epoch,
    Reference,
    Previous,
}

/// The rule by which an event's `time` becomes nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeFormat {
    /// Nanoseconds.
    unit: i64,
    origin: Origin,
    /// Is added to all times.
    offset: i64,
    /// The instant that is named as the reference; 0: none.
    reference: i64,
    /// The previous event's instant; the reference before the first.
    previous: i64,
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

impl Origin {
    /// As `time_format` says, in 0.3 and now.
    fn of(format: &str) -> Option<Self> {
        match format {
            "absolute" => Some(Self::Epoch),
            "relative" | "relative_to_epoch" => Some(Self::Reference),
            "delta" | "relative_to_previous_event" => Some(Self::Previous),
            _ => None,
        }
    }

    /// As the name of a column of times says before draft-02.
    fn of_columns(names: &[Value]) -> Option<Self> {
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        if names.is_empty() {
            None
        } else if has("delta_time") {
            Some(Self::Previous)
        } else if has("relative_time") {
            Some(Self::Reference)
        } else {
            Some(Self::Epoch)
        }
    }
}

impl TimeFormat {
    /// The clock of a trace with these members, in a file with those.
    pub fn of(trace: &Map<String, Value>, file: &Map<String, Value>) -> Self {
        let find = |group: &str, key: &str| {
            let mut levels = [trace, file].into_iter();
            levels.find_map(|level| level.get(group)?.get(key))
        };
        let unit = match find("configuration", "time_units").and_then(Value::as_str) {
            Some("s") => SECOND,
            Some("us") => MICROSECOND,
            Some("ns") => 1,
            _ => MILLISECOND,
        };
        let columns = trace.get("event_fields").or(file.get("event_fields"));
        let columns = columns.and_then(Value::as_array);
        let said = find("common_fields", "time_format").and_then(Value::as_str);
        let origin = said
            .and_then(Origin::of)
            .or_else(|| Origin::of_columns(columns?));
        let offset = find("configuration", "time_offset")
            .and_then(|value| number(value, unit))
            .unwrap_or(0);
        let reference = find("common_fields", "reference_time")
            .and_then(|value| instant(value, unit))
            .filter(|_| origin != Some(Origin::Epoch))
            .unwrap_or(0)
            .saturating_add(offset);
        Self {
            unit,
            origin: origin.unwrap_or(Origin::Reference),
            offset,
            reference,
            previous: reference,
        }
    }

    /// The unit of all times, in nanoseconds.
    pub fn unit(&self) -> i64 {
        self.unit
    }

    /// The clock, as far as the header tells.
    pub fn clock(&self) -> Clock {
        Clock::of(self.reference)
    }

    /// The instant of an event's `time`, after which the next one may count. The event may say its
    /// own `time_format`.
    pub fn next(&mut self, time: &str, format: Option<&str>) -> Option<i64> {
        let time = time::nanoseconds(time, self.unit)?;
        let origin = match format.and_then(Origin::of).unwrap_or(self.origin) {
            Origin::Epoch => self.offset,
            Origin::Reference => self.reference,
            Origin::Previous => self.previous,
        };
        self.previous = origin.checked_add(time)?;
        Some(self.previous)
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
            .map(|time| trace.times.next(time, None).unwrap())
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
                r#"{"configuration":{"time_units":"ns"},"common_fields":{"reference_time":"946684800000000000"}}"#,
                ["5", "7"],
                Clock::Unix,
                ["946684800000.000005", "946684800000.000007"],
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

    #[test]
    fn what_a_trace_does_not_say_its_file_may() {
        let file = r#"{"configuration":{"time_units":"us"},"common_fields":{"reference_time":946684800000000}}"#;
        let file: Map<String, Value> = serde_json::from_str(file).unwrap();
        let mut times = TimeFormat::of(&Map::new(), &file);
        assert_eq!(times.next("5", None), Some(946_684_800_000_005_000));
    }

    #[test]
    fn an_event_may_say_its_own_format() {
        let trace = r#"{"common_fields":{"reference_time":100}}"#;
        let trace: Map<String, Value> = serde_json::from_str(trace).unwrap();
        let mut times = TimeFormat::of(&trace, &Map::new());
        for (time, format, milliseconds) in [
            ("5", Some("relative"), "105"),
            ("7", Some("delta"), "112"),
            ("9", None, "109"),
            ("120", Some("absolute"), "120"),
            ("1", Some("delta"), "121"),
            ("2", Some("unheard of"), "102"),
        ] {
            let found = times.next(time, format).map(time::milliseconds);
            assert_eq!(found.as_deref(), Some(milliseconds), "{time} {format:?}");
        }
    }
}
