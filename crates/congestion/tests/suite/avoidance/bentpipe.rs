//! Bentpipe's own avoidance over a path that a script plays; `sender.rs` has it over a model.

use bentpipe_congestion::avoidance::Bentpipe;
use bentpipe_congestion::{Avoidance, RateSample};
use bentpipe_units::Span;

use super::SEGMENT;
use crate::feed::Feed;

const RTT: Span = Span::from_millis(600);
/// Milliseconds that a receiver may wait with an ACK.
const TIMER: u64 = 25;

/// A sender alone on a path of 20 Mbit/s, some round trips after slow start.
fn alone() -> Feed<dyn Avoidance> {
    let mut feed = Feed::avoidance(Bentpipe::default(), SEGMENT, 1_500 * SEGMENT, RTT);
    feed.path.ssthresh = Some(feed.path.window);
    feed.rate = Some(RateSample {
        bytes: 1_500 * SEGMENT,
        interval: RTT,
        limited: false,
    });
    feed.begin();
    for _ in 0..4 {
        round(&mut feed, 100, 0);
    }
    feed
}

/// A round trip with so many ACKs, each so many milliseconds longer than the path.
fn round(feed: &mut Feed<dyn Avoidance>, acks: u64, longer: u64) {
    feed.path.now += RTT;
    feed.path.round += 1;
    feed.path.rtt.latest = RTT + Span::from_millis(longer);
    for ack in 0..acks {
        feed.new_round = ack == 0;
        feed.ack(SEGMENT);
    }
}

/// A segment of a live stream is complete but for a few packets that are sent again, each alone: no
/// second one follows, and their ACKs wait for the timer.
#[test]
fn acks_that_wait_for_a_timer_are_no_queue() {
    let mut feed = alone();
    let before = feed.path.window;
    feed.path.limited = true;
    for _ in 0..8 {
        round(&mut feed, 4, TIMER);
        assert_eq!(feed.algorithm.phase(), "alone");
    }
    assert!(feed.path.window >= before, "{} bytes", feed.path.window);
    feed.lose();
    assert!(feed.forgives());
}

/// The same round trips are a queue if the sender always had something to send, and a longer one
/// is a queue in any case.
#[test]
fn a_queue_is_seen_beside_the_timer() {
    for (limited, longer) in [(false, TIMER), (true, 2 * TIMER)] {
        let mut feed = alone();
        feed.path.limited = limited;
        let mut phases = Vec::new();
        for _ in 0..8 {
            round(&mut feed, 4, longer);
            phases.push(feed.algorithm.phase());
        }
        assert!(phases.contains(&"draining"), "{longer} ms: {phases:?}");
    }
}
