//! A rate over time.

use bentpipe_units::{Ratio, Time};

use crate::allocation::Allocation;
use crate::events::RequestWait;
use crate::handovers_in_trial::HandoversInTrial;
use crate::intervals::Drawn;
use crate::outages::Outages;
use crate::random::{LinkSeed, Purpose};
use crate::rate::{LinkRate, RandomRate, RateSteps, times_ppb};
use crate::satellite::{CarrierRate, ReturnRate};
use crate::scenario::DirectionConfig;
use crate::steps;

/// The rate of a link over time, which is known up to any time at which it is asked for.
pub(crate) enum RateOverTime {
    Fixed(u64),
    Steps(RateSteps),
    /// The lowest rate, and what is drawn above it.
    Random(u64, Box<Drawn>),
    /// A rate times factors: of each the lowest, in billionths, and what is drawn above it.
    Varied(Box<Self>, Vec<(u64, Drawn)>),
    OnDemand(Allocation),
    Carrier(Box<CarrierRate>),
    Return(Box<ReturnRate>),
    /// A rate that is 0 in outages.
    Interrupted(Box<Self>, Outages),
    /// A rate that is 0 in the gaps of handovers.
    HandedOver(Box<(Self, HandoversInTrial)>),
}

impl RateOverTime {
    /// The rate of a link in a trial; None if it has none.
    pub fn of_link(config: &DirectionConfig, seed: LinkSeed) -> Option<Self> {
        let rate = Self::new(config.rate.as_ref()?, seed);
        Some(rate.interrupted(config, seed))
    }

    /// The same with the outages and handovers of a link, if there are any.
    pub fn interrupted(self, config: &DirectionConfig, seed: LinkSeed) -> Self {
        let with_outages = match &config.outages {
            None => self,
            Some(outages) => Self::Interrupted(Box::new(self), outages.clone()),
        };
        match &config.handovers {
            None => with_outages,
            Some(handovers) => {
                let handovers = HandoversInTrial::new(handovers, seed);
                Self::HandedOver(Box::new((with_outages, handovers)))
            }
        }
    }

    /// The grants, if it is assigned on demand.
    pub fn allocation(&mut self) -> Option<&mut Allocation> {
        match self {
            Self::OnDemand(allocation) => Some(allocation),
            Self::Interrupted(rate, _) => rate.allocation(),
            Self::HandedOver(both) => both.0.allocation(),
            Self::Fixed(_)
            | Self::Steps(_)
            | Self::Random(..)
            | Self::Varied(..)
            | Self::Carrier(_)
            | Self::Return(_) => None,
        }
    }

    /// The requests for it, if it is assigned on demand.
    pub fn requests(&self) -> &[RequestWait] {
        match self {
            Self::OnDemand(allocation) => allocation.requests(),
            Self::Interrupted(rate, _) => rate.requests(),
            Self::HandedOver(both) => both.0.requests(),
            _ => &[],
        }
    }

    pub fn new(rate: &LinkRate, seed: LinkSeed) -> Self {
        match rate {
            LinkRate::Fixed(rate) => Self::Fixed(rate.bps()),
            LinkRate::Steps(steps) => Self::Steps(steps.clone()),
            LinkRate::Random(random) => Self::random(random, seed),
            LinkRate::OnDemand(demand) => Self::OnDemand(Allocation::new(*demand)),
            LinkRate::DvbS2(carrier) => Self::Carrier(Box::new(CarrierRate::new(carrier))),
            LinkRate::Rcs2(carrier) => Self::Return(Box::new(ReturnRate::new(carrier, None))),
        }
    }

    fn random(random: &RandomRate, seed: LinkSeed) -> Self {
        let deviation = random.deviation();
        let dice = seed.stream(Purpose::Rate);
        let drawn = Drawn::new(random.intervals, deviation.saturating_mul(2), dice);
        let own = Self::Random(random.mean.bps() - deviation, Box::new(drawn));
        let within = random.within.iter().enumerate();
        let within = within.map(|(number, (spread, intervals))| {
            let dice = seed.within(Purpose::Rate, number);
            let drawn = Drawn::new(*intervals, spread.ppb() * 2, dice);
            (Ratio::ONE.ppb() - spread.ppb(), drawn)
        });
        let within: Vec<_> = within.collect();
        if within.is_empty() {
            own
        } else {
            Self::Varied(Box::new(own), within)
        }
    }

    /// The bit/s that hold at a time, and until when. Times must not go back by a change.
    pub fn at(&mut self, at: Time) -> (u64, Time) {
        match self {
            Self::Fixed(bps) => (*bps, Time::NEVER),
            Self::Steps(RateSteps { steps, period, .. }) => {
                let (rate, until) = steps::at(steps, *period, at);
                (rate.bps(), until)
            }
            Self::Random(lowest, drawn) => {
                let (above, until) = drawn.at(at);
                (lowest.saturating_add(above), until)
            }
            Self::Varied(rate, factors) => {
                let own = rate.at(at);
                factors
                    .iter_mut()
                    .fold(own, |(bps, until), (lowest, drawn)| {
                        let (above, next) = drawn.at(at);
                        (times_ppb(bps, *lowest + above), until.min(next))
                    })
            }
            Self::OnDemand(allocation) => allocation.at(at),
            Self::Carrier(carrier) => carrier.at(at),
            Self::Return(carrier) => carrier.at(at),
            Self::Interrupted(rate, outages) => {
                let (bps, until) = rate.at(at);
                let (is_out, change) = outages.at(at);
                (if is_out { 0 } else { bps }, until.min(change))
            }
            Self::HandedOver(both) => {
                let (rate, handovers) = &mut **both;
                let (bps, until) = rate.at(at);
                let (is_gap, change) = handovers.at(at);
                (if is_gap { 0 } else { bps }, until.min(change))
            }
        }
    }
}
