//! Policers and shapers: sequences reckoned by hand, and what holds of every token bucket.

use bentpipe_link::{Direction, Fate, Ideal};
use bentpipe_units::{Span, Time};
use proptest::prelude::*;

use crate::decided::Decides;
use crate::properties::arrivals;
use crate::{departure, link, ns, parse};

const DROP: Option<u64> = None;

/// When packets leave that arrive at these times with these sizes; None: dropped.
fn left(keys: &str, packets: impl IntoIterator<Item = (u64, u32)>) -> Vec<Option<u64>> {
    let mut link = link(keys);
    let meet = |(now, ip_bytes)| match link.admit(ns(now), ip_bytes) {
        Fate::QueueDrop => None,
        fate => Some(departure(fate)),
    };
    packets.into_iter().map(meet).collect()
}

#[test]
fn a_policer_drops_what_finds_no_tokens() {
    // A byte in a microsecond. The first three empty the bucket, which takes 1 ms for a fourth, and
    // 3 ms to be full again.
    let packets = [
        0, 0, 0, 0, 999_999, 1_000_000, 1_000_000, 9_000_000, 9_000_000, 9_000_000,
    ];
    let packets = packets.into_iter().chain([9_000_000]).map(|at| (at, 1000));
    let found = left(
        "policer = { rate = \"8 Mbit/s\", burst = \"3 kB\" }",
        packets,
    );
    let at = Some;
    let expected = [at(0), at(0), at(0), DROP, DROP, at(1_000_000), DROP];
    assert_eq!(found[..7], expected);
    assert_eq!(
        found[7..],
        [at(9_000_000), at(9_000_000), at(9_000_000), DROP]
    );
}

/// At 3 Mbit/s a byte comes every 2666.67 ns.
#[test]
fn fractions_of_tokens_are_kept() {
    let times = [2666, 2667, 5333, 5334, 7999, 8000];
    let packets = [(0, 1500)].into_iter().chain(times.map(|at| (at, 1)));
    let found = left(
        "policer = { rate = \"3 Mbit/s\", burst = \"1500 B\" }",
        packets,
    );
    let expected = [
        Some(0),
        DROP,
        Some(2667),
        DROP,
        Some(5334),
        DROP,
        Some(8000),
    ];
    assert_eq!(found, expected);
    let packets = [(0, 1500), (0, 1), (0, 1), (0, 1)];
    let found = left(
        "shaper = { rate = \"3 Mbit/s\", burst = \"1500 B\" }",
        packets,
    );
    assert_eq!(found, [Some(0), Some(2667), Some(5334), Some(8000)]);
}

#[test]
fn a_shaper_lets_a_burst_pass_and_then_goes_by_its_rate() {
    let keys = "shaper = { rate = \"8 Mbit/s\", burst = \"3 kB\", queue = \"2 packets\" }";
    let times = [
        0, 0, 0, 0, 0, 0, 1_000_000, 9_000_000, 9_000_000, 9_000_000, 9_000_000,
    ];
    let found = left(keys, times.map(|at| (at, 1000)));
    let at = Some;
    // Two wait for 1 and 2 ms, a third finds no place until the first of them has left.
    let first = [
        at(0),
        at(0),
        at(0),
        at(1_000_000),
        at(2_000_000),
        DROP,
        at(3_000_000),
    ];
    assert_eq!(found[..7], first);
    // 6 ms later the bucket is full.
    let then = [at(9_000_000), at(9_000_000), at(9_000_000), at(10_000_000)];
    assert_eq!(found[7..], then);
    let mut link = link(keys);
    for _ in 0..5 {
        link.admit(ns(0), 1000);
    }
    assert_eq!(
        [0, 1_000_000, 2_000_000].map(|at| link.queue_bytes(ns(at))),
        [2000, 1000, 0]
    );
    assert_eq!(link.counters().max_queue_bytes, 2000);
}

#[test]
fn a_shapers_bdp_is_of_its_own_rate() {
    // 8 Mbit/s for 10 ms are 10 packets, beside the one that passes at once.
    let keys = "rate = \"1 Gbit/s\"\nshaper = { rate = \"8 Mbit/s\", burst = \"1500 B\" }";
    let found = left(keys, [(0, 1500)].into_iter().chain([(0, 1000); 20]));
    assert_eq!(found.iter().flatten().count(), 11);
}

#[test]
fn what_is_larger_than_the_burst_never_passes() {
    for name in ["policer", "shaper"] {
        let keys = format!("{name} = {{ rate = \"8 Mbit/s\", burst = \"1500 B\" }}");
        let found = left(&keys, [(0, 1501), (9_000_000, 1501), (9_000_000, 1500)]);
        assert_eq!(found, [DROP, DROP, Some(9_000_000)]);
    }
}

