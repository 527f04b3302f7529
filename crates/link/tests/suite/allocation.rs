//! Capacity on demand: when it is asked for, when it comes, when it goes, and what endpoints see of
//! it.

use std::collections::VecDeque;

use bentpipe_link::{Fate, Path};
use bentpipe_units::Span;

use crate::decided::Decides;
use crate::{SEED, config, departure, link, ns};

const MS: u64 = 1_000_000;

/// A byte takes 1 ms at the floor, and 0.1 ms at the full rate.
const DEMAND: &str = "queue = \"1 MB\"\nrate = { full = \"80 kbit/s\", floor = \"8 kbit/s\", \
                      request_every = \"100 ms\", granted_after = \"50 ms\", hold = \"200 ms\" }";

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
    // 150 bytes wait, and are asked for at 100 ms: 8 kbit/s, and 1200 bit in 150 ms, are 16 kbit/s
    // from 150 ms on. Of the 150 bytes 40 leave before that, and 110 take 55 ms after it.
    assert_eq!(departure(link.admit(ns(20 * MS), 150)), 205 * MS);
    // It holds: 20 bytes take 10 ms.
    assert_eq!(departure(link.admit(ns(300 * MS), 20)), 310 * MS);
    // More than the full rate is not granted: asked for at 400, it comes at 450. Before that, 280
    // of 10 000 bytes leave.
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
        50 * MS + (151 * 8 * 1_000_000_000_u64).div_ceil(18_667)
    );
    // This one asks for all, and has it when the one before has left.
    assert_eq!(departure(link.admit(ns(0), 10_000)) - first, 1000 * MS);
}

/// The RTTs that a sender measures which doubles its window in each round trip and paces it over
/// one, up to 19 Mbit/s. Two ways of 300 ms.
fn rtts_of_slow_start(rate: &str) -> Vec<u64> {
    let forward = config(&format!("queue = \"36 MB\"\nrate = {rate}"));
    let mut link = Path::of_link(&forward, Span::ZERO, SEED);
    let (mut now, mut window, mut rtt) = (0, 10, 600 * MS);
    let (mut underway, mut samples) = (VecDeque::new(), Vec::new());
    while now < 30_000 * MS {
        for _ in 0..window {
            let Fate::Delivered { at } = link.admit(ns(now), 1500) else {
                panic!("dropped at {now}");
            };
            underway.push_back((now, at.as_nanos() + 599 * MS));
            while let Some((sent, acked)) = underway.front().filter(|(_, acked)| *acked <= now) {
                rtt = acked - sent;
                samples.push(rtt / MS);
                underway.pop_front();
            }
            now += (rtt / window).max(12_000 * 1_000 / 19);
        }
        window = (window * 2).min(950);
    }
    samples
}

/// The highs and lows between which it swings by more than 30 ms.
fn swings(samples: &[u64]) -> Vec<u64> {
    let (mut turns, mut rising, mut extreme) = (Vec::new(), true, 0);
    for sample in samples {
        if rising == (*sample > extreme) {
            extreme = *sample;
        } else if sample.abs_diff(extreme) > 30 {
            turns.push(extreme);
            (rising, extreme) = (!rising, *sample);
        }
    }
    turns
}

/// The queue grows while a request is on its way, drains when it is granted, and grows anew with
/// the sender, until all is granted (SEARCH in QUIC, section 2.1.3).
#[test]
fn a_growing_sender_sees_its_rtt_swing_until_all_is_granted() {
    let fixed = rtts_of_slow_start("\"20 Mbit/s\"");
    assert_eq!((swings(&fixed), fixed.iter().max()), (vec![], Some(&600)));
    let demand = rtts_of_slow_start(
        "{ full = \"20 Mbit/s\", floor = \"1 Mbit/s\", request_every = \"1 s\", granted_after = \
         \"550 ms\", hold = \"2 s\" }",
    );
    let swings = swings(&demand);
    assert!(swings.len() >= 4, "{swings:?}");
    assert!(swings.iter().max() > Some(&800), "{swings:?}");
    assert_eq!(demand.last(), Some(&600), "{swings:?}");
}
