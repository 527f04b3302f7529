//! `HyStart` by the rules of Linux.

use bentpipe_congestion::slow_start::HyStart;
use bentpipe_congestion::{Exit, Step};

use crate::feed::{DATAGRAM, Feed};

/// With a window that is large enough to be looked at.
fn feed(rtt_ms: u64) -> Feed {
    let mut feed = Feed::slow_start(HyStart::default(), rtt_ms);
    feed.path.window = 16 * DATAGRAM;
    feed
}

fn reason(step: Step) -> Option<&'static str> {
    match step {
        Step::Leave(exit) => Some(exit.reason),
        _ => None,
    }
}

#[test]
fn leaves_by_the_delay_after_eight_samples_of_a_round() {
    for (rtt, threshold) in [(8, 4), (80, 10), (600, 16)] {
        let mut feed = feed(rtt);
        feed.ack_of_a_new_round(0, DATAGRAM, rtt);
        // ACKs 3 ms apart make no train.
        assert_eq!(
            reason(feed.ack_of_a_new_round(1000, DATAGRAM, rtt + threshold + 1)),
            None
        );
        for n in 1..8 {
            let step = feed.ack(1000 + 3 * n, DATAGRAM, rtt + threshold + 1);
            assert_eq!(reason(step), None, "{rtt} ms, sample {n}");
        }
        let window = feed.path.window;
        let step = feed.ack(1024, DATAGRAM, rtt + threshold + 1);
        let exit = Exit {
            window,
            ssthresh: window,
            reason: "delay_increase",
        };
        assert_eq!(step, Step::Leave(exit), "{rtt} ms");
    }
}

#[test]
fn the_threshold_itself_is_no_increase() {
    let mut feed = feed(600);
    feed.ack_of_a_new_round(0, DATAGRAM, 600);
    feed.ack_of_a_new_round(1000, DATAGRAM, 616);
    for n in 1..30 {
        assert_eq!(reason(feed.ack(1000 + 3 * n, DATAGRAM, 616)), None);
    }
}

/// When a train of ACKs 2 ms apart has said so.
fn train_found(paced: bool, apart_ms: u64) -> Option<u64> {
    let mut feed = feed(100);
    feed.path.paced = paced;
    feed.ack_of_a_new_round(1000, DATAGRAM, 100);
    (1..200).find_map(|n| {
        let step = feed.ack(1000 + apart_ms * n, DATAGRAM, 100);
        reason(step).map(|reason| {
            assert_eq!(reason, "ack_train");
            apart_ms * n
        })
    })
}

#[test]
fn leaves_when_acks_come_without_a_pause_for_a_round_trip() {
    assert_eq!(train_found(true, 2), Some(102));
    assert_eq!(train_found(false, 2), Some(52));
    assert_eq!(train_found(true, 3), None);
}

#[test]
fn a_small_window_is_not_looked_at() {
    let mut feed = feed(600);
    for n in 0..50 {
        feed.path.window = 16 * DATAGRAM - 1;
        assert_eq!(feed.ack(n, DATAGRAM, 600 + n), Step::Grow(DATAGRAM));
    }
}
