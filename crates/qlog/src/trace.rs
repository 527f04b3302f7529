//! The header of a trace: who logged it, and what its times count from.

use serde_json::{Map, Value};

use crate::clock::{Clock, TimeFormat};

/// The generation of the schema that a file says it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// `qlog_version` before 0.3: draft-00, draft-01, draft-02 of the individual drafts.
    Draft,
    /// `qlog_version` 0.3: the working group's drafts up to main-schema-08.
    V03,
    /// `file_schema`: main-schema-09 and later.
    Current,
}

/// The vantage point of a trace: where it was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VantagePoint {
    /// The endpoint that opened the connection.
    Client,
    /// The endpoint that accepted it.
    Server,
    /// Between the two.
    Network,
    /// Not said.
    Unknown,
}

/// The log of one vantage point.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// As the file gives it.
    pub title: Option<String>,
    /// The vantage point's name, often that of the stack.
    pub name: Option<String>,
    /// Where it was logged, as the file says. [`crate::CongestionLog`] finds it out if the file
    /// does not.
    pub vantage: VantagePoint,
    /// The clock of its events.
    pub clock: Clock,
    pub(crate) times: TimeFormat,
    /// The columns of events that are arrays (draft-01).
    pub(crate) columns: Vec<String>,
}

impl VantagePoint {
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
    /// As an event looks, of a file that does not say its version.
    pub(crate) fn looks_like(name: &str, has_columns: bool, has_category: bool) -> Self {
        let (category, _) = name.split_once(':').unwrap_or_default();
        match category {
            _ if has_columns || has_category => Self::Draft,
            "transport" | "connectivity" | "security" | "recovery" | "http" | "generic" => {
                Self::V03
            }
            _ => Self::Current,
        }
    }

    /// By the members of the file's outermost object. Those that have names of both are said to be
    /// current.
    pub(crate) fn of(header: &Map<String, Value>) -> Option<Self> {
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
    /// From the members of a trace, `events` left out, and of its file, whose title it has if it
    /// has none of its own.
    pub(crate) fn of(members: &Map<String, Value>, file: &Map<String, Value>) -> Self {
        let text = |value: &Value, key| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let mut levels = [members, file].into_iter();
        let vantage_point = levels.find_map(|level| level.get("vantage_point"));
        let vantage_point = vantage_point.unwrap_or(&Value::Null);
        let columns = match members.get("event_fields").or(file.get("event_fields")) {
            Some(Value::Array(names)) => names.iter().map(column).collect(),
            _ => Vec::new(),
        };
        let times = TimeFormat::of(members, file);
        let title = [members, file]
            .into_iter()
            .find_map(|level| level.get("title")?.as_str());
        // Of a trace that could not be put into the file.
        let error = members.get("error_description").and_then(Value::as_str);
        Self {
            title: error.or(title).map(str::to_owned),
            name: text(vantage_point, "name"),
            vantage: text(vantage_point, "type")
                .map_or(VantagePoint::Unknown, |name| VantagePoint::of(&name)),
            clock: times.clock(),
            times,
            columns,
        }
    }

    /// Looks at the first event's time, which tells Unix times from others if the header does not.
    pub(crate) fn learn_clock(&mut self, first: i64) {
        if Clock::of(first) == Clock::Unix {
            self.clock = Clock::Unix;
        }
    }

    /// Its name in messages and tools: its title, its vantage point's name, or nothing.
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

/// A column of draft-00 and -01 under the name that its content has as a member since draft-02.
fn column(name: &Value) -> String {
    let name = name.as_str().unwrap_or("").to_ascii_lowercase();
    match name.as_str() {
        "relative_time" | "delta_time" => "time".to_owned(),
        "event" | "event_type" => "type".to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
