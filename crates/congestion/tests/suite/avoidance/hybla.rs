//! Hybla: ρ² segments in each round trip, with ρ = RTT / 25 ms.

use bentpipe_congestion::avoidance::Hybla;
use bentpipe_units::Span;

use super::SEGMENT;
use crate::feed::Feed;

/// The growth of a window of 1000 segments in 10 round trips, in segments.
fn grown(rtt: Span) -> u64 {
    let mut feed = Feed::avoidance(Hybla::default(), SEGMENT, 1_000 * SEGMENT, rtt);
    feed.begin();
    for _ in 0..10 {
        let window = feed.path.window;
        for _ in 0..500 {
            feed.ack(window / 500);
        }
    }
    (feed.path.window - 1_000 * SEGMENT) / SEGMENT
}

#[test]
fn grows_by_rho_squared_in_each_round_trip() {
    // ρ = 4: 16 segments in each; a little less, as the window grows while it is acknowledged.
    assert!((157..=160).contains(&grown(Span::from_millis(100))));
}

#[test]
fn is_reno_on_a_path_of_25_ms_or_less() {
    for rtt in [25, 5] {
        assert!((9..=10).contains(&grown(Span::from_millis(rtt))));
    }
}

#[test]
fn is_no_faster_than_slow_start() {
    let rtt = Span::from_millis(600);
    let mut feed = Feed::avoidance(Hybla::default(), SEGMENT, 10 * SEGMENT, rtt);
    feed.ack(10 * SEGMENT);
    assert_eq!(feed.path.window, 20 * SEGMENT);
    feed.congest();
    assert_eq!(feed.path.window, 10 * SEGMENT);
}
