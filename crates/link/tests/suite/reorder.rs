//! Reordering, against sequences reckoned by hand, and properties of nodes that hold packets.

use bentpipe_link::{Direction, Fate, Outcome, PacketMeta, Path, Scenario};
use bentpipe_units::Time;
use proptest::prelude::*;

use crate::properties::arrivals;
use crate::{file, link, ns};

const MS: u64 = 1_000_000;

fn packet(id: u64, ip_bytes: u32, flow: u64) -> PacketMeta {
    PacketMeta {
        id,
        ip_bytes,
        ecn: 0,
        flow,
        is_udp: true,
    }
}

/// The numbers of packets that are sent at these milliseconds in the order of their arrival, each
/// with the milliseconds behind the delay of 1 ms.
fn order(path: &mut Path, sent_ms: &[u64]) -> Vec<(u64, u64)> {
    for (id, at) in (0..).zip(sent_ms) {
        path.enqueue(ns(at * MS), packet(id, 1000, 0));
    }
    path.advance(Time::NEVER);
    let arrived = std::iter::from_fn(|| path.outcome()).map(|it| match it.fate {
        Fate::Delivered { at } => (it.packet.id, at.as_nanos() / MS - 1),
        other => panic!("{other:?}"),
    });
    arrived.collect()
}

/// Which of the packets are chosen: with `by`, each of those arrives behind its time.
fn chosen(share: &str, packets: u64) -> Vec<u64> {
    let mut path = link(&format!(
        "reorder = {{ share = \"{share}\", by = \"1 s\" }}"
    ));
    let sent: Vec<u64> = (0..packets).collect();
    let late = order(&mut path, &sent).into_iter();
    let late = late.filter(|(id, at)| *at == id + 1000);
    late.map(|(id, _)| id).collect()
}

/// One packet is chosen of the first twenty.
fn only_one() -> u64 {
    let first = chosen("7 %", 20);
    assert_eq!(first.len(), 1, "{first:?}");
    first[0]
}

#[test]
fn a_packet_is_held_until_three_have_passed() {
    let held = only_one();
    let sent: Vec<u64> = (0..20).collect();
    let mut path = link("reorder = { share = \"7 %\", distance = \"3 packets\" }");
    let found = order(&mut path, &sent);
    let mut expected: Vec<(u64, u64)> = (0..20).map(|id| (id, id)).collect();
    let it = usize::try_from(held).unwrap();
    expected.remove(it);
    expected.insert(it + 3, (held, held + 3));
    assert_eq!(found, expected);
    let counters = path.counters();
    assert_eq!((counters.reordered, counters.reorder_extent), (1, 3));
}

#[test]
fn a_packet_is_not_held_longer_than_it_may_wait() {
    let held = only_one();
    // A third packet comes after 8 ms: at the end of the wait, or before it.
    let sent: Vec<u64> = (0..20)
        .map(|id| if id > held + 2 { id + 5 } else { id })
        .collect();
    for (wait, passed) in [(9, 3), (8, 2)] {
        let mut path = link(&format!(
            "reorder = {{ share = \"7 %\", distance = \"9 packets\", wait = \"{wait} ms\" }}"
        ));
        let found = order(&mut path, &sent);
        let at = found.iter().position(|(id, _)| *id == held).unwrap() as u64;
        assert_eq!(
            (at - held, found[usize::try_from(at).unwrap()].1),
            (passed, held + wait)
        );
        assert_eq!(path.counters().reorder_extent, passed);
    }
}

#[test]
fn a_packet_is_late_by_a_time_and_holds_nobody_up() {
    let held = only_one();
    let sent: Vec<u64> = (0..20).collect();
    let mut path = link("reorder = { share = \"7 %\", by = \"5 ms\" }");
    let found = order(&mut path, &sent);
    for (id, at) in &found {
        assert_eq!(*at, if *id == held { id + 5 } else { *id });
    }
    // Of packets that could leave at once the one that waited is first.
    let counters = path.counters();
    assert_eq!((counters.reordered, counters.reorder_extent), (1, 4));
}

#[test]
fn what_all_do_reorders_nothing() {
    let sent: Vec<u64> = (0..20).collect();
    for how in ["distance = \"2 packets\", wait = \"9 ms\"", "by = \"9 ms\""] {
        let mut path = link(&format!("reorder = {{ share = \"100 %\", {how} }}"));
        let found = order(&mut path, &sent);
        let expected: Vec<(u64, u64)> = (0..20).map(|id| (id, id + 9)).collect();
        assert_eq!(found, expected);
        assert_eq!(path.counters().reordered, 0);
    }
}

#[test]
fn the_share_is_that_of_the_packets() {
    let count = chosen("10 %", 100_000).len();
    // Five standard deviations of a binomial distribution: 5 * sqrt(100000 * 0.1 * 0.9).
    assert!(count.abs_diff(10_000) < 475, "{count}");
}

