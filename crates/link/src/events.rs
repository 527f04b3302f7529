//! Events of a path's links in a trial, which explain its transfers: when they send nothing, and
//! how long a terminal waits for capacity that it requests.

use bentpipe_units::Time;

use crate::direction::{Direction, SegmentName};

/// The number of events that are kept, of each kind and direction: the first.
pub const EVENTS_KEPT: usize = 10_000;

/// A time in which a link sends nothing, from one time to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// The link's segment.
    pub segment: SegmentName,
    /// The link's direction.
    pub direction: Direction,
    /// Why.
    pub kind: InterruptionKind,
    /// Its beginning.
    pub from: Time,
    /// Its end: that of the handover's gap, which may have no length, or of the outage.
    pub until: Time,
    /// The satellite that serves the terminal behind a handover; None: it is not known.
    pub satellite: Option<String>,
}

/// The kind of an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptionKind {
    /// A [handover](crate::Handovers).
    Handover,
    /// An [outage](crate::Outages).
    Outage,
}

/// A request for capacity, and the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestWait {
    /// When the trial's terminal sent it.
    pub sent: Time,
    /// When the capacity was there; of a request in vain, when the terminal knew that it was.
    pub answered: Time,
    /// Whether it was granted; else it was lost or denied, or collided.
    pub granted: bool,
}
