//! The avoidance of Bentpipe's own sender: alone it keeps the queue short, beside others it is
//! about as strong as CUBIC, and it tells random loss from congestion.
//!
//! Source: our own, put together from published ideas. A queue that a sender must drain by itself
//! if nobody else fills it, and the change of mode if it stays, are those of Copa (V. Arun, H.
//! Balakrishnan, NSDI 2018); a reduction to what the path was seen to deliver is that of TCP
//! Westwood (C. Casetti and others, Wireless Networks 8, 2002); up to 2 % of loss without a queue
//! is no congestion as in BBR (draft-ietf-ccwg-bbr, `LossThresh`). `docs/design/sender.md` has its
//! states in a figure, and what it does.
//!
//! [`watch`] says whether there is a queue: by how much the RTT exceeds that of the empty path.
//!
//! | [`state`] | what the window does | left when |
//! |---|---|---|
//! | alone | grows by two packets per round trip, ever faster while there is no queue | a queue stands: draining |
//! | draining | to what the path carries, for two round trips | the queue is gone: alone; it is half as long: once more; else probing |
//! | probing | half, then a quarter, for two round trips each | the queue is gone, or is less than a quarter of it: alone; the delivery is as before: draining; the queue stays from the half to the quarter: the path has become longer, alone; else competing |
//! | competing | grows as [`competing`] says, up to twice what the path holds | no queue for 16 round trips and ten seconds: alone; the delivery or the queue stays the same for 16 round trips and four seconds: probing |
//!
//! A loss or a mark that congestion explains reduces the window to what the path carries when
//! alone; a queue that is far too long to be the sender's own makes it compete at once.
//!
//! Limits. A path that loses more than 2 % at random is congested to it. An application that stops
//! sending for a while comes back with the window that it had. Two senders that have found each
//! other through a full queue compete until that is empty.

mod competing;
mod overshoot;
mod state;
mod watch;

use bentpipe_units::{Span, Time};

use crate::acks::{Acks, CongestionEvent, LostPacket, per_second};
use crate::avoidance::{Avoidance, Reduction};
use crate::pacing::Pacing;
use crate::path::PathState;
use competing::Competition;
use overshoot::Overshoot;
use state::{Change, State};
use watch::Watch;

/// The part of the window that is given up beside what would keep the path full, so that a queue
/// drains. From 179 to 512 no path of the sweep takes 6 % longer.
const DRAIN_PART: u64 = 256;
/// Packets per round trip by which the window grows alone. Equal for all, so that those who have
/// less catch up. With 1 a path of the sweep takes 21 % longer, with 3 one takes 11 %.
const GROWTH: u64 = 2;
/// Within so small a part of the window at which a queue has shown it grows no faster. From
/// 16 to 64 no path of the sweep takes 4 % longer.
const NEAR_PART: u64 = 32;
/// Round trips without a queue after which the growth doubles each second one. With 3 no path
/// of the sweep takes 4 % longer, with 6 one takes 10 %.
const STEADY: u32 = 4;
/// The window grows by no more than this part of it in a round trip. From 2 to 8 no
/// time of the sweep changes by 3 %.
const FASTEST_GROWTH: u64 = 4;
/// Round trips without a queue after which nothing is known of the window at which one shows. From
/// 8 to 16 no path of the sweep takes 4 % longer; with 22 one takes 8 %.
const FORGET: u32 = 16;
/// A sender that is alone, and knows after a loss how long the queue may be, loses nothing for so
/// many round trips: somebody else is there. With 16, two drops of FQ-CoDel, nine round trips
/// apart, made it compete.
const REMEMBERED: u64 = 8;
/// Packets per ACK, from which window on, in packets. A train of 20 packets must be covered by two
/// ACKs at least; a return link of a hundredth of the forward link's rate carries every tenth.
const PER_ACK: [(u64, u64); 2] = [(160, 10), (64, 4)];
/// Packets per ACK in a smaller window (RFC 9000, section 13.2.2).
const USUAL_PER_ACK: u64 = 2;
/// One reduction leaves this part of the window at least.
const LEAST_LEFT: u64 = 4;
/// Percent of the window that it leaves while deliveries may be slower than the path, as CUBIC's
/// would (RFC 9438, section 4.6).
const LAGGING_LEFT: u64 = 70;
/// Round trips after which the queue of a fast growth has drained. From 6 on two of its own that
/// share a path take up to 20 % longer in the sweep.
const FAST_ROUNDS: u64 = 4;
/// Percent of the window that a mark leaves at most (RFC 8511, section 3.1).
const MARKED: u64 = 85;
/// Alone the sender never makes the queue so many times as long as its limit, unless it grows fast:
/// somebody else does. From 2 to 6 no path of the sweep takes 2 % longer.
const OTHERS: u64 = 4;

