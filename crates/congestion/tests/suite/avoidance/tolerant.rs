//! Tolerant: what it forgives, and what it leaves of the window.

use bentpipe_congestion::avoidance::Tolerant;
use bentpipe_congestion::{Avoidance, RateSample};
use bentpipe_units::Span;

use super::SEGMENT;
use crate::feed::Feed;

fn feed(segments: u64) -> Feed<dyn Avoidance> {
    let rtt = Span::from_millis(600);
    Feed::avoidance(Tolerant::default(), SEGMENT, segments * SEGMENT, rtt)
}

/// Two round trips of 100 packets.
fn settled(rtt: Span) -> Feed<dyn Avoidance> {
    let mut feed = feed(100);
    feed.path.rtt.latest = rtt;
    feed.rate = Some(RateSample {
        bytes: 100 * SEGMENT,
        interval: Span::from_millis(600),
        limited: false,
    });
    feed.begin();
    for _ in 0..2 {
        feed.new_round = true;
        for _ in 0..100 {
            feed.ack(SEGMENT);
            feed.new_round = false;
        }
    }
    feed.path.window = 100 * SEGMENT;
    feed
}

fn forgives(feed: &mut Feed<dyn Avoidance>, losses: u64) -> bool {
    for _ in 0..losses {
        feed.lose();
    }
    feed.forgives()
}

#[test]
fn forgives_two_percent_and_two_packets_without_a_queue() {
    // 200 packets were acknowledged.
    let mut feed = settled(Span::from_millis(603));
    assert!(forgives(&mut feed, 1));
    assert!(forgives(&mut feed, 5));
    assert!(!forgives(&mut feed, 1), "7 of 207");
}

#[test]
fn forgives_nothing_while_a_queue_stands() {
    let mut feed = settled(Span::from_millis(605));
    assert!(!forgives(&mut feed, 1));
    // One packet that found it empty is enough to doubt it.
    feed.path.rtt.latest = Span::from_millis(601);
    feed.ack(SEGMENT);
    assert!(forgives(&mut feed, 1));
}

#[test]
fn reduces_to_what_was_delivered() {
    // The window is twice what comes through.
    let mut feed = settled(Span::from_millis(600));
    feed.path.ssthresh = Some(100 * SEGMENT);
    feed.path.window = 200 * SEGMENT;
    feed.congest();
    assert_eq!(feed.path.window, 99_999);
    // Losses of what was sent before the reduction are not held against it.
    feed.path.now += Span::from_millis(100);
    assert!(forgives(&mut feed, 0));
}

#[test]
fn reduces_as_cubic_does_if_the_path_carries_the_window() {
    let mut feed = settled(Span::from_millis(600));
    feed.path.ssthresh = Some(100 * SEGMENT);
    feed.congest();
    assert_eq!(feed.path.window, 70 * SEGMENT);
}

#[test]
fn one_loss_of_ten_says_nothing() {
    let mut feed = feed(10);
    for _ in 0..9 {
        feed.ack(SEGMENT);
    }
    assert!(forgives(&mut feed, 1));
    assert!(!forgives(&mut feed, 1));
}
