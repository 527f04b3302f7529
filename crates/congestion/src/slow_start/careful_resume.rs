//! Careful Resume: a connection that starts from what an earlier one knew of the path.
//!
//! Source: RFC 9959 (formerly draft-ietf-tsvwg-careful-resume), sections 3.2 to 3.6. It wraps
//! another slow start, which does all that the method leaves to normal congestion control.
//! Departures, of [`Jump::Half`]:
//!
//! - Safe Retreat is entered by the first congestion that is noticed after the jump, whichever
//!   packets it hit.
//! - Safe Retreat lasts until all is accounted for that had been sent when the loss was noticed,
//!   while the jump was being validated too; so much is in `PipeSize`.
//! - A loss that the ACK of the last packet of the jump brings to light comes too late for it: the
//!   jump counts as validated, and congestion avoidance or the wrapped slow start reduces the
//!   window.
//! - Should the wrapped slow start want to end while the jump is being validated, it does so when
//!   that is done.
//!
//! [`Jump::Whole`] and [`Jump::Early`] are not what the RFC allows, and are there to show what it
//! costs: see there. [`Jump::Flight`] is none of this file's: the slow start is told the path.

use bentpipe_units::{Span, Time};

use crate::acks::{Acks, CongestionEvent, LostPacket, per_second};
use crate::log::LogEvent;
use crate::pacing::Pacing;
use crate::path::PathState;
use crate::saved::SavedPath;
use crate::slow_start::arrived::Arrived;
use crate::slow_start::{Exit, Response, SlowStart, Step};

/// `max_jump` in bytes: 600 ms at 895 Mbit/s. A saved window beyond any sense does no more harm
/// than that.
pub(super) const MAX_JUMP: u64 = 64 << 20;

/// Packets of the jump that must have been acknowledged after its first to tell the path's rate by
/// them.
const LEAST_MEASURED: u64 = 10;

/// The jump to a saved window: how far, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// As in RFC 9959: to half of what was saved, once an initial window has been acknowledged.
    Half,
    /// To all that was saved, as soon as there is one sample of the round-trip time, that of the
    /// handshake. Once it has been validated slow start is over: the path carries no more. If it
    /// was too large, the rate at which it arrived says what the path carries, even if that is more
    /// than `PipeSize` / 2.
    Whole,
    /// As `Whole`, and without any sample, at the pace of the saved round-trip time: the
    /// "0-RTT-BDP" of earlier drafts.
    Early,
    /// None: the first flight of [`Trains`](super::Trains) leaves at the rate that was saved, which
    /// the packet trains in it then measure. Not what the RFC allows either.
    Flight,
}

/// The order to resume a path: what is known of it, and what is to be made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resume {
    /// The path as an earlier connection knew it.
    pub saved: SavedPath,
    /// How far to jump.
    pub jump: Jump,
}

impl Resume {
    /// Zero: it is not worth to jump.
    fn window(&self, path: &PathState) -> u64 {
        if !self.saved.is_worthwhile(path.initial_window) {
            return 0;
        }
        // > jump_cwnd MUST be no more than half of the saved_cwnd. (section 3.3)
        let share = match self.jump {
            Jump::Half => 2,
            Jump::Whole | Jump::Early | Jump::Flight => 1,
        };
        (self.saved.window / share).min(MAX_JUMP)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Is it the path that we know?
    Reconnaissance,
    /// The window has been jumped to at that time.
    Unvalidated { since: Time },
    /// These packets have been sent; `last` is how many bytes had been sent then.
    Validating { last: u64 },
    /// The path does not carry them. So many bytes had been sent when that was noticed.
    Retreat { last: u64 },
    /// Slow start, up to this window.
    Retreated { ssthresh: u64 },
    /// The wrapped slow start.
    Normal,
}

/// Careful Resume (RFC 9959): jumps, checks whether the path bears it, and retreats if not.
#[derive(Debug, Clone)]
pub struct CarefulResume {
    inner: Box<dyn SlowStart>,
    resume: Resume,
    phase: Phase,
    /// `PipeSize`: bytes that the path is known to have carried.
    pipe: u64,
    /// How many bytes had been sent when the jump was made.
    first: u64,
    /// Of the jump, as far as it is acknowledged.
    arrived: Option<Arrived>,
    /// How the wrapped slow start has ended meanwhile.
    ended: Option<Exit>,
    trigger: &'static str,
}

impl CarefulResume {
    /// Jumps by `resume`, and is otherwise as `inner`.
    #[must_use]
    pub fn new(inner: Box<dyn SlowStart>, resume: Resume) -> Self {
        Self {
            inner,
            resume,
            phase: Phase::Reconnaissance,
            pipe: 0,
            first: 0,
            arrived: None,
            ended: None,
            trigger: "",
        }
    }

    fn enter(&mut self, phase: Phase, trigger: &'static str) {
        (self.phase, self.trigger) = (phase, trigger);
    }

    /// Whether the round-trip times are those of the saved path. `None`: there is none yet.
    fn confirmed(&self, path: &PathState) -> Option<bool> {
        (path.rtt.samples > 0).then(|| self.resume.saved.fits(&path.rtt))
    }

