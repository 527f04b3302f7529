//! Where on a path: a direction, a host, a segment.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A direction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Server to client.
    Forward,
    /// Client to server.
    Return,
}

/// One of the four hosts of a path, from the client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostName {
    /// The host that sends requests.
    Client,
    /// The user's end of the satellite link.
    Terminal,
    /// The operator's end of the satellite link.
    Gateway,
    /// The host that has the files.
    Server,
}

/// A segment of a path, from the client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SegmentName {
    /// Client to terminal.
    Access,
    /// Terminal to gateway.
    Satellite,
    /// Gateway to server.
    Ground,
}

impl Direction {
    /// Forward and return.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Return];

    /// The key in scenario files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Return => "return",
        }
    }
}

impl HostName {
    /// All of them, from the client to the server.
    pub const ALL: [Self; 4] = [Self::Client, Self::Terminal, Self::Gateway, Self::Server];

    /// The host's name, also for the programs on it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Terminal => "terminal",
            Self::Gateway => "gateway",
            Self::Server => "server",
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|host| host.name() == text)
            .ok_or_else(|| format!("{text:?} is none of: client, terminal, gateway, server"))
    }
}

impl SegmentName {
    /// All of them, from the client to the server.
    pub const ALL: [Self; 3] = [Self::Access, Self::Satellite, Self::Ground];

    /// The host towards the client, and the one towards the server.
    #[must_use]
    pub const fn ends(self) -> [HostName; 2] {
        match self {
            Self::Access => [HostName::Client, HostName::Terminal],
            Self::Satellite => [HostName::Terminal, HostName::Gateway],
            Self::Ground => [HostName::Gateway, HostName::Server],
        }
    }

    /// The key in scenario files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Satellite => "satellite",
            Self::Ground => "ground",
        }
    }
}
