//! Single values of a configuration.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use bentpipe_units::Span;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The order of the handshakes: when that with the next hop takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Beside the client's.
    #[default]
    Parallel,
    /// Before the client's is completed, with what that chose.
    Sequential,
    /// Already done: connections are kept ready.
    Warm,
}

/// Below which round-trip time of the next hop flows are forwarded untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Auto {
    #[default]
    Off,
    Below(Span),
}

impl Auto {
    /// What `true` means.
    pub const USUAL: Span = Span::from_millis(200);
}

impl Serialize for Auto {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::Below(span) => span.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Auto {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Flag(bool),
            Text(String),
        }
        let hint = "write true, false or a round-trip time such as \"200 ms\"";
        match Written::deserialize(deserializer).map_err(|_| D::Error::custom(hint))? {
            Written::Flag(false) => Ok(Self::Off),
            Written::Flag(true) => Ok(Self::Below(Self::USUAL)),
            Written::Text(text) => text
                .parse()
                .map(Self::Below)
                .map_err(|error| D::Error::custom(format!("{error}; {hint}"))),
        }
    }
}

/// The hop that is judged for that: the one that the satellite may be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutoHop {
    /// Towards the next hop: the proxy stands at the terminal.
    #[default]
    ServerSide,
    /// Towards the client, or the proxy before: it stands at the gateway.
    ClientSide,
}

/// The value of an option: a text, a number, or whether it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionValue(pub String);

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

/// A machine's name or address, and a UDP port.
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
            "{text:?} is no HOST:PORT; write one such as \"198.51.100.2:443\", \"[2001:db8::2]:443\" or \"gateway.example:443\""
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

/// The form of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    #[default]
    Text,
    Json,
}

/// The level of what is logged, from the gravest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    Error,
    Warning,
    #[default]
    Info,
    Debug,
}