    /// Whether as much has been acknowledged as is to be seen before the jump.
    ///
    /// > When the sender has received an ACK that acknowledges all the initial data (usually the
    /// > IW) without reported congestion, it MAY then enter the Unvalidated Phase (section 3.2)
    fn is_ready(&self, path: &PathState) -> bool {
        match self.resume.jump {
            Jump::Half => path.delivered >= path.initial_window,
            Jump::Whole | Jump::Flight => path.rtt.samples > 0,
            Jump::Early => true,
        }
    }

    /// Whether the jump comes when the window is full.
    fn is_next(&self, path: &PathState) -> bool {
        let larger = self.resume.window(path) > path.window;
        larger && self.is_ready(path) && self.confirmed(path) != Some(false)
    }

    /// The jump has been sent, or the first of it has been acknowledged, or a round trip has
    /// passed.
    fn validate(&mut self, path: &PathState, trigger: &'static str) -> u64 {
        let flight = path.in_flight;
        if flight <= self.pipe || flight < path.initial_window {
            // Section 3.3: there is nothing to validate, and the part of the jump that was not used
            // is given back.
            self.enter(Phase::Normal, "rate_limited");
            return self.pipe.max(path.initial_window);
        }
        self.enter(Phase::Validating { last: path.sent }, trigger);
        // Section 3.4: the window becomes the flight size.
        flight
    }

    fn on_acks_unvalidated(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        let Phase::Unvalidated { since } = self.phase else {
            return Step::Grow(0);
        };
        if self.confirmed(path) == Some(false) {
            // Only after an early jump: it was the wrong path.
            return Step::Retreat(self.retreat(path, "rtt_not_validated"));
        }
        if self.arrived.is_some() {
            let trigger = "first_unvalidated_packet_acknowledged";
            return Step::Window(self.validate(path, trigger));
        }
        let rtt = path.rtt.smoothed.max(self.resume.saved.rtt);
        if acks.now - since > rtt {
            return Step::Window(self.validate(path, "rtt_exceeded"));
        }
        Step::Grow(0)
    }

    fn on_acks_validating(&mut self, path: &PathState, acks: &Acks<'_>, last: u64) -> Step {
        let done = is_last(acks, last);
        if self.resume.jump != Jump::Half {
            if !done {
                return Step::Grow(0);
            }
            return leave(path.window, path.window, "resumed");
        }
        let mut step = Step::Grow(0);
        if self.ended.is_none() {
            step = self.inner.on_acks(path, acks);
        }
        if let Step::Leave(exit) = step {
            (self.ended, step) = (Some(exit), Step::Grow(0));
        }
        if done {
            self.enter(Phase::Normal, "last_unvalidated_packet_acknowledged");
            if let Some(exit) = self.ended {
                return Step::Leave(exit);
            }
        }
        step
    }

    /// Takes note of what is acknowledged of the packets sent from the jump on; after a retreat,
    /// only of those sent before it.
    fn measure(&mut self, path: &PathState, acks: &Acks<'_>) {
        let newest = acks.newest();
        let end = match self.phase {
            Phase::Retreat { last } => last,
            _ => u64::MAX,
        };
        if self.first == 0 || !(self.first..end).contains(&newest.sent_before) {
            return;
        }
        self.arrived = Some(match self.arrived {
            Some(arrived) => arrived.and(path, acks),
            None => Arrived::first(path, acks),
        });
    }

    /// The bytes that the path carries in a round trip, by the rate at which the jump has arrived
    /// so far; 85 % of it, which drains the queue, and no more than was sent of the jump up to
    /// `end`. `None`: too little has arrived to tell, or RFC 9959 is to be kept, which does not
    /// look at rates.
    fn measured(&self, path: &PathState, end: u64) -> Option<u64> {
        let arrived = self.arrived?;
        if self.resume.jump == Jump::Half || arrived.bytes() < LEAST_MEASURED * path.datagram {
            return None;
        }
        let carried = PathState::bytes_in(arrived.per_second(), path.rtt.min);
        Some((carried / 100 * 85).min(end - self.first))
    }

    /// The window after a jump that was too large.
    ///
    /// > The CWND MUST be reduced to no more than (PipeSize/2) (section 3.5)
    fn retreat(&mut self, path: &PathState, trigger: &'static str) -> u64 {
        let last = path.sent;
        self.enter(Phase::Retreat { last }, trigger);
        let window = self.measured(path, last).unwrap_or(self.pipe / 2);
        window.min(path.window)
    }

