//! Whether the estimate is right: a round trip in which the path carries it, or does not.

use bentpipe_units::{Span, Time};

use crate::acks::{Acks, CongestionEvent, MAX_ACK_DELAY, per_second};
use crate::pacing::Pacing;
use crate::path::PathState;
use crate::slow_start::{Exit, Response, Step};

/// Percent of the estimate that are sent in the first round trip of the trial: trains overestimate
/// by a few percent at most, and then even the shortest queue does not grow.
const TRIAL: u64 = 95;
/// Percent of it that are sent afterwards, and that an avoidance begins with that knows nothing of
/// queues, if all goes well. From 96 to 99 no time of the sweep changes by 2 %.
pub const HANDED_OVER: u64 = 98;
/// Round trips in which the estimate must hold. One would do; as long as the path shows that it
/// carries the rate, random losses mean nothing, and avoidance might take them for more.
const ROUNDS: u32 = 3;
/// Percent of what was delivered that it begins with after losses, so that the full queue drains.
/// From 79 to 92 no time of the sweep changes by 0.5 %.
const AFTER_LOSS: u64 = 85;
/// Percent of a window per round trip at which avoidance sends until its first reduction. From
/// 101 to 143 no path of the sweep shows a difference.
pub const PACE_AFTER: u64 = 102;
/// The window is at most so many times what has been delivered: five trains may open 1 Gbit/s over
/// 250 ms, or 400 Mbit/s over 600 ms.
const LEAP: u64 = 256;
/// Lost packets that mean nothing, beside [`STRAY_PERCENT`]. From 4 to 8 no time of the sweep
/// changes by 0.5 %; with 11 some take 30 % less, and some as much more.
const STRAY_PACKETS: u64 = 8;
/// Percent of all packets whose loss means nothing, as BBR has it (draft-ietf-ccwg-bbr,
/// `LossThresh`).
const STRAY_PERCENT: u64 = 2;
/// Packets that must be acknowledged before anything is judged: a rate of fewer says little.
const JUDGED_FROM: u64 = 32;
/// Packets that an application has sent little by little, before what was lost of them is
/// forgotten. With eight of them, and 2 %, 4 % of losses show.
const LIMITED: u64 = 512;
/// The queue grows if so many RTT samples in a row exceed the smallest one by an eighth. From
/// 4 to 16 no time of the sweep changes by 0.5 %.
const LONG_SAMPLES: u32 = 8;
/// An estimate that is not sure grows by a part of what is acknowledged. From 2 to 8 no time of
/// the sweep changes by 0.5 %.
const GROWTH_DIVISOR: u64 = 4;

/// Percent of the estimate that must have arrived to disprove it: less is the noise of both.
const DISPROVED: u64 = 125;
/// Bytes that arrived are put beside so many parts of a round trip at least.
const LEAST_PART: u64 = 4;

/// The moment in which the first train begins to leave, and the bytes delivered by then.
///
/// Whatever the return path does to ACKs, the path has carried what was delivered since in the time
/// since, less a round trip. Capacity on demand holds the first ACKs up, and lets them through one
/// by one: the trains then show the rate of that, a tenth of the link's.
#[derive(Debug, Clone, Copy)]
pub struct Begin {
    pub at: Time,
    delivered: u64,
}

impl Begin {
    pub fn new(path: &PathState) -> Self {
        Self {
            at: path.now,
            delivered: path.delivered,
        }
    }

    /// Bytes per second that the path carries at least; none: too little time has passed.
    fn least_rate(&self, path: &PathState) -> Option<u64> {
        let time = path.now - (self.at + path.rtt.min);
        let is_long = time * LEAST_PART >= path.rtt.min;
        is_long.then(|| per_second(path.delivered - self.delivered, time))
    }
}

