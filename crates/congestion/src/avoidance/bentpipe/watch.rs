//! The path as ACKs show it: its base RTT, its queue, its deliveries and losses.

use bentpipe_units::{Span, Time};

use crate::acks::{Acks, LostPacket, MAX_ACK_DELAY, per_second};
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
/// 2 or 6 two paths of the sweep take 6 to 9 % longer, whose link becomes faster.
const QUEUE_PACKETS: u64 = 4;
/// Bursts are no queue, but no more than this part of the base RTT. From 4 to 16 no
/// path of the sweep takes 1 % longer.
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
/// to 8 no path of the sweep takes 4 % longer.
const NOISE: u64 = 4;

/// Round trips of an attempt to drain a queue, in the first of which the link was busy.
const RECENT: usize = 4;

/// The smallest samples of two blocks lie no further apart than so many times the mean.
const WANDER: u64 = 6;
/// Ups and downs of more than this part of the base RTT are no jitter, but the queues of others.
const MOST_WANDER_PART: u64 = 32;

/// A watch on the path.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// The RTT of the empty path, as far as it is known.
    base: Option<Span>,
    /// The last sample of the RTT, less what an ACK may have waited for a timer.
    latest: Option<Span>,
    /// The last round trip and this one.
    rounds: [Round; 2],
    /// The fastest delivery of each of the last round trips, bytes per second.
    rates: [u64; 8],
    /// How far samples of the RTT lie above the smallest one of their round trip, without a queue.
    noise: Span,
    /// How far the smallest samples of blocks lie apart that go up and down, as jitter does.
    wander: Span,
    turns: Turns,
    block: Block,
    has_blocks: bool,
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

