//! Handovers: what becomes of packets before, in and after the gap.

use bentpipe_link::{Direction, Fate, Ideal, LinkSeed, Path, Quantity, Scenario};
use bentpipe_units::{Span, Time};
use proptest::prelude::*;

use crate::decided::Decides;
use crate::properties::arrivals;
use crate::{SEED, ns, parse};

const MS: u64 = 1_000_000;

fn link(keys: &str) -> Path {
    let forward = parse(keys).unwrap().satellite.forward;
    Path::of_link(&forward, Span::ZERO, SEED)
}

/// When packets of that size arrive; None: lost.
fn arrive(link: &mut Path, times: &[u64], ip_bytes: u32) -> Vec<Option<u64>> {
    let arrival = |now: &u64| match link.admit(ns(*now), ip_bytes) {
        Fate::Delivered { at } => Some(at.as_nanos()),
        Fate::Loss => None,
        Fate::QueueDrop => panic!("dropped"),
    };
    times.iter().map(arrival).collect()
}

fn given(in_flight: &str) -> String {
    format!(
        "delay = \"10 ms\"\n\
         handovers = {{ times = [{{ at = \"100 ms\" }}, {{ at = \"200 ms\", gap = \"5 ms\" }}], \
         gap = \"30 ms\", in_flight = \"{in_flight}\" }}"
    )
}

#[test]
fn packets_under_way_are_lost_delayed_or_forwarded() {
    // The second arrives as the handover begins; the fifth to the seventh travel after the gap.
    let times = [
        89 * MS,
        90 * MS,
        91 * MS,
        100 * MS - 1,
        100 * MS,
        115 * MS,
        130 * MS,
        131 * MS,
    ];
    let (before, after) = ([99, 100], [140, 140, 140, 141]);
    let expected = |two: [Option<u64>; 2]| -> Vec<Option<u64>> {
        let before = before.map(|ms| Some(ms * MS));
        let after = after.map(|ms| Some(ms * MS));
        before.into_iter().chain(two).chain(after).collect()
    };
    for (in_flight, two) in [
        ("lost", [None, None]),
        ("delayed", [Some(130 * MS), Some(130 * MS)]),
        ("forwarded", [Some(101 * MS), Some(110 * MS - 1)]),
    ] {
        let found = arrive(&mut link(&given(in_flight)), &times, 1000);
        assert_eq!(found, expected(two), "{in_flight}");
    }
    // A gap of its own, and nothing after the last.
    let times = [191 * MS, 201 * MS, 300 * MS];
    let found = arrive(&mut link(&given("lost")), &times, 1000);
    assert_eq!(found, [None, Some(215 * MS), Some(310 * MS)]);
}

#[test]
fn what_waits_is_sent_after_the_gap() {
    let mut link = link(&format!(
        "rate = \"8 Mbit/s\"\nqueue = \"9 packets\"\n{}",
        given("lost")
    ));
    // Each takes 1 ms. The second has left as the gap begins, and travels when it ends; of the
    // third nothing has.
    let times = [97 * MS, 98 * MS, 98 * MS, 98 * MS];
    let found = arrive(&mut link, &times, 1000);
    assert_eq!(found, [None, None, Some(140 * MS), Some(141 * MS)]);
}

#[test]
fn given_times_begin_again() {
    let keys = "delay = \"1 ms\"\n\
                handovers = { times = [{ at = \"0 ms\" }, { at = \"50 ms\" }], gap = \"10 ms\", \
                period = \"100 ms\", in_flight = \"lost\" }";
    let times = [5, 10, 49, 50, 55, 99, 100, 149, 1_000_055, 1_000_149].map(|ms| ms * MS);
    let found = arrive(&mut link(keys), &times, 1);
    // 49 and 99 arrive as a handover begins.
    let expected = [11, 11, 50, 61, 61, 100, 111, 150, 1_000_061, 1_000_150];
    assert_eq!(found, expected.map(|ms| Some(ms * MS)));
    let found = arrive(&mut link(keys), &[49 * MS + 1, 99 * MS + 1], 1);
    assert_eq!(found, [None, None]);
}

#[test]
fn a_new_path_that_is_shorter_keeps_the_order() {
    let keys = "delay = { steps = [[\"0 s\", \"30 ms\"], [\"100 ms\", \"5 ms\"]] }\n\
                handovers = { times = [{ at = \"100 ms\" }], gap = \"2 ms\", in_flight = \
                \"forwarded\" }";
    let times = [99, 100, 120, 124, 130].map(|ms| ms * MS);
    let found = arrive(&mut link(keys), &times, 1);
    assert_eq!(found, [129, 129, 129, 129, 135].map(|ms| Some(ms * MS)));
}

