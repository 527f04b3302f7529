//! Packets that are held and released together, against sequences reckoned by hand.

use bentpipe_link::{Fate, PacketMeta};
use bentpipe_units::Time;

use crate::{departure, link, ns};

const MS: u64 = 1_000_000;

/// When packets that are sent at these milliseconds leave.
fn left(words: &str, sent_ms: &[u64]) -> Vec<u64> {
    let mut path = link(&format!("aggregate = {{ {words} }}"));
    for (id, at) in (0..).zip(sent_ms) {
        let packet = PacketMeta {
            id,
            ip_bytes: 1000,
            ecn: 0,
            flow: 0,
            is_udp: true,
        };
        path.enqueue(ns(at * MS), packet);
    }
    path.advance(Time::NEVER);
    let outcomes = std::iter::from_fn(|| path.outcome());
    let left = outcomes.enumerate().map(|(number, it)| {
        assert_eq!(it.packet.id, number as u64, "the order is kept");
        assert!(matches!(it.fate, Fate::Delivered { .. }));
        departure(it.fate) / MS
    });
    left.collect()
}

#[test]
fn the_first_waits_for_the_hold_and_the_others_with_it() {
    let sent = [0, 1, 4, 5, 6, 20];
    // One that comes at the end of the hold is the first of the next ones.
    assert_eq!(left("hold = \"5 ms\"", &sent), [5, 5, 5, 10, 10, 25]);
}

#[test]
fn so_many_go_at_once() {
    let sent = [0, 1, 2, 3, 4, 10, 11];
    let expected = [2, 2, 2, 8, 8, 15, 15];
    assert_eq!(left("hold = \"5 ms\", packets = 3", &sent), expected);
    assert_eq!(left("hold = \"5 ms\", packets = 2", &[7, 7, 7]), [7, 7, 12]);
}
