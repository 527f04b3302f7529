//! Jump Start: the first flight is as large as what the receiver takes, paced over the round trip
//! of the handshake.
//!
//! Source: the WPI report on SEARCH in QUIC (2024, section 3.3), which describes D. Liu, M. Allman,
//! S. Jin, L. Wang, Congestion Control Without a Startup Phase (`PFLDnet` 2007). What follows the
//! jump is as later QUIC implementations have it: with the first ACK of the jump the window becomes
//! what is in flight, and standard slow start goes on from there; after a loss it becomes what the
//! jump delivered, as soon as the jump's last packet is accounted for. Departures: a plug-in knows
//! neither the data to be sent nor the receiver's window, so the jump is of the window that noq
//! grants a stream by itself, or of the largest congestion window that is set, if that is less.

use crate::acks::{Acks, CongestionEvent};
use crate::pacing::Pacing;
use crate::path::PathState;
use crate::slow_start::{Exit, Response, SlowStart, Standard, Step};

/// Bytes of the jump: a receiver of noq's by its defaults takes so many, 100 ms of 100 Mbit/s.
const JUMP: u64 = 1_250_000;
/// Percent of what was delivered that are left after a loss.
const AFTER_LOSS: u64 = 70;

/// Jump Start; the head of this file describes it.
#[derive(Debug, Clone, Default)]
pub struct JumpStart {
    state: State,
    after: Standard,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    /// The RTT is not known yet.
    #[default]
    Handshake,
    /// The bytes sent before the jump.
    Jumping { from: u64 },
    /// Its ACKs have begun to come; it ended at so many bytes.
    Landed {
        until: u64,
        delivered: u64,
        lost: bool,
    },
    /// All of it is accounted for.
    Over,
}

impl JumpStart {
    fn land(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        self.state = State::Landed {
            until: path.sent,
            delivered: path.delivered - acks.bytes,
            lost: false,
        };
        // What was not used is not kept.
        Step::Window((path.in_flight + acks.bytes).max(path.initial_window))
    }

    /// After a loss no more is sent than what has come through.
    fn come_through(path: &PathState, delivered: u64) -> u64 {
        (path.delivered - delivered).max(path.initial_window)
    }
}

impl SlowStart for JumpStart {
    fn name(&self) -> &'static str {
        "jump-start"
    }

    fn phase(&self) -> &'static str {
        match self.state {
            State::Handshake | State::Jumping { .. } => "jump_start",
            State::Landed { .. } => "jump_start_landed",
            State::Over => "slow_start",
        }
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        let newest = acks.newest().sent_before;
        match self.state {
            State::Handshake => {
                self.state = State::Jumping { from: path.sent };
                Step::Window(JUMP)
            }
            State::Jumping { from } if newest < from => Step::Grow(0),
            State::Jumping { .. } => self.land(path, acks),
            State::Landed {
                until,
                delivered,
                lost,
            } if newest < until => {
                if lost {
                    Step::Window(Self::come_through(path, delivered))
                } else {
                    Step::Grow(0)
                }
            }
            State::Landed {
                delivered,
                lost: true,
                ..
            } => {
                let window = (path.delivered - delivered) * AFTER_LOSS / 100;
                Step::Leave(Exit {
                    window,
                    ssthresh: window,
                    reason: "jump_lost",
                })
            }
            State::Landed { .. } => {
                self.state = State::Over;
                self.after.on_acks(path, acks)
            }
            State::Over => self.after.on_acks(path, acks),
        }
    }

    fn on_congestion(&mut self, path: &PathState, _event: &CongestionEvent) -> Response {
        match &mut self.state {
            // Not of the jump.
            State::Handshake | State::Jumping { .. } => Response::Ignore,
            State::Landed {
                delivered, lost, ..
            } => {
                *lost = true;
                Response::Window(Self::come_through(path, *delivered))
            }
            State::Over => Response::Reduce,
        }
    }

    fn pacing(&self, path: &PathState) -> Pacing {
        match self.state {
            State::Handshake => Pacing::Unpaced,
            State::Jumping { .. } | State::Landed { .. } => Pacing::Gain(100),
            State::Over => self.after.pacing(path),
        }
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
