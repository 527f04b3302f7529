//! Events of a path's links in a trial: `link-events.json` of its folder. `link-events.json` of its
//! folder. A capture does not show it.

use serde::{Deserialize, Serialize};

use bentpipe_wire::quic::End;

use crate::connection::{Connection, Nanos};

/// The events of the links in a trial. All times are in nanoseconds since its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkEvents {
    /// The number of the format.
    pub format: u64,
    /// Time zero of the trial, in nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// When links sent nothing: handovers and outages.
    pub interruptions: Vec<Interruption>,
    /// The requests for capacity of the trial's terminal that were answered. None: there were some,
    /// or may have been, and nobody saw them.
    pub requests: Option<Vec<CapacityRequest>>,
    /// Whether there were more, of which only the first are kept.
    pub cut: bool,
}

impl LinkEvents {
    /// The format that this version writes and reads.
    pub const FORMAT: u64 = 1;

    /// A time of these events, as connections count.
    pub(crate) fn time_in(&self, connection: &Connection, ns: u64) -> Nanos {
        let unix = i128::from(self.start_unix_ns) + i128::from(ns);
        let time = unix - i128::from(connection.start);
        time.clamp(Nanos::MIN.into(), Nanos::MAX.into())
            .try_into()
            .expect("clamped")
    }
}

/// A time in which a link sent nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interruption {
    /// Why.
    pub kind: InterruptionKind,
    /// The direction of the link.
    pub direction: LinkDirection,
    /// When it began.
    pub from_ns: u64,
    /// When it ended; a handover may take no time.
    pub until_ns: u64,
}

/// The kind of an interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptionKind {
    /// The path changed to another satellite.
    Handover,
    /// The link was out.
    Outage,
}

impl InterruptionKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Handover => "handover",
            Self::Outage => "outage",
        }
    }
}

/// A request for capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityRequest {
    /// The direction of the capacity.
    pub direction: LinkDirection,
    /// When it was sent.
    pub sent_ns: u64,
    /// When the capacity was there; of a request in vain, when the terminal knew that it was.
    pub answered_ns: u64,
    /// Whether it was granted; else it was lost or denied, or collided.
    pub granted: bool,
}

/// A direction of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkDirection {
    /// Server to client.
    Forward,
    /// Client to server.
    Return,
}

impl LinkDirection {
    /// The end that sends in this direction.
    pub(crate) fn sender(self) -> End {
        match self {
            Self::Forward => End::Server,
            Self::Return => End::Client,
        }
    }
}
