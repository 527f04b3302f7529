//! Events of a trial's links: `link-events.json` beside its trace.

use std::fs;
use std::io;
use std::path::Path;

use bentpipe_analysis as analysis;
use bentpipe_analysis::{CapacityRequest, LinkDirection, LinkEvents};
use bentpipe_link::{Direction, EVENTS_KEPT, Hop, InterruptionKind, RequestWait};
use bentpipe_units::Time;

use super::testbed::{KnownEvents, TestbedObservation};
use crate::job::Job;

/// The events on a hop of a job's flows; None: nobody knows them.
pub fn link_events(job: &Job, hop: Hop, observed: &TestbedObservation) -> Option<LinkEvents> {
    let seen = match &observed.events {
        KnownEvents::Nothing => return None,
        KnownEvents::Interruptions => None,
        KnownEvents::All(requests) => Some(requests),
    };
    let log = &observed.hops.first()?.log;
    let last = log.packets().iter().map(|it| it.sent).max();
    let until = observed.end.max(last.unwrap_or(Time::ZERO));
    let mut events = LinkEvents {
        format: LinkEvents::FORMAT,
        start_unix_ns: log.epoch_unix_ns(),
        interruptions: Vec::new(),
        requests: Some(Vec::new()),
        cut: false,
    };
    for way in Direction::BOTH {
        let found = hop.interruptions(way, job.seed.0, until);
        events.cut |= found.len() > EVENTS_KEPT;
        let kept = found.into_iter().take(EVENTS_KEPT);
        events
            .interruptions
            .extend(kept.map(|it| analysis::Interruption {
                kind: match it.kind {
                    InterruptionKind::Handover => analysis::InterruptionKind::Handover,
                    InterruptionKind::Outage => analysis::InterruptionKind::Outage,
                },
                direction: named(way),
                from_ns: it.from.as_nanos(),
                until_ns: it.until.as_nanos(),
            }));
        let within = |of: &Hop| hop.from <= of.from && of.to <= hop.to;
        let of_links = job.link_hops().into_iter().zip(seen.into_iter().flatten());
        let of_hop = of_links.filter(|(of, _)| within(of));
        let answered = of_hop.flat_map(|(_, both)| &both[way as usize]);
        let answered: Vec<&RequestWait> = answered.collect();
        events.cut |= answered.len() > EVENTS_KEPT;
        let kept = answered.into_iter().take(EVENTS_KEPT);
        events.requests = events
            .requests
            .filter(|_| seen.is_some() || !hop.takes_requests(way));
        if let Some(requests) = &mut events.requests {
            requests.extend(kept.map(|it| CapacityRequest {
                direction: named(way),
                sent_ns: it.sent.as_nanos(),
                answered_ns: it.answered.as_nanos(),
                granted: it.granted,
            }));
        }
    }
    Some(events)
}

/// Writes events to `path`.
pub fn write(events: &LinkEvents, path: &Path) -> io::Result<()> {
    let mut text = serde_json::to_vec(events)?;
    text.push(b'\n');
    fs::write(path, text)
}

fn named(way: Direction) -> LinkDirection {
    match way {
        Direction::Forward => LinkDirection::Forward,
        Direction::Return => LinkDirection::Return,
    }
}
