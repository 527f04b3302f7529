//! Orders of the nodes of a link.

use bentpipe_link::{Direction, Fate, HostName, Ideal, Path};
use bentpipe_units::Span;
use proptest::prelude::*;

use crate::decided::Decides;
use crate::properties::arrivals;
use crate::{SEED, link, ns, parse};

const MS: u64 = 1_000_000;

/// The fates of packets of 1000 bytes, which take 1 ms at 8 Mbit/s and travel for 1 ms: when they
/// arrive, in milliseconds.
fn fates(keys: &str, times: &[u64]) -> Vec<Result<u64, Fate>> {
    let mut link = link(keys);
    let fate = |at: &u64| match link.admit(ns(at * MS), 1000) {
        Fate::Delivered { at } => Ok(at.as_nanos() / MS),
        fate => Err(fate),
    };
    times.iter().map(fate).collect()
}

const ALL: [&str; 7] = ["mtu", "udp", "policer", "shaper", "queue", "loss", "delay"];
const KEYS: &str = "rate = \"8 Mbit/s\"\nqueue = \"1 packet\"\n\
                    loss = { model = \"periodic\", every = \"3 packets\" }\n\
                    policer = { rate = \"8 Mbit/s\", burst = \"3 kB\" }\n";
const DROP: Result<u64, Fate> = Err(Fate::QueueDrop);
const LOSS: Result<u64, Fate> = Err(Fate::Loss);

#[test]
fn the_usual_order_may_be_written() {
    let usual = "order = [\"policer\", \"queue\", \"loss\", \"delay\"]";
    let times = [0, 0, 0, 0, 1, 1, 2, 9];
    assert_eq!(
        fates(&format!("{KEYS}{usual}"), &times),
        fates(KEYS, &times)
    );
    // Two pass the policer and the queue; the third to reach the loss is that at 1 ms.
    let expected = [Ok(2), Ok(3), DROP, DROP, LOSS, DROP, Ok(5), Ok(11)];
    assert_eq!(fates(KEYS, &times), expected);
}

#[test]
fn a_policer_behind_a_queue_sees_what_that_lets_pass() {
    let order = "order = [\"queue\", \"policer\", \"loss\", \"delay\"]";
    let keys = KEYS.replace("policer = { rate = \"8", "policer = { rate = \"4");
    // Packets reach the policer at 1 and 2 ms, and at 4 ms the third for it, whose bucket has 3 kB
    // and a byte in 2 us: the last finds 2 kB.
    let found = fates(&format!("{keys}{order}"), &[0, 0, 0, 3, 4]);
    assert_eq!(found, [Ok(2), Ok(3), DROP, LOSS, Ok(6)]);
}

#[test]
fn what_is_lost_before_the_queue_takes_no_capacity() {
    let order = "order = [\"loss\", \"policer\", \"queue\", \"delay\"]";
    // Every third is lost before the others meet the policer.
    let found = fates(&format!("{KEYS}{order}"), &[0, 0, 0, 2, 2, 2]);
    assert_eq!(found, [Ok(2), Ok(3), LOSS, Ok(4), Ok(5), LOSS]);
}

#[test]
fn what_is_lost_behind_the_delay_does_not_arrive() {
    let order = "order = [\"policer\", \"queue\", \"delay\", \"loss\"]";
    let times = [0, 0, 0, 1, 9];
    let found = fates(&format!("{KEYS}{order}"), &times);
    assert_eq!(found, [Ok(2), Ok(3), DROP, LOSS, Ok(11)]);
}

#[test]
fn a_queue_behind_the_delay_gets_packets_later() {
    let keys = "rate = \"8 Mbit/s\"\nqueue = { size = \"9 packets\", aqm = \"fq\" }\n\
                outages = [{ at = \"1 ms\", for = \"5 ms\" }]\n";
    for order in ["", "order = [\"delay\", \"queue\"]"] {
        let mut link = link(&format!("{keys}{order}"));
        link.enqueue(ns(0), crate::decided::packet(1000));
        assert_eq!(link.min_delay(), Span::from_millis(1));
        link.advance(ns(0));
        // With the queue first, the packet is sent before the outage; else in it.
        let expected = if order.is_empty() { 2 } else { 7 };
        let at = ns(expected * MS);
        assert_eq!(link.outcome().unwrap().fate, Fate::Delivered { at });
    }
}

