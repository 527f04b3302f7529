//! Where on a path: a direction, a segment.

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

impl SegmentName {
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