#[test]
fn a_policer_stands_before_a_shaper_and_that_before_the_rate() {
    // All 3 kB come to the link at once, whose queue holds one; the shaper lets no more in.
    let keys = "rate = \"4 Mbit/s\"\nqueue = \"1 packet\"\n\
                policer = { rate = \"8 Mbit/s\", burst = \"4 kB\" }\n\
                shaper = { rate = \"8 Mbit/s\", burst = \"3 kB\" }";
    let found = left(keys, [(0, 1000); 5]);
    // The third finds the link busy and one waiting, the fourth comes at 1 ms to one that waits,
    // the fifth is the policer's.
    assert_eq!(found, [Some(2_000_000), Some(4_000_000), DROP, DROP, DROP]);
}

#[test]
fn the_path_has_the_rate_and_the_queue_of_a_shaper() {
    let keys = "delay = \"99 ms\"\nrate = \"1 Gbit/s\"\nqueue = \"9 packets\"\n\
                shaper = { rate = \"8 Mbit/s\", burst = \"100 kB\" }";
    let scenario = parse(keys).unwrap();
    assert_eq!(scenario.forward_rate().unwrap().to_string(), "8 Mbit/s");
    assert!(!scenario.is_steady(Direction::Forward));
    assert_eq!(scenario.queue(Direction::Forward).unwrap().bytes(), 100_000);
    // 1 MB is 1.05 MB with its headers; 950 kB of it go by the rate, after two round trips.
    let ideal = Ideal::new(&scenario, Direction::Forward, 1);
    let expected = Span::from_millis(200 + 950);
    assert_eq!(ideal.limit(1_000_000, 2, Time::ZERO), expected);
    let second = (ns(1_000_000_000), ns(2_000_000_000));
    let bits = u128::from(8_000_000 + 8 * 100_000_u32);
    assert_eq!(
        ideal.bit_nanos(second.0, second.1),
        Some(bits * 1_000_000_000)
    );
}

/// Whether packets, each with its time, pass a bucket: over no time more than a burst and the rate.
fn conforms(packets: &[(u64, u32)], rate: u64, burst: u64) -> bool {
    let Some((end, _)) = packets.last() else {
        return true;
    };
    let mut bytes = 0;
    packets.iter().rev().all(|(begin, ip_bytes)| {
        bytes += u128::from(*ip_bytes);
        let filled = u128::from(rate) * u128::from(end - begin);
        bytes * 8_000_000_000 <= u128::from(burst) * 8_000_000_000 + filled
    })
}

fn buckets() -> impl Strategy<Value = (u64, u64)> {
    let rate = prop_oneof![
        1_000_000_u64..30_000_000,
        1_u64..10_000_000_000,
        Just(8_000_000)
    ];
    (rate, prop_oneof![1500_u64..5000, Just(1500)])
}

proptest! {
    /// A packet passes if and only if the traffic conforms with it.
    #[test]
    fn a_policer_passes_all_that_conforms_and_nothing_else(
        (rate, burst) in buckets(),
        arrivals in arrivals(),
    ) {
        let keys =
            format!("policer = {{ rate = \"{rate} bit/s\", burst = \"{burst} B\" }}");
        let mut passed = Vec::new();
        for ((now, ip_bytes), left) in arrivals.iter().zip(left(&keys, arrivals.clone())) {
            passed.push((*now, *ip_bytes));
            prop_assert_eq!(left.is_some(), conforms(&passed, rate, burst));
            if left.is_none() {
                passed.pop();
            }
            prop_assert!(left.is_none_or(|at| at == *now));
        }
    }

    /// A packet leaves at the first nanosecond at which the traffic conforms with it, in order; all
    /// leave if the queue holds all.
    #[test]
    fn a_shaper_sends_all_as_early_as_it_conforms(
        (rate, burst) in buckets(),
        arrivals in arrivals(),
    ) {
        let keys = format!(
            "shaper = {{ rate = \"{rate} bit/s\", burst = \"{burst} B\", queue = \"1 MB\" }}"
        );
        let mut sent: Vec<(u64, u32)> = Vec::new();
        for ((now, ip_bytes), left) in arrivals.iter().zip(left(&keys, arrivals.clone())) {
            let at = left.unwrap();
            let earliest = sent.last().map_or(*now, |(before, _)| *now.max(before));
            prop_assert!(at >= earliest);
            if at > earliest {
                sent.push((at - 1, *ip_bytes));
                prop_assert!(!conforms(&sent, rate, burst));
                sent.pop();
            }
            sent.push((at, *ip_bytes));
            prop_assert!(conforms(&sent, rate, burst));
        }
    }
}
