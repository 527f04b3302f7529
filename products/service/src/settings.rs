//! Settings that programs have in common, and how they are checked.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::str::FromStr;

use bentpipe_units::Span;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use crate::reading::{Override, SettingsFile, Source};

/// A mistake: what is wrong, and what to do about it.
pub type Problem = (String, String);

/// The form of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// The level of what is logged, from the gravest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Something failed.
    Error,
    /// Something may be wrong.
    Warning,
    /// Events of connections.
    #[default]
    Info,
    /// Everything.
    Debug,
}

/// The form and the detail of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LogSettings {
    /// The format of each line.
    pub format: Format,
    /// The least grave that is written.
    pub level: Level,
}

/// The page of metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MetricsSettings {
    /// `GET /metrics` and `/healthz` over HTTP; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
}

/// A machine's name or address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort(String);

impl HostPort {
    /// Asks for its address: the system's resolver, where it is a name.
    pub fn resolve(&self) -> io::Result<SocketAddr> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "it has no address");
        self.0.to_socket_addrs()?.next().ok_or_else(none)
    }
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |host: &str| {
            let known =
                |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '.' || it == '_';
            !host.is_empty() && host.chars().all(known)
        };
        let written = text.rsplit_once(':');
        let named = written.is_some_and(|(host, port)| {
            is_name(host) && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        let numbered = text.parse::<SocketAddr>().is_ok_and(|it| it.port() > 0);
        if named || numbered {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "{text:?} is no HOST:PORT; write one such as \"198.51.100.2:443\", \
             \"[2001:db8::2]:443\" or \"gateway.example:443\""
        ))
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Serialize for HostPort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HostPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The options of a transport, such as `cc` and `iw`, by name.
pub type Options = BTreeMap<String, OptionValue>;

/// The value of an option: a text, a number, or whether it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionValue(
    /// As the transport reads it.
    pub String,
);

impl Serialize for OptionValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for OptionValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Flag(bool),
            ConnectionNumber(i64),
            Text(String),
        }
        let hint = "write a text, a whole number, true or false";
        Ok(Self(
            match Written::deserialize(deserializer).map_err(|_| D::Error::custom(hint))? {
                Written::Flag(true) => "on".into(),
                Written::Flag(false) => "off".into(),
                Written::ConnectionNumber(number) => number.to_string(),
                Written::Text(text) => text,
            },
        ))
    }
}

/// An error that says what is wrong, and what to do about it.
pub fn wrong<T>(what: impl Into<String>, hint: impl Into<String>) -> Result<T, Problem> {
    Err((what.into(), hint.into()))
}

/// Refuses a number outside of its range.
pub fn within(key: &str, value: u64, range: RangeInclusive<u64>) -> Result<(), Problem> {
    if range.contains(&value) {
        return Ok(());
    }
    let hint = format!(
        "write a whole number from {} to {}",
        range.start(),
        range.end()
    );
    wrong(format!("{key} = {value}"), hint)
}

/// Refuses a time that nobody means.
pub fn time(key: &str, span: Span) -> Result<(), Problem> {
    if (Span::from_millis(10)..=Span::from_secs(3600)).contains(&span) {
        return Ok(());
    }
    wrong(
        format!("{key} = \"{span}\""),
        "write a time from \"10 ms\" to \"60 min\"",
    )
}
