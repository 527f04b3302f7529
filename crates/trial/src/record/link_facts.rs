//! Known facts of a trial's path and files, for measurements and findings.

use bentpipe_analysis::LinkFacts;
use bentpipe_link::{Direction, Hop, Ideal, Scenario};
use bentpipe_units::{Rate, Size, Time};

use crate::evidence::{TestbedObservation, link_events};
use crate::job::{Job, TestCaseFacts};

/// The largest IP packet that a stack may count on where no link has an MTU: nothing is dropped for
/// its size, but programs say what they send over is Ethernet.
const MTU: u64 = 1500;

/// The files that a trial is measured by: what an ideal sender's time depends on beside the
/// scenario.
#[derive(Clone, Copy)]
pub struct MeasuredFiles {
    /// The facts of the test case with these files.
    pub testcase: TestCaseFacts,
    /// Not known where as much is moved as a time allows.
    pub size_bytes: Option<u64>,
    /// The trial's: rates may be drawn.
    pub seed: u64,
    /// The time at which the connection that is measured begins.
    pub start: Time,
}

/// The facts of the client's hop and of files that are moved over it. What is inside other packets
/// on its way has the MTU of what encapsulates it.
pub fn client_facts(
    job: &Job,
    files: MeasuredFiles,
    observation: Option<&TestbedObservation>,
) -> LinkFacts {
    let hop = job.hops()[0];
    let mut facts = link_facts(hop, files);
    if job.scenario.path_count() > 1 {
        return of_several_paths(job, &facts);
    }
    facts.events = observation.and_then(|it| link_events(job, hop, it));
    facts.mtu_bytes = job.inner_mtu().or(facts.mtu_bytes);
    facts
}

/// The facts that hold where packets take several paths: rates, delays and queues are those of one.
fn of_several_paths(job: &Job, facts: &LinkFacts) -> LinkFacts {
    let mtu = job.scenario.mtu_of_all_paths();
    LinkFacts {
        mtu_bytes: Some(mtu.map_or(MTU, |mtu| mtu.bytes().min(MTU))),
        limit_s: facts.limit_s,
        size_bytes: facts.size_bytes,
        sender: facts.sender,
        ..LinkFacts::default()
    }
}

/// The facts of a hop and of files that are moved over it. The ideal sender's time is that of the
/// whole path.
pub fn link_facts(hop: Hop, files: MeasuredFiles) -> LinkFacts {
    LinkFacts {
        limit_s: files
            .size_bytes
            .map(|size| limit_s(hop.scenario(), files, size)),
        size_bytes: files.size_bytes,
        sender: Some(files.testcase.sending_end()),
        ..hop_facts(hop)
    }
}

/// The facts of a scenario alone.
#[must_use]
pub fn path_facts(scenario: &Scenario) -> LinkFacts {
    hop_facts(scenario.whole())
}

fn hop_facts(hop: Hop) -> LinkFacts {
    let rate = |direction| hop.rate(direction).map(Rate::bps);
    let queue = |direction| hop.queue(direction).map(Size::bytes);
    LinkFacts {
        forward_rate_bps: rate(Direction::Forward),
        return_rate_bps: rate(Direction::Return),
        rtt_ms: Some(hop.rtt().as_secs_f64() * 1e3),
        forward_queue_bytes: queue(Direction::Forward),
        return_queue_bytes: queue(Direction::Return),
        forward_marks: Some(marks(hop, Direction::Forward)),
        return_marks: Some(marks(hop, Direction::Return)),
        mtu_bytes: Some(hop.mtu().map_or(MTU, |mtu| mtu.bytes().min(MTU))),
        limit_s: None,
        size_bytes: None,
        sender: None,
        events: None,
    }
}

/// Whether a queue of a hop marks packets. Without a rate none ever waits.
fn marks(hop: Hop, direction: Direction) -> bool {
    let mut links = hop.links(direction);
    links.any(|(_, link)| link.rate.is_some() && link.queue.aqm.is_some_and(|it| it.marks()))
}

/// The completion time of an ideal sender.
fn limit_s(scenario: &Scenario, files: MeasuredFiles, size_bytes: u64) -> f64 {
    let ideal = Ideal::new(scenario, files.testcase.direction(), files.seed);
    let limit = ideal.limit(size_bytes, files.testcase.round_trips, files.start);
    limit.as_secs_f64()
}
