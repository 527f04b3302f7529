//! Single values of a configuration.

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
    /// The threshold that `true` stands for.
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

/// The hop that the satellite may be on: it is judged for that, and has `cc=bentpipe` by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutoHop {
    /// Towards the next hop: the proxy stands at the terminal.
    #[default]
    ServerSide,
    /// Towards the client, or the proxy before: it stands at the gateway.
    ClientSide,
}
