//! Careful Resume after a jump of which some was lost: to 1000 packets over 600 ms, of
//! which the first ten are the initial window, and leave with it. A rate makes a window of 85 % of
//! what it carries in 600 ms.

use bentpipe_congestion::slow_start::{CarefulResume, Standard};
use bentpipe_congestion::{Exit, Jump, Response, Resume, Rtt, SavedPath, Step};
use bentpipe_units::{Span, Time};

use crate::feed::{DATAGRAM, Feed, INITIAL_WINDOW};

const SAVED: SavedPath = SavedPath {
    window: 1000 * DATAGRAM,
    rtt: Span::from_millis(600),
};

/// The handshake has taken 600 ms, and the initial window leaves.
fn begun(jump: Jump) -> Feed {
    let resume = Resume { saved: SAVED, jump };
    let slow_start = CarefulResume::new(Box::new(Standard), resume);
    let mut feed = Feed::slow_start(slow_start, 600);
    feed.path.now = Time::ZERO + Span::from_millis(600);
    feed.send(INITIAL_WINDOW);
    feed
}

/// The window is full, and becomes this one, which is sent at once.
fn jump(feed: &mut Feed, window: u64) {
    assert_eq!(feed.algorithm.on_full(&feed.path), Some(window));
    feed.path.window = window;
    feed.send(window - feed.path.in_flight);
}

struct Jumped {
    feed: Feed,
    /// The packet that arrives next.
    next: u64,
}

impl Jumped {
    /// To all that was saved; the initial window is acknowledged.
    fn whole() -> Self {
        let mut feed = begun(Jump::Whole);
        jump(&mut feed, SAVED.window);
        let mut jumped = Self { feed, next: 0 };
        for _ in 0..10 {
            jumped.ack(600, 1200);
        }
        jumped
    }

    /// To half of it a round trip later, with 20 packets in flight, which are acknowledged.
    fn half() -> Self {
        let feed = begun(Jump::Half);
        let mut jumped = Self { feed, next: 0 };
        for _ in 0..10 {
            jumped.ack(600, 1200);
        }
        jumped.feed.send(20 * DATAGRAM);
        jump(&mut jumped.feed, SAVED.window / 2);
        for _ in 0..20 {
            jumped.ack(1200, 1800);
        }
        jumped
    }

    /// The next packet, which left at `sent_ms`, is acknowledged at `at_ms`.
    fn ack(&mut self, sent_ms: u64, at_ms: u64) -> Step {
        self.feed.sent_before = self.next * DATAGRAM;
        self.next += 1;
        self.feed.ack(at_ms, DATAGRAM, at_ms - sent_ms)
    }

