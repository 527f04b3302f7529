//! What is known of a trial's path and files, for measurements and findings.

use bentpipe_link::{Direction, Scenario};
use bentpipe_trace::LinkFacts;
use bentpipe_units::{Rate, Size};

use crate::testcase::TestCase;

/// The largest IP packet that a stack may count on: nothing is dropped for its size, but programs say what they send over
/// is Ethernet.
const MTU: u64 = 1500;

/// The facts of a scenario and of a test case that moves files of so many bytes over it; how many may not be known.
pub fn link_facts(scenario: &Scenario, testcase: TestCase, size_bytes: Option<u64>) -> LinkFacts {
    LinkFacts {
        limit_s: size_bytes.map(|size| limit_s(scenario, testcase, size)),
        size_bytes,
        sender: Some(testcase.sending_end()),
        ..path_facts(scenario)
    }
}

/// The facts of a scenario alone.
pub fn path_facts(scenario: &Scenario) -> LinkFacts {
    let rate = |direction| scenario.rate(direction).map(Rate::bps);
    let queue = |direction| scenario.queue(direction).map(Size::bytes);
    LinkFacts {
        forward_rate_bps: rate(Direction::Forward),
        return_rate_bps: rate(Direction::Return),
        rtt_ms: Some(scenario.rtt().as_secs_f64() * 1e3),
        forward_queue_bytes: queue(Direction::Forward),
        return_queue_bytes: queue(Direction::Return),
        mtu_bytes: Some(MTU),
        limit_s: None,
        size_bytes: None,
        sender: None,
    }
}

/// The completion time of an ideal sender.
fn limit_s(scenario: &Scenario, testcase: TestCase, size_bytes: u64) -> f64 {
    let (direction, round_trips) = (testcase.direction(), testcase.round_trips());
    let limit = scenario.limit_of(size_bytes, direction, round_trips);
    limit.as_secs_f64()
}
