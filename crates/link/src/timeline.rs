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
use crate::parts::{Parts, median, weighted};
use crate::random::LinkSeed;
use crate::rate::{LinkRate, RateSteps};
use crate::rate_over_time::RateOverTime;
use crate::satellite::{Adaptation, Modcod, Mode, Reception, Waveform};
use crate::scenario::{DirectionConfig, Scenario};
use crate::steps;

/// The number of parts of equal length into which a timeline is divided.
pub const PARTS: usize = 60;
/// The trial whose draws stand for those of all.
const EXAMPLE_SEED: u64 = 0;
/// The most points of a timeline. Where there are more changes, it has means.
pub const MOST_POINTS: usize = 1_000;
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
    /// The Es/N0 of the trial's terminal, in thousandths of a decibel.
    EsN0,
    /// The Es/N0 that the MODCOD or the waveform of its frames or bursts needs, in thousandths of a
    /// decibel.
    Modcod,
    /// The elevation of the satellite that serves the terminal, in thousandths of a degree.
    Elevation,
    /// The number of satellites that the terminal could use.
    InView,
}

/// The values between two points of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// The first point's value holds.
    Held,
    /// The value changes evenly from the first point's to the second's.
    Even,
    /// The first point's value is the mean.
    Mean,
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
    /// True if it is drawn at random: each trial has another.
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
    /// Each value with the time from which on it holds; or, if these were more than
    /// [`MOST_POINTS`], the means of as many parts of equal length, with the beginning of each. A
    /// value that changes evenly ends with a point at `length`, and has two points at a time at
    /// which it jumps.
    pub points: Vec<(Time, i64)>,
    /// The values between the points.
    pub between: Between,
    /// The name that goes with the values from a time on: of a MODCOD, or of a satellite. Empty if
    /// there are none, or more than [`MOST_POINTS`].
    pub names: Vec<(Time, String)>,
}

impl Scenario {
    /// The timelines of all quantities that change with time, segment by segment from the client
    /// to the server. What is drawn at random is that of the seed 0.
    #[must_use]
    pub fn timelines(&self) -> Vec<LinkTimeline> {
        self.timelines_of(EXAMPLE_SEED, None)
    }

    /// The same for a trial with a seed, up to a time.
    #[must_use]
    pub fn timelines_in_trial(&self, seed: u64, until: Time) -> Vec<LinkTimeline> {
        self.timelines_of(seed, Some(until - Time::ZERO))
    }

    fn timelines_of(&self, seed: u64, length: Option<Span>) -> Vec<LinkTimeline> {
        let mut found = Vec::new();
        for (segment, direction, config) in self.links() {
            let seed = LinkSeed {
                seed,
                direction,
                segment,
            };
            let config = &*config.in_trial(seed);
            let each = [
                es_n0(config, self.timeout),
                modcod(config, self.timeout),
                rate(config, seed, self.timeout),
                delay(config, seed, self.timeout),
                serving_satellite(config, self.timeout, Quantity::Elevation),
                serving_satellite(config, self.timeout, Quantity::InView),
                loss(config, self.timeout),
            ];
            let each = each.into_iter().flatten();
            found.extend(each.map(|mut values| {
                if let Some(length) = length {
                    values.extent = Extent::only(length);
                }
                values.timeline(segment, direction)
            }));
        }
        found
    }
}

/// Values over time: what holds from a time on, and until when.
struct Values<'a> {
    quantity: Quantity,
    extent: Extent,
    drawn: bool,
    before: Option<ValueBefore<'a>>,
    at: ValueAt<'a>,
    name: Option<NameAt<'a>>,
}

/// The value that holds at a time, and until when. Times must not go back.
type ValueAt<'a> = Box<dyn FnMut(Time) -> (i64, Time) + 'a>;
/// The value just before a time, of values that change evenly.
type ValueBefore<'a> = Box<dyn Fn(Time) -> i64 + 'a>;
/// The name that goes with the value at a time, and until when.
type NameAt<'a> = Box<dyn FnMut(Time) -> (String, Time) + 'a>;

impl<'a> Values<'a> {
    /// Values that hold, without names.
    fn new(quantity: Quantity, extent: Extent, at: ValueAt<'a>) -> Self {
        Self {
            quantity,
            extent,
            drawn: false,
            before: None,
            at,
            name: None,
        }
    }
}

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
    let at = move |at| {
        let (bps, until) = over_time.at(at);
        (count(bps), until)
    };
    let drawn = matches!(rate, LinkRate::Random(_));
    let values = Values::new(Quantity::Rate, extent, Box::new(at));
    Some(Values { drawn, ..values })
}

/// The Es/N0 of the trial's terminal.
fn es_n0(config: &DirectionConfig, timeout: Span) -> Option<Values<'_>> {
    let reception = config.rate.as_ref()?.reception()?;
    let at = move |at| {
        let (es_n0, until) = reception.at(at);
        (es_n0.thousandths(), until)
    };
    let extent = of_reception(reception, timeout)?;
    Some(Values::new(Quantity::EsN0, extent, Box::new(at)))
}

