//! Congestion avoidance: how a connection that knows the capacity of its path shares it.

use std::fmt::Debug;

use crate::acks::{Acks, CongestionEvent, LostPacket};
use crate::pacing::Pacing;
use crate::path::PathState;

mod bentpipe;
mod cubic;
mod hybla;
mod new_reno;
mod pico;
mod tolerant;

pub use bentpipe::Bentpipe;
pub use cubic::Cubic;
pub use hybla::Hybla;
pub use new_reno::NewReno;
pub use pico::Pico;
pub use tolerant::Tolerant;

/// The window that a congestion event leaves. Windows below the smallest one are raised to it by
/// the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reduction {
    /// The congestion window from now on.
    pub window: u64,
    /// The slow start threshold from now on.
    pub ssthresh: u64,
}

impl Reduction {
    /// Slow start, should there be one, is to end where the window is now.
    #[must_use]
    pub fn to(window: u64) -> Self {
        Self {
            window,
            ssthresh: window,
        }
    }
}

/// A congestion avoidance: how the window follows the path after slow start.
pub trait Avoidance: Send + Sync + Debug {
    /// Its word in a variant, `cc=…`.
    fn name(&self) -> &'static str;

    /// Its present phase, for the log.
    fn phase(&self) -> &'static str {
        "congestion_avoidance"
    }

    /// Slow start has ended by itself, with the window that `path` has. Not called when a
    /// congestion event ended it.
    fn begin(&mut self, path: &PathState);

    /// Packets were acknowledged: what is the window now?
    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> u64;

    /// Packets were acknowledged in slow start. What measures the path from the beginning listens
    /// here.
    fn on_acks_in_slow_start(&mut self, path: &PathState, acks: &Acks<'_>) {
        let _ = (path, acks);
    }

    /// A packet was lost, in slow start too. A congestion event follows.
    fn on_lost(&mut self, path: &PathState, lost: &LostPacket) {
        let _ = (path, lost);
    }

    /// Whether packets that were lost just now are no sign of congestion: then nothing happens,
    /// slow start hears of no congestion event, and there is no recovery period. Not asked about
    /// ECN marks and persistent congestion.
    fn forgives(&mut self, path: &PathState, event: &CongestionEvent) -> bool {
        let _ = (path, event);
        false
    }

    /// Packets were lost or marked, none of them sent before the last congestion event was noticed.
    fn on_congestion(&mut self, path: &PathState, event: &CongestionEvent) -> Reduction;

    /// Whether a reduction is taken back when all losses that caused it turn out to be spurious.
    fn undoes_spurious(&self) -> bool {
        false
    }

    /// How fast the window is sent.
    fn pacing(&self, path: &PathState) -> Pacing {
        let _ = path;
        Pacing::Gain(125)
    }

    /// The ack-eliciting packets that the peer best receives before it sends an ACK
    /// (draft-ietf-quic-ack-frequency); `None`: it does not matter.
    fn packets_per_ack(&self, path: &PathState) -> Option<u64> {
        let _ = path;
        None
    }

    /// Whether its pacing holds as soon as slow start has ended, whatever slow start would have.
    fn paces_from_the_start(&self) -> bool {
        false
    }

    /// Duplicates its state.
    fn clone_box(&self) -> Box<dyn Avoidance>;
}
