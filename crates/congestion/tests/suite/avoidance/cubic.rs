//! CUBIC: windows on the curve of RFC 9438, figure 1. An ACK of a whole window takes the window to
//! where the curve will be a round trip later.

use bentpipe_congestion::Avoidance;
use bentpipe_congestion::avoidance::Cubic;
use bentpipe_units::Span;

use super::SEGMENT;
use crate::feed::Feed;

fn feed(segments: u64, rtt_ms: u64) -> Feed<dyn Avoidance> {
    let rtt = Span::from_millis(rtt_ms);
    let mut feed = Feed::avoidance(Cubic::default(), SEGMENT, segments * SEGMENT, rtt);
    feed.begin();
    feed
}

/// 100 segments lost some at a round-trip time of 600 ms: 70 are left, and K = ∛(30 / 0.4) = 4.217
/// s. An ACK has begun the stage.
fn reduced() -> Feed<dyn Avoidance> {
    let mut feed = feed(100, 600);
    feed.congest();
    assert_eq!(feed.path.window, 70 * SEGMENT);
    feed.ack(SEGMENT);
    feed
}

/// The window after an ACK of all of it, so much later.
fn after(feed: &mut Feed<dyn Avoidance>, later: Span) -> u64 {
    feed.path.now += later;
    feed.ack(feed.path.window);
    feed.path.window
}

#[test]
fn is_on_the_curve() {
    let at = |ms: u64| after(&mut reduced(), Span::from_millis(ms));
    // 100 + 0.4 · (t + 0.6 − K)³ segments.
    assert!(at(300).abs_diff(85_400) <= 1);
    assert!(at(3_617).abs_diff(100_000) <= 1);
    // From the plateau on, as it would be out of reach at once.
    let mut feed = reduced();
    after(&mut feed, Span::from_millis(3_617));
    let window = after(&mut feed, Span::from_millis(6_600 - 3_617));
    assert!(window.abs_diff(110_616) <= 1, "{window}");
}

#[test]
fn climbs_to_the_plateau_in_k() {
    let mut feed = reduced();
    // Acknowledge whole windows in each round trip, in 70 ACKs.
    let mut climb = |rounds: u64| {
        for _ in 0..rounds * 70 {
            feed.path.now += Span::from_nanos(600_000_000 / 70);
            feed.ack(feed.path.window / 70);
        }
        feed.path.window
    };
    // After 7 round trips, 4.2 s, the plateau; after 5 more, 0.4 · (7.2 − 4.217)³ = 10.6 segments
    // above.
    let window = climb(7);
    assert!((99_000..=100_500).contains(&window), "{window}");
    let window = climb(5);
    assert!((109_000..=117_500).contains(&window), "{window}");
}

#[test]
fn ack_ratio_does_not_change_growth() {
    let grown = |parts: u64| {
        let mut feed = reduced();
        for _ in 0..10 * parts {
            feed.path.now += Span::from_nanos(600_000_000 / parts);
            feed.ack(feed.path.window / parts);
        }
        feed.path.window
    };
    assert!(grown(70).abs_diff(grown(7)) < 5 * SEGMENT);
}

/// The windows after so many round trips of 10 ms.
fn round_trips(feed: &mut Feed<dyn Avoidance>, count: usize) -> Vec<u64> {
    let round_trip = |_| after(feed, Span::from_millis(10));
    (0..count).map(round_trip).collect()
}

#[test]
fn grows_as_reno_does_on_a_short_path() {
    let mut feed = feed(10, 10);
    feed.congest();
    // 7 segments; 6 round trips of 0.529 segments bring it to cwnd_prior = 10, and then one in
    // each.
    let expected = [
        7_529, 8_058, 8_588, 9_117, 9_647, 10_176, 11_176, 12_176, 13_176, 14_176,
    ];
    assert_eq!(round_trips(&mut feed, 10), expected);
}

#[test]
fn grows_as_reno_does_from_the_window_before_and_not_from_the_plateau() {
    let mut feed = feed(10, 10);
    feed.congest();
    feed.congest();
    // 4.9 segments; the plateau is at 0.85 · 7 = 5.95, but cwnd_prior is 7.
    let expected = [5_429, 5_958, 6_488, 7_017, 8_017];
    assert_eq!(round_trips(&mut feed, 5), expected);
}

#[test]
fn time_stands_still_while_the_sender_is_limited() {
    let mut feed = reduced();
    feed.path.limited = true;
    feed.ack(0);
    feed.path.now += Span::from_secs(60);
    feed.ack(0);
    feed.path.limited = false;
    feed.ack(SEGMENT);
    // As 300 ms after the beginning.
    assert!(after(&mut feed, Span::from_millis(300)).abs_diff(85_400) <= 1);
}

#[test]
fn never_grows_faster_than_by_half_in_a_round_trip() {
    let mut feed = reduced();
    let before = feed.path.window;
    assert_eq!(after(&mut feed, Span::from_secs(1000)), before + before / 2);
}

#[test]
fn releases_more_if_it_did_not_get_as_far_as_before() {
    let mut feed = reduced();
    feed.path.window = 90 * SEGMENT;
    feed.congest();
    assert_eq!(feed.path.window, 63 * SEGMENT);
    feed.ack(SEGMENT);
    // The plateau is at 0.85 · 90 = 76.5 segments, and K = ∛(13.5 / 0.4) = 3.23165 s.
    let window = after(&mut feed, Span::from_nanos(2_631_652_035));
    assert!(window.abs_diff(76_500) <= 1, "{window}");
}