/// The MODCOD of the trial's terminal, or the waveform: its threshold, and its name.
fn modcod(config: &DirectionConfig, timeout: Span) -> Option<Values<'_>> {
    let rate = config.rate.as_ref()?;
    let extent = of_reception(rate.reception()?, timeout)?;
    let (at, name): (ValueAt<'_>, NameAt<'_>) = match rate {
        LinkRate::DvbS2(carrier) => {
            let adaptation = || carrier.adaptation(&carrier.own);
            let name = |it: &Modcod| it.name.to_owned();
            (thresholds(adaptation()), names(adaptation(), name))
        }
        LinkRate::Rcs2(carrier) => {
            let adaptation = || carrier.adaptation(&carrier.own);
            let name = |it: &Waveform| format!("{}: {}", it.id, it.name);
            (thresholds(adaptation()), names(adaptation(), name))
        }
        _ => return None,
    };
    let values = Values::new(Quantity::Modcod, extent, at);
    Some(Values {
        name: Some(name),
        ..values
    })
}

fn thresholds<'a, M: Mode>(mut adaptation: Adaptation<M>) -> ValueAt<'a> {
    Box::new(move |at| {
        let (mode, until) = adaptation.at(at);
        (mode.threshold().thousandths(), until)
    })
}

fn names<'a, M: Mode>(
    mut adaptation: Adaptation<M>,
    name: impl Fn(&M) -> String + 'a,
) -> NameAt<'a> {
    Box::new(move |at| {
        let (mode, until) = adaptation.at(at);
        (name(mode), until)
    })
}

/// The elevation of the satellite that serves the terminal, or how many it could use.
fn serving_satellite(
    config: &DirectionConfig,
    timeout: Span,
    quantity: Quantity,
) -> Option<Values<'_>> {
    let Delay::Steps(delay) = &config.delay else {
        return None;
    };
    let satellites = delay.satellites.as_ref()?;
    let step = move |at| {
        let (step, until) = steps::in_period(&delay.steps, delay.period, at);
        (&satellites[step], until)
    };
    let is_elevation = quantity == Quantity::Elevation;
    let at = move |at| {
        let (passing, until) = step(at);
        let in_view = i64::from(passing.in_view);
        (
            if is_elevation {
                passing.elevation
            } else {
                in_view
            },
            until,
        )
    };
    let name: NameAt<'_> = Box::new(move |at| {
        let (passing, until) = step(at);
        (passing.satellite.clone(), until)
    });
    let extent = Extent::of_steps(&delay.steps, delay.period, timeout);
    let elevation_before = move |end| delay.before(end, |step| satellites[step].elevation);
    let before: ValueBefore<'_> = Box::new(elevation_before);
    let values = Values::new(quantity, extent, Box::new(at));
    Some(Values {
        before: (is_elevation && delay.linear).then_some(before),
        name: is_elevation.then_some(name),
        ..values
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
    let at = move |at| {
        let (delay, until) = over_time.at(at);
        (count(delay.as_nanos()), until)
    };
    let before: Option<ValueBefore<'_>> = match &config.delay {
        Delay::Steps(delay) if delay.linear => {
            let nanos = |step: usize| count(delay.steps[step].1.as_nanos());
            Some(Box::new(move |end| delay.before(end, nanos)))
        }
        _ => None,
    };
    let values = Values::new(Quantity::Delay, extent, Box::new(at));
    Some(Values {
        drawn,
        before,
        ..values
    })
}

fn loss(config: &DirectionConfig, timeout: Span) -> Option<Values<'_>> {
    let (extent, at): (_, ValueAt<'_>) = match &config.loss {
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
    Some(Values::new(Quantity::Loss, extent, at))
}

/// The names up to a time in nanoseconds, each with the time from which on it holds.
fn named(mut name: NameAt<'_>, length: u64) -> Vec<(Time, String)> {
    let mut found: Vec<(Time, String)> = Vec::new();
    let mut now = Time::ZERO;
    while now.as_nanos() < length {
        let (name, until) = name(now);
        if found.last().is_none_or(|(_, last)| *last != name) {
            found.push((now, name));
        }
        if found.len() > MOST_POINTS {
            return Vec::new();
        }
        now = until;
    }
    found
}

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// How long a timeline is, and what comes after it.
#[derive(Clone, Copy)]
struct Extent {
    length: Span,
    repeats: bool,
    last_from: Option<Time>,
}

impl Extent {
    fn only(length: Span) -> Self {
        Self {
            length,
            repeats: false,
            last_from: None,
        }
    }

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
        let mut parts = Parts::new(length, PARTS);
        let mut fine = Parts::new(length, MOST_POINTS);
        let mut points: Vec<(Time, i64)> = Vec::new();
        let mut now = 0;
        while now < length {
            let (value, until) = (self.at)(Time::from_nanos(now));
            let until = until.as_nanos().clamp(now + 1, length);
            *held.entry(value).or_default() += u128::from(until - now);
            parts.add(value, now, until);
            fine.add(value, now, until);
            let begin = Time::from_nanos(now);
            if points.len() <= MOST_POINTS {
                let before = self.before.as_ref().filter(|_| now > 0);
                let before = before.map(|before| before(begin));
                points.extend(before.filter(|it| *it != value).map(|it| (begin, it)));
                let is_new = points.last().is_none_or(|(_, last)| *last != value);
                if is_new || self.before.is_some() {
                    points.push((begin, value));
                }
            }
            now = until;
        }
        let mut between = Between::Held;
        if let Some(before) = &self.before {
            between = Between::Even;
            let end = Time::from_nanos(length);
            points.push((end, before(end)));
        }
        if points.len() > MOST_POINTS {
            points = fine.with_begins();
            between = Between::Mean;
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
            points,
            between,
            names: self.name.map(|it| named(it, length)).unwrap_or_default(),
        }
    }
}
