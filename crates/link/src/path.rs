//! One direction over all segments of a hop.

use bentpipe_units::{Span, Time};

use crate::direction::Direction;
use crate::hop::Hop;
use crate::link::{Counters, Fate, Link};
use crate::random::LinkSeed;
use crate::scenario::Scenario;

/// A path, one direction of a hop: its links in the order in which packets meet them.
pub struct Path {
    links: Vec<Link>,
    min_delay: Span,
    counters: Counters,
}

impl Path {
    /// The whole of a scenario, that nothing has passed yet. `seed` is the trial's: each link takes
    /// streams of its own from it (see [`LinkSeed`]).
    #[must_use]
    pub fn new(scenario: &Scenario, direction: Direction, seed: u64) -> Self {
        Self::over(scenario.whole(), direction, seed)
    }

    /// One hop of it. Its links are those that the whole path has, with the same queues and the
    /// same random streams.
    #[must_use]
    pub fn over(hop: Hop, direction: Direction, seed: u64) -> Self {
        let link = |(segment, config)| {
            Link::new(
                config,
                hop.scenario().bdp(config),
                LinkSeed {
                    seed,
                    direction,
                    segment,
                },
            )
        };
        Self {
            links: hop.links(direction).map(link).collect(),
            min_delay: hop.min_one_way(direction),
            counters: Counters::default(),
        }
    }

    /// Decides the fate of a packet that is sent now. Times must not go back.
    pub fn admit(&mut self, now: Time, ip_bytes: u32) -> Fate {
        let mut fate = Fate::Delivered { at: now };
        for link in &mut self.links {
            if let Fate::Delivered { at } = fate {
                fate = link.admit(at, ip_bytes);
            }
        }
        self.counters.count(fate, ip_bytes);
        fate
    }

    /// The smallest time that a packet can take: the sum of the smallest delays.
    #[must_use]
    pub fn min_delay(&self) -> Span {
        self.min_delay
    }

    /// The fates of the packets so far, from end to end, in numbers; `max_queue_bytes` is that of
    /// the fullest queue.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let queues = self
            .links
            .iter()
            .map(|link| link.counters().max_queue_bytes);
        Counters {
            max_queue_bytes: queues.max().unwrap_or(0),
            ..self.counters
        }
    }
}