/// Bentpipe's congestion avoidance; the head of this file describes it.
#[derive(Debug, Clone, Default)]
pub struct Bentpipe {
    watch: Watch,
    state: State,
    competition: Competition,
    overshoot: Overshoot,
    /// The fastest delivery since the sender was alone, bytes per second.
    fastest: u64,
    /// The largest window at which a queue has shown; 0: none is known.
    full_at: u64,
    /// The round trip in which packets were last lost or marked although the sender was alone.
    overflown: Option<u64>,
    /// The round trip in which the window last grew by more than usual.
    grew_fast: Option<u64>,
    /// When a queue was last made to drain.
    drained_at: Time,
    /// The round trip of the last reduction.
    reduced: Option<u64>,
    in_slow_start: bool,
    /// The part of the window that is there for packets that wait for an ACK.
    added: u64,
    /// The part of a byte, times the window, by which the window has not grown yet.
    fraction: u64,
}

impl Bentpipe {
    /// A round trip is over. The window that is wanted now, if it is another one.
    fn close_round(&mut self, path: &PathState) -> Option<u64> {
        let end = self.watch.close_round(path);
        let rate = self.watch.rate();
        self.fastest = match self.state {
            State::Alone { .. } => rate,
            _ => self.fastest.max(rate),
        };
        let window = self.in_path(path);
        let limit = self.watch.queue_limit(path);
        let queue = end?.queue;
        let change = self.state.close_round(path.now, end?, window, limit);
        if let State::Alone {
            free_rounds: FORGET,
        } = self.state
        {
            self.full_at = 0;
        }
        match self.state {
            State::Competing(_) if change == Change::Keep => {
                let base = self.watch.base(path);
                self.competition.yield_to(path, queue, base)
            }
            _ => self.apply(path, change, queue),
        }
    }

    fn apply(&mut self, path: &PathState, change: Change, queue: Span) -> Option<u64> {
        let window = self.in_path(path);
        let base = self.watch.base(path);
        let drained = less(scaled(window, base, base + queue));
        match change {
            Change::Keep => None,
            Change::ToCarried => {
                self.full_at = self.full_at.max(window);
                self.drained_at = path.now;
                // Bursts make samples longer, and the window that they ask for too small: what the
                // path was seen to deliver fits. If that is old, the next reduction shows it.
                let most = less(window).max(drained);
                Some(self.carried(path).unwrap_or(0).clamp(drained, most))
            }
            Change::Drain => {
                self.drained_at = path.now;
                Some(drained)
            }
            Change::Halve => Some(window / 2),
            Change::Restore(before) => {
                self.watch.forget_older();
                let before = less(before);
                Some(self.watch.bdp(path).map_or(before, |bdp| bdp.min(before)))
            }
            Change::Lengthen(before, by) => {
                self.watch.lengthen_base(path, by);
                Some(before)
            }
            Change::GoOn(before) => Some(before),
            Change::Compete(before) => Some(self.competition.begin_at(before).window),
            Change::CompeteAfterLoss(before) => Some(self.competition.reduce(before).window),
        }
    }

    /// The window, less what is in it for packets that wait for an ACK.
    fn in_path(&self, path: &PathState) -> u64 {
        path.window.saturating_sub(self.added)
    }

    /// A window of so many bytes in the path.
    fn with_waiting(&mut self, path: &PathState, bytes: u64) -> u64 {
        self.added = self.watch.waiting(path).min(bytes / 4);
        bytes + self.added
    }

    fn grow(&mut self, path: &PathState, acks: &Acks<'_>, free_rounds: u32) -> u64 {
        let growth = self.growth(path, free_rounds);
        if growth > GROWTH * path.datagram {
            self.grew_fast = Some(path.round);
        }
        let all = growth * acks.credit + self.fraction;
        self.fraction = all % path.window;
        self.in_path(path) + all / path.window
    }