    /// A packet that leaves after the jump is acknowledged.
    fn ack_of_later(&mut self, at_ms: u64) -> Step {
        self.feed.send(DATAGRAM);
        self.feed.sent_before = self.feed.path.sent - DATAGRAM;
        self.feed.ack(at_ms, DATAGRAM, 601)
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

fn slow_start_ends(window: u64, ssthresh: u64) -> Step {
    Step::Leave(Exit {
        window,
        ssthresh,
        reason: "ssthresh",
    })
}

#[test]
fn acks_that_come_at_the_same_instant_tell_no_rate() {
    let mut jumped = Jumped::whole();
    for _ in 0..20 {
        jumped.ack(600, 1206);
    }
    // Half of the initial window, ten packets that were acknowledged since, and these twenty.
    assert_eq!(jumped.lose(), 20 * DATAGRAM);
}

#[test]
fn a_rate_needs_ten_packets_after_the_first() {
    for (packets, window) in [(10, 15 * DATAGRAM), (11, 612_000)] {
        let mut jumped = Jumped::whole();
        for i in 0..packets {
            jumped.ack(600, 1206 + i);
        }
        // Ten: half of what has arrived. Eleven: 12,000 bytes in 10 ms.
        assert_eq!(jumped.lose(), window);
    }
}

#[test]
fn half_a_jump_goes_by_what_has_arrived_alone() {
    let mut jumped = Jumped::half();
    for i in 0..20 {
        jumped.ack(1200, 1806 + i);
    }
    // 20 packets were in flight, and 40 were acknowledged since.
    assert_eq!(jumped.lose(), 30 * DATAGRAM);
    for i in 0..19 {
        assert_eq!(jumped.ack(1200, 1830 + i), Step::Grow(0));
    }
    assert_eq!(jumped.ack_of_later(1850), Step::Window(30 * DATAGRAM));
    for packets in 31..40 {
        assert_eq!(jumped.ack_of_later(1860), Step::Grow(DATAGRAM));
        assert_eq!(jumped.feed.path.window, packets * DATAGRAM);
    }
    let end = slow_start_ends(40 * DATAGRAM, 40 * DATAGRAM);
    assert_eq!(jumped.ack_of_later(1870), end);
}

#[test]
fn acks_that_come_compressed_tell_no_higher_rate_than_was_sent() {
    let mut jumped = Jumped::whole();
    for i in 0..=20 {
        jumped.ack(600 + 6 * i, 1320 + i);
    }
    // 24,000 bytes in 120 ms.
    assert_eq!(jumped.lose(), 102_000);
}

#[test]
fn an_ack_that_waited_for_a_timer_counts_when_another_follows() {
    // 12,000 bytes in 10 ms; 14,400 in 40 ms.
    for (late, window) in [(&[1241][..], 612_000), (&[1241, 1246], 183_600)] {
        let mut jumped = Jumped::whole();
        for i in 0..=10 {
            jumped.ack(600, 1206 + i);
        }
        for &at_ms in late {
            jumped.ack(600, at_ms);
        }
        assert_eq!(jumped.lose(), window);
    }
}

#[test]
fn a_slow_path_has_a_rate_too() {
    let mut jumped = Jumped::whole();
    for i in 0..=12 {
        jumped.ack(600, 1246 + 46 * i);
    }
    // 14,400 bytes in 552 ms.
    assert_eq!(jumped.lose(), 13_260);
}

#[test]
fn a_loss_does_not_raise_the_window() {
    let mut jumped = Jumped::whole();
    jumped.ack(600, 1206);
    assert_eq!(jumped.feed.path.window, 989 * DATAGRAM);
    for _ in 0..20 {
        jumped.ack(600, 1207);
    }
    // 24,000 bytes in a millisecond.
    assert_eq!(jumped.lose(), 989 * DATAGRAM);
    // Nor does slow start go on beyond what was sent.
    assert_eq!(jumped.ack_of_later(1208), Step::Window(989 * DATAGRAM));
    let end = slow_start_ends(990 * DATAGRAM, 990 * DATAGRAM);
    assert_eq!(jumped.ack_of_later(1209), end);
}

#[test]
fn all_that_arrives_corrects_what_the_first_of_it_told() {
    let mut jumped = Jumped::whole();
    jumped.ack(600, 1206);
    for _ in 0..20 {
        jumped.ack(600, 1207);
    }
    assert_eq!(jumped.lose(), 989 * DATAGRAM);
    for i in 1..=100 {
        assert_eq!(jumped.ack(600, 1207 + 10 * i), Step::Grow(0));
    }
    // 144,000 bytes in 1001 ms.
    let window = 73_355;
    assert_eq!(jumped.ack_of_later(2217), Step::Window(window));
    let end = slow_start_ends(window + DATAGRAM, window);
    assert_eq!(jumped.ack_of_later(2218), end);
}

#[test]
fn another_round_trip_time_ends_an_early_jump() {
    let mut feed = begun(Jump::Early);
    feed.path.rtt = Rtt::default();
    jump(&mut feed, SAVED.window);
    feed.path.rtt.samples = 1;
    feed.path.rtt.min = Span::from_millis(100);
    // Half of the initial window and of this packet. Losses of the jump are the controller's to
    // ignore.
    let window = 11 * DATAGRAM / 2;
    assert_eq!(feed.ack(700, DATAGRAM, 100), Step::Retreat(window));
    feed.send(DATAGRAM);
    feed.sent_before = feed.path.sent - DATAGRAM;
    assert_eq!(feed.ack(800, DATAGRAM, 100), Step::Window(window));
    assert_eq!(feed.congest(DATAGRAM), Response::Reduce);
}
