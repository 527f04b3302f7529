//! Rapid Start: three times the window in each round trip, as long as no queue is seen, and a
//! smooth way back.
//!
//! Source: draft-kazuho-ccwg-rapid-start-02 (March 2026), sections 3.1 to 3.3. Departures:
//!
//! - The draft allows an initial window of twice the usual one; here it is twice the one that is
//!   set.
//! - Only the first flight is paced over a full round trip. At one window per RTT, a window that
//!   grows as it is sent could not triple.
//! - No queue is looked for in the ACKs of the first flight: its packets come so far apart that
//!   each of them waits for the receiver's timer, and the ACK delay is not known here, so each of
//!   them would look like a queue.
//! - beta is 0.7, that of CUBIC, also before another avoidance. The option to stop at the initial
//!   window is not used.

use bentpipe_units::Span;

use crate::acks::{Acks, CongestionEvent, LostPacket};
use crate::pacing::Pacing;
use crate::path::PathState;
use crate::slow_start::{Exit, Response, SlowStart, Step};

/// Percent: beta; `silence_factor` and `loss_factor`, which are equal; `ack_factor`.
const BETA: u64 = 70;
const SILENCE_FACTOR: u64 = 90;
const LOSS_FACTOR: u64 = 90;
const ACK_FACTOR: u64 = 20;

/// Rapid Start; the head of this file describes it.
#[derive(Debug, Clone, Default)]
pub struct RapidStart {
    /// The bytes of the first flight, which is paced over a round trip.
    first_flight: Option<u64>,
    /// The smallest RTT of this round trip, and of the one before.
    floor: Option<Span>,
    floor_before: Option<Span>,
    recovery: Option<Recovery>,
}

/// The first recovery period.
#[derive(Debug, Clone, Copy)]
struct Recovery {
    /// It ends with the ACK of what is sent after so many bytes.
    until: u64,
    window: u64,
    least: u64,
}

impl Recovery {
    fn shrink(&mut self, bytes: u64) {
        self.window = self.window.saturating_sub(bytes).max(self.least);
    }
}

impl RapidStart {
    fn follow_floor(&mut self, acks: &Acks<'_>) {
        if acks.new_round {
            self.floor_before = self.floor.take();
        }
        self.floor = self.floor.into_iter().chain(acks.rtt).min();
    }

    /// > queue_buildup_thresh be min(min_rtt + 4 ms, min_rtt * 1.10)
    fn queue_builds_up(&self, path: &PathState) -> bool {
        let min = path.rtt.min;
        let tenth = Span::from_nanos(min.as_nanos() / 10);
        let threshold = min + tenth.min(Span::from_millis(4));
        let floor = self.floor.into_iter().chain(self.floor_before).min();
        floor.is_some_and(|floor| floor > threshold)
    }

    /// The ACK is of the first flight.
    fn in_first_flight(&self, acks: &Acks<'_>) -> bool {
        let newest = acks.newest().sent_before;
        self.first_flight.is_none_or(|end| newest < end)
    }

    fn recover(mut recovery: Recovery, acks: &Acks<'_>) -> (Recovery, Step) {
        // > cwnd -= ack_factor * bytes_newly_acked
        recovery.shrink(acks.bytes * ACK_FACTOR / 100);
        if acks.newest().sent_before < recovery.until {
            return (recovery, Step::Window(recovery.window));
        }
        // > Upon exiting the first recovery period, Rapid Start ends; thereafter, the congestion
        // > window is governed by the underlying congestion controller's ordinary rules.
        let exit = Exit {
            window: recovery.window,
            ssthresh: recovery.window,
            reason: "recovered",
        };
        (recovery, Step::Leave(exit))
    }
}

impl SlowStart for RapidStart {
    fn name(&self) -> &'static str {
        "rapid-start"
    }

    fn phase(&self) -> &'static str {
        match self.recovery {
            None => "rapid_start",
            Some(_) => "rapid_start_recovery",
        }
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        if let Some(recovery) = self.recovery {
            let (recovery, step) = Self::recover(recovery, acks);
            self.recovery = Some(recovery);
            return step;
        }
        let Some(_) = self.first_flight else {
            // The handshake has shown the RTT. The first flight is what is sent now, until its ACKs
            // come.
            self.first_flight = Some(path.sent + 2 * path.initial_window);
            return Step::Window(2 * path.initial_window);
        };
        // > If rtt_floor is no greater than queue_buildup_thresh, the sender increases the
        // > congestion window (cwnd) by 2 bytes for every byte that is newly acknowledged, which
        // > results in a 3× growth of cwnd per round-trip.
        if self.in_first_flight(acks) {
            return Step::Grow(2 * acks.credit);
        }
        self.follow_floor(acks);
        if self.queue_builds_up(path) {
            // > If rtt_floor is greater than queue_buildup_thresh, the sender SHOULD increase the
            // > congestion window as in classic slow start; i.e., by 1 byte for every byte that is
            // > newly acknowledged …
            Step::Grow(acks.credit)
        } else {
            Step::Grow(2 * acks.credit)
        }
    }

    fn on_lost(&mut self, _path: &PathState, lost: &LostPacket) {
        if let Some(recovery) = &mut self.recovery {
            recovery.shrink(lost.bytes * LOSS_FACTOR / 100);
        }
    }

    fn on_congestion(&mut self, path: &PathState, event: &CongestionEvent) -> Response {
        let mut recovery = Recovery {
            until: path.sent,
            // > cwnd *= silence_factor
            window: path.window * SILENCE_FACTOR / 100,
            // > To avoid overly sharp reduction caused by losses other than those due to bottleneck
            // > queue overflow, the sender SHOULD NOT reduce the congestion window below
            // > pre_recovery_cwnd * beta / 3
            least: path.window * BETA / 300,
        };
        // > cwnd -= loss_factor * bytes_newly_lost
        recovery.shrink(event.lost * LOSS_FACTOR / 100);
        self.recovery = Some(recovery);
        Response::Window(recovery.window)
    }

    fn pacing(&self, path: &PathState) -> Pacing {
        // > the sender SHOULD pace the packets over a full RTT, using the current RTT estimate,
        // > when it first sends more data than classic slow start with pacing would permit.
        let first = self.first_flight.is_some_and(|end| path.sent < end);
        if first || self.recovery.is_some() {
            Pacing::Gain(100)
        } else {
            Pacing::Gain(200)
        }
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
