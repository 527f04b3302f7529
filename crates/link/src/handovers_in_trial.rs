//! The handovers of one trial.

use bentpipe_units::{Span, Time};

use crate::events::EVENTS_KEPT;
use crate::handovers::{HandoverTimes, Handovers, InFlight};
use crate::random::{Dice, LinkSeed};

/// The handovers of a link in a trial. The lengths of gaps depend on the seed alone, not on
/// packets.
pub(crate) struct HandoversInTrial {
    times: HandoverTimes,
    in_flight: InFlight,
    dice: Dice,
    /// The gaps of all handovers up to the latest that has been asked for, where they are drawn.
    drawn: Vec<Span>,
}

/// The fate of a packet that has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnderWay {
    Arrives(Time),
    Lost,
}

impl HandoversInTrial {
    /// `handovers` is that of the trial, whose phase is known.
    pub fn new(handovers: &Handovers, seed: LinkSeed) -> Self {
        Self {
            times: handovers.times.clone(),
            in_flight: handovers.in_flight,
            dice: seed.gaps(),
            drawn: Vec::new(),
        }
    }

    /// Whether there is a gap at a time, and when that changes, or could.
    pub fn at(&mut self, at: Time) -> (bool, Time) {
        match self.last(at) {
            Some((begin, gap)) if at < begin + gap => (true, begin + gap),
            _ => (false, self.next(at).map_or(Time::NEVER, |(begin, _)| begin)),
        }
    }

    /// When a packet that comes to the path at a time begins to travel.
    pub fn departure(&mut self, at: Time) -> Time {
        match self.at(at) {
            (true, end) => end,
            (false, _) => at,
        }
    }

    /// The fate of a packet that is sent at `departure`, when there is no gap, and would arrive at
    /// `arrival`.
    pub fn under_way(&mut self, departure: Time, arrival: Time) -> UnderWay {
        match (self.next(departure), self.in_flight) {
            (Some((begin, _)), InFlight::Lost) if begin < arrival => UnderWay::Lost,
            (Some((begin, gap)), InFlight::Delayed) if begin < arrival => {
                UnderWay::Arrives(arrival.max(begin + gap))
            }
            _ => UnderWay::Arrives(arrival),
        }
    }

    /// The handovers that begin by a time, at most [`EVENTS_KEPT`] and one more, and their gaps.
    pub fn up_to(mut self, until: Time) -> Vec<(Time, Span)> {
        let first = self.last(Time::ZERO).or_else(|| self.next(Time::ZERO));
        let mut next = first;
        let mut found = Vec::new();
        while let Some((begin, gap)) = next.filter(|it| it.0 <= until) {
            found.push((begin, gap));
            next = self.next(begin).filter(|_| found.len() <= EVENTS_KEPT);
        }
        found
    }

    /// The last handover at a time or before it, and its gap.
    fn last(&mut self, at: Time) -> Option<(Time, Span)> {
        match &self.times {
            HandoverTimes::Given { times, period } => given_last(times, *period, at),
            HandoverTimes::Every { intervals, .. } => {
                let since = intervals.since_change(at)?;
                let (count, _) = intervals.changes(at);
                let begin = Time::from_nanos(at.as_nanos() - since.as_nanos());
                Some((begin, self.gap(count - 1)))
            }
        }
    }

    /// The first handover after a time, and its gap.
    fn next(&mut self, at: Time) -> Option<(Time, Span)> {
        match &self.times {
            HandoverTimes::Given { times, period } => given_next(times, *period, at),
            HandoverTimes::Every { intervals, .. } => {
                let (count, begin) = intervals.changes(at);
                Some((begin, self.gap(count)))
            }
        }
    }

    /// The gap of the handover with that number, from 0 on, where there is one at intervals.
    fn gap(&mut self, number: u64) -> Span {
        let HandoverTimes::Every { gaps, .. } = &self.times else {
            return Span::ZERO;
        };
        if let [gap] = gaps.as_slice() {
            return *gap;
        }
        while self.drawn.len() as u64 <= number {
            let most = gaps.len() as u64 - 1;
            let which = usize::try_from(self.dice.up_to(most)).expect("a place in a list");
            self.drawn.push(gaps[which]);
        }
        self.drawn[usize::try_from(number).expect("as many as have been drawn")]
    }
}

/// When the period begins that a time is in.
fn begin_of(period: Option<Span>, at: Time) -> Time {
    let past = period.map_or(at.as_nanos(), |period| at.as_nanos() % period.as_nanos());
    Time::from_nanos(at.as_nanos() - past)
}

fn given_last(times: &[(Time, Span)], period: Option<Span>, at: Time) -> Option<(Time, Span)> {
    let begin = begin_of(period, at);
    let within = Time::ZERO + (at - begin);
    let passed = times.partition_point(|(time, _)| *time <= within);
    let (begin, (time, gap)) = match passed.checked_sub(1) {
        Some(last) => (begin, times[last]),
        // The last of the period before, if there was one.
        None if begin > Time::ZERO => (begin - period?, *times.last()?),
        None => return None,
    };
    Some((begin + (time - Time::ZERO), gap))
}

fn given_next(times: &[(Time, Span)], period: Option<Span>, at: Time) -> Option<(Time, Span)> {
    let begin = begin_of(period, at);
    let within = Time::ZERO + (at - begin);
    let passed = times.partition_point(|(time, _)| *time <= within);
    let (begin, (time, gap)) = match times.get(passed) {
        Some(next) => (begin, *next),
        None => (begin + period?, times[0]),
    };
    Some((begin + (time - Time::ZERO), gap))
}
