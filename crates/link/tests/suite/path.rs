//! One direction over all segments.

use bentpipe_link::Fate::{Delivered, Loss, QueueDrop};
use bentpipe_link::{Direction, Fate, Path, Scenario};
use bentpipe_units::Span;

use crate::decided::Decides;
use crate::ns;

const THREE: &str = r#"
title = "t"
source = "s"
timeout = "60 s"
[access.forward]
rate = "8 Mbit/s"
delay = "1 ns"
[access.return]
loss = { model = "periodic", every = "1 packet" }
[satellite.forward]
rate = "8 Gbit/s"
delay = "100 ns"
queue = "1 packet"
loss = { model = "periodic", every = "3 packets" }
[satellite.return]
delay = "200 ns"
[ground.forward]
rate = "4 Gbit/s"
delay = "10 ns"
queue = "3 packets"
"#;

fn three() -> Scenario {
    Scenario::parse(THREE, "three.toml", &[]).unwrap()
}

#[test]
fn forward_meets_ground_then_satellite_then_access() {
    let mut path = Path::new(&three(), Direction::Forward, 1);
    // 1000 bytes: 2000 ns over the ground, 1000 over the satellite, 1 ms over the access.
    let at = ns(2000 + 10 + 1000 + 100 + 1_000_000 + 1);
    assert_eq!(path.admit(ns(0), 1000), Delivered { at });
    assert_eq!(path.min_delay(), Span::from_nanos(111));
}

#[test]
fn each_fate_is_counted_once_for_the_whole_path() {
    // BDP of the access: 8 Mbit/s * 311 ns is no byte, so nothing may wait there.
    let mut path = Path::new(&three(), Direction::Forward, 1);
    let fates: Vec<Fate> = (0..6).map(|_| path.admit(ns(0), 1000)).collect();
    let first = Delivered { at: ns(1_003_111) };
    // The second waits at the access, the third is lost over the satellite, the fourth is dropped
    // at the access like the second; the last two find three packets waiting at the ground.
    assert_eq!(
        fates,
        [first, QueueDrop, Loss, QueueDrop, QueueDrop, QueueDrop]
    );
    let counters = path.counters();
    assert_eq!((counters.packets, counters.bytes), (6, 6000));
    assert_eq!((counters.delivered, counters.delivered_bytes), (1, 1000));
    assert_eq!((counters.queue_drops, counters.losses), (4, 1));
    assert_eq!(counters.max_queue_bytes, 3000);
}

#[test]
fn the_return_direction_meets_the_access_first() {
    let mut path = Path::new(&three(), Direction::Return, 1);
    assert_eq!(path.min_delay(), Span::from_nanos(200));
    assert_eq!(path.admit(ns(0), 1000), Loss);
    assert_eq!(path.counters().losses, 1);
}

#[test]
fn the_same_seed_gives_the_same_fates_and_another_seed_others() {
    let sets = [("forward.loss".to_owned(), "10%".to_owned())];
    let scenario = Scenario::parse(THREE, "three.toml", &sets).unwrap();
    let fates = |direction, seed| {
        let mut path = Path::new(&scenario, direction, seed);
        (0..500)
            .map(|i| path.admit(ns(i * 2_000_000), 1000))
            .collect::<Vec<Fate>>()
    };
    assert_eq!(fates(Direction::Forward, 1), fates(Direction::Forward, 1));
    assert_ne!(fates(Direction::Forward, 1), fates(Direction::Forward, 2));
}

#[test]
fn a_queue_in_bdp_is_of_its_own_link() {
    let sat = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/sat.toml");
    let sets = ["forward", "return"].map(|at| (format!("{at}.queue"), "1BDP".to_owned()));
    let sat = Scenario::load(sat.as_ref(), &sets).unwrap();
    // 1.5 MB and 150 kB wait, and one packet is in transmission.
    for (direction, taken) in [(Direction::Forward, 1001), (Direction::Return, 101)] {
        let mut path = Path::new(&sat, direction, 1);
        for _ in 0..2000 {
            path.admit(ns(0), 1500);
        }
        assert_eq!(path.counters().delivered, taken);
    }
}
