//! What Careful Resume makes of a jump to all that was saved, of which some was lost: 1000 packets over 600 ms, of which the first ten are the initial window.
//! The jump begins at 600 ms. A rate makes a window of 85 % of what it carries in 600 ms.

use bentpipe_congestion::slow_start::{CarefulResume, Standard};
use bentpipe_congestion::{Exit, Jump, Response, Resume, SavedPath, Step};
use bentpipe_units::Span;

use crate::feed::{DATAGRAM, Feed, INITIAL_WINDOW};

const SAVED: SavedPath = SavedPath {
    window: 1000 * DATAGRAM,
    rtt: Span::from_millis(600),
};

struct Jumped {
    feed: Feed,
    /// The packet that arrives next.
    next: u64,
}

impl Jumped {
    /// All has been sent, and the initial window is acknowledged.
    fn new() -> Self {
        let jump = Jump::Whole;
        let resume = Resume { saved: SAVED, jump };
        let slow_start = CarefulResume::new(Box::new(Standard), resume);
        let mut feed = Feed::slow_start(slow_start, 600);
        feed.send(INITIAL_WINDOW);
        let window = feed.algorithm.on_full(&feed.path);
        assert_eq!(window, Some(SAVED.window));
        feed.path.window = SAVED.window;
        feed.send(SAVED.window - INITIAL_WINDOW);
        let mut jumped = Self { feed, next: 0 };
        (0..10).for_each(|_| jumped.ack(600, 1200));
        jumped
    }

    /// The next packet, which left at `sent_ms`, is acknowledged at `at_ms`.
    fn ack(&mut self, sent_ms: u64, at_ms: u64) {
        self.feed.sent_before = self.next * DATAGRAM;
        self.feed.ack(at_ms, DATAGRAM, at_ms - sent_ms);
        self.next += 1;
    }

    /// One is lost: what becomes of the window.
    fn lose(&mut self) -> u64 {
        let Response::Retreat(window) = self.feed.congest(DATAGRAM) else {
            panic!("it retreats");
        };
        self.feed.path.window = window;
        window
    }
}

#[test]
fn acks_that_come_at_once_tell_no_rate() {
    let mut jumped = Jumped::new();
    (0..20).for_each(|_| jumped.ack(600, 1206));
    // Half of the initial window, ten packets that were acknowledged since, and these twenty.
    assert_eq!(jumped.lose(), 20 * DATAGRAM);
}

#[test]
fn a_rate_needs_ten_packets_after_the_first() {
    let mut jumped = Jumped::new();
    (0..10).for_each(|i| jumped.ack(600, 1206 + i));
    assert_eq!(jumped.lose(), 15 * DATAGRAM);
    let mut jumped = Jumped::new();
    (0..=10).for_each(|i| jumped.ack(600, 1206 + i));
    // 12,000 bytes in 10 ms.
    assert_eq!(jumped.lose(), 612_000);
}

#[test]
fn acks_that_come_compressed_tell_no_higher_rate_than_was_sent() {
    let mut jumped = Jumped::new();
    (0..=20).for_each(|i| jumped.ack(600 + 6 * i, 1320 + i));
    // 24,000 bytes in 120 ms.
    assert_eq!(jumped.lose(), 102_000);
}

#[test]
fn an_ack_that_waited_for_a_timer_counts_when_another_follows() {
    let mut jumped = Jumped::new();
    (0..=10).for_each(|i| jumped.ack(600, 1206 + i));
    jumped.ack(600, 1241);
    assert_eq!(jumped.lose(), 612_000);
    let mut jumped = Jumped::new();
    (0..=10).for_each(|i| jumped.ack(600, 1206 + i));
    jumped.ack(600, 1241);
    jumped.ack(600, 1246);
    // 14,400 bytes in 40 ms.
    assert_eq!(jumped.lose(), 183_600);
}

#[test]
fn the_window_is_at_most_what_was_sent_and_all_that_arrives_corrects_it() {
    let mut jumped = Jumped::new();
    jumped.ack(600, 1206);
    (0..20).for_each(|_| jumped.ack(600, 1207));
    // 24,000 bytes in a millisecond; 990 packets were sent.
    assert_eq!(jumped.lose(), 990 * DATAGRAM);
    (1..=100).for_each(|i| jumped.ack(600, 1207 + 10 * i));
    assert_eq!(jumped.feed.path.window, 990 * DATAGRAM);
    // 144,000 bytes in 1001 ms.
    let window = 73_355;
    let of_later = |feed: &mut Feed| {
        feed.send(DATAGRAM);
        feed.sent_before = feed.path.sent - DATAGRAM;
        feed.ack(2217, DATAGRAM, 601)
    };
    assert_eq!(of_later(&mut jumped.feed), Step::Window(window));
    let exit = Exit {
        window: window + DATAGRAM,
        ssthresh: window,
        reason: "ssthresh",
    };
    assert_eq!(of_later(&mut jumped.feed), Step::Leave(exit));
}
