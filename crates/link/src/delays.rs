//! The delays of one link, which keep the order of packets.

use bentpipe_units::{Span, Time};

use crate::delay::{Delay, Jitter};
use crate::delay_steps::DelaySteps;
use crate::handovers_in_trial::{HandoversInTrial, UnderWay};
use crate::intervals::Drawn;
use crate::node::{Node, Step, Transit};
use crate::random::{Dice, LinkSeed, Purpose};
use crate::scenario::DirectionConfig;

/// The delays of one link, and its handovers.
pub(crate) struct Delays {
    delay: DelayOverTime,
    /// The smallest of them.
    min: Span,
    handovers: Option<HandoversInTrial>,
    /// When the last packet arrives.
    last: Time,
}

/// A delay over time in a trial.
pub(crate) enum DelayOverTime {
    Fixed(Span),
    Steps(DelaySteps),
    /// The base, and what is added for each packet, at most.
    PerPacket(Span, u64, Box<Dice>),
    /// The base, and what is added for an interval.
    PerInterval(Span, Box<Drawn>),
    /// A delay, and drawn values that are added to it.
    Within(Box<Self>, Vec<Drawn>),
}

impl DelayOverTime {
    pub fn new(delay: &Delay, seed: LinkSeed) -> Self {
        match delay {
            Delay::Fixed(span) => Self::Fixed(*span),
            Delay::Steps(steps) => Self::Steps(steps.clone()),
            Delay::Jitter(jitter) => Self::of_jitter(jitter, seed),
        }
    }

    fn of_jitter(jitter: &Jitter, seed: LinkSeed) -> Self {
        let (base, most) = (jitter.base, jitter.jitter.as_nanos());
        let dice = seed.stream(Purpose::Delay);
        let own = match jitter.intervals {
            None => Self::PerPacket(base, most, Box::new(dice)),
            Some(intervals) => Self::PerInterval(base, Box::new(Drawn::new(intervals, most, dice))),
        };
        let within = jitter.within.iter().enumerate();
        let within = within.map(|(number, (most, intervals))| {
            let dice = seed.within(Purpose::Delay, number);
            Drawn::new(*intervals, most.as_nanos(), dice)
        });
        let within: Vec<Drawn> = within.collect();
        if within.is_empty() {
            own
        } else {
            Self::Within(Box::new(own), within)
        }
    }

    /// The delay of the next packet, whose last bit is sent at a time, and until when it holds.
    /// Times must not go back by a change.
    pub fn at(&mut self, departure: Time) -> (Span, Time) {
        match self {
            Self::Fixed(span) => (*span, Time::NEVER),
            Self::Steps(steps) => steps.at(departure),
            Self::PerPacket(base, most, dice) => {
                let added = Span::from_nanos(dice.up_to(*most));
                (*base + added, Time::NEVER)
            }
            Self::PerInterval(base, drawn) => {
                let (added, until) = drawn.at(departure);
                (*base + Span::from_nanos(added), until)
            }
            Self::Within(own, within) => {
                let each = within.iter_mut().map(|drawn| drawn.at(departure));
                each.fold(own.at(departure), |(sum, until), (added, next)| {
                    (sum + Span::from_nanos(added), until.min(next))
                })
            }
        }
    }
}

impl Delays {
    pub fn new(config: &DirectionConfig, seed: LinkSeed) -> Self {
        let handovers = config.handovers.as_ref();
        Self {
            min: config.delay.min(),
            delay: DelayOverTime::new(&config.delay, seed),
            handovers: handovers.map(|it| HandoversInTrial::new(it, seed)),
            last: Time::ZERO,
        }
    }
}

impl Node for Delays {
    /// A packet that is lost has its delay, too, so that those of the others do not depend on which
    /// are lost, but nobody waits for it.
    ///
    /// All that a handover does is known when a packet begins to travel, for its time is. What
    /// comes in a gap travels when it ends: of a link with a rate that is only a packet whose last
    /// bit is sent as the gap begins, or that leaves with the end of a frame.
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        let handovers = self.handovers.as_mut();
        let departure = handovers.map_or(now, |it| it.departure(now));
        let at = self.last.max(departure + self.delay.at(departure).0);
        let handovers = self.handovers.as_mut();
        let at = handovers.map_or(UnderWay::Arrives(at), |it| it.under_way(departure, at));
        match at {
            UnderWay::Arrives(at) if !transit.is_lost => {
                self.last = at;
                Step::Leave { at }
            }
            _ => Step::Lose,
        }
    }

    fn min_delay(&self) -> Span {
        self.min
    }
}
