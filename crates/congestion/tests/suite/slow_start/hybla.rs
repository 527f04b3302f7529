//! Slow start of Hybla.

use bentpipe_congestion::slow_start::Hybla;
use bentpipe_congestion::{Pacing, Step};

use crate::feed::{DATAGRAM, Feed, INITIAL_WINDOW};

#[test]
fn grows_by_two_to_the_power_of_rho_less_one_and_no_more_than_sevenfold() {
    // ρ = RTT / 25 ms: 1, 1, 2, 3, 24.
    for (rtt, factor) in [(10, 1), (25, 1), (50, 3), (75, 7), (600, 7)] {
        let mut feed = Feed::slow_start(Hybla::default(), rtt);
        assert_eq!(
            feed.ack(0, DATAGRAM, rtt),
            Step::Grow(factor * DATAGRAM),
            "{rtt} ms"
        );
    }
}

/// Pairs of packets acknowledged so far apart; all were sent at once.
fn burst(feed: &mut Feed, pairs: u64, apart_ms: u64) -> Vec<Step> {
    feed.ack_of_a_new_round(600, DATAGRAM, 600);
    (1..pairs)
        .map(|n| feed.ack(600 + apart_ms * n, DATAGRAM, 600 + apart_ms * n))
        .collect()
}

#[test]
fn the_spread_of_a_burst_gives_the_rate_and_the_threshold() {
    let mut feed = Feed::slow_start(Hybla::default(), 600);
    assert_eq!(feed.algorithm.pacing(&feed.path), Pacing::Unpaced);
    // Seven packets after the first, 1200 bytes in each millisecond.
    burst(&mut feed, 8, 1);
    assert_eq!(feed.algorithm.pacing(&feed.path), Pacing::Rate(1_200_000));
    // 1.2 MB/s in 600 ms are 720,000 bytes.
    feed.path.window = 720_000 - 7 * DATAGRAM - 1;
    assert_eq!(feed.ack(608, DATAGRAM, 608), Step::Grow(7 * DATAGRAM));
    let step = feed.ack(609, DATAGRAM, 609);
    assert!(
        matches!(step, Step::Leave(exit) if exit.window == 720_000 && exit.reason == "ssthresh"),
        "{step:?}"
    );
}

#[test]
fn seven_packets_give_no_rate_nor_does_a_flight_that_was_sent_as_slowly_as_it_came() {
    let mut few = Feed::slow_start(Hybla::default(), 600);
    burst(&mut few, 7, 1);
    assert_eq!(few.algorithm.pacing(&few.path), Pacing::Gain(800));
    let mut slow = Feed::slow_start(Hybla::default(), 600);
    slow.ack_of_a_new_round(600, DATAGRAM, 600);
    for n in 1..20 {
        slow.ack(600 + n, DATAGRAM, 600);
    }
    assert_eq!(slow.algorithm.pacing(&slow.path), Pacing::Gain(800));
}

#[test]
fn the_threshold_is_no_smaller_than_the_initial_window() {
    let mut feed = Feed::slow_start(Hybla::default(), 600);
    let steps = burst(&mut feed, 8, 100);
    let Some(Step::Leave(exit)) = steps.last() else {
        panic!("{steps:?}");
    };
    assert_eq!(exit.window, INITIAL_WINDOW);
}