/// The trial of an estimated rate.
#[derive(Debug, Clone, Copy)]
pub struct RateTrial {
    /// Since when the trains have left.
    pub begun: Option<Begin>,
    /// Bytes per second.
    estimate: u64,
    /// The trains agreed. Else the estimate is taken for too low, and grows until the path says no.
    pub sure: bool,
    /// Percent of the estimate that are handed over.
    share: u64,
    /// The bytes sent before the trial.
    from: u64,
    round: Option<Round>,
    /// Round trips that have been judged.
    rounds: u32,
    long_samples: u32,
    retreat: Option<Retreat>,
}

/// There is a queue, which drains; what it drops meanwhile has been answered already.
#[derive(Debug, Clone, Copy)]
struct Retreat {
    window: u64,
    /// Bytes that wait for an ACK at the receiver, for which there is room beside.
    waits: u64,
    /// It ends with the ACK of what is sent after so many bytes.
    until: u64,
}

/// A round trip's ACKs of packets that belong to the trial.
#[derive(Debug, Clone, Copy)]
struct Round {
    began: Time,
    /// Bytes delivered and lost before it.
    delivered: u64,
    lost: u64,
    /// It ends with the ACK of what is sent after so many bytes.
    until: u64,
    /// The sender ran dry.
    limited: bool,
    /// The fastest delivery in it.
    best: u64,
}

impl Round {
    fn new(path: &PathState) -> Self {
        Self {
            began: path.now,
            delivered: path.delivered,
            lost: path.lost,
            until: path.sent,
            limited: false,
            best: 0,
        }
    }

    fn delivered(&self, path: &PathState) -> u64 {
        path.delivered - self.delivered
    }

    /// Enough is known of it.
    fn judged(&self, path: &PathState) -> bool {
        self.delivered(path) >= JUDGED_FROM * path.datagram
    }
}

impl RateTrial {
    pub fn new(path: &PathState, estimate: u64, sure: bool, share: u64) -> Self {
        Self {
            begun: None,
            estimate,
            sure,
            share,
            from: path.sent,
            round: None,
            rounds: 0,
            long_samples: 0,
            retreat: None,
        }
    }

    /// There is nothing to try out: the trains have filled the path. `waits`: bytes that wait for
    /// an ACK at the receiver.
    pub fn filled(mut self, path: &PathState, waits: u64) -> Self {
        self.retreat(path, self.handed_over(path));
        if let Some(retreat) = &mut self.retreat {
            retreat.waits = waits;
        }
        self
    }

    fn retreat(&mut self, path: &PathState, window: u64) {
        // The last of what was sent before is known to be lost when a few packets sent later have
        // arrived.
        let until = path.sent + STRAY_PACKETS * path.datagram;
        let waits = 0;
        self.retreat = Some(Retreat {
            window,
            waits,
            until,
        });
    }

    /// ACKs of the trial itself are coming in.
    pub fn judging(&self) -> bool {
        self.round.is_some() || self.retreat.is_some()
    }

    /// More trains have been measured.
    pub fn correct(&mut self, estimate: u64, sure: bool) {
        self.estimate = estimate;
        self.sure = sure;
    }

    /// At which the trial is sent.
    pub fn pacing(&self, path: &PathState) -> Pacing {
        match self.retreat {
            None if self.rounds == 0 => Pacing::Rate(percent(self.estimate, TRIAL)),
            None => Pacing::Rate(percent(self.estimate, self.share)),
            // The path is full, and so the round trip of now is longer than that of the window.
            Some(retreat) => Pacing::Rate(per_second(retreat.window, path.rtt.min)),
        }
    }

    /// Room for what is sent at this rate until its ACK comes. What has not been delivered yet does
    /// not count for much: an estimate that is far too high is stopped here.
    pub fn window(&self, path: &PathState) -> u64 {
        if let Some(retreat) = self.retreat {
            return retreat.window + retreat.waits;
        }
        let target = PathState::bytes_in(self.estimate, path.rtt.min + MAX_ACK_DELAY);
        target.min(path.delivered.saturating_mul(LEAP))
    }

    /// The window of avoidance if all goes well.
    pub fn handed_over(&self, path: &PathState) -> u64 {
        percent(PathState::bytes_in(self.estimate, path.rtt.min), self.share)
    }

