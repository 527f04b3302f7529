//! What is known of a scenario's path, for measurements and findings.

use bentpipe_link::{Direction, Scenario};
use bentpipe_trace::LinkFacts;
use bentpipe_units::{Rate, Size};

/// The largest IP packet that a stack may count on: nothing is dropped for its size, but programs say what they send over
/// is Ethernet.
const MTU: u64 = 1500;

/// The facts of a scenario; with the size of what is transferred, the time that an ideal sender would take too.
pub fn link_facts(scenario: &Scenario, size_bytes: Option<u64>) -> LinkFacts {
    let rate = |direction| scenario.rate(direction).map(Rate::bps);
    let queue = |direction| scenario.queue(direction).map(Size::bytes);
    LinkFacts {
        forward_rate_bps: rate(Direction::Forward),
        return_rate_bps: rate(Direction::Return),
        rtt_ms: Some(scenario.rtt().as_secs_f64() * 1e3),
        forward_queue_bytes: queue(Direction::Forward),
        return_queue_bytes: queue(Direction::Return),
        mtu_bytes: Some(MTU),
        limit_s: size_bytes.map(|size| scenario.limit(size).as_secs_f64()),
        size_bytes,
    }
}