/// Where gaps begin, and their lengths, of packets that are sent each millisecond for a minute.
fn gaps_of(direction: Direction, seed: u64, handovers: &str) -> Vec<(u64, u64)> {
    let scenario = parse(&format!("delay = \"1 ms\"\nhandovers = {handovers}")).unwrap();
    let seed = LinkSeed {
        seed,
        direction,
        ..SEED
    };
    let mut link = Path::of_link(&scenario.satellite.forward, Span::ZERO, seed);
    let times: Vec<u64> = (0..60_000).map(|ms| ms * MS).collect();
    let found: Vec<u64> = arrive(&mut link, &times, 1).into_iter().flatten().collect();
    let pairs = found.windows(2).filter(|pair| pair[1] - pair[0] > MS);
    pairs.map(|pair| (pair[0], pair[1] - pair[0])).collect()
}

#[test]
fn a_random_phase_and_gaps_are_those_of_the_trial_in_both_directions() {
    let random = "{ every = \"15 s\", phase = \"random\", gap = [\"60 ms\", \"90 ms\"], \
                  in_flight = \"forwarded\" }";
    let trials: Vec<_> = (0..20)
        .map(|seed| gaps_of(Direction::Forward, seed, random))
        .collect();
    let mut firsts: Vec<u64> = trials.iter().map(|gaps| gaps[0].0).collect();
    for (seed, gaps) in (0..).zip(&trials) {
        assert_eq!(*gaps, gaps_of(Direction::Return, seed, random));
        assert!((3..=4).contains(&gaps.len()));
        for pair in gaps.windows(2) {
            assert_eq!((pair[1].0 - pair[0].0 + MS / 2) / MS, 15_000);
        }
        // The next packet is sent up to 1 ms after the handover.
        let is_one = |gap: &u64| (59..=61).contains(&(gap / MS)) || (89..=91).contains(&(gap / MS));
        assert!(gaps.iter().all(|(_, gap)| is_one(gap)), "{gaps:?}");
    }
    let long = trials
        .iter()
        .flatten()
        .filter(|(_, gap)| *gap > 75 * MS)
        .count();
    // Of some 78 gaps half are long.
    assert!((25..55).contains(&long), "{long}");
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), 20);
    assert!(firsts[0] < 3000 * MS && firsts[19] > 12_000 * MS);
}

