//! The path as ACKs show it: its base RTT, its queue, its deliveries and losses.

use bentpipe_units::{Span, Time};

use crate::acks::{Acks, LostPacket};
use crate::path::PathState;

/// The least delay that is a queue: what slow start takes for one in RFC 9406 (`MIN_RTT_THRESH`).
const LEAST_QUEUE: Span = Span::from_millis(4);
/// Not even where the queue is known to be short; nor is what bursts and a half of those packets
/// make that wait for an ACK: over FQ-CoDel a limit of 2.5 ms makes the sender probe all the time.
const SHORTEST_QUEUE: Span = Span::from_millis(1);
/// Of the base RTT, the queue that one sender may keep. From 90 to 256 no path of the sweep shows a
/// difference.
const QUEUE_PART: u64 = 128;
/// Packets that are no queue: bursts, beside those that leave together when an ACK lets them. With
/// 3 or 6 two paths of the sweep take 7 to 14 % longer, whose link becomes faster.
const QUEUE_PACKETS: u64 = 4;
/// Bursts are no queue, but no more than this part of the base RTT. From 6 to 11 only the
/// paths of 10 Mbit/s and 30 ms change in the sweep, which take 4 and 11 % less with 6.
const BURSTS_PART: u64 = 8;
/// Samples of the RTT, the smallest of which shows a queue before the round trip is over. The
/// smallest of 16 is moved by neither jitter nor a burst.
const BLOCK: u32 = 16;
/// Packets that are believed to wait for an ACK, at most. From 16 to 64 no path of the sweep shows
/// a difference.
const MOST_WAITING: u64 = 32;
/// One packet in so many may be lost (`LossThresh` of draft-ietf-ccwg-bbr).
const LOSS: u64 = 50;
/// Fewer packets than that say little. From 16 to 64 no path of the sweep shows a difference.
const FEW: u64 = 32;
/// A queue is longer than so many times the mean deviation of RTT samples without one. From 2
/// to 8 no time of the sweep changes by 0.5 %.
const NOISE: u64 = 4;

/// A watch on the path.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// The RTT of the empty path, as far as it is known.
    base: Option<Span>,
    /// The last round trip and this one.
    rounds: [Round; 2],
    /// The fastest delivery of each of the last round trips, bytes per second.
    rates: [u64; 8],
    /// How far samples of the RTT lie above the smallest one of their round trip, without a queue.
    noise: Span,
    block: Block,
    /// The delay at which the sender itself has made the queue overflow.
    overflow: Option<Span>,
    /// Losses of what was sent before do not count: the window has been reduced since.
    since: Time,
}

/// The samples since the last full block.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    samples: u32,
    smallest: Span,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    acked: u64,
    lost: u64,
    /// Bytes that one ACK has covered at most.
    covered: u64,
    samples: u32,
    /// The smallest sample of the RTT; none yet.
    least: Option<Span>,
    /// The smallest one of the last full block; none: there was no full one.
    newest: Option<Span>,
    /// A block has shown a queue.
    full: bool,
    /// By how much the samples exceed the smallest one so far, summed up.
    above: Span,
    /// The fastest delivery, bytes per second.
    rate: u64,
    limited: bool,
}

/// The end of a round trip.
#[derive(Debug, Clone, Copy)]
pub struct RoundEnd {
    /// How much longer it was than the base RTT.
    pub queue: Span,
    /// The fastest delivery in it, bytes per second.
    pub rate: u64,
    /// That is more than one sender may keep.
    pub stands: bool,
    /// The sender ran dry.
    pub limited: bool,
}

impl Watch {
    /// The RTT of the empty path.
    pub fn base(&self, path: &PathState) -> Span {
        self.base.unwrap_or(path.rtt.min)
    }

    /// The path has become longer.
    pub fn lengthen_base(&mut self, path: &PathState, by: Span) {
        self.base = Some(self.base(path) + by);
    }

    /// A round trip that is longer than the base RTT by more than that has a queue in it.
    pub fn queue_limit(&self, path: &PathState) -> Span {
        let base = self.base(path);
        let bursts = time_of(
            QUEUE_PACKETS * path.datagram + self.waiting(path),
            self.rate(),
        );
        let bursts = bursts.min(part(base, BURSTS_PART));
        let limit = LEAST_QUEUE.max(part(base, QUEUE_PART)).max(bursts);
        match self.overflow {
            Some(full) => {
                let bytes = QUEUE_PACKETS * path.datagram + self.waiting(path) / 2;
                let shortest = time_of(bytes, self.rate()).max(SHORTEST_QUEUE);
                limit.min(part(full, 2).max(shortest))
            }
            None => limit,
        }
    }

    /// Bytes that wait for an ACK at the receiver, and are not in the path.
    pub fn waiting(&self, path: &PathState) -> u64 {
        let covered = self.rounds.iter().map(|round| round.covered).max();
        covered.unwrap_or(0).min(MOST_WAITING * path.datagram)
    }

    /// The fastest delivery of the last round trips, bytes per second; 0: not known.
    pub fn rate(&self) -> u64 {
        self.rates.into_iter().max().unwrap_or(0)
    }

