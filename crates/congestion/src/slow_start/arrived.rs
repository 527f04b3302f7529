//! How fast a jump arrives, by its ACKs.

use bentpipe_units::Time;

use crate::acks::{Acks, MAX_ACK_DELAY, per_second};
use crate::path::PathState;

/// A packet, when it is acknowledged.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    sent: Time,
    acked: Time,
    /// Bytes delivered so far.
    delivered: u64,
}

/// The bytes acknowledged since a first packet was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived {
    first: Arrival,
    latest: Arrival,
    /// When the last ACK came, whether it counts or not.
    heard: Time,
    /// It had one packet, and may have waited for the receiver's timer.
    alone: bool,
}

impl Arrived {
    /// This ACK has the first packet.
    pub(super) fn first(path: &PathState, acks: &Acks<'_>) -> Self {
        let arrival = Arrival {
            sent: acks.newest().sent,
            acked: acks.now,
            delivered: path.delivered,
        };
        Self {
            first: arrival,
            latest: arrival,
            heard: acks.now,
            alone: false,
        }
    }

    /// And then this ACK came.
    pub(super) fn and(self, path: &PathState, acks: &Acks<'_>) -> Self {
        let new = Self::first(path, acks);
        if self.first.acked == acks.now {
            // What comes at the same instant as the first says nothing of a rate.
            return new;
        }
        let alone = acks.packets.len() == 1 && acks.now - self.heard >= MAX_ACK_DELAY;
        // One alone may be late, and counts once another follows; where all come alone they are all
        // as late.
        let late = alone && !self.alone;
        Self {
            first: self.first,
            latest: if late { self.latest } else { new.latest },
            heard: acks.now,
            alone,
        }
    }

    /// How many bytes were delivered after the first packet.
    pub(super) fn bytes(&self) -> u64 {
        self.latest.delivered - self.first.delivered
    }

    /// Bytes per second. ACKs that come compressed do not pretend a rate at which nothing was sent.
    pub(super) fn per_second(&self) -> u64 {
        let acked = self.latest.acked - self.first.acked;
        let sent = self.latest.sent - self.first.sent;
        per_second(self.bytes(), acked.max(sent))
    }
}
