//! What is said of a trace as a whole: who logged it, and what its times count from.
//!
//! Times. Up to 0.3, `common_fields.time_format` is `absolute` (the default), `relative` to `reference_time`, or `delta`;
//! since main-schema-09 it is `relative_to_epoch` (the default) or `relative_to_previous_event`, and `reference_time` is an
//! object. Draft-01 told the same by the name of the column of times. A `reference_time` without `time_format` is taken as
//! relative, as qvis does. If the epoch is `unknown`, `wall_clock_time` is taken as the instant of time 0.
//!
//! Many logs count from an instant that they do not name. quinn writes neither format nor reference, and noq empty
//! strings for it: such times are [`Clock::Unknown`]. "Absolute" times before 1990, 20 years before QUIC, are no Unix times.

use serde_json::{Map, Value};

use super::time::{self, MICROSECOND, MILLISECOND};

/// 1 January 1990.
const OLDEST: i64 = 631_152_000 * time::SECOND;

/// Which schema a file says that it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// `qlog_version` before 0.3: draft-00, draft-01, draft-02 of the individual drafts.
    Draft,
    /// `qlog_version` 0.3: the working group's drafts up to main-schema-08.
    V03,
    /// `file_schema`: main-schema-09 and later.
    Current,
}

/// Where a trace was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vantage {
    /// The endpoint that opened the connection.
    Client,
    /// The endpoint that accepted it.
    Server,
    /// Between the two.
    Network,
    /// Not said.
    Unknown,
}

/// What times count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The Unix epoch.
    Unix,
    /// An instant that the file does not name.
    Unknown,
}

/// A log of one vantage point.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// As the file gives it.
    pub title: Option<String>,
    /// The vantage point's name, often that of the stack.
    pub name: Option<String>,
    /// Where it was logged, as the file says. [`crate::qlog::Congestion`] finds it out if the file does not.
    pub vantage: Vantage,
    /// What the times of its events count from.
    pub clock: Clock,
    pub(super) times: Times,
    /// The columns of events that are arrays (draft-01).
    pub(super) columns: Vec<String>,
}

/// How an event's `time` becomes nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Of time 0; of the event before the first, if each counts from the previous one.
    origin: i64,
    unit: i64,
    delta: bool,
}

impl Vantage {
    /// The name that qlog has for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Network => "network",
            Self::Unknown => "unknown",
        }
    }

    fn of(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "client" => Self::Client,
            "server" => Self::Server,
            "network" => Self::Network,
            _ => Self::Unknown,
        }
    }
}

impl Generation {
    /// By the members of the file's outermost object. Those that have names of both are said to be current.
    pub(super) fn of(header: &Map<String, Value>) -> Option<Self> {
        if header.contains_key("file_schema") {
            return Some(Self::Current);
        }
        let version = header.get("qlog_version")?;
        Some(match version.as_str()? {
            "0.3" => Self::V03,
            version if version.starts_with("draft") || version.starts_with("0.0") => Self::Draft,
            "0.1" | "0.2" => Self::Draft,
            _ => Self::Current,
        })
    }
}

impl Trace {
    /// From the members of a trace, `events` left out, and of its file, whose title it has if it has none of its own.
    pub(super) fn of(members: &Map<String, Value>, file: &Map<String, Value>) -> Self {
        let text = |value: &Value, key| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let vantage_point = members.get("vantage_point").unwrap_or(&Value::Null);
        let columns = match members.get("event_fields") {
            Some(Value::Array(names)) => names.iter().map(column).collect(),
            _ => Vec::new(),
        };
        let times = Times::of(members, &columns);
        Self {
            title: [members, file]
                .into_iter()
                .find_map(|level| level.get("title")?.as_str())
                .map(str::to_owned),
            name: text(vantage_point, "name"),
            vantage: text(vantage_point, "type")
                .map_or(Vantage::Unknown, |name| Vantage::of(&name)),
            clock: if times.origin >= OLDEST {
                Clock::Unix
            } else {
                Clock::Unknown
            },
            times,
            columns,
        }
    }

    /// Looks at the first event's time, which tells Unix times from others if the header does not.
    pub(super) fn learn_clock(&mut self, first: i64) {
        if first >= OLDEST {
            self.clock = Clock::Unix;
        }
    }

    /// What it is called in messages and by tools: its title, its vantage point's name, or nothing.
    #[must_use]
    pub fn label(&self) -> &str {
        let named = [self.title.as_deref(), self.name.as_deref()];
        named
            .into_iter()
            .flatten()
            .find(|text| !text.is_empty())
            .unwrap_or("")
    }
}

/// A column of draft-01 under the name that its content has as a member since draft-02.
fn column(name: &Value) -> String {
    let name = name.as_str().unwrap_or("").to_ascii_lowercase();
    match name.as_str() {
        "relative_time" | "delta_time" => "time".to_owned(),
        "event" | "event_type" => "type".to_owned(),
        _ => name,
    }
}

impl Times {
    fn of(members: &Map<String, Value>, columns: &[String]) -> Self {
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

    /// The instant of an event's `time`, after which the next one may count.
    pub(super) fn next(&mut self, time: &str) -> Option<i64> {
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

    #[test]
    fn generations_are_told_apart() {
        for (header, generation) in [
            (r#"{"qlog_version":"draft-01"}"#, Some(Generation::Draft)),
            (r#"{"qlog_version":"0.3"}"#, Some(Generation::V03)),
            (r#"{"qlog_version":"0.4"}"#, Some(Generation::Current)),
            (
                r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","qlog_version":"0.3"}"#,
                Some(Generation::Current),
            ),
            (r#"{"traces":[]}"#, None),
        ] {
            assert_eq!(
                Generation::of(&serde_json::from_str(header).unwrap()),
                generation
            );
        }
    }
}