#[test]
fn reordering_on_one_link_is_kept_on_the_next_ones() {
    let text = file("delay = \"3 ms\"\nreorder = { share = \"20 %\", distance = \"2 packets\" }");
    let more = "[access.forward]\nrate = \"80 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"1 GB\"\n";
    let alone = Scenario::parse(&text, "t.toml", &[]).unwrap();
    let both = Scenario::parse(&format!("{text}{more}"), "t.toml", &[]).unwrap();
    let of = |scenario: &Scenario| {
        let mut path = Path::new(scenario, Direction::Forward, 1);
        let sent: Vec<u64> = (0..200).collect();
        let found = order(&mut path, &sent);
        let ids: Vec<u64> = found.into_iter().map(|(id, _)| id).collect();
        (ids, path.counters())
    };
    let (alone, both) = (of(&alone), of(&both));
    assert!(alone.1.reordered > 20);
    assert_eq!(alone.0, both.0);
    assert_eq!(alone.1.reordered, both.1.reordered);
}

/// Nodes that hold packets without a capacity, and whether they keep the order.
fn nodes() -> impl Strategy<Value = (&'static str, bool)> {
    prop::sample::select(vec![
        ("reorder = { share = \"20 %\", by = \"70 us\" }", false),
        (
            "reorder = { share = \"20 %\", distance = \"3 packets\", wait = \"1 ms\" }",
            false,
        ),
        (
            "reorder = { share = \"100 %\", distance = \"1 packet\", wait = \"1 ms\" }",
            true,
        ),
        ("aggregate = { hold = \"200 us\", packets = 3 }", true),
        ("aggregate = { hold = \"90 us\" }", true),
        ("duplicate = \"30 %\"", true),
        ("duplicate = { share = \"30 %\", after = \"80 us\" }", true),
        (
            "duplicate = \"30 %\"\nreorder = { share = \"20 %\", distance = \"2 packets\" }",
            false,
        ),
        (
            "aggregate = { hold = \"200 us\", packets = 3 }\nreorder = { share = \"20 %\", \
             distance = \"2 packets\" }",
            false,
        ),
    ])
}

proptest! {
    /// A path's report on packets that it holds is true whenever it is asked, and its decisions do
    /// not depend on when it is.
    #[test]
    fn nodes_that_hold_packets_lose_none_and_keep_their_bounds(
        (words, in_order) in nodes(),
        before in prop::sample::select(vec!["", "queue = { size = \"9 kB\", aqm = \"fq\" }"]),
        arrivals in arrivals(),
        ahead in prop::collection::vec(0_u64..3_000_000, 200),
    ) {
        let text = format!("rate = \"100 Mbit/s\"\n{before}\n{words}");
        let mut path = link(&text);
        let mut found: Vec<Outcome> = Vec::new();
        let mut floor = Time::ZERO;
        let sends = (0_u64..).zip(&arrivals);
        for (id, (now, ip_bytes)) in sends.clone() {
            let flow = id % 2;
            path.enqueue(ns(*now), packet(id, *ip_bytes, flow));
            let index = usize::try_from(id).unwrap();
            // Nothing is sent before the next packet.
            let next = arrivals.get(index + 1).map_or(Time::NEVER, |(next, _)| ns(*next));
            path.advance(next.min(ns(now + ahead[index])));
            let decided: Vec<Outcome> = std::iter::from_fn(|| path.outcome()).collect();
            for outcome in &decided {
                if let Fate::Delivered { at } = outcome.fate {
                    prop_assert!(at >= floor, "{at} was said to be after {floor}");
                }
            }
            found.extend(decided);
            let least = next.min(ns(now + ahead[index])) + path.min_delay();
            prop_assert!(path.next_arrival() >= least, "the lookahead");
            prop_assert!(path.next_deadline() >= path.next_arrival());
            floor = path.next_arrival().min(next + path.min_delay());
        }
        path.advance(Time::NEVER);
        prop_assert_eq!(path.next_arrival(), Time::NEVER);
        prop_assert_eq!(path.next_deadline(), Time::NEVER);
        found.extend(std::iter::from_fn(|| path.outcome()));
        let mut once = link(&text);
        for (id, (now, ip_bytes)) in sends {
            once.enqueue(ns(*now), packet(id, *ip_bytes, id % 2));
        }
        once.advance(Time::NEVER);
        let all: Vec<Outcome> = std::iter::from_fn(|| once.outcome()).collect();
        let arrivals_of = |outcomes: &[Outcome]| {
            let each = outcomes.iter().map(|it| (it.packet.id, it.fate, it.is_copy));
            let mut fates: Vec<_> = each.collect();
            fates.sort_by_key(|(id, ..)| *id);
            fates
        };
        prop_assert_eq!(arrivals_of(&found), arrivals_of(&all));
        prop_assert_eq!(once.counters(), path.counters());
        let copies = found.iter().filter(|it| it.is_copy).count();
        prop_assert_eq!(found.len() - copies, arrivals.len());
        let mut last = Time::ZERO;
        let mut last_of = [0; 2];
        for outcome in &found {
            let Fate::Delivered { at } = outcome.fate else { continue };
            prop_assert!(at >= last, "they leave in the order of time");
            last = at;
            if outcome.is_copy {
                continue;
            }
            let last = &mut last_of[usize::try_from(outcome.packet.flow).unwrap()];
            prop_assert!(!in_order || *last <= outcome.packet.id);
            *last = outcome.packet.id;
        }
        prop_assert!(!in_order || path.counters().reordered == 0);
    }
}
