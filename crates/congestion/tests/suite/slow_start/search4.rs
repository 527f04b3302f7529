//! SEARCH 4.0. At an RTT of 600 ms a bin lasts 210 ms; 600 ms are 2 bins and 180 ms.

use bentpipe_congestion::slow_start::Search4;
use bentpipe_congestion::{Exit, Step, Value};

use crate::feed::{DATAGRAM, Feed, INITIAL_WINDOW};

/// An ACK at the beginning and after each bin, of what was delivered in it; as much as `sent` says
/// is sent in it.
fn fill(
    feed: &mut Feed,
    sent: impl Fn(u64) -> u64,
    acked: u64,
    bins: std::ops::RangeInclusive<u64>,
) -> Vec<Step> {
    bins.map(|n| {
        feed.send(sent(n));
        feed.ack(if n == 0 { 0 } else { 210 * n + 1 }, acked, 600)
    })
    .collect()
}

fn note_of(feed: &mut Feed, name: &str) -> Option<Value> {
    feed.log_event().and_then(|event| event.get(name).cloned())
}

#[test]
fn leaves_from_a_normalised_difference_of_26_percent_on() {
    // The window must lie more than 10 bins after the first one, and be 2 bins old: the 13th.
    let mut below = Feed::slow_start(Search4::default(), 600);
    fill(&mut below, |_| 100_000, 74_001, 0..=20);
    assert_eq!(below.algorithm.phase(), "slow_start");
    let mut at = Feed::slow_start(Search4::default(), 600);
    fill(&mut at, |_| 100_000, 74_000, 0..=12);
    assert_eq!(at.algorithm.phase(), "slow_start");
    fill(&mut at, |_| 100_000, 74_000, 13..=13);
    assert_eq!(
        (at.algorithm.phase(), at.algorithm.trigger()),
        ("drain", "search")
    );
}

#[test]
fn interpolates_between_the_windows_a_round_trip_back() {
    let mut feed = Feed::slow_start(Search4::default(), 600);
    // In bin n, n · 1000 bytes. Window 1 to 10: 55,000, of weight 180/210; window 2 to 11: 65,000,
    // of weight 30/210.
    fill(&mut feed, |n| n * 1000, 1000, 0..=13);
    let expected = (55_000 * 180 + 65_000 * 30) / 210;
    assert_eq!(
        note_of(&mut feed, "expected_bytes"),
        Some(Value::Integer(expected))
    );
}

#[test]
fn drains_a_datagram_for_three_down_to_what_a_round_trip_delivered() {
    let mut feed = Feed::slow_start(Search4::default(), 600);
    fill(&mut feed, |_| 100_000, 74_000, 0..=13);
    // An initial round trip is 3 bins, rounded up.
    let target = 3 * 74_000;
    feed.path.in_flight = 300_000;
    let step = feed.ack(2740, 3 * DATAGRAM, 600);
    // 74,000 bytes of the ACK before are 20 datagrams for three each, and 2000 bytes; with these
    // and 3600 it is one more.
    assert_eq!(step, Step::Window(300_000 - 3 * DATAGRAM + DATAGRAM));
    feed.path.in_flight = target;
    let step = feed.ack(2750, DATAGRAM, 600);
    assert_eq!(
        step,
        Step::Leave(Exit {
            window: target,
            ssthresh: target,
            reason: "drained",
        })
    );
}

#[test]
fn drains_to_no_less_than_the_initial_window() {
    let mut feed = Feed::slow_start(Search4::default(), 600);
    fill(&mut feed, |_| 1000, 100, 0..=13);
    feed.path.in_flight = 0;
    let step = feed.ack(2740, 100, 600);
    assert!(
        matches!(step, Step::Leave(exit) if exit.window == INITIAL_WINDOW),
        "{step:?}"
    );
}

#[test]
fn does_not_compare_when_the_rtt_has_outgrown_its_bins() {
    let mut feed = Feed::slow_start(Search4::default(), 600);
    fill(&mut feed, |_| 100_000, 100_000, 0..=30);
    feed.log_event();
    // 15 bins back is one too many.
    assert_eq!(feed.ack(210 * 31 + 1, 0, 15 * 210), Step::Grow(0));
    assert_eq!(note_of(&mut feed, "expected_bytes"), None);
    assert_eq!(feed.ack(210 * 32 + 1, 0, 15 * 210 - 1), Step::Grow(0));
    assert!(feed.log_event().unwrap().get("expected_bytes").is_some());
}

#[test]
fn begins_anew_after_more_than_ten_bins_without_an_ack() {
    let mut feed = Feed::slow_start(Search4::default(), 600);
    fill(&mut feed, |_| 100_000, 74_000, 0..=12);
    let resumed = 210 * 12 + 210 * 12;
    for n in 0..=13 {
        feed.send(100_000);
        feed.ack(resumed + 211 * n, 74_000, 600);
        assert_eq!(
            feed.algorithm.phase(),
            "slow_start",
            "bin {n} after the pause"
        );
    }
}