#[test]
fn the_ideal_sender_knows_the_order() {
    let keys =
        "delay = \"1 ms\"\nrate = \"8 Mbit/s\"\noutages = [{ at = \"5 ms\", for = \"3 ms\" }]\n";
    // Bits that arrive from 6 to 10 ms were at the rate from 5 to 9 ms, or from 6 to 10 ms.
    for (order, free_ms) in [("", 1), ("order = [\"delay\", \"queue\"]", 2)] {
        let scenario = parse(&format!("{keys}{order}")).unwrap();
        let ideal = Ideal::new(&scenario, Direction::Forward, 1);
        let bits = ideal.bit_nanos(ns(6 * MS), ns(10 * MS)).unwrap();
        assert_eq!(bits, free_ms * 8_000 * 1_000_000_000);
    }
}

#[test]
fn a_cable_lies_at_the_end() {
    let text = crate::file("delay = \"1 ms\"")
        + "[access.forward]\nrate = \"8 Mbit/s\"\norder = [\"queue\"]\n";
    let scenario = bentpipe_link::Scenario::parse(&text, "test.toml", &[]).unwrap();
    let scenario = scenario.with_cables(&[HostName::Terminal]);
    let path = Path::new(&scenario, Direction::Forward, 1);
    assert_eq!(path.min_delay(), scenario.min_one_way(Direction::Forward));
    let json = serde_json::to_string(&scenario).unwrap();
    let read: bentpipe_link::Scenario = serde_json::from_str(&json).unwrap();
    assert_eq!(read, scenario);
}

proptest! {
    /// In every order each packet has one fate, those that arrive do so in the order of sending,
    /// and none takes less than the delay.
    #[test]
    fn packets_are_conserved_in_every_order(
        order in Just(ALL.to_vec()).prop_shuffle(),
        queue in prop::sample::select(vec![
            "\"9 packets\"",
            "{ size = \"9 packets\", aqm = \"fq\" }",
            "{ size = \"9 packets\", aqm = \"head-drop\" }",
        ]),
        outages in prop::sample::select(vec!["keep", "flush"]),
        packets in arrivals(),
    ) {
        let keys = format!(
            "delay = {{ base = \"1 ms\", jitter = \"2 ms\" }}\nrate = \"9 Mbit/s\"\n\
             queue = {queue}\nloss = \"20 %\"\n\
             mtu = \"1400 B\"\nudp = {{ rate = \"15 Mbit/s\", burst = \"9 kB\", drop = \"5 %\" }}\n\
             policer = {{ rate = \"20 Mbit/s\", burst = \"9 kB\" }}\n\
             shaper = {{ rate = \"11 Mbit/s\", burst = \"3 kB\", queue = \"9 packets\" }}\n\
             outages = {{ every = \"9 ms\", for = \"2 ms\", queue = \"{outages}\" }}\n\
             order = {order:?}"
        );
        let forward = parse(&keys).unwrap().satellite.forward;
        let mut path = Path::of_link(&forward, Span::from_millis(10), SEED);
        for (id, (now, ip_bytes)) in (0..).zip(&packets) {
            let packet = crate::decided::packet(*ip_bytes);
            path.enqueue(ns(*now), bentpipe_link::PacketMeta { id, is_udp: id % 2 == 0, ..packet });
        }
        path.advance(bentpipe_units::Time::NEVER);
        let mut decided = vec![false; packets.len()];
        let mut arrived = Vec::new();
        while let Some(outcome) = path.outcome() {
            let number = usize::try_from(outcome.packet.id).unwrap();
            prop_assert!(!decided[number], "{} has two fates", number);
            decided[number] = true;
            if let Fate::Delivered { at } = outcome.fate {
                prop_assert!(at >= ns(packets[number].0) + Span::from_millis(1));
                arrived.push((number, at));
            }
        }
        prop_assert!(decided.iter().all(|it| *it));
        prop_assert!(arrived.windows(2).all(|it| it[0].0 < it[1].0 && it[0].1 <= it[1].1));
        let counters = path.counters();
        prop_assert_eq!(counters.delivered, arrived.len() as u64);
        prop_assert_eq!(path.queue_bytes(bentpipe_units::Time::NEVER), 0);
    }
}
