//! The interruptions of a link in a trial: its handovers and outages, which depend on the seed, not
//! on packets.

use bentpipe_units::Time;

use crate::delay::Delay;
use crate::direction::{Direction, SegmentName};
use crate::events::{EVENTS_KEPT, Interruption, InterruptionKind};
use crate::handovers_in_trial::HandoversInTrial;
use crate::hop::Hop;
use crate::outages::Outages;
use crate::random::LinkSeed;
use crate::rate::LinkRate;
use crate::scenario::{DirectionConfig, Scenario};
use crate::steps;

impl Scenario {
    /// The interruptions of all links up to a time, those towards the client first: see
    /// [`Hop::interruptions`].
    #[must_use]
    pub fn interruptions(&self, seed: u64, until: Time) -> Vec<Interruption> {
        let whole = self.whole();
        let of = |direction| whole.interruptions(direction, seed, until);
        Direction::BOTH.into_iter().flat_map(of).collect()
    }

    /// The links of all segments, segment by segment from the client to the server.
    pub(crate) fn links(&self) -> impl Iterator<Item = (SegmentName, Direction, &DirectionConfig)> {
        let places = SegmentName::ALL
            .into_iter()
            .flat_map(|segment| Direction::BOTH.map(|direction| (segment, direction)));
        places.filter_map(|(segment, direction)| {
            let config = self.segment(segment)?.direction(direction);
            Some((segment, direction, config))
        })
    }
}

impl Hop<'_> {
    /// The interruptions of a direction's links up to a time, in the order in which they begin:
    /// those of the trial with this seed, at most [`EVENTS_KEPT`] and one more.
    #[must_use]
    pub fn interruptions(&self, direction: Direction, seed: u64, until: Time) -> Vec<Interruption> {
        let mut found = Vec::new();
        for (segment, config) in self.links(direction) {
            let seed = LinkSeed {
                seed,
                direction,
                segment,
            };
            found.extend(config.interruptions(seed, until));
        }
        found.sort_by_key(|it| it.from);
        found.truncate(EVENTS_KEPT + 1);
        found
    }

    /// Whether a link of a direction has capacity that is assigned on request.
    #[must_use]
    pub fn takes_requests(&self, direction: Direction) -> bool {
        let on_request =
            |rate: &LinkRate| matches!(rate, LinkRate::OnDemand(_) | LinkRate::Rcs2(_));
        let mut links = self.links(direction);
        links.any(|(_, config)| config.rate.as_ref().is_some_and(on_request))
    }
}

impl DirectionConfig {
    fn interruptions(&self, seed: LinkSeed, until: Time) -> Vec<Interruption> {
        let config = self.in_trial(seed);
        let interruption = |kind, from, until, satellite| Interruption {
            segment: seed.segment,
            direction: seed.direction,
            kind,
            from,
            until,
            satellite,
        };
        let outages = config.outages.iter().flat_map(|it| spans(it, until));
        let outages =
            outages.map(|(from, until)| interruption(InterruptionKind::Outage, from, until, None));
        let handovers = config.handovers.iter();
        let handovers = handovers.flat_map(|it| HandoversInTrial::new(it, seed).up_to(until));
        let handovers = handovers.map(|(from, gap)| {
            let end = from + gap;
            interruption(InterruptionKind::Handover, from, end, serving(&config, end))
        });
        outages.chain(handovers).collect()
    }
}

/// The outages that begin by a time: their beginnings and ends.
fn spans(outages: &Outages, until: Time) -> Vec<(Time, Time)> {
    let (mut found, mut at) = (Vec::new(), Time::ZERO);
    while at <= until && at < Time::NEVER && found.len() <= EVENTS_KEPT {
        let (is_out, change) = outages.at(at);
        if is_out {
            found.push((at, change));
        }
        at = change;
    }
    found
}

/// The satellite that serves at a time.
fn serving(config: &DirectionConfig, at: Time) -> Option<String> {
    let Delay::Steps(delay) = &config.delay else {
        return None;
    };
    let satellites = delay.satellites.as_ref()?;
    let (step, _) = steps::in_period(&delay.steps, delay.period, at);
    Some(satellites[step].satellite.clone()).filter(|name| !name.is_empty())
}