#[test]
fn all_that_has_the_same_intervals_has_the_same_phase() {
    let keys = "rate = { mean = \"8 Mbit/s\", spread = \"50 %\", every = \"15 s\", phase = \
                \"random\" }\n\
                delay = { base = \"1 ms\", jitter = \"9 ms\", every = \"15 s\", phase = \
                \"random\" }\n\
                loss = { model = \"handover\", every = \"15 s\", phase = \"random\", lasts = \
                \"1 s\" }\n\
                handovers = { every = \"15 s\", phase = \"random\", gap = \"0 ms\", in_flight = \
                \"lost\" }\n\
                outages = { every = \"15 s\", phase = \"random\", for = \"1 s\" }";
    let scenario = parse(keys).unwrap();
    let timelines = scenario.timelines();
    // Parts of a second: the one in which the loss begins, as that of the change of the delay.
    let of = |quantity| timelines.iter().find(|it| it.quantity == quantity).unwrap();
    let loss = &of(Quantity::Loss).parts;
    let begins = loss.iter().position(|it| *it > 0).unwrap();
    assert!(begins < 15);
    let delay = &of(Quantity::Delay).parts;
    let changes = delay
        .windows(2)
        .position(|pair| pair[0] != pair[1])
        .unwrap();
    assert!(begins == changes || begins == changes + 1);
    let rate = &of(Quantity::Rate).parts;
    let lowest = rate
        .iter()
        .take(15)
        .enumerate()
        .min_by_key(|(_, bps)| **bps)
        .unwrap()
        .0;
    assert!(lowest == begins || lowest == begins + 1);
    let json = serde_json::to_string(&scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
}

#[test]
fn handovers_are_told_and_travel_in_json() {
    let scenario = parse(&given("delayed")).unwrap();
    let handovers = scenario.satellite.forward.handovers.as_ref().unwrap();
    assert_eq!(
        handovers.to_string(),
        "at 100 ms, 200 ms, gaps 5 ms to 30 ms, in flight: delayed"
    );
    let json = serde_json::to_string(&scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
    let every = "delay = \"1 ms\"\nhandovers = { every = \"15 s\", phase = \"random\", gap = \"80 \
                 ms\", in_flight = \"lost\" }";
    let handovers = parse(every).unwrap().satellite.forward.handovers.unwrap();
    assert_eq!(
        handovers.to_string(),
        "every 15 s from a random time on, gap 80 ms, in flight: lost"
    );
}

#[test]
fn the_ideal_sender_waits_in_the_gap() {
    let rate = "rate = \"8 Mbit/s\"\ndelay = \"10 ms\"";
    let limit = |keys: &str| {
        let scenario = parse(keys).unwrap();
        Ideal::new(&scenario, Direction::Forward, 1).limit(1_000_000, 2, Time::ZERO)
    };
    let with = format!(
        "{rate}\n{}",
        given("lost").replace("delay = \"10 ms\"\n", "")
    );
    assert_eq!(limit(&with), limit(rate) + Span::from_millis(35));
    let steady = |keys: &str| parse(keys).unwrap().is_steady(Direction::Forward);
    assert_eq!([steady(rate), steady(&with)], [true, false]);
}

#[test]
fn handovers_that_cannot_be() {
    for (handovers, message) in [
        (
            "\"15 s\"",
            ": 15 s: not handovers; write { every = \"15 s\", phase = \"random\", gap = \"80 ms\", \
             in_flight = \"lost\" } or { times = [{ at = \"10 s\" }, { at = \"25 s\" }], gap = \
             \"80 ms\", in_flight = \"lost\" }",
        ),
        (
            "{ every = \"15 s\", gap = \"80 ms\" }",
            ".in_flight: missing; write in_flight = \"lost\", \"delayed\" or \"forwarded\"",
        ),
        (
            "{ every = \"15 s\", gap = \"80 ms\", in_flight = \"kept\" }",
            ".in_flight: kept: write \"lost\", \"delayed\" or \"forwarded\"",
        ),
        (
            "{ every = \"1 s\", gap = \"1 s\", in_flight = \"lost\" }",
            ".gap: 1 s: a gap must be shorter than from one handover to the next, 1 s",
        ),
        (
            "{ every = \"1 s\", gap = [], in_flight = \"lost\" }",
            ".gap: []: write a gap, \"80 ms\", or several, [\"60 ms\", \"90 ms\"]",
        ),
        (
            "{ every = \"1 s\", gap = [80], in_flight = \"lost\" }",
            ".gap.0: 80: a time needs a unit; write \"80 ms\" or \"80 s\"",
        ),
        (
            "{ every = \"1 s\", first = \"1 s\", phase = \"random\", gap = \"0 s\", in_flight = \
             \"lost\" }",
            ".phase: random: either first or phase, not both; leave one out",
        ),
        (
            "{ every = \"1 s\", phase = \"1 s\", gap = \"0 s\", in_flight = \"lost\" }",
            ".phase: 1 s: write \"random\"",
        ),
        (
            "{ times = [], gap = \"0 s\", in_flight = \"lost\" }",
            ".times: []: write the times like [{ at = \"10 s\" }, { at = \"25 s\" }]",
        ),
        (
            "{ times = [{ at = \"10 s\" }], in_flight = \"lost\" }",
            ".times.0.gap: missing; write gap = \"80 ms\", or gap beside times for all of them",
        ),
        (
            "{ times = [{ at = \"10 s\" }, { at = \"11 s\" }], gap = \"1 s\", in_flight = \
             \"lost\" }",
            ".times.1.at: 11 s: is not after the end of the gap before it, at 11 s",
        ),
        (
            "{ times = [{ at = \"10 s\" }], gap = \"1 s\", period = \"11 s\", in_flight = \
             \"lost\" }",
            ".period: 11 s: must be longer than until the last gap ends, at 11 s",
        ),
    ] {
        let forward = format!("delay = \"1 ms\"\nhandovers = {handovers}");
        let error = parse(&forward).unwrap_err().to_string();
        let begins = "test.toml: satellite.forward.handovers";
        assert_eq!(error, format!("{begins}{message}"));
    }
}

proptest! {
    #[test]
    fn nothing_arrives_in_a_gap_and_the_order_is_kept(
        arrivals in arrivals(),
        gap in 0_u64..9_000_000,
        first in 1_u64..10_000_000,
        in_flight in prop_oneof![Just("lost"), Just("delayed")],
        rate in prop_oneof![Just(""), Just("rate = \"8 Mbit/s\"\nqueue = \"1000 packets\"\n")],
    ) {
        let mut link = link(&format!(
            "{rate}delay = {{ base = \"1 ms\", jitter = \"3 ms\" }}\n\
             handovers = {{ every = \"10 ms\", first = \"{first} ns\", gap = \"{gap} ns\", \
             in_flight = \"{in_flight}\" }}"
        ));
        let mut last = 0;
        for (now, ip_bytes) in arrivals {
            match link.admit(ns(now), ip_bytes) {
                Fate::Delivered { at } => {
                    let at = at.as_nanos();
                    prop_assert!(at >= last && at >= now + MS);
                    last = at;
                    if at > first {
                        let since = (at - first) % (10 * MS);
                        // A packet that arrives as a handover begins has arrived.
                        prop_assert!(since == 0 || since >= gap, "{at} in a gap");
                    }
                }
                Fate::Loss => prop_assert_eq!(in_flight, "lost"),
                Fate::QueueDrop => prop_assert!(false, "no queue is full"),
            }
        }
    }
}
