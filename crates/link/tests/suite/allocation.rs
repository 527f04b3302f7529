//! Capacity on demand: when it is asked for, when it comes, when it goes, and what endpoints see of it.

use bentpipe_link::{Fate, Link};
use bentpipe_units::Size;

use crate::{SEED, config, departure, link, ns};

const MS: u64 = 1_000_000;

/// A byte takes 1 ms at the floor, and 0.1 ms at the full rate.
const DEMAND: &str = "queue = \"1 MB\"\nrate = { full = \"80 kbit/s\", floor = \"8 kbit/s\", request_every = \"100 ms\", \
                      granted_after = \"50 ms\", hold = \"200 ms\" }";

#[test]
fn what_does_not_wait_asks_for_nothing() {
    let mut link = link(DEMAND);
    for packet in 0..1000 {
        let now = packet * 20 * MS;
        assert_eq!(departure(link.admit(ns(now), 20)), now + 20 * MS);
    }
}

#[test]
fn what_waits_asks_at_the_next_opportunity_and_has_it_later() {
    let mut link = link(DEMAND);
    // In transmission for 100 ms from 10 ms on.
    assert_eq!(departure(link.admit(ns(10 * MS), 100)), 110 * MS);
    // 150 bytes wait, and are asked for at 100 ms: 8 kbit/s, and 1200 bit in 150 ms, are 16 kbit/s from 150 ms on. Of the
    // 150 bytes 40 leave before that, and 110 take 55 ms after it.
    assert_eq!(departure(link.admit(ns(20 * MS), 150)), 205 * MS);
    // It holds: 20 bytes take 10 ms.
    assert_eq!(departure(link.admit(ns(300 * MS), 20)), 310 * MS);
    // More than the full rate is not granted: asked for at 400, it comes at 450. Before that, 280 of 10 000 bytes leave.
    assert_eq!(departure(link.admit(ns(310 * MS), 10)), 315 * MS);
    assert_eq!(
        departure(link.admit(ns(310 * MS), 10_000)),
        (450 + 973) * MS
    );
}

#[test]
fn silence_gives_the_grant_back() {
    let quiet = |silence: u64| {
        let mut link = link(DEMAND);
        link.admit(ns(0), 10);
        let last = departure(link.admit(ns(0), 10_000));
        let now = last + silence;
        departure(link.admit(ns(now), 10)) - now
    };
    assert_eq!(quiet(200 * MS - 1), MS);
    assert_eq!(quiet(200 * MS), 10 * MS);
}

#[test]
fn a_larger_grant_of_later_packets_does_not_speed_up_those_before() {
    let mut link = link(DEMAND);
    link.admit(ns(0), 1);
    // It asks at 0 for 8 kbit/s and 1600 bit in 150 ms, 18 667 bit/s in all, from 50 ms on.
    let first = departure(link.admit(ns(0), 200));
    assert_eq!(
        first,
        50 * MS + (151 * 8 * 1_000_000_000_u64).div_ceil(18_667) * 1_000
    );
    // This one asks for all, and has it when the one before has left.
    assert_eq!(departure(link.admit(ns(0), 10_000)) - first, 1000 * MS);
}

/// A sender whose rate doubles every round trip of 600 ms, up to the full rate of a link with capacity on demand: the delay in
/// the queue swings, and comes to rest when all is granted (SEARCH in QUIC, section 2.1.3).
#[test]
fn a_growing_sender_sees_the_delay_swing() {
    let forward = config(
        "queue = \"36 MB\"\nrate = { full = \"20 Mbit/s\", floor = \"1 Mbit/s\", request_every = \"1 s\", \
         granted_after = \"550 ms\", hold = \"2 s\" }",
    );
    let mut link = Link::new(&forward, Size::ZERO, SEED);
    let (mut now, mut delays) = (0, Vec::new());
    while now < 20_000 * MS {
        let Fate::Delivered { at } = link.admit(ns(now), 1500) else {
            panic!("dropped at {now}");
        };
        delays.push((now, (at.as_nanos() - now) / MS));
        let doublings = i32::try_from(now / (600 * MS)).unwrap();
        let rate = (0.4e6 * 2_f64.powi(doublings)).min(19e6);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let gap = (12_000.0 / rate * 1e9) as u64;
        now += gap;
    }
    // Highs and lows of the delay, where it turns by more than 50 ms.
    let (mut turns, mut rising, mut extreme) = (Vec::new(), true, 0);
    for (_, delay) in &delays {
        if rising == (*delay > extreme) {
            extreme = *delay;
        } else if delay.abs_diff(extreme) > 50 {
            turns.push(extreme);
            (rising, extreme) = (!rising, *delay);
        }
    }
    let [.., (_, last)] = delays[..] else {
        panic!("nothing was sent");
    };
    assert!(turns.len() >= 3, "{turns:?}");
    assert!(turns.iter().max() > Some(&500), "{turns:?}");
    assert!(last < 5, "at rest the delay is {last} ms");
}
