//! The ideal sender: one that knows the capacity of every instant, and uses all of it without a
//! queue.

use bentpipe_units::{Span, Time};

use crate::allocation::Allocation;
use crate::direction::Direction;
use crate::random::LinkSeed;
use crate::rate::LinkRate;
use crate::rate_over_time::RateOverTime;
use crate::satellite::ReturnRate;
use crate::scenario::Scenario;
use crate::token_bucket::TokenBucketConfig;

/// Billionths of a byte that a byte of files takes on the link: 5 % are headers.
const BYTE_NANOS_ON_LINK: u128 = 1_050_000_000;

/// The ideal sender of one direction in the trial with one seed: what rates that are drawn turn out
/// to be, it knows.
///
/// What it sends at a time meets each link after the delays before it, and may not exceed the rate
/// that the link then has. A token bucket that a packet meets is full at the beginning; over any
/// time, no more passes than it holds and its rate gives. Delays count with their smallest values,
/// and frames do not count.
pub struct Ideal<'a> {
    scenario: &'a Scenario,
    direction: Direction,
    seed: u64,
}

/// The rate of a link, and how long a packet travels from the sender until it meets it.
type Limiter = (Span, RateOverTime);

impl<'a> Ideal<'a> {
    /// `seed` is the trial's.
    #[must_use]
    pub fn new(scenario: &'a Scenario, direction: Direction, seed: u64) -> Self {
        Self {
            scenario,
            direction,
            seed,
        }
    }

    /// The completion time for these bytes: the round trips, of which the last begins with the
    /// request, and the time that the bytes take with 5 % of overhead for headers. `start` is when
    /// the connection's first packet is sent.
    ///
    /// A link with capacity on demand is asked for all of it with the first of these bytes.
    #[must_use]
    pub fn limit(&self, size_bytes: u64, round_trips: u64, start: Time) -> Span {
        let request = match self.direction {
            Direction::Forward => self.scenario.min_one_way(Direction::Return),
            Direction::Return => Span::ZERO,
        };
        let begin = start + self.scenario.rtt() * round_trips.saturating_sub(1) + request;
        let bit_nanos = u128::from(size_bytes) * 8 * BYTE_NANOS_ON_LINK;
        let end = time_for(bit_nanos, begin, &mut self.limiters(Some(begin)));
        let of_buckets = self
            .buckets()
            .map(|it| begin + it.least_time_for(bit_nanos));
        let end = of_buckets.fold(end, Time::max);
        self.scenario.rtt() * round_trips + (end - begin)
    }

    /// The billionths of bits that it could deliver between two times at the receiver; None if
    /// nothing limits it. A link with capacity on demand counts with its full rate.
    #[must_use]
    pub fn bit_nanos(&self, from: Time, to: Time) -> Option<u128> {
        let one_way = self.scenario.min_one_way(self.direction);
        let (mut at, end) = (from - one_way, to - one_way);
        let mut limiters = self.limiters(None);
        let of_buckets = self.buckets().map(|it| it.most_in(end - at)).min();
        if limiters.is_empty() {
            return of_buckets;
        }
        let mut sum = 0;
        while at < end {
            let (bps, until) = slowest(&mut limiters, at);
            let until = until.min(end);
            sum += u128::from(bps) * u128::from((until - at).as_nanos());
            at = until;
        }
        Some(of_buckets.map_or(sum, |most| most.min(sum)))
    }

    /// The token buckets on the way.
    fn buckets(&self) -> impl Iterator<Item = TokenBucketConfig> {
        let links = self.scenario.whole().links(self.direction);
        links.flat_map(|(_, config)| config.buckets())
    }

    /// The links that limit the rate. `asked`: when everything is asked for; None: it has been
    /// granted long ago.
    fn limiters(&self, asked: Option<Time>) -> Vec<Limiter> {
        let (direction, seed) = (self.direction, self.seed);
        let mut before = Span::ZERO;
        let mut limiters = Vec::new();
        for (segment, config) in self.scenario.whole().links(direction) {
            let stream = LinkSeed {
                seed,
                direction,
                segment,
            };
            let config = &*config.in_trial(stream);
            let own = if config.travels_first() {
                config.delay.min()
            } else {
                Span::ZERO
            };
            let meets = before + own;
            let found = config.rate.as_ref().map(|rate| match (rate, asked) {
                (LinkRate::OnDemand(demand), Some(asked)) => {
                    RateOverTime::OnDemand(Allocation::all_asked(*demand, asked + meets))
                }
                (LinkRate::OnDemand(demand), None) => RateOverTime::Fixed(demand.full.bps()),
                (LinkRate::Rcs2(carrier), Some(asked)) => {
                    let asked = Some(asked + meets);
                    RateOverTime::Return(Box::new(ReturnRate::new(carrier, asked)))
                }
                _ => RateOverTime::new(rate, stream),
            });
            let found = found.map(|rate| rate.interrupted(config, stream));
            limiters.extend(found.map(|rate| (meets, rate)));
            before = before + config.delay.min();
        }
        limiters
    }
}

/// The rate that the slowest link has for what is sent at a time, and until when no link changes.
fn slowest(limiters: &mut [Limiter], at: Time) -> (u64, Time) {
    let at_limiter = |(before, rate): &mut Limiter| {
        let (bps, until) = rate.at(at + *before);
        let until = if until == Time::NEVER {
            until
        } else {
            until - *before
        };
        (bps, until)
    };
    let both = |one: (u64, Time), other: (u64, Time)| (one.0.min(other.0), one.1.min(other.1));
    limiters
        .iter_mut()
        .map(at_limiter)
        .fold((u64::MAX, Time::NEVER), both)
}

/// When `bit_nanos` billionths of a bit are sent that begin to be sent at a time, rounded up.
fn time_for(bit_nanos: u128, begin: Time, limiters: &mut [Limiter]) -> Time {
    let (mut left, mut at) = (bit_nanos, begin);
    if limiters.is_empty() {
        return begin;
    }
    loop {
        let (bps, until) = slowest(limiters, at);
        let room = u128::from(bps) * u128::from((until - at).as_nanos());
        if left <= room || until == Time::NEVER {
            let nanos = left.div_ceil(u128::from(bps.max(1)));
            return at + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
        left -= room;
        at = until;
    }
}