    pub fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        let newest = acks.newest().sent_before;
        if let Some(retreat) = self.retreat {
            if newest < retreat.until {
                return Step::Window(retreat.window + retreat.waits);
            }
            return leave(retreat.window, "queue_drained");
        }
        if newest < self.from {
            return Step::Window(self.window(path));
        }
        let mut round = *self.round.get_or_insert_with(|| Round::new(path));
        round.limited |= path.limited;
        round.best = round
            .best
            .max(acks.rate.map_or(0, |rate| rate.per_second()));
        self.count_long_samples(path, acks.rtt);
        if self.long_samples >= LONG_SAMPLES && round.judged(path) {
            let window = PathState::bytes_in(self.delivery_rate(path, &round), path.rtt.min);
            self.retreat(path, percent(window, self.share));
            return Step::Window(self.window(path));
        }
        if !self.sure {
            let growth = per_second(acks.credit / GROWTH_DIVISOR, path.rtt.min);
            self.estimate = self.estimate.saturating_add(growth);
        }
        self.round = Some(round);
        if newest < round.until {
            return Step::Window(self.window(path));
        }
        if round.limited && round.delivered(path) < LIMITED * path.datagram {
            // What was not sent has not been tried out. Of the little that was, losses add up.
            round.until = path.sent;
            self.round = Some(round);
            return Step::Window(self.window(path));
        }
        if !round.limited {
            self.rounds += 1;
        }
        if self.sure && self.rounds >= ROUNDS {
            return leave(self.handed_over(path), "estimate_holds");
        }
        self.round = Some(Round::new(path));
        Step::Window(self.window(path))
    }

    /// More of what was sent before the trial has arrived than the estimate can explain.
    pub fn is_disproved(&self, path: &PathState, acks: &Acks<'_>) -> bool {
        let least = self.begun.and_then(|begun| begun.least_rate(path));
        let arrived = least.filter(|_| acks.newest().sent_before < self.from);
        arrived.is_some_and(|least| least > percent(self.estimate, DISPROVED))
    }

    fn count_long_samples(&mut self, path: &PathState, sample: Option<Span>) {
        let eighth = Span::from_nanos(path.rtt.min.as_nanos() / 8);
        let long = path.rtt.min + eighth.max(MAX_ACK_DELAY);
        match sample {
            Some(rtt) if rtt <= long => self.long_samples = 0,
            Some(_) => self.long_samples += 1,
            None => {}
        }
    }

    /// How fast the path delivers now.
    fn delivery_rate(&self, path: &PathState, round: &Round) -> u64 {
        let measured = per_second(round.delivered(path), path.now - round.began);
        // The first moments of a round exaggerate.
        measured.max(round.best).min(self.estimate)
    }

    /// More has been lost, of so many bytes in all, than what bit errors explain.
    pub fn too_much(path: &PathState, lost: u64, all: u64) -> bool {
        lost > STRAY_PACKETS * path.datagram + percent(all, STRAY_PERCENT)
    }

    pub fn on_congestion(&mut self, path: &PathState, event: &CongestionEvent) -> Response {
        let round = self.round.filter(|round| round.judged(path));
        let Some(round) = round.filter(|_| self.retreat.is_none()) else {
            return Response::Ignore;
        };
        let lost = path.lost - round.lost;
        if !Self::too_much(path, lost, lost + round.delivered(path)) && !event.ecn {
            return Response::Ignore;
        }
        let window = PathState::bytes_in(self.delivery_rate(path, &round), path.rtt.min);
        let window = percent(window, AFTER_LOSS);
        Response::Leave(Exit {
            window,
            ssthresh: window,
            reason: if event.ecn { "ecn" } else { "loss" },
        })
    }
}

fn percent(bytes: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// Ends slow start with this window.
pub fn leave(window: u64, reason: &'static str) -> Step {
    Step::Leave(Exit {
        window,
        ssthresh: window,
        reason,
    })
}
