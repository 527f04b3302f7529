//! An avoidance that stands random loss: CUBIC, which is told only of losses that congestion
//! explains.
//!
//! Source: our own, put together from three that are published. That a loss without a queue is no
//! congestion is the idea of TCP Veno (C. P. Fu, S. C. Liew, IEEE JSAC 21, 2003); that up to 2 % of
//! the packets of a round trip may be lost, that of BBR (draft-ietf-ccwg-bbr, `LossThresh`); and
//! that after congestion the window follows from what the path has delivered, that of TCP Westwood
//! (C. Casetti and others, Wireless Networks 8, 2002). CUBIC (RFC 9438) does the rest, so that this
//! is a CUBIC on a path that loses packets from full queues alone.
//!
//! A loss is forgiven, in slow start too, unless one of these holds:
//!
//! - **A queue stands.** Every sample of the RTT in this round trip and the last one is more than 4
//!   ms above the smallest one ever. It is the smallest of so many because a sender's own bursts
//!   and jitter move single samples, and not these.
//! - **Too much is lost**: in this round trip and the last one more than 2 % of the packets, and
//!   two packets. Two, since one packet of ten that is lost by chance says nothing; only one if
//!   there were fewer than 32.
//!
//! ECN marks and persistent congestion are never forgiven. What is not forgiven reduces the window
//! as CUBIC does, or, if that is less, to what the path was seen to carry: the largest delivery
//! rate of these two round trips times the smallest RTT. When a link has become much slower, this
//! is the right size at once, where CUBIC needs several round trips.
//!
//! Limits. With a queue so short that it never delays by 4 ms, up to 2 % of the packets may be lost
//! to a full queue before the window is reduced, and other flows there that take every loss for
//! congestion get little. If the path itself becomes longer by more than 4 ms, or jitter holds up
//! every packet of two round trips, no loss is forgiven any more: then this is CUBIC. More than 2 %
//! of random loss is congestion to it too.

use bentpipe_units::{Span, Time};

use crate::acks::{Acks, CongestionEvent, LostPacket};
use crate::avoidance::{Avoidance, Cubic, Reduction};
use crate::pacing::Pacing;
use crate::path::PathState;

/// A delay that is a queue; the least that slow start takes for one in RFC 9406 (`MIN_RTT_THRESH`).
const QUEUE: Span = Span::from_millis(4);
/// One packet in so many may be lost.
const LOSS: u64 = 50;
/// Fewer packets than that say little.
const FEW: u64 = 32;

/// CUBIC that forgives losses which a full queue does not explain.
#[derive(Debug, Clone, Default)]
pub struct Tolerant {
    cubic: Cubic,
    /// The last round trip and this one.
    rounds: [Round; 2],
    /// Packets sent before do not count: they were sent with the window that has been reduced.
    since: Time,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    acked: u64,
    lost: u64,
    /// The smallest sample of the RTT; none yet.
    least: Option<Span>,
    /// The largest delivery rate.
    rate: u64,
}

impl Tolerant {
    fn listen(&mut self, acks: &Acks<'_>) {
        if acks.new_round {
            self.rounds = [self.rounds[1], Round::default()];
        }
        let since = self.since;
        let counted = acks.packets.iter().filter(|it| it.sent >= since).count() as u64;
        let round = &mut self.rounds[1];
        round.acked += counted;
        if let Some(sample) = acks.rtt {
            round.least = Some(round.least.map_or(sample, |least| least.min(sample)));
        }
        if let Some(sample) = acks.rate.filter(|it| !it.limited) {
            round.rate = round.rate.max(sample.per_second());
        }
    }

    /// A queue has been there for more than a round trip.
    fn queue_stands(&self, path: &PathState) -> bool {
        let [Some(last), Some(this)] = self.rounds.map(|round| round.least) else {
            return false;
        };
        last.min(this) > path.rtt.min + QUEUE
    }

    fn loses_too_much(&self) -> bool {
        let lost: u64 = self.rounds.iter().map(|round| round.lost).sum();
        let packets = lost + self.rounds.iter().map(|round| round.acked).sum::<u64>();
        let slack = if packets < FEW { 1 } else { 2 };
        lost > packets / LOSS + slack
    }

    /// The window that the path was seen to carry without a queue; none if the sender did not fill
    /// it, or in slow start, where what is delivered lags behind by a round trip.
    fn carried(&self, path: &PathState) -> Option<u64> {
        path.ssthresh?;
        let rate = self.rounds.iter().map(|round| round.rate).max();
        let rate = rate.filter(|&rate| rate > 0)?;
        Some(PathState::bytes_in(rate, path.rtt.min))
    }
}

impl Avoidance for Tolerant {
    fn name(&self) -> &'static str {
        "tolerant"
    }

    fn begin(&mut self, path: &PathState) {
        self.cubic.begin(path);
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> u64 {
        self.listen(acks);
        self.cubic.on_acks(path, acks)
    }

    fn on_acks_in_slow_start(&mut self, _path: &PathState, acks: &Acks<'_>) {
        self.listen(acks);
    }

    fn on_lost(&mut self, _path: &PathState, lost: &LostPacket) {
        if lost.sent >= self.since {
            self.rounds[1].lost += 1;
        }
    }

    fn forgives(&mut self, path: &PathState, _event: &CongestionEvent) -> bool {
        !self.loses_too_much() && !self.queue_stands(path)
    }

    fn on_congestion(&mut self, path: &PathState, _event: &CongestionEvent) -> Reduction {
        // Chance decides at which window a loss meets the queue: a little less than the last time
        // is not yet another flow that asks for its share, for which fast convergence would lower
        // the plateau.
        self.cubic.round_plateau_down_to(path.window);
        let mut reduction = self.cubic.reduce_from(path.window);
        if let Some(carried) = self.carried(path)
            && carried < reduction.window
        {
            reduction = self.cubic.restart_at(carried);
        }
        self.since = path.now;
        for round in &mut self.rounds {
            (round.acked, round.lost) = (0, 0);
        }
        reduction
    }

    fn undoes_spurious(&self) -> bool {
        true
    }

    /// Evenly over the round trip. At the usual 1.25 the window goes round in one long burst, at
    /// the rate of the bottleneck, with a pause behind it; what the window grows by then queues
    /// although the path is not full, and a short queue overflows.
    fn pacing(&self, _path: &PathState) -> Pacing {
        Pacing::Gain(105)
    }

    fn clone_box(&self) -> Box<dyn Avoidance> {
        Box::new(self.clone())
    }
}
