//! The first flight: what is sent between the trains until these have measured the path, at a rate
//! that is the same for all, or what an earlier connection saw.

use bentpipe_units::Span;

use super::LENGTH;
use crate::acks::{MAX_ACK_DELAY, per_second};
use crate::pacing::Pacing;
use crate::path::PathState;
use crate::saved::SavedPath;
use crate::slow_start::careful_resume::MAX_JUMP;

/// Bytes per second at which it begins, 10 Mbit/s: a small file need not be faster, and a path of
/// that rate bears it.
const FIRST_RATE: u64 = 1_250_000;
/// The bytes that are sent at that rate. From 70,000 to 140,000 only paths that two senders share
/// change by 5 % in the sweep.
const FIRST: u64 = 100_000;
/// Bytes per second afterwards: 19 Mbit/s. Over 20 Mbit/s and a queue of 25 packets 1 MB takes 11 %
/// longer with 13 Mbit/s, and 64 % longer with 27.
pub const RATE: u64 = 2_375_000;
/// Percent of the rate that an earlier connection saw at which it is sent instead. With 95 and a
/// queue of 25 packets 10 MiB take 1.4 % longer over 20 Mbit/s, and with 100 a megabyte takes 10 %
/// longer over 10 Mbit/s.
const OF_SAVED: u64 = 97;

/// Percent of the estimated rate that avoidance begins with. With 105 a path of 50 Mbit/s and a
/// queue of 25 packets takes 33 % longer; with 95 the first of two senders takes 74 % longer, and
/// the second one 18 % less.
pub const HANDED_OVER: u64 = 100;
/// Packets that wait at the receiver for an ACK, at most: as many as the sender asks for.
pub const WAITS: u64 = 10;
/// Behind a train nothing is sent for that long: longer than the pause that ends a train. With
/// 11 ms, which is shorter, a path takes up to 37 % longer.
const PAUSE: Span = Span::from_millis(16);

/// The data between the trains.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flight {
    /// The packet that left last belonged to no train.
    pub between: bool,
    /// Bytes of it that have left, trains included.
    pub sent: u64,
    /// The path as an earlier connection knew it.
    pub saved: Option<SavedPath>,
}

impl Flight {
    /// Room for what leaves until the first ACK comes.
    pub fn window(self, path: &PathState) -> u64 {
        let rate = self.known_rate(path).unwrap_or(RATE);
        PathState::bytes_in(rate, path.rtt.min + MAX_ACK_DELAY)
    }

    /// Bytes per second that the path is known to bear.
    pub fn known_rate(self, path: &PathState) -> Option<u64> {
        let of_use =
            |saved: &SavedPath| saved.is_worthwhile(path.initial_window) && saved.fits(&path.rtt);
        let saved = self.saved.filter(of_use)?;
        // No more than the saved window leaves in a round trip, be that longer than it was.
        let window = saved.window.min(MAX_JUMP) * OF_SAVED / 100;
        Some(per_second(window, saved.rtt.max(path.rtt.min)))
    }

    /// Behind a train it waits until the train has left the bottleneck, were it as fast as that,
    /// and long enough to end it.
    pub fn pacing(self, path: &PathState) -> Pacing {
        let rate = match self.known_rate(path) {
            Some(rate) => rate,
            None if self.sent < FIRST => FIRST_RATE,
            None => RATE,
        };
        if self.between {
            return Pacing::Rate(rate);
        }
        let ends = per_second(path.datagram, PAUSE);
        Pacing::Rate(ends.min(rate / LENGTH))
    }
}
