//! The interruptions of a link in a trial: its handovers and outages, which depend on the seed, not
//! on packets.

use bentpipe_units::Time;

use crate::direction::Direction;
use crate::events::{EVENTS_KEPT, Interruption, InterruptionKind};
use crate::handovers_in_trial::HandoversInTrial;
use crate::hop::Hop;
use crate::outages::Outages;
use crate::random::LinkSeed;
use crate::rate::LinkRate;
use crate::scenario::DirectionConfig;

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
        let outages = config.outages.iter();
        let outages = outages.flat_map(|it| of_outages(it, until));
        let handovers = config.handovers.iter();
        let handovers = handovers.flat_map(|it| HandoversInTrial::new(it, seed).up_to(until));
        let handovers = handovers.map(|(begin, gap)| Interruption {
            kind: InterruptionKind::Handover,
            from: begin,
            until: begin + gap,
        });
        outages.chain(handovers).collect()
    }
}

/// The outages that begin by a time.
fn of_outages(outages: &Outages, until: Time) -> Vec<Interruption> {
    let (mut found, mut at) = (Vec::new(), Time::ZERO);
    while at <= until && at < Time::NEVER && found.len() <= EVENTS_KEPT {
        let (is_out, change) = outages.at(at);
        if is_out {
            found.push(Interruption {
                kind: InterruptionKind::Outage,
                from: at,
                until: change,
            });
        }
        at = change;
    }
    found
}
