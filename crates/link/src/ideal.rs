//! The ideal sender: one that knows the capacity of every instant, and uses all of it without a
//! queue.

use bentpipe_units::{Span, Time};

use crate::allocation::Allocation;
use crate::direction::Direction;
use crate::random::{LinkSeed, path_seed};
use crate::rate::LinkRate;
use crate::rate_over_time::RateOverTime;
use crate::satellite::ReturnRate;
use crate::scenario::Scenario;
use crate::token_bucket::TokenBucketConfig;

/// Billionths of a byte that a byte of files takes on the link: 5 % are headers.
const BYTE_NANOS_ON_LINK: u128 = 1_050_000_000;

/// Over several paths, a time beyond this counts as never.
const MOST_TIME: Span = Span::from_secs(10_000_000);

/// The ideal sender of one direction in the trial with one seed: what rates that are drawn turn out
/// to be, it knows.
///
/// What it sends at a time meets each link after the delays before it, and may not exceed the rate
/// that the link then has. A token bucket that a packet meets is full at the beginning; over any
/// time, no more passes than it holds and its rate gives. Delays count with their smallest values,
/// and frames do not count.
///
/// Where a scenario has several paths, round trips are those of the first, and from the request on
/// it fills all of them. The answer to an upload takes the fastest.
pub struct Ideal {
    /// By number.
    paths: Vec<OnPath>,
    /// How long the answer to an upload travels: over the fastest path.
    answer: Span,
}

/// The ideal sender over one path.
struct OnPath {
    scenario: Scenario,
    direction: Direction,
    seed: u64,
}

/// The rate of a link, and how long a packet travels from the sender until it meets it.
type Limiter = (Span, RateOverTime);

impl Ideal {
    /// `seed` is the trial's.
    #[must_use]
    pub fn new(scenario: &Scenario, direction: Direction, seed: u64) -> Self {
        let each = scenario.each_path().into_iter().enumerate();
        let paths = each.map(|(number, scenario)| OnPath {
            scenario,
            direction,
            seed: path_seed(seed, number),
        });
        Self {
            paths: paths.collect(),
            answer: scenario.min_one_way_of_all_paths(Direction::Forward),
        }
    }

    /// The completion time for these bytes: the round trips, of which the last begins with the
    /// request, and the time that the bytes take with 5 % of overhead for headers. `start` is when
    /// the connection's first packet is sent.
    ///
    /// A link with capacity on demand is asked for all of it with the first of these bytes.
    #[must_use]
    pub fn limit(&self, size_bytes: u64, round_trips: u64, start: Time) -> Span {
        let first = &self.paths[0];
        let request = match first.direction {
            Direction::Forward => first.scenario.min_one_way(Direction::Return),
            Direction::Return => Span::ZERO,
        };
        let rtt = first.scenario.rtt();
        let begin = start + rtt * round_trips.saturating_sub(1) + request;
        let bit_nanos = u128::from(size_bytes) * 8 * BYTE_NANOS_ON_LINK;
        if let [only] = &*self.paths {
            return rtt * round_trips + (only.sent(bit_nanos, begin) - begin);
        }
        let after = match first.direction {
            Direction::Forward => Span::ZERO,
            Direction::Return => self.answer,
        };
        self.all_arrived(bit_nanos, begin) + after - start
    }

    /// When as many billionths of a bit have arrived, over all paths, that begin to be sent at a
    /// time: the first nanosecond at which it is so.
    fn all_arrived(&self, bit_nanos: u128, begin: Time) -> Time {
        let has_arrived = |at: Time| {
            let of = |path: &OnPath| path.arrived(begin, at).unwrap_or(u128::MAX);
            let sum = self.paths.iter().map(of).fold(0, u128::saturating_add);
            sum >= bit_nanos
        };
        let mut step = Span::from_secs(1);
        while !has_arrived(begin + step) {
            if step > MOST_TIME {
                return Time::NEVER;
            }
            step = step * 2;
        }
        let (mut low, mut high) = (begin.as_nanos(), (begin + step).as_nanos());
        while low < high {
            let middle = low + (high - low) / 2;
            if has_arrived(Time::from_nanos(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Time::from_nanos(high)
    }

    /// The billionths of bits that it could deliver between two times at the receiver, over all
    /// paths; None if nothing limits one of them. A link with capacity on demand counts with its
    /// full rate.
    #[must_use]
    pub fn bit_nanos(&self, from: Time, to: Time) -> Option<u128> {
        let of = |path: &OnPath| {
            let one_way = path.scenario.min_one_way(path.direction);
            path.bit_nanos(from - one_way, to - one_way, None)
        };
        self.paths.iter().map(of).sum()
    }
}

impl OnPath {
    /// When these billionths of bits are sent that begin to be sent at a time.
    fn sent(&self, bit_nanos: u128, begin: Time) -> Time {
        let end = time_for(bit_nanos, begin, &mut self.limiters(Some(begin)));
        let of_buckets = self
            .buckets()
            .map(|it| begin + it.least_time_for(bit_nanos));
        of_buckets.fold(end, Time::max)
    }

    /// The billionths of bits that have arrived by a time of those that begin to be sent at
    /// another; None if they do at once. Links are asked for capacity when they begin.
    fn arrived(&self, begin: Time, by: Time) -> Option<u128> {
        let one_way = self.scenario.min_one_way(self.direction);
        if by < begin + one_way {
            return Some(0);
        }
        self.bit_nanos(begin, by - one_way, Some(begin))
    }

    /// The billionths of bits that it could send between two times; None if nothing limits it.
    fn bit_nanos(&self, from: Time, to: Time, asked: Option<Time>) -> Option<u128> {
        let (mut at, end) = (from, to);
        let mut limiters = self.limiters(asked);
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