/// The way from the last block but one to the last one.
#[derive(Debug, Clone, Copy, Default)]
struct Turns {
    down: Span,
    up: Span,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    acked: u64,
    lost: u64,
    /// Bytes acknowledged, and since when.
    bytes: u64,
    begun: Time,
    /// Bytes that one ACK has covered at most.
    covered: u64,
    samples: u32,
    /// The smallest sample of the RTT; none yet.
    least: Option<Span>,
    /// The smallest one of the last full block; none: there was no full one.
    newest: Option<Span>,
    /// The smallest one of the last two.
    of_two: Option<Span>,
    /// By how much these go up and down, summed up, and of how many blocks.
    moved: Span,
    blocks: u64,
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
    /// The delivery in it, bytes per second.
    pub rate: u64,
    /// By how much a round trip without a queue may differ from the next.
    pub wander: Span,
    /// That is more than one sender may keep.
    pub stands: bool,
    /// Packets acknowledged in it, about.
    pub packets: u64,
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
        beyond(self.latest.unwrap_or(path.rtt.latest), self.base(path))
    }

    /// A queue shows in this round trip or the last one.
    pub fn is_full(&self) -> bool {
        self.rounds.iter().any(|round| round.full)
    }

    /// The sender itself has made the queue overflow: it is to keep to half of that. What is lost
    /// without a queue, in an outage, says nothing of it.
    pub fn remember_overflow(&mut self, path: &PathState) {
        let queue = self.queue_now(path);
        if queue < SHORTEST_QUEUE {
            return;
        }
        self.overflow = Some(self.overflow.map_or(queue, |known| known.min(queue)));
    }

    /// Reads an ACK.
    pub fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) {
        let since = self.since;
        let known = self.rate();
        let counted = acks.packets.iter().filter(|it| it.sent >= since).count() as u64;
        let round = &mut self.rounds[1];
        round.acked += counted;
        round.bytes += acks.bytes;
        round.covered = round.covered.max(acks.bytes);
        round.limited |= path.limited;
        // Who had little to send has seen less than what the path carries, if not more.
        if let Some(sample) = acks.rate
            && (!sample.limited || sample.per_second() > known)
        {
            round.rate = round.rate.max(sample.per_second());
        }
        if let Some(sample) = acks.rtt {
            // Jitter makes a single sample far shorter than those to come, and so is the first.
            if self.base.is_none() || !self.has_blocks {
                self.base = Some(self.base.map_or(sample, |base| base.min(sample)));
            }
            let sample = self.without_timer(path, acks, sample);
            self.latest = Some(sample);
            let round = &mut self.rounds[1];
            round.add(sample);
            self.block.add(sample);
        }
        if self.block.samples == BLOCK {
            let smallest = std::mem::take(&mut self.block).smallest;
            self.base = self.base.map(|base| base.min(smallest));
            self.has_blocks = true;
            self.add_block(path, smallest);
        }
    }

    /// One block may be long by chance: with jitter only two of them say that a queue is there.
    fn add_block(&mut self, path: &PathState, smallest: Span) {
        let [last, round] = &self.rounds;
        // In a small window they would be of different round trips.
        let before = round.newest.or(last.newest);
        let shorter = match before {
            Some(before) if last.blocks.max(round.blocks) >= 2 => before.min(smallest),
            _ => smallest,
        };
        let full = shorter > self.base(path) + self.queue_limit(path) + self.wander;
        let round = &mut self.rounds[1];
        if let Some(before) = before {
            round.moved = round.moved + self.turns.next(before, smallest);
            round.blocks += 1;
        }
        round.of_two = Some(shorter);
        round.newest = Some(smallest);
        round.full |= full;
    }

    /// A sample of the RTT, less what the ACK may have waited for the receiver's timer. Who sends
    /// few packets, be it what is sent again of a segment that is complete but for them, has no
    /// other samples: without this each such round trip was a queue of 25 ms, for which the window
    /// was halved. In slow start the packets leave in trains, and the window makes a queue.
    fn without_timer(&self, path: &PathState, acks: &Acks<'_>, sample: Span) -> Span {
        let limited = path.limited || acks.rate.is_some_and(|rate| rate.limited);
        if !limited || path.ssthresh.is_none() {
            return sample;
        }
        beyond(sample, MAX_ACK_DELAY).max(self.base(path).min(sample))
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
        let next = Round {
            begun: path.now,
            ..Round::default()
        };
        self.rounds = [round, next];
        if round.rate > 0 {
            self.rates.rotate_right(1);
            self.rates[0] = round.rate;
        }
        let queue = beyond(round.of_two.or(round.least)?, self.base(path));
        let limit = self.queue_limit(path);
        let stands = queue > limit + self.wander;
        if !stands {
            let mean = part(round.above, u64::from(round.samples));
            self.noise = part(self.noise * 7 + mean, 8);
        }
        if round.blocks > 0 {
            let mean = part(round.moved * WANDER, round.blocks);
            let most = part(self.base(path), MOST_WANDER_PART);
            self.wander = part(self.wander * 7 + mean.min(most), 8);
        }
        Some(RoundEnd {
            queue,
            rate: per_second(round.bytes, path.now - round.begun),
            wander: self.wander,
            stands,
            packets: round.bytes / path.datagram,
            limited: round.limited,
        })
    }

    /// Forgets all but the rates of the last round trips. To be called when nobody else is there:
    /// what these have not delivered, the link does not carry.
    pub fn forget_older(&mut self) {
        self.rates[RECENT..].fill(0);
    }

    /// Whether congestion explains the loss of just now: a queue that stands for longer than a
    /// round trip, one that the packets beside the lost one waited in, or more losses than chance
    /// makes.
    pub fn is_congestion(&self, path: &PathState) -> bool {
        let limit = self.queue_limit(path);
        let waited = self.queue_now(path) > limit + self.noise * NOISE + self.wander;
        waited || self.loses_too_much() || self.queue_stands(path)
    }

    fn queue_stands(&self, path: &PathState) -> bool {
        let [Some(last), Some(this)] = self.rounds.map(|round| round.least) else {
            return false;
        };
        beyond(last.min(this), self.base(path)) > self.queue_limit(path) + self.wander
    }

    fn loses_too_much(&self) -> bool {
        let lost: u64 = self.rounds.iter().map(|round| round.lost).sum();
        let packets = lost + self.rounds.iter().map(|round| round.acked).sum::<u64>();
        let slack = if packets < FEW { 1 } else { 2 };
        lost > packets / LOSS + slack
    }
}

impl Turns {
    /// By how much the smallest sample has turned back; zero while a queue grows or drains.
    fn next(&mut self, before: Span, now: Span) -> Span {
        let [down, up] = [beyond(before, now), beyond(now, before)];
        let turns = down.min(self.up) + up.min(self.down) > Span::ZERO;
        let turned = if turns { down + up } else { Span::ZERO };
        (self.down, self.up) = (down, up);
        turned
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