    /// The window grows by this in a round trip: little where it is near the one at which a queue
    /// has shown.
    fn growth(&self, path: &PathState, free_rounds: u32) -> u64 {
        let window = self.in_path(path);
        let near = self.full_at / NEAR_PART;
        let doublings = match free_rounds.saturating_sub(STEADY) / 2 {
            _ if window.abs_diff(self.full_at) < near => 0,
            doublings => doublings.min(20),
        };
        let growth = ((GROWTH << doublings) * path.datagram).min(window / FASTEST_GROWTH);
        match self.full_at.saturating_sub(window) {
            below if below > near => growth.min(below),
            _ => growth,
        }
    }

    /// The window has just grown by so much in a round trip that a long queue can be the sender's
    /// own, be it in slow start.
    fn has_grown_fast(&self, path: &PathState) -> bool {
        let recently = |round| path.round - round < FAST_ROUNDS;
        self.is_in_slow_start(path) || self.grew_fast.is_some_and(recently)
    }

    fn is_in_slow_start(&self, path: &PathState) -> bool {
        self.in_slow_start || path.ssthresh.is_none()
    }

    /// Behind a queue that is longer than the path no more than twice what that has carried. Who
    /// has never been alone does not know it, and may grow while the queue is shorter.
    fn most_beside_others(&self, path: &PathState) -> u64 {
        let base = self.watch.base(path);
        if self.watch.queue_now(path) <= base {
            return u64::MAX;
        }
        let most = 2 * PathState::bytes_in(self.fastest, base);
        most.max(path.window)
    }

    /// A full queue of somebody else's, or a short one that the sender itself has filled.
    fn reduce_alone(&mut self, path: &PathState, event: &CongestionEvent) -> Reduction {
        let again = self
            .overflown
            .is_some_and(|round| path.round - round < REMEMBERED);
        let again = again && !self.is_stale(path, event);
        self.overflown = Some(path.round);
        let long = self.watch.queue_now(path) > self.watch.queue_limit(path) * OTHERS;
        if again || long && !self.has_grown_fast(path) {
            self.state = State::competing(path.now);
            return self.competition.reduce(path.window);
        }
        if !event.ecn {
            self.watch.remember_overflow(path);
        }
        self.state = State::default();
        let Some(carried) = self.carried(path) else {
            return self.competition.reduce(path.window);
        };
        let most = self.after_mark(path, event);
        Reduction::to(carried.max(self.least_left(path, event)).min(most))
    }

    /// After a mark that is stale a reduction to what the path carries is enough.
    fn reduce_beside_others(&mut self, path: &PathState, event: &CongestionEvent) -> Reduction {
        let reduction = self.competition.reduce(path.window);
        match self.carried(path).filter(|_| self.is_stale(path, event)) {
            Some(carried) => {
                let carried = carried.clamp(reduction.window, path.window);
                self.competition.begin_at(carried)
            }
            None => reduction,
        }
    }

    /// The window that a mark leaves at most, even if there is no queue to be seen: a discipline
    /// may keep it too short for that.
    fn after_mark(&self, path: &PathState, event: &CongestionEvent) -> u64 {
        if event.ecn && !self.is_stale(path, event) {
            path.window / 100 * MARKED
        } else {
            path.window
        }
    }

    /// Whether it is a mark without a queue, a round trip after a reduction: a queue discipline may
    /// mark for a while after its queue has become short.
    fn is_stale(&self, path: &PathState, event: &CongestionEvent) -> bool {
        let reduced = self.reduced.is_some_and(|round| path.round - round <= 1);
        event.ecn && reduced && !self.has_queue(path)
    }

    /// Whether the latest packets have waited for longer than one sender may make them wait.
    fn has_queue(&self, path: &PathState) -> bool {
        self.watch.queue_now(path) > self.watch.queue_limit(path)
    }

    /// A little less than the path was seen to deliver; none in slow start, where that lags
    /// behind.
    fn carried(&self, path: &PathState) -> Option<u64> {
        if self.is_in_slow_start(path) {
            return None;
        }
        self.watch.bdp(path).map(less)
    }

