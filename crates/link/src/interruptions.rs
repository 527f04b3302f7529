//! The times at which the links of a path send nothing: outages and the gaps of handovers.

use bentpipe_units::{Span, Time};

use crate::delay::Delay;
use crate::direction::{Direction, SegmentName};
use crate::handovers_in_trial::HandoversInTrial;
use crate::random::LinkSeed;
use crate::scenario::{DirectionConfig, Scenario};
use crate::steps;

/// Interruptions of a link that are told, at most: a trial may last for days.
const MOST: usize = 1_000;

/// The cause of an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptionKind {
    /// A handover.
    Handover,
    /// An outage.
    Outage,
}

/// A time at which a link sends nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// The link's segment.
    pub segment: SegmentName,
    /// The link's direction.
    pub direction: Direction,
    /// What it is.
    pub kind: InterruptionKind,
    /// When it begins.
    pub begin: Time,
    /// How long it lasts.
    pub length: Span,
    /// The satellite that serves the terminal behind it; None: it is not known.
    pub satellite: Option<String>,
}

impl Scenario {
    /// All interruptions of links in a trial up to a time: the first thousand of each link and
    /// kind.
    #[must_use]
    pub fn interruptions(&self, seed: u64, until: Time) -> Vec<Interruption> {
        let mut found = Vec::new();
        for (segment, direction, config) in self.links() {
            let seed = LinkSeed {
                seed,
                direction,
                segment,
            };
            let config = &*config.in_trial(seed);
            let mut add = |kind, spans: Vec<(Time, Span)>| {
                found.extend(spans.into_iter().map(|(begin, length)| {
                    Interruption {
                        segment,
                        direction,
                        kind,
                        begin,
                        length,
                        satellite: (kind == InterruptionKind::Handover)
                            .then(|| serving(config, begin + length))
                            .flatten(),
                    }
                }));
            };
            if let Some(handovers) = &config.handovers {
                let mut handovers = HandoversInTrial::new(handovers, seed);
                add(
                    InterruptionKind::Handover,
                    spans(|at| handovers.at(at), until),
                );
            }
            if let Some(outages) = &config.outages {
                add(InterruptionKind::Outage, spans(|at| outages.at(at), until));
            }
        }
        found
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

/// The spans in which something is so; it says of a time whether, and until when at least.
fn spans(mut is_so: impl FnMut(Time) -> (bool, Time), until: Time) -> Vec<(Time, Span)> {
    let mut found: Vec<(Time, Span)> = Vec::new();
    let mut now = Time::ZERO;
    while now < until && found.len() < MOST {
        let (is_now, change) = is_so(now);
        if is_now {
            found.push((now, change - now));
        }
        now = change;
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
