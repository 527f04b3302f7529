//! A rate over time.

use bentpipe_units::{Span, Time};

use crate::allocation::Allocation;
use crate::intervals::Drawn;
use crate::outages::Outages;
use crate::random::{Dice, LinkSeed, Use};
use crate::rate::{LinkRate, RateSteps};
use crate::satellite::{CarrierRate, ReturnRate};
use crate::scenario::DirectionConfig;
use crate::steps::holding;

/// The rate of a link over time, which is known up to any time at which it is asked for.
pub(crate) enum RateOverTime {
    Fixed(u64),
    Steps(RateSteps),
    /// The lowest rate, and what is drawn above it.
    Random(u64, Box<Drawn>),
    OnDemand(Allocation),
    Carrier(Box<CarrierRate>),
    Return(Box<ReturnRate>),
    /// A rate that is 0 in outages.
    Interrupted(Box<Self>, Outages),
}

impl RateOverTime {
    /// The rate of a link in a trial; None if it has none.
    pub fn of_link(config: &DirectionConfig, seed: LinkSeed) -> Option<Self> {
        let rate = Self::new(config.rate.as_ref()?, seed.stream(Use::Rate));
        Some(rate.interrupted(config.outages.as_ref()))
    }

    /// The same with outages, if there are any.
    pub fn interrupted(self, outages: Option<&Outages>) -> Self {
        match outages {
            None => self,
            Some(outages) => Self::Interrupted(Box::new(self), outages.clone()),
        }
    }

    /// The grants, if it is assigned on demand.
    pub fn allocation(&mut self) -> Option<&mut Allocation> {
        match self {
            Self::OnDemand(allocation) => Some(allocation),
            Self::Interrupted(rate, _) => rate.allocation(),
            Self::Fixed(_)
            | Self::Steps(_)
            | Self::Random(..)
            | Self::Carrier(_)
            | Self::Return(_) => None,
        }
    }

    pub fn new(rate: &LinkRate, dice: Dice) -> Self {
        match rate {
            LinkRate::Fixed(rate) => Self::Fixed(rate.bps()),
            LinkRate::Steps(steps) => Self::Steps(steps.clone()),
            LinkRate::Random(random) => {
                let most = random.deviation().saturating_mul(2);
                let drawn = Drawn::new(random.intervals, most, dice);
                Self::Random(random.lowest(), Box::new(drawn))
            }
            LinkRate::OnDemand(demand) => Self::OnDemand(Allocation::new(*demand)),
            LinkRate::DvbS2(carrier) => Self::Carrier(Box::new(CarrierRate::new(carrier))),
            LinkRate::Rcs2(carrier) => Self::Return(Box::new(ReturnRate::new(carrier, None))),
        }
    }

    /// The bit/s that hold at a time, and until when. Times must not go back by a change.
    pub fn at(&mut self, at: Time) -> (u64, Time) {
        match self {
            Self::Fixed(bps) => (*bps, Time::NEVER),
            Self::Steps(steps) => step(steps, at),
            Self::Random(lowest, drawn) => {
                let (above, until) = drawn.at(at);
                (lowest.saturating_add(above), until)
            }
            Self::OnDemand(allocation) => allocation.at(at),
            Self::Carrier(carrier) => carrier.at(at),
            Self::Return(carrier) => carrier.at(at),
            Self::Interrupted(rate, outages) => {
                let (bps, until) = rate.at(at);
                let (is_out, change) = outages.at(at);
                (if is_out { 0 } else { bps }, until.min(change))
            }
        }
    }
}

fn step(RateSteps { steps, period, .. }: &RateSteps, at: Time) -> (u64, Time) {
    let past = period.map_or(0, |period| at.as_nanos() % period.as_nanos());
    let (begin, within) = match period {
        Some(_) => (at - Span::from_nanos(past), Time::from_nanos(past)),
        None => (Time::ZERO, at),
    };
    let index = holding(steps, within);
    let next = steps.get(index + 1).map(|(next, _)| *next - Time::ZERO);
    let until = next.or(*period).map_or(Time::NEVER, |span| begin + span);
    (steps[index].1.bps(), until)
}
