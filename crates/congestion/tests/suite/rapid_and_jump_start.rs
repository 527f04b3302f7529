//! Rapid Start and Jump Start against traces computed by hand.

use bentpipe_congestion::slow_start::{JumpStart, RapidStart};
use bentpipe_congestion::{Exit, Pacing, Response, Step};

use crate::feed::Feed;

const RTT_MS: u64 = 600;

/// An ACK of so many bytes, whose newest packet was sent after so many, with which a round begins.
fn ack(feed: &mut Feed, bytes: u64, sent_before: u64, rtt_ms: u64) -> Step {
    feed.sent_before = sent_before;
    feed.ack_of_a_new_round(0, bytes, rtt_ms)
}

#[test]
fn rapid_start_triples_until_the_floor_has_risen_by_4_ms() {
    let mut feed = Feed::slow_start(RapidStart::default(), RTT_MS);
    feed.send(1200);
    assert_eq!(ack(&mut feed, 1200, 0, 600), Step::Window(24_000));
    assert_eq!(feed.algorithm.pacing(&feed.path), Pacing::Gain(100));
    feed.send(24_000);
    assert_eq!(feed.algorithm.pacing(&feed.path), Pacing::Gain(200));
    // The first flight waits for the timer, which is no queue.
    assert_eq!(ack(&mut feed, 12_000, 1200, 625), Step::Grow(24_000));
    feed.send(60_000);
    assert_eq!(ack(&mut feed, 1200, 30_000, 604), Step::Grow(2400));
    // The floor is the least of this round and the one before.
    assert_eq!(ack(&mut feed, 1200, 31_200, 605), Step::Grow(2400));
    assert_eq!(ack(&mut feed, 1200, 32_400, 605), Step::Grow(1200));
}

/// The window entering recovery is what is in flight: 400,000 bytes arrive and 600,000 are lost, so
/// 0.7 of the former must be left.
#[test]
fn rapid_start_leaves_beta_of_what_came_through() {
    let mut feed = Feed::slow_start(RapidStart::default(), RTT_MS);
    feed.path.window = 1_000_000;
    feed.send(1_000_000);
    assert_eq!(feed.congest(100_000), Response::Window(810_000));
    feed.lose(500_000);
    assert_eq!(ack(&mut feed, 399_000, 500_000, 700), Step::Window(280_200));
    let exit = Exit {
        window: 280_000,
        ssthresh: 280_000,
        reason: "recovered",
    };
    assert_eq!(ack(&mut feed, 1000, 1_000_000, 700), Step::Leave(exit));
}

#[test]
fn rapid_start_keeps_a_third_of_beta_whatever_is_lost() {
    let mut feed = Feed::slow_start(RapidStart::default(), RTT_MS);
    feed.path.window = 300_000;
    feed.send(300_000);
    assert_eq!(feed.congest(300_000), Response::Window(70_000));
}

#[test]
fn jump_start_goes_on_from_what_is_in_flight() {
    let mut feed = Feed::slow_start(JumpStart::default(), RTT_MS);
    feed.send(1200);
    assert_eq!(ack(&mut feed, 1200, 0, 600), Step::Window(1_250_000));
    assert_eq!(feed.algorithm.pacing(&feed.path), Pacing::Gain(100));
    feed.send(500_000);
    assert_eq!(ack(&mut feed, 2400, 1200, 600), Step::Window(500_000));
    assert_eq!(ack(&mut feed, 400_000, 300_000, 600), Step::Grow(0));
    feed.send(1200);
    assert_eq!(ack(&mut feed, 1200, 501_200, 600), Step::Grow(1200));
}

#[test]
fn jump_start_is_left_with_seven_tenths_of_what_came_through() {
    let mut feed = Feed::slow_start(JumpStart::default(), RTT_MS);
    feed.send(1200);
    ack(&mut feed, 1200, 0, 600);
    feed.send(1_000_000);
    ack(&mut feed, 100_000, 1200, 600);
    assert_eq!(feed.congest(400_000), Response::Window(100_000));
    assert_eq!(ack(&mut feed, 490_000, 600_000, 600), Step::Window(590_000));
    feed.send(10_000);
    let exit = Exit {
        window: 420_000,
        ssthresh: 420_000,
        reason: "jump_lost",
    };
    assert_eq!(ack(&mut feed, 10_000, 1_001_200, 600), Step::Leave(exit));
}