    /// The bytes that the path holds without a queue, by the rate of its deliveries.
    pub fn bdp(&self, path: &PathState) -> Option<u64> {
        let rate = Some(self.rate()).filter(|&rate| rate > 0)?;
        Some(PathState::bytes_in(rate, self.base(path)))
    }

    /// How long the packets that were acknowledged last have waited.
    pub fn queue_now(&self, path: &PathState) -> Span {
        beyond(path.rtt.latest, self.base(path))
    }

    /// A queue shows in this round trip or the last one.
    pub fn is_full(&self) -> bool {
        self.rounds.iter().any(|round| round.full)
    }

    /// The sender itself has made the queue overflow: it is to keep to half of that.
    pub fn remember_overflow(&mut self, path: &PathState) {
        let queue = self.queue_now(path);
        self.overflow = Some(self.overflow.map_or(queue, |known| known.min(queue)));
    }

    /// Reads an ACK.
    pub fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) {
        let since = self.since;
        let counted = acks.packets.iter().filter(|it| it.sent >= since).count() as u64;
        let round = &mut self.rounds[1];
        round.acked += counted;
        round.covered = round.covered.max(acks.bytes);
        round.limited |= path.limited;
        if let Some(sample) = acks.rate {
            round.rate = round.rate.max(sample.per_second());
        }
        if let Some(sample) = acks.rtt {
            self.base = Some(self.base.map_or(sample, |base| base.min(sample)));
            round.add(sample);
            self.block.add(sample);
        }
        if self.block.samples == BLOCK {
            let smallest = std::mem::take(&mut self.block).smallest;
            let full = smallest > self.base(path) + self.queue_limit(path);
            let round = &mut self.rounds[1];
            round.newest = Some(smallest);
            round.full |= full;
        }
    }

    /// A packet is lost.
    pub fn on_lost(&mut self, lost: &LostPacket) {
        if lost.sent >= self.since {
            self.rounds[1].lost += 1;
        }
    }

    /// The window has been reduced: losses from before mean nothing more.
    pub fn on_reduction(&mut self, now: Time) {
        self.since = now;
        for round in &mut self.rounds {
            (round.acked, round.lost) = (0, 0);
        }
    }

    /// Begins the next round trip. None: the last one had no sample of the RTT.
    pub fn close_round(&mut self, path: &PathState) -> Option<RoundEnd> {
        let round = self.rounds[1];
        self.rounds = [round, Round::default()];
        self.rates.rotate_right(1);
        self.rates[0] = round.rate;
        let queue = beyond(round.newest.or(round.least)?, self.base(path));
        let stands = queue > self.queue_limit(path);
        if !stands {
            let mean = part(round.above, u64::from(round.samples));
            self.noise = part(self.noise * 7 + mean, 8);
        }
        Some(RoundEnd {
            queue,
            rate: round.rate,
            stands,
            limited: round.limited,
        })
    }

    /// Whether congestion explains the loss of just now: a queue that stands for longer than a
    /// round trip, one that the packets beside the lost one waited in, or more losses than chance
    /// makes.
    pub fn is_congestion(&self, path: &PathState) -> bool {
        let limit = self.queue_limit(path);
        let waited = self.queue_now(path) > limit + self.noise * NOISE;
        waited || self.loses_too_much() || self.queue_stands(path)
    }

    fn queue_stands(&self, path: &PathState) -> bool {
        let [Some(last), Some(this)] = self.rounds.map(|round| round.least) else {
            return false;
        };
        beyond(last.min(this), self.base(path)) > self.queue_limit(path)
    }

    fn loses_too_much(&self) -> bool {
        let lost: u64 = self.rounds.iter().map(|round| round.lost).sum();
        let packets = lost + self.rounds.iter().map(|round| round.acked).sum::<u64>();
        let slack = if packets < FEW { 1 } else { 2 };
        lost > packets / LOSS + slack
    }
}

impl Round {
    fn add(&mut self, sample: Span) {
        let least = self.least.map_or(sample, |least| least.min(sample));
        self.least = Some(least);
        self.above = self.above + beyond(sample, least);
        self.samples += 1;
    }
}

impl Block {
    fn add(&mut self, sample: Span) {
        let first = self.samples == 0;
        self.smallest = if first {
            sample
        } else {
            self.smallest.min(sample)
        };
        self.samples += 1;
    }
}

/// How much longer `span` is; zero if it is not.
pub fn beyond(span: Span, than: Span) -> Span {
    Span::from_nanos(span.as_nanos().saturating_sub(than.as_nanos()))
}

fn part(span: Span, divisor: u64) -> Span {
    Span::from_nanos(span.as_nanos() / divisor.max(1))
}

/// How long `bytes` take at `rate`; the longest time if that is 0.
fn time_of(bytes: u64, rate: u64) -> Span {
    let nanos = u128::from(bytes) * 1_000_000_000;
    let nanos = nanos.checked_div(rate.into()).unwrap_or(u128::MAX);
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
