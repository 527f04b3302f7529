//! Pico: a datagram more for each step of so many bytes.

use bentpipe_congestion::Avoidance;
use bentpipe_congestion::avoidance::Pico;
use bentpipe_units::Span;

use super::SEGMENT;
use crate::feed::Feed;

fn feed(window: u64, rtt_ms: u64) -> Feed<dyn Avoidance> {
    let rtt = Span::from_millis(rtt_ms);
    Feed::avoidance(Pico::default(), SEGMENT, window, rtt)
}

/// That no byte less than a step, counted from here, makes the window grow.
fn assert_step(feed: &mut Feed<dyn Avoidance>, step: u64) {
    let before = feed.path.window;
    feed.ack(step - 1);
    assert_eq!(feed.path.window, before);
    feed.ack(1);
    assert_eq!(feed.path.window, before + SEGMENT);
}

#[test]
fn follows_cubic_over_a_long_path() {
    let mut feed = feed(1_000_000, 600);
    feed.congest();
    assert_eq!(feed.path.window, 500_000);
    feed.path.window = 1_000_000;
    feed.congest();
    assert_eq!(feed.path.window, 700_000);
    // K = ∛750 = 9.0856 s: 1.2937 · 9.0856 / (0.3 · 0.6) = 65.3 datagrams.
    assert_step(&mut feed, 65_300);
    feed.ack(2 * 65_300);
    assert_eq!(feed.path.window, 703_000);
}

#[test]
fn follows_reno_over_a_short_path() {
    let mut feed = feed(10_000, 10);
    feed.congest();
    assert_eq!(feed.path.window, 5_000);
    assert_step(&mut feed, 3_500);
    feed.path.window = 10_000;
    feed.congest();
    assert_eq!(feed.path.window, 7_000);
    assert_step(&mut feed, 7_000);
}

#[test]
fn begins_after_slow_start_at_the_window_it_has() {
    let mut feed = feed(10_000, 10);
    feed.begin();
    assert_step(&mut feed, 7_000);
}