    fn on_acks_retreating(&mut self, path: &PathState, acks: &Acks<'_>, last: u64) -> Step {
        // The window does not grow in this phase (section 3.5).
        if !is_last(acks, last) {
            return Step::Grow(0);
        }
        // > ssthresh MUST be set to no larger than the most recently measured PipeSize * Beta
        // > (section 3.5) Beta is a half here.
        let ssthresh = self.measured(path, last).unwrap_or(self.pipe / 2);
        self.enter(Phase::Retreated { ssthresh }, "exit_recovery");
        // All of the jump tells the rate better than what had arrived of it when the first loss was
        // noticed.
        Step::Window(path.window.min(ssthresh))
    }
}

fn leave(window: u64, ssthresh: u64, reason: &'static str) -> Step {
    Step::Leave(Exit {
        window,
        ssthresh,
        reason,
    })
}

/// The last packet before `last`, or a later one, is among those acknowledged.
fn is_last(acks: &Acks<'_>, last: u64) -> bool {
    let newest = acks.newest();
    newest.sent_before + newest.bytes >= last
}

impl SlowStart for CarefulResume {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn forget_saved(&mut self) {
        if self.phase == Phase::Reconnaissance {
            self.enter(Phase::Normal, "expired");
        }
    }

    /// In the words of draft-ietf-tsvwg-careful-resume-qlog.
    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Reconnaissance => "reconnaissance",
            Phase::Unvalidated { .. } => "unvalidated",
            Phase::Validating { .. } => "validating",
            Phase::Retreat { .. } => "safe_retreat",
            Phase::Retreated { .. } => "slow_start",
            Phase::Normal => self.inner.phase(),
        }
    }

    fn trigger(&self) -> &'static str {
        match self.phase {
            Phase::Normal if self.trigger.is_empty() => self.inner.trigger(),
            _ if self.trigger.is_empty() => "ack",
            _ => self.trigger,
        }
    }

    fn on_sent(&mut self, path: &PathState, bytes: u64) {
        self.inner.on_sent(path, bytes);
    }

    /// > this transition MAY be deferred to the time at which more data is sent than would have
    /// > been normally permitted by the CC algorithm (section 3.2)
    fn on_full(&mut self, path: &PathState) -> Option<u64> {
        match self.phase {
            Phase::Reconnaissance => {
                let jump = self.resume.window(path);
                let confirmed = self.confirmed(path);
                if confirmed == Some(false) || jump <= path.window {
                    let trigger = match confirmed {
                        Some(false) => "rtt_not_validated",
                        _ if jump == 0 => "saved_window_is_small",
                        _ => "window_is_larger",
                    };
                    self.enter(Phase::Normal, trigger);
                    return None;
                }
                if !self.is_ready(path) {
                    return None;
                }
                self.pipe = path.in_flight;
                self.first = path.sent;
                let since = path.now;
                self.enter(Phase::Unvalidated { since }, "cwnd_limited");
                Some(jump)
            }
            Phase::Unvalidated { .. } => Some(self.validate(path, "last_unvalidated_packet_sent")),
            _ => self.inner.on_full(path),
        }
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        self.pipe += acks.bytes;
        self.measure(path, acks);
        match self.phase {
            Phase::Reconnaissance | Phase::Normal => self.inner.on_acks(path, acks),
            Phase::Unvalidated { .. } => self.on_acks_unvalidated(path, acks),
            Phase::Validating { last } => self.on_acks_validating(path, acks, last),
            Phase::Retreat { last } => self.on_acks_retreating(path, acks, last),
            Phase::Retreated { ssthresh } => {
                let window = path.window.saturating_add(acks.credit);
                if window < ssthresh {
                    return Step::Grow(acks.credit);
                }
                leave(window, ssthresh, "ssthresh")
            }
        }
    }

    fn on_lost(&mut self, path: &PathState, lost: &LostPacket) {
        self.inner.on_lost(path, lost);
    }

    fn on_congestion(&mut self, path: &PathState, event: &CongestionEvent) -> Response {
        match self.phase {
            Phase::Unvalidated { .. } | Phase::Validating { .. } => {
                let trigger = if event.ecn { "ECN_CE" } else { "packet_loss" };
                Response::Retreat(self.retreat(path, trigger))
            }
            Phase::Retreat { .. } | Phase::Retreated { .. } => Response::Reduce,
            Phase::Reconnaissance | Phase::Normal => {
                // Section 3.2: congestion during reconnaissance ends Careful Resume.
                self.enter(Phase::Normal, "packet_loss");
                self.inner.on_congestion(path, event)
            }
        }
    }

    fn pacing(&self, path: &PathState) -> Pacing {
        // Section 4.3: the window over the current round-trip time, not the saved one.
        let rtt = match path.rtt.smoothed {
            Span::ZERO => self.resume.saved.rtt,
            rtt => rtt,
        };
        match self.phase {
            Phase::Unvalidated { .. } => Pacing::Rate(per_second(path.window, rtt)),
            // What goes before the jump, no more than an initial window, need not wait if the jump
            // need not.
            Phase::Reconnaissance if self.is_next(path) => {
                Pacing::Rate(per_second(self.resume.window(path), rtt))
            }
            Phase::Validating { .. } if self.resume.jump != Jump::Half => Pacing::Gain(125),
            _ => self.inner.pacing(path),
        }
    }

    fn pacing_afterwards(&self) -> Option<Pacing> {
        match self.phase {
            Phase::Reconnaissance | Phase::Normal => self.inner.pacing_afterwards(),
            _ => None,
        }
    }

    fn take_event(&mut self, path: &PathState) -> Option<LogEvent> {
        self.inner.take_event(path)
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
