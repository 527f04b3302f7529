//! Queue limits, each kind to the byte, the packet and the nanosecond.

use bentpipe_link::Fate;

use crate::decided::Decides;
use crate::{departure, link, ns};

/// How many packets of a burst at time 0 get through: one in transmission, the others wait.
fn burst(queue: &str, ip_bytes: u32) -> usize {
    let mut link = link(&format!("rate = \"8 Mbit/s\"\nqueue = {queue}"));
    let taken = (0..10_000)
        .filter(|_| link.admit(ns(0), ip_bytes) != Fate::QueueDrop)
        .count();
    let counters = link.counters();
    assert_eq!(counters.queue_drops + counters.delivered, 10_000);
    assert_eq!(
        counters.max_queue_bytes,
        (taken as u64 - 1) * u64::from(ip_bytes)
    );
    taken - 1
}

#[test]
fn packets_are_counted() {
    assert_eq!(burst("\"25 packets\"", 1500), 25);
    assert_eq!(burst("\"25 packets\"", 1), 25);
    assert_eq!(burst("\"1 packet\"", 1500), 1);
    assert_eq!(burst("\"0 packets\"", 1500), 0);
}

#[test]
fn bytes_are_counted() {
    assert_eq!(burst("\"15 kB\"", 1500), 10);
    assert_eq!(burst("\"14999 B\"", 1500), 9);
    assert_eq!(burst("\"15001 B\"", 1500), 10);
    assert_eq!(burst("\"0 B\"", 1), 0);
}

#[test]
fn a_small_packet_fits_where_a_large_one_does_not() {
    let mut link = link("rate = \"8 Mbit/s\"\nqueue = \"2000 B\"");
    assert_eq!(departure(link.admit(ns(0), 1000)), 1_000_000);
    assert_eq!(departure(link.admit(ns(0), 1500)), 2_500_000);
    assert_eq!(link.admit(ns(0), 501), Fate::QueueDrop);
    assert_eq!(departure(link.admit(ns(0), 500)), 3_000_000);
    assert_eq!(link.admit(ns(0), 1), Fate::QueueDrop);
}

#[test]
fn a_time_is_what_the_link_sends_in_it() {
    // 8 Mbit/s is a byte in a microsecond.
    assert_eq!(burst("\"15 ms\"", 1500), 10);
    assert_eq!(burst("\"14.999999 ms\"", 1500), 9);
    assert_eq!(burst("\"0 ms\"", 1), 0);
}

#[test]
fn a_bdp_is_10000_bytes_here() {
    assert_eq!(burst("\"1 BDP\"", 1000), 10);
    assert_eq!(burst("\"0.9999 BDP\"", 1000), 9);
    assert_eq!(burst("\"0.25 BDP\"", 1), 2500);
    assert_eq!(burst("\"0.249999999 BDP\"", 1), 2499);
    assert_eq!(burst("\"0 BDP\"", 1), 0);
}

#[test]
fn a_place_is_free_when_a_transmission_starts() {
    let mut link = link("rate = \"3 Gbit/s\"\nqueue = \"1 packet\"");
    // Transmissions end at 2.67 and 5.33.
    assert_eq!(departure(link.admit(ns(0), 1)), 3);
    assert_eq!(departure(link.admit(ns(0), 1)), 6);
    assert_eq!(link.admit(ns(0), 1), Fate::QueueDrop);
    assert_eq!(link.admit(ns(2), 1), Fate::QueueDrop);
    assert_eq!(departure(link.admit(ns(3), 1)), 8);
    assert_eq!(link.admit(ns(5), 1), Fate::QueueDrop);
    assert_eq!(departure(link.admit(ns(6), 1)), 11);
}

#[test]
fn a_packet_that_need_not_wait_is_never_dropped() {
    let queue = "{ size = \"0 B\", drop_above = \"0 B\", drop_ratio = \"100 %\" }";
    let mut link = link(&format!("rate = \"8 Gbit/s\"\nqueue = {queue}"));
    for index in 0..100 {
        assert_eq!(departure(link.admit(ns(index * 9), 9)), index * 9 + 9);
        assert_eq!(link.admit(ns(index * 9 + 8), 1), Fate::QueueDrop);
    }
}

#[test]
fn random_drops_begin_above_the_threshold_only() {
    let table =
        |ratio| format!("{{ size = \"36 kB\", drop_above = \"18 kB\", drop_ratio = \"{ratio}\" }}");
    assert_eq!(burst(&table("100 %"), 1500), 12);
    assert_eq!(burst(&table("0 %"), 1500), 24);
    assert_eq!(burst(&table("25 %"), 1500), 24);
    let packets = "{ size = \"9 packets\", drop_above = \"4 packets\", drop_ratio = \"100 %\" }";
    assert_eq!(burst(packets, 1500), 4);
}

#[test]
fn a_quarter_is_dropped_above_the_threshold() {
    // The backlog stays between threshold and limit: each arrival sees a quarter's chance.
    let queue = "{ size = \"100 MB\", drop_above = \"0 B\", drop_ratio = \"25 %\" }";
    let mut link = link(&format!("rate = \"1 kbit/s\"\nqueue = {queue}"));
    link.admit(ns(0), 1);
    let drops = (0..40_000)
        .filter(|_| link.admit(ns(0), 1000) == Fate::QueueDrop)
        .count();
    // Mean 10000, standard deviation 86.6; five of them on either side.
    assert!((9567..=10433).contains(&drops), "{drops}");
}

#[test]
fn the_queue_draws_from_the_stream_that_is_documented() {
    // Computed with another implementation of ChaCha8 from the description of `LinkSeed`.
    let queue = "{ size = \"100 MB\", drop_above = \"0 B\", drop_ratio = \"10 %\" }";
    let mut link = link(&format!("rate = \"1 kbit/s\"\nqueue = {queue}"));
    link.admit(ns(0), 1);
    let drops: Vec<usize> = (0..100)
        .filter(|_| link.admit(ns(0), 1) == Fate::QueueDrop)
        .collect();
    assert_eq!(drops, [19, 37, 43, 53, 57, 61, 84, 86]);
}

#[test]
fn a_full_queue_draws_no_lots() {
    // 100 packets wait, above the threshold; those that find it full change nothing for those
    // after.
    let drops = |overflow: u64| {
        let queue =
            "{ size = \"100 packets\", drop_above = \"50 packets\", drop_ratio = \"10 %\" }";
        let mut link = link(&format!("rate = \"8 Gbit/s\"\nqueue = {queue}"));
        while link.counters().delivered < 101 {
            link.admit(ns(0), 1000);
        }
        for _ in 0..overflow {
            assert_eq!(link.admit(ns(0), 1000), Fate::QueueDrop);
        }
        let arrivals = (1..=300).map(|index| link.admit(ns(index * 1000), 1000));
        arrivals
            .map(|fate| fate == Fate::QueueDrop)
            .collect::<Vec<bool>>()
    };
    assert!(drops(0).contains(&true));
    assert_eq!(drops(0), drops(7));
}
