//! The timelines of a link: the values over time of a rate, a delay or a loss ratio that changes,
//! in a few figures.
//!
//! A value holds until the next, so every figure here is weighted by time. A quantity that depends
//! on packets, as a delay that is drawn for each of them or capacity on demand, has no timeline.

use std::collections::BTreeMap;

use bentpipe_units::{Ratio, Span, Time};

use crate::delay::{Delay, Jitter};
use crate::delay_steps::DelaySteps;
use crate::delays::DelayOverTime;
use crate::direction::{Direction, SegmentName};
use crate::handovers::HandoverTimes;
use crate::intervals::Intervals;
use crate::loss::Loss;
use crate::outages::OutageTimes;
use crate::random::LinkSeed;
use crate::rate::{LinkRate, RateSteps};
use crate::rate_over_time::RateOverTime;
use crate::satellite::Reception;
use crate::scenario::{DirectionConfig, Scenario};
use crate::steps;

/// The number of parts of equal length into which a timeline is divided.
pub const PARTS: usize = 60;
/// The trial whose draws stand for those of all.
const EXAMPLE_SEED: u64 = 0;
/// Intervals that are looked at, at most: the trial may last for days.
const MOST_INTERVALS: u64 = 10_000;

/// A quantity of a link that changes with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// In bit/s.
    Rate,
    /// In nanoseconds.
    Delay,
    /// In billionths.
    Loss,
    /// Of the trial's terminal, in thousandths of a decibel.
    EsN0,
}

/// The values over time of a quantity of a link, in figures in the unit of the quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTimeline {
    /// The link's segment.
    pub segment: SegmentName,
    /// The link's direction.
    pub direction: Direction,
    /// The quantity that changes.
    pub quantity: Quantity,
    /// The duration of the timeline, from time 0 on.
    pub length: Span,
    /// True if it begins again at its end.
    pub repeats: bool,
    /// The time from which on the last step of several holds for ever; None if there is none.
    pub last_from: Option<Time>,
    /// True if it is drawn at random. Then it is that of the seed 0: other seeds have others.
    pub drawn: bool,
    /// The lowest value that holds for any time.
    pub least: i64,
    /// Half of the time a value holds that is no higher.
    pub median: i64,
    /// The highest value.
    pub most: i64,
    /// The mean, rounded down.
    pub mean: i64,
    /// The mean of each of [`PARTS`] parts of equal length.
    pub parts: Vec<i64>,
}

impl Scenario {
    /// The timelines of all quantities that change with time, segment by segment from the client
    /// to the server.
    #[must_use]
    pub fn timelines(&self) -> Vec<LinkTimeline> {
        let segments = [
            SegmentName::Access,
            SegmentName::Satellite,
            SegmentName::Ground,
        ];
        let places = segments.map(|segment| Direction::BOTH.map(|direction| (segment, direction)));
        let mut found = Vec::new();
        for (segment, direction) in places.into_iter().flatten() {
            let Some(config) = self.segment(segment) else {
                continue;
            };
            let seed = LinkSeed {
                seed: EXAMPLE_SEED,
                direction,
                segment,
            };
            let config = &*config.direction(direction).in_trial(seed);
            let each = [
                es_n0(config, self.timeout),
                rate(config, seed, self.timeout),
                delay(config, seed, self.timeout),
                loss(config, self.timeout),
            ];
            let each = each.into_iter().flatten();
            found.extend(each.map(|values| values.timeline(segment, direction)));
        }
        found
    }
}

/// Values over time: what holds from a time on, and until when.
struct Values<'a> {
    quantity: Quantity,
    extent: Extent,
    drawn: bool,
    at: At<'a>,
}

/// The value that holds at a time, and until when. Times must not go back.
type At<'a> = Box<dyn FnMut(Time) -> (i64, Time) + 'a>;

fn rate(config: &DirectionConfig, seed: LinkSeed, timeout: Span) -> Option<Values<'_>> {
    let rate = config.rate.as_ref()?;
    let extent = match (rate, interruptions(config, timeout)) {
        (LinkRate::OnDemand(_) | LinkRate::Rcs2(_), _) | (LinkRate::Fixed(_), None) => return None,
        (LinkRate::Steps(RateSteps { steps, period, .. }), None) => {
            Extent::of_steps(steps, *period, timeout)
        }
        (LinkRate::DvbS2(carrier), None) => of_reception(&carrier.own.reception, timeout)?,
        (LinkRate::Random(random), _) => {
            let each = random.within.iter().map(|(_, it)| it);
            let shortest = each.chain([&random.intervals]).min_by_key(|it| it.every);
            Extent::of_intervals(*shortest.unwrap_or(&random.intervals), timeout)
        }
        (_, Some(extent)) => extent,
    };
    let mut over_time = RateOverTime::of_link(config, seed)?;
    Some(Values {
        quantity: Quantity::Rate,
        extent,
        drawn: matches!(rate, LinkRate::Random(_)),
        at: Box::new(move |at| {
            let (bps, until) = over_time.at(at);
            (count(bps), until)
        }),
    })
}

