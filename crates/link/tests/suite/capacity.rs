//! The virtual clock, against schedules computed by hand.

use bentpipe_link::{Direction, Fate, Path, Scenario};

use crate::decided::Decides;
use crate::{departure, link, ns};

#[test]
fn thirds_of_a_nanosecond_add_up() {
    // One byte takes 8/3 ns: 2.67, 5.33, 8, 10.67, ... each rounded up on its own.
    let mut link = link("rate = \"3 Gbit/s\"\nqueue = \"100 packets\"");
    let departures: Vec<u64> = (0..7).map(|_| departure(link.admit(ns(0), 1))).collect();
    assert_eq!(departures, [3, 6, 8, 11, 14, 16, 19]);
}

#[test]
fn a_free_link_starts_at_once() {
    let mut link = link("rate = \"3 Gbit/s\"\nqueue = \"100 packets\"");
    assert_eq!(departure(link.admit(ns(10), 1)), 13);
    // Free at 12.67: a packet at 12 waits 0.67 ns and is through at 15.33, one at 13 does not wait.
    assert_eq!(departure(link.admit(ns(12), 1)), 16);
    assert_eq!(departure(link.admit(ns(16), 1)), 19);
    assert_eq!(departure(link.admit(ns(100), 3)), 108);
    assert_eq!(departure(link.admit(ns(108), 1)), 111);
}

#[test]
fn a_million_packets_leave_no_error_behind() {
    // 1499 bytes at 7 Mbit/s take 1713142 6/7 ns.
    let mut link = link("rate = \"7 Mbit/s\"\nqueue = \"1000000 packets\"");
    let last = (0..1_000_000)
        .map(|_| departure(link.admit(ns(0), 1499)))
        .last();
    assert_eq!(last, Some(1_713_142_857_143));
}

#[test]
fn without_a_rate_nothing_waits() {
    let mut link = link("queue = \"0 packets\"");
    for _ in 0..1000 {
        assert_eq!(departure(link.admit(ns(5), 1500)), 5);
    }
    assert_eq!(link.counters().max_queue_bytes, 0);
}

#[test]
fn the_first_packets_over_sat() {
    let sat = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/sat.toml");
    let sat = Scenario::load(sat.as_ref(), &[]).unwrap();
    let mut forward = Path::new(&sat, Direction::Forward, 1);
    // 1500 bytes take 0.6 ms at 20 Mbit/s; one is in transmission and 25 wait.
    for index in 1..=26 {
        let at = ns(300_000_000 + index * 600_000);
        assert_eq!(
            forward.admit(ns(0), 1500),
            Fate::Delivered { at },
            "packet {index}"
        );
    }
    assert_eq!(forward.admit(ns(0), 1500), Fate::QueueDrop);
    assert_eq!(forward.admit(ns(599_999), 40), Fate::QueueDrop);
    let at = ns(300_000_000 + 26 * 600_000 + 16_000);
    assert_eq!(forward.admit(ns(600_000), 40), Fate::Delivered { at });

    let mut back = Path::new(&sat, Direction::Return, 1);
    let at = ns(300_000_000 + 6_000_000);
    assert_eq!(back.admit(ns(0), 1500), Fate::Delivered { at });
}

#[test]
#[should_panic(expected = "a packet is sent at 4 ns, after one at 5 ns")]
fn time_does_not_go_back() {
    let mut link = link("");
    link.admit(ns(5), 1);
    link.admit(ns(4), 1);
}