    /// One reduction leaves this part of the window at least: of a flight little has been delivered
    /// yet when its first ACKs come in, and less than the path carries for some round trips more. A
    /// loss behind a queue is answered by what was delivered nevertheless: others may be there.
    fn least_left(&self, path: &PathState, event: &CongestionEvent) -> u64 {
        if self.overshoot.lags(path) && (event.ecn || !self.has_queue(path)) {
            path.window / 100 * LAGGING_LEFT
        } else {
            path.window / LEAST_LEFT
        }
    }
}

impl Avoidance for Bentpipe {
    fn name(&self) -> &'static str {
        "bentpipe"
    }

    fn phase(&self) -> &'static str {
        self.state.name()
    }

    fn begin(&mut self, path: &PathState) {
        self.in_slow_start = false;
        self.overshoot.on_slow_start_end(path);
        self.state = State::after_slow_start(path.window);
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> u64 {
        let wanted = if acks.new_round {
            self.close_round(path)
        } else {
            None
        };
        self.watch.on_acks(path, acks);
        if let State::Competing(_) = self.state {
            self.added = 0;
            if let Some(wanted) = wanted {
                // The growth begins with this window, and so not before the next ACK.
                return wanted;
            }
            let window = self.competition.on_acks(path, acks);
            return window.min(self.most_beside_others(path));
        }
        let window = match self.state {
            State::Alone { free_rounds } if !self.watch.is_full() => {
                self.grow(path, acks, free_rounds)
            }
            _ => self.in_path(path),
        };
        self.with_waiting(path, wanted.unwrap_or(window))
    }

    fn on_acks_in_slow_start(&mut self, path: &PathState, acks: &Acks<'_>) {
        self.in_slow_start = true;
        self.overshoot.on_acks_in_slow_start(path);
        if acks.new_round {
            self.watch.close_round(path);
        }
        self.watch.on_acks(path, acks);
    }

    fn on_lost(&mut self, _path: &PathState, lost: &LostPacket) {
        self.watch.on_lost(lost);
    }

    fn forgives(&mut self, path: &PathState, _event: &CongestionEvent) -> bool {
        !self.watch.is_congestion(path)
    }

    fn on_congestion(&mut self, path: &PathState, event: &CongestionEvent) -> Reduction {
        if !event.persistent && self.state.explains(event.sent <= self.drained_at) {
            return Reduction::to(path.window);
        }
        if event.ecn
            && !self.has_queue(path)
            && let Some(reduction) = self.overshoot.answer(path)
        {
            if !matches!(self.state, State::Competing(_)) {
                self.state = State::default();
            }
            return reduction;
        }
        if self.is_in_slow_start(path) {
            self.overshoot.on_slow_start_end(path);
        }
        self.overshoot.on_reduction();
        let reduction = match self.state {
            State::Competing(_) => self.reduce_beside_others(path, event),
            _ => self.reduce_alone(path, event),
        };
        self.added = 0;
        if !self.is_stale(path, event) {
            self.reduced = Some(path.round);
        }
        self.in_slow_start = false;
        self.watch.on_reduction(path.now);
        reduction
    }

    fn undoes_spurious(&self) -> bool {
        true
    }

    /// Evenly over the round trip: what the window grows by then queues only where the path is
    /// full. While a queue drains the path is full nevertheless.
    fn pacing(&self, path: &PathState) -> Pacing {
        let rtt = match self.state {
            State::Competing(_) => path.rtt.smoothed,
            _ => self.watch.base(path),
        };
        Pacing::Rate(per_second(self.in_path(path), rtt))
    }

    fn packets_per_ack(&self, path: &PathState) -> Option<u64> {
        let packets = path.window / path.datagram;
        let step = PER_ACK.into_iter().find(|&(from, _)| packets >= from);
        Some(step.map_or(USUAL_PER_ACK, |(_, per_ack)| per_ack))
    }

    fn paces_from_the_start(&self) -> bool {
        true
    }

    fn clone_box(&self) -> Box<dyn Avoidance> {
        Box::new(self.clone())
    }
}

/// A little less, so that a queue drains.
fn less(bytes: u64) -> u64 {
    bytes - bytes / DRAIN_PART
}

fn scaled(bytes: u64, part: Span, whole: Span) -> u64 {
    let scaled = u128::from(bytes) * u128::from(part.as_nanos());
    let scaled = scaled / u128::from(whole.as_nanos()).max(1);
    u64::try_from(scaled).expect("a part is less than the whole")
}