/// The Es/N0 of the trial's terminal.
fn es_n0(config: &DirectionConfig, timeout: Span) -> Option<Values<'_>> {
    let reception = config.rate.as_ref()?.reception()?;
    Some(Values {
        quantity: Quantity::EsN0,
        extent: of_reception(reception, timeout)?,
        drawn: false,
        at: Box::new(move |at| {
            let (es_n0, until) = reception.at(at);
            (es_n0.thousandths(), until)
        }),
    })
}

/// The extent of a carrier's timeline; None: nothing ever changes.
fn of_reception(reception: &Reception, timeout: Span) -> Option<Extent> {
    (!reception.is_steady()).then_some(Extent {
        length: timeout,
        repeats: false,
        last_from: None,
    })
}

/// The extent of a timeline of outages and handovers; None if there are none.
fn interruptions(config: &DirectionConfig, timeout: Span) -> Option<Extent> {
    let outages = config.outages.as_ref().map(|it| match &it.times {
        OutageTimes::Every { intervals, .. } => Extent::of_intervals(*intervals, timeout),
        OutageTimes::Given(times) => Extent::up_to_last(times, timeout),
    });
    let handovers = config.handovers.as_ref().map(|it| match &it.times {
        HandoverTimes::Every { intervals, .. } => Extent::of_intervals(*intervals, timeout),
        HandoverTimes::Given { times, .. } => Extent::up_to_last(times, timeout),
    });
    let both = outages.into_iter().chain(handovers);
    both.min_by_key(|it| it.length)
}

fn delay(config: &DirectionConfig, seed: LinkSeed, timeout: Span) -> Option<Values<'_>> {
    let (extent, drawn) = match &config.delay {
        Delay::Steps(DelaySteps { steps, period, .. }) => {
            (Extent::of_steps(steps, *period, timeout), false)
        }
        Delay::Jitter(Jitter {
            intervals: Some(intervals),
            within,
            ..
        }) => {
            let shortest = within.iter().map(|(_, it)| it).chain([intervals]);
            let shortest = shortest.min_by_key(|it| it.every).unwrap_or(intervals);
            (Extent::of_intervals(*shortest, timeout), true)
        }
        Delay::Fixed(_) | Delay::Jitter(_) => return None,
    };
    let mut over_time = DelayOverTime::new(&config.delay, seed);
    Some(Values {
        quantity: Quantity::Delay,
        extent,
        drawn,
        at: Box::new(move |at| {
            let (delay, until) = over_time.at(at);
            (count(delay.as_nanos()), until)
        }),
    })
}

fn loss(config: &DirectionConfig, timeout: Span) -> Option<Values<'_>> {
    let (extent, at): (_, At<'_>) = match &config.loss {
        Loss::Steps { steps, period } => {
            let at = |at| {
                let (ratio, until) = steps::at(steps, *period, at);
                (count(ratio.ppb()), until)
            };
            (Extent::of_steps(steps, *period, timeout), Box::new(at))
        }
        Loss::Handover {
            intervals,
            lasts,
            loss,
        } => {
            let at = |at: Time| {
                let (_, next) = intervals.changes(at);
                match intervals.since_change(at) {
                    Some(since) if since < *lasts => {
                        let ends = Time::from_nanos(at.as_nanos() - since.as_nanos()) + *lasts;
                        (count(loss.ppb()), ends.min(next))
                    }
                    _ => (count(Ratio::ZERO.ppb()), next),
                }
            };
            (Extent::of_intervals(*intervals, timeout), Box::new(at))
        }
        _ => return None,
    };
    Some(Values {
        quantity: Quantity::Loss,
        extent,
        drawn: false,
        at,
    })
}

/// How long a timeline is, and what comes after it.
#[derive(Clone, Copy)]
struct Extent {
    length: Span,
    repeats: bool,
    last_from: Option<Time>,
}

