//! A rate over time.

use bentpipe_units::{Span, Time};

use crate::allocation::Allocation;
use crate::intervals::Drawn;
use crate::random::Dice;
use crate::rate::{LinkRate, RateSteps};
use crate::steps::holding;

/// The rate of a link over time, which is known up to any time at which it is asked for.
pub(crate) enum RateOverTime {
    Fixed(u64),
    Steps(RateSteps),
    /// The lowest rate, and what is drawn above it.
    Random(u64, Box<Drawn>),
    OnDemand(Allocation),
}

impl RateOverTime {
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
