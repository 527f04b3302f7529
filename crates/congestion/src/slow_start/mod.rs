//! Slow starts: how a connection finds the capacity of a path that it does not know.

use std::fmt::Debug;

use crate::acks::{Acks, CongestionEvent, LostPacket};
use crate::log::LogEvent;
use crate::pacing::Pacing;
use crate::path::PathState;
use crate::saved::SavedPath;

mod arrived;
mod careful_resume;
mod hybla;
mod hystart;
mod hystart_plus_plus;
mod jump_start;
mod rapid_start;
mod ring;
mod rtt_growth;
mod search;
mod search4;
mod standard;
mod trains;

pub use careful_resume::{CarefulResume, Jump, Resume};
pub use hybla::Hybla;
pub use hystart::HyStart;
pub use hystart_plus_plus::HyStartPlusPlus;
pub use jump_start::JumpStart;
pub use rapid_start::RapidStart;
pub use search::Search;
pub use search4::Search4;
pub use standard::Standard;
pub use trains::Trains;

/// The decision of slow start on an ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The window grows by so many bytes, perhaps none.
    Grow(u64),
    /// The window becomes so many bytes.
    Window(u64),
    /// As [`Response::Retreat`], though nothing was lost yet.
    Retreat(u64),
    /// Slow start ends.
    Leave(Exit),
}

/// The end of slow start. One that has built a queue lets it drain before it leaves, as [`Search4`]
/// does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The congestion window from now on.
    pub window: u64,
    /// The slow start threshold from now on.
    pub ssthresh: u64,
    /// In a word or two, for the log.
    pub reason: &'static str,
}

/// The decision of slow start on a congestion event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// Slow start is over: congestion avoidance reduces the window, by its own rule.
    Reduce,
    /// Slow start is over, and knows better what the window should be.
    Leave(Exit),
    /// A recovery period begins, in which slow start goes on by its own rule, with a window of so
    /// many bytes.
    Window(u64),
    /// It means nothing, and slow start goes on. What is lost is still sent again.
    Ignore,
    /// The window becomes so many bytes, and slow start goes on from there: it had tried something
    /// bold and takes it back.
    Retreat(u64),
}

/// A slow start: how the window grows until the capacity of the path has been found.
///
/// An implementation decides by what it is told and by `path`, whose window is the one that it has
/// asked for. Only the first slow start of a connection is its: after persistent congestion the
/// controller takes [`Standard`], as RFC 9406, section 4.3, and the drafts of SEARCH have it.
pub trait SlowStart: Send + Sync + Debug {
    /// Its word in a variant, `ss=…`.
    fn name(&self) -> &'static str;

    /// Its present phase, for the log.
    fn phase(&self) -> &'static str {
        "slow_start"
    }

    /// The cause of the last change of [`SlowStart::phase`], for the log.
    fn trigger(&self) -> &'static str {
        "ack"
    }

    /// An earlier connection knew the path so ([`Jump::Flight`]). Told before anything is sent;
    /// most slow starts make nothing of it.
    fn on_saved(&mut self, saved: SavedPath) {
        let _ = saved;
    }

    /// Forgets the path that [`SlowStart::on_saved`] told of: it was too old before it was used.
    fn forget_saved(&mut self) {}

    /// A packet of so many bytes has left. `path` counts it already.
    fn on_sent(&mut self, path: &PathState, bytes: u64) {
        let _ = (path, bytes);
    }

    /// The window has been filled by what has just left. The window that is wanted instead, if the
    /// path is known to be larger.
    fn on_full(&mut self, path: &PathState) -> Option<u64> {
        let _ = path;
        None
    }

    /// Packets were acknowledged.
    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step;

    /// A packet was lost. A congestion event follows, when all that were found lost together have
    /// been told.
    fn on_lost(&mut self, path: &PathState, lost: &LostPacket) {
        let _ = (path, lost);
    }

    /// Packets were lost or marked, none of them sent before the last congestion event was noticed.
    fn on_congestion(&mut self, path: &PathState, event: &CongestionEvent) -> Response {
        let _ = (path, event);
        Response::Reduce
    }

    /// How fast the window is sent. The window doubles in a round trip, so twice a window per round
    /// trip is what never waits.
    fn pacing(&self, path: &PathState) -> Pacing {
        if is_first_flight(path) {
            Pacing::Unpaced
        } else {
            Pacing::Gain(200)
        }
    }

    /// How fast avoidance sends after [`Step::Leave`] or [`Response::Leave`], until its first
    /// reduction; `None`: as it likes. A window that is as large as the path needs no more than the
    /// path's rate.
    fn pacing_afterwards(&self) -> Option<Pacing> {
        None
    }

    /// An event for the log; asked after each event, if somebody listens.
    fn take_event(&mut self, path: &PathState) -> Option<LogEvent> {
        let _ = path;
        None
    }

    /// Duplicates its state.
    fn clone_box(&self) -> Box<dyn SlowStart>;
}

impl Clone for Box<dyn SlowStart> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// The first ten packets leave as a burst, as RFC 9002, section 7.7, allows for an initial window.
/// Spread over a long round trip they would be further apart than a receiver delays an ACK (25 ms),
/// and each of them would seem to take that much longer.
pub(crate) fn is_first_flight(path: &PathState) -> bool {
    path.window < 2 * path.initial_window.min(10 * path.datagram)
}
