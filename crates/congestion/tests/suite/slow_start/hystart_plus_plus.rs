//! `HyStart++` by the pseudocode of RFC 9406, section 4.2.

use bentpipe_congestion::Step;
use bentpipe_congestion::slow_start::HyStartPlusPlus;

use crate::feed::{DATAGRAM, Feed};

fn feed(rtt_ms: u64) -> Feed {
    Feed::slow_start(HyStartPlusPlus::default(), rtt_ms)
}

/// A number of ACKs with one RTT, the first of which begins a round.
fn round(feed: &mut Feed, rtt_ms: u64, acks: u64) -> Step {
    let mut step = feed.ack_of_a_new_round(0, DATAGRAM, rtt_ms);
    for _ in 1..acks {
        step = feed.ack(0, DATAGRAM, rtt_ms);
    }
    step
}

/// Whether an increase by `more` from one round to the next makes it conservative.
fn enters(rtt_ms: u64, more: u64) -> bool {
    let mut feed = feed(rtt_ms);
    round(&mut feed, rtt_ms, 8);
    round(&mut feed, rtt_ms + more, 8);
    feed.algorithm.phase() == "conservative_slow_start"
}

#[test]
fn an_eighth_of_the_rtt_between_4_and_16_ms_is_an_increase() {
    for (rtt, threshold) in [(8, 4), (32, 4), (80, 10), (128, 16), (600, 16)] {
        assert!(!enters(rtt, threshold - 1), "{rtt} ms");
        assert!(enters(rtt, threshold), "{rtt} ms");
    }
}

#[test]
fn seven_samples_say_nothing_and_the_least_of_them_counts() {
    let mut few = feed(600);
    round(&mut few, 600, 8);
    round(&mut few, 700, 7);
    assert_eq!(few.algorithm.phase(), "slow_start");
    few.ack(0, DATAGRAM, 700);
    assert_eq!(few.algorithm.phase(), "conservative_slow_start");
    assert_eq!(few.algorithm.trigger(), "delay_increase");

    let mut one_low = feed(600);
    round(&mut one_low, 600, 8);
    round(&mut one_low, 615, 1);
    for _ in 0..20 {
        one_low.ack(0, DATAGRAM, 700);
    }
    assert_eq!(one_low.algorithm.phase(), "slow_start");
}

#[test]
fn css_grows_a_quarter_and_lasts_five_rounds_the_one_it_begins_in_among_them() {
    let mut feed = feed(600);
    round(&mut feed, 600, 8);
    assert_eq!(round(&mut feed, 620, 8), Step::Grow(DATAGRAM));
    for _ in 0..4 {
        assert_eq!(round(&mut feed, 620, 8), Step::Grow(DATAGRAM / 4));
    }
    let window = feed.path.window + DATAGRAM / 4;
    let step = feed.ack_of_a_new_round(0, DATAGRAM, 620);
    let Step::Leave(exit) = step else {
        panic!("{step:?}");
    };
    assert_eq!(
        (exit.window, exit.ssthresh, exit.reason),
        (window, window, "css_rounds")
    );
}

#[test]
fn slow_start_resumes_when_the_rtt_falls_below_that_which_began_css() {
    let mut feed = feed(600);
    round(&mut feed, 600, 8);
    round(&mut feed, 620, 8);
    round(&mut feed, 620, 8);
    assert_eq!(feed.algorithm.phase(), "conservative_slow_start");
    round(&mut feed, 619, 7);
    assert_eq!(feed.algorithm.phase(), "conservative_slow_start");
    feed.ack(0, DATAGRAM, 619);
    assert_eq!(
        (feed.algorithm.phase(), feed.algorithm.trigger()),
        ("slow_start", "delay_decrease")
    );
    assert_eq!(feed.ack(0, DATAGRAM, 619), Step::Grow(DATAGRAM));
    // It looks on, and counts the rounds of CSS from the beginning.
    round(&mut feed, 640, 8);
    assert_eq!(feed.algorithm.phase(), "conservative_slow_start");
    for _ in 0..4 {
        assert!(matches!(round(&mut feed, 640, 8), Step::Grow(_)));
    }
    assert!(matches!(
        feed.ack_of_a_new_round(0, DATAGRAM, 640),
        Step::Leave(_)
    ));
}

#[test]
fn one_ack_grows_an_unpaced_window_by_eight_datagrams_at_most() {
    let mut feed = feed(600);
    assert_eq!(feed.ack(0, 20 * DATAGRAM, 600), Step::Grow(20 * DATAGRAM));
    feed.path.paced = false;
    assert_eq!(feed.ack(0, 20 * DATAGRAM, 600), Step::Grow(8 * DATAGRAM));
}