impl Extent {
    fn of_steps<T>(steps: &[(Time, T)], period: Option<Span>, timeout: Span) -> Self {
        let Some(length) = period else {
            let last_from = (steps.len() > 1).then(|| steps[steps.len() - 1].0);
            return Self {
                last_from,
                ..Self::up_to_last(steps, timeout)
            };
        };
        Self {
            length,
            repeats: true,
            last_from: None,
        }
    }

    /// As long as a trial may last, or until the last step begins.
    fn up_to_last<T>(steps: &[(Time, T)], timeout: Span) -> Self {
        Self {
            length: timeout.max(steps[steps.len() - 1].0 - Time::ZERO),
            repeats: false,
            last_from: None,
        }
    }

    fn of_intervals(intervals: Intervals, timeout: Span) -> Self {
        Self {
            length: timeout.min(intervals.every * MOST_INTERVALS),
            repeats: false,
            last_from: None,
        }
    }
}

impl Values<'_> {
    fn timeline(mut self, segment: SegmentName, direction: Direction) -> LinkTimeline {
        let length = self.extent.length.as_nanos().max(1);
        let mut held: BTreeMap<i64, u128> = BTreeMap::new();
        let mut parts = Parts::new(length);
        let mut now = 0;
        while now < length {
            let (value, until) = (self.at)(Time::from_nanos(now));
            let until = until.as_nanos().clamp(now + 1, length);
            *held.entry(value).or_default() += u128::from(until - now);
            parts.add(value, now, until);
            now = until;
        }
        let mean = weighted(held.iter().map(|(value, nanos)| (*value, *nanos)));
        LinkTimeline {
            segment,
            direction,
            quantity: self.quantity,
            length: self.extent.length,
            repeats: self.extent.repeats,
            last_from: self.extent.last_from,
            drawn: self.drawn,
            least: held.keys().next().copied().unwrap_or(0),
            median: median(&held, u128::from(length)),
            most: held.keys().next_back().copied().unwrap_or(0),
            mean,
            parts: parts.means(),
        }
    }
}

/// The value that half of the time is not exceeded.
fn median(held: &BTreeMap<i64, u128>, length: u128) -> i64 {
    let mut passed = 0;
    let half = held.iter().find(|(_, nanos)| {
        passed += **nanos;
        2 * passed >= length
    });
    half.map_or(0, |(value, _)| *value)
}

/// The mean of values that hold for so many nanoseconds each.
fn weighted(values: impl Iterator<Item = (i64, u128)>) -> i64 {
    let (sum, nanos) = values.fold((0, 0), |(sum, all), (value, nanos)| {
        (sum + i128::from(value) * signed(nanos), all + nanos)
    });
    mean(sum, nanos)
}

/// A sum over so many nanoseconds, for each of them, rounded down.
fn mean(sum: i128, nanos: u128) -> i64 {
    let mean = sum.div_euclid(signed(nanos.max(1)));
    i64::try_from(mean).unwrap_or(i64::MAX)
}

fn signed(nanos: u128) -> i128 {
    i128::try_from(nanos).unwrap_or(i128::MAX)
}

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The value in each part.
struct Parts {
    length: u64,
    sums: Vec<i128>,
}

impl Parts {
    fn new(length: u64) -> Self {
        Self {
            length,
            sums: vec![0; PARTS],
        }
    }

    /// Where a part begins, rounded down.
    fn begin(&self, part: usize) -> u64 {
        let begin = u128::from(self.length) * part as u128 / PARTS as u128;
        u64::try_from(begin).unwrap_or(u64::MAX)
    }

    /// A value holds from `from` until `until`.
    fn add(&mut self, value: i64, from: u64, until: u64) {
        let first = u128::from(from) * PARTS as u128 / u128::from(self.length);
        let first = usize::try_from(first).unwrap_or(0);
        for part in first..PARTS {
            let (begin, end) = (self.begin(part), self.begin(part + 1));
            if begin >= until {
                break;
            }
            let nanos = end.min(until).saturating_sub(begin.max(from));
            self.sums[part] += i128::from(value) * i128::from(nanos);
        }
    }

    /// The mean of each; 0 for an empty part, as in a timeline of less than 60 ns.
    fn means(&self) -> Vec<i64> {
        let each = self.sums.iter().enumerate().map(|(part, sum)| {
            let nanos = u128::from(self.begin(part + 1) - self.begin(part));
            mean(*sum, nanos)
        });
        each.collect()
    }
}
