//! Duplication, against sequences reckoned by hand, and properties of every path that duplicates.

use std::collections::BTreeMap;

use bentpipe_link::{Direction, Fate, Outcome, PacketMeta, Path, Scenario};
use bentpipe_units::Time;
use proptest::prelude::*;

use crate::properties::arrivals;
use crate::{file, link, ns, parse};

const MS: u64 = 1_000_000;

fn packet(id: u64, ip_bytes: u32) -> PacketMeta {
    PacketMeta {
        id,
        ip_bytes,
        ecn: 0,
        flow: 0,
        is_udp: true,
    }
}

/// The fates of packets of 1000 bytes that are sent at these milliseconds.
fn outcomes(path: &mut Path, sent_ms: &[u64]) -> Vec<Outcome> {
    for (id, at) in (0..).zip(sent_ms) {
        path.enqueue(ns(at * MS), packet(id, 1000));
    }
    path.advance(Time::NEVER);
    std::iter::from_fn(|| path.outcome()).collect()
}

/// The packet's number, and the millisecond at which it arrives; None if it does not.
type Fated = (u64, Option<u64>);

fn fated(outcome: &Outcome) -> Fated {
    let at = match outcome.fate {
        Fate::Delivered { at } => Some(at.as_nanos() / MS),
        _ => None,
    };
    (outcome.packet.id, at)
}

/// Outcomes of packets, and those of copies.
fn told_apart(outcomes: &[Outcome]) -> (Vec<Fated>, Vec<Fated>) {
    let (copies, packets): (Vec<Outcome>, Vec<Outcome>) =
        outcomes.iter().partition(|it| it.is_copy);
    let fates = |of: Vec<Outcome>| of.iter().map(fated).collect();
    (fates(packets), fates(copies))
}

#[test]
fn a_copy_is_right_behind_its_packet() {
    let mut path = link("duplicate = \"100 %\"");
    let found = outcomes(&mut path, &[0, 2, 2]);
    let at: Vec<_> = found
        .iter()
        .map(|it| (fated(it), it.is_copy, it.copies_under_way))
        .collect();
    let expected = [
        ((0, Some(1)), false, 1),
        ((0, Some(1)), true, 0),
        ((1, Some(3)), false, 1),
        ((1, Some(3)), true, 0),
        ((2, Some(3)), false, 1),
        ((2, Some(3)), true, 0),
    ];
    assert_eq!(at, expected);
    let counters = path.counters();
    assert_eq!((counters.packets, counters.bytes), (3, 3000));
    assert_eq!((counters.delivered, counters.delivered_bytes), (3, 3000));
    assert_eq!((counters.duplicated, counters.reordered), (3, 0));
}

/// Packets each millisecond, copies 1.5 ms later: behind the packet that was sent 1 ms later, and
/// at the same time as nothing else.
#[test]
fn a_copy_leaves_later_by_a_time_and_holds_nobody_up() {
    let mut path = link("duplicate = { share = \"100 %\", after = \"1500 us\" }");
    let found = outcomes(&mut path, &[0, 1, 2]);
    let times: Vec<(u64, u64, bool)> = found
        .iter()
        .map(|it| match it.fate {
            Fate::Delivered { at } => (it.packet.id, at.as_nanos() / 1000, it.is_copy),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        (0, 1000, false),
        (1, 2000, false),
        (0, 2500, true),
        (2, 3000, false),
        (1, 3500, true),
        (2, 4500, true),
    ];
    assert_eq!(times, expected);
    let counters = path.counters();
    assert_eq!((counters.duplicated, counters.reordered), (3, 0));
}

/// A copy whose time has come goes before a packet that arrives then.
#[test]
fn a_copy_that_waited_is_first() {
    let mut path = link("duplicate = { share = \"100 %\", after = \"1 ms\" }");
    let found = outcomes(&mut path, &[0, 1]);
    let ids: Vec<_> = found.iter().map(fated).collect();
    let expected = [(0, Some(1)), (0, Some(2)), (1, Some(2)), (1, Some(3))];
    assert_eq!(ids, expected);
}

/// The queue behind it holds one packet. Of two at once the first is sent, in 1 ms, and its copy
/// waits; the second finds the queue full, as does its copy.
#[test]
fn what_is_dropped_of_two_is_no_drop_unless_both_are() {
    let order = "order = [\"duplicate\", \"queue\", \"delay\"]";
    let mut path = link(&format!(
        "rate = \"8 Mbit/s\"\nqueue = \"1 packet\"\nduplicate = \"100 %\"\n{order}"
    ));
    let (packets, copies) = told_apart(&outcomes(&mut path, &[0, 0]));
    assert_eq!(packets, [(0, Some(2)), (1, None)]);
    assert_eq!(copies, [(0, Some(3)), (1, None)]);
    let counters = path.counters();
    assert_eq!((counters.packets, counters.delivered), (2, 1));
    assert_eq!((counters.queue_drops, counters.duplicated), (1, 1));
}

/// One of two is lost on the next link, every second packet there: the other is the packet.
#[test]
fn of_two_the_one_that_arrives_is_the_packet() {
    let text = file("delay = \"3 ms\"\nduplicate = { share = \"100 %\", after = \"5 ms\" }");
    let next = |loss: &str| {
        let more = format!("[access.forward]\ndelay = \"1 ms\"\nloss = {loss}\n");
        let scenario = Scenario::parse(&format!("{text}{more}"), "t.toml", &[]).unwrap();
        Path::new(&scenario, Direction::Forward, 1)
    };
    // Packets 0 and 1, then their copies: the third of four is lost, and then the first two.
    let mut path = next("{ model = \"periodic\", every = \"3 packets\" }");
    let (packets, copies) = told_apart(&outcomes(&mut path, &[0, 1]));
    assert_eq!(packets, [(0, Some(4)), (1, Some(5))]);
    assert_eq!(copies, [(0, None), (1, Some(10))]);
    assert_eq!(path.counters().duplicated, 1);
    let mut path = next("{ model = \"periodic\", every = \"2 packets\" }");
    // Of 0, 1, 0, 1 every second one, which is 1: of that nothing arrives.
    let found = outcomes(&mut path, &[0, 1]);
    let (packets, copies) = told_apart(&found);
    assert_eq!(packets, [(0, Some(4)), (1, None)]);
    assert_eq!(copies, [(1, None), (0, Some(9))]);
    assert_eq!(found.last().map(|it| it.copies_under_way), Some(0));
    let counters = path.counters();
    assert_eq!((counters.delivered, counters.losses), (1, 1));
    assert_eq!(counters.duplicated, 1);
}

/// A packet whose first is lost on the next link arrives with its copy, behind one sent later: it
/// is reordered, by one (RFC 4737, section 4.2).
#[test]
fn a_packet_that_arrives_as_a_copy_may_be_reordered() {
    let text = file("delay = \"3 ms\"\nduplicate = { share = \"100 %\", after = \"9 ms\" }");
    let loss =
        "loss = { model = \"handover\", every = \"1 s\", first = \"3 ms\", lasts = \"1 ms\" }";
    let more = format!("[access.forward]\ndelay = \"1 ms\"\n{loss}\n");
    let scenario = Scenario::parse(&format!("{text}{more}"), "t.toml", &[]).unwrap();
    let mut path = Path::new(&scenario, Direction::Forward, 1);
    let (packets, copies) = told_apart(&outcomes(&mut path, &[0, 2]));
    assert_eq!(packets, [(1, Some(6)), (0, Some(13))]);
    assert_eq!(copies, [(0, None), (1, Some(15))]);
    let counters = path.counters();
    assert_eq!((counters.reordered, counters.reorder_extent), (1, 1));
    assert_eq!((counters.reorder_extents, counters.duplicated), (1, 1));
}

#[test]
fn a_further_link_duplicates_copies_too() {
    let text = file("delay = \"3 ms\"\nduplicate = \"100 %\"");
    let more = "[access.forward]\ndelay = \"1 ms\"\nduplicate = \"100 %\"\n";
    let scenario = Scenario::parse(&format!("{text}{more}"), "t.toml", &[]).unwrap();
    let mut path = Path::new(&scenario, Direction::Forward, 1);
    let found = outcomes(&mut path, &[0]);
    let under_way: Vec<_> = found
        .iter()
        .map(|it| (it.is_copy, it.copies_under_way))
        .collect();
    assert_eq!(under_way, [(false, 2), (true, 1), (true, 1), (true, 0)]);
    assert_eq!(path.counters().duplicated, 3);
}

#[test]
fn the_share_is_that_of_the_packets() {
    let mut path = link("duplicate = \"10 %\"");
    let sent: Vec<u64> = (0..100_000).collect();
    outcomes(&mut path, &sent);
    let count = path.counters().duplicated;
    // Five standard deviations of a binomial distribution: 5 * sqrt(100000 * 0.1 * 0.9).
    assert!(count.abs_diff(10_000) < 475, "{count}");
}

/// Sources' packets come out twice, and were sent once.
#[test]
fn packets_of_sources_are_duplicated_too() {
    let source = "rate = \"8 Mbit/s\"\nsources = [{ kind = \"cbr\", rate = \"800 kbit/s\", packet \
                  = \"1000 B\", stop = \"1 s\" }]\nduplicate = \"100 %\"";
    let mut path = link(source);
    path.advance(ns(5_000 * MS));
    path.advance(Time::NEVER);
    let sources = path.counters().sources.unwrap();
    assert!((99..=101).contains(&sources.packets), "{sources:?}");
    assert_eq!(sources.bytes, sources.packets * 1000);
    assert_eq!(
        (sources.delivered_bytes, sources.lost),
        (2 * sources.bytes, 0)
    );
    assert_eq!(path.counters().duplicated, 0);
}

#[test]
fn it_is_written_as_it_was_read() {
    for (value, again) in [
        ("\"0.1 %\"", "\"0.1 %\""),
        ("{ share = \"0.1 %\" }", "\"0.1 %\""),
        (
            "{ share = \"2 %\", after = \"1 ms\" }",
            "{\"share\":\"2 %\",\"after\":\"1 ms\"}",
        ),
    ] {
        let scenario = parse(&format!("delay = \"1 ms\"\nduplicate = {value}")).unwrap();
        let duplicate = scenario.satellite.forward.duplicate;
        assert_eq!(serde_json::to_string(&duplicate).unwrap(), again);
        let json = serde_json::to_string(&scenario).unwrap();
        let read: Scenario = serde_json::from_str(&json).unwrap();
        assert_eq!(read, scenario);
    }
}

/// Two links that lose, drop, hold and duplicate packets.
fn links() -> impl Strategy<Value = String> {
    let duplicate = prop::sample::select(vec![
        "duplicate = \"30 %\"\n",
        "duplicate = { share = \"40 %\", after = \"300 us\" }\n",
        "duplicate = \"30 %\"\nreorder = { share = \"20 %\", distance = \"2 packets\" }\n",
        "duplicate = \"30 %\"\norder = [\"duplicate\", \"queue\", \"loss\", \"delay\"]\n",
        "duplicate = \"30 %\"\norder = [\"loss\", \"duplicate\", \"delay\", \"queue\"]\n",
        "",
    ]);
    let queue = prop::sample::select(vec![
        "queue = \"3 packets\"\n",
        "queue = { size = \"9 kB\", aqm = \"fq\" }\n",
        "queue = { size = \"9 kB\", aqm = \"head-drop\" }\n",
    ]);
    let half = (duplicate, queue).prop_map(|(duplicate, queue)| {
        format!("rate = \"20 Mbit/s\"\ndelay = \"1 ms\"\nloss = \"20 %\"\n{queue}{duplicate}")
    });
    (half.clone(), half).prop_map(|(one, other)| format!("{one}[access.forward]\n{other}"))
}

proptest! {
    /// Each packet has one fate, and its copies arrive behind it.
    #[test]
    fn packets_are_conserved(words in links(), arrivals in arrivals(), seed: u64) {
        let scenario = parse(&words).unwrap();
        let run = || {
            let mut path = Path::new(&scenario, Direction::Forward, seed);
            for (id, (now, ip_bytes)) in (0..).zip(&arrivals) {
                path.enqueue(ns(*now), packet(id, *ip_bytes));
            }
            path.advance(Time::NEVER);
            let found: Vec<Outcome> = std::iter::from_fn(|| path.outcome()).collect();
            (found, path.counters())
        };
        let (found, counters) = run();
        prop_assert_eq!(&run(), &(found.clone(), counters), "seeds repeat");
        let mut of_packets: BTreeMap<u64, Vec<&Outcome>> = BTreeMap::new();
        for outcome in &found {
            of_packets.entry(outcome.packet.id).or_default().push(outcome);
        }
        prop_assert_eq!(of_packets.len(), arrivals.len());
        let mut duplicated = 0;
        for of_packet in of_packets.values() {
            let own: Vec<_> = of_packet.iter().filter(|it| !it.is_copy).collect();
            prop_assert_eq!(own.len(), 1);
            let arrived = of_packet.iter().filter_map(|it| match it.fate {
                Fate::Delivered { at } => Some((at, it.is_copy)),
                _ => None,
            });
            let arrived: Vec<_> = arrived.collect();
            if let Some(((first, is_copy), later)) = arrived.split_first() {
                prop_assert!(!is_copy);
                prop_assert!(later.iter().all(|(at, is_copy)| at >= first && *is_copy));
                duplicated += later.len() as u64;
            }
            let last = of_packet.last().map(|it| it.copies_under_way);
            prop_assert_eq!(last, Some(0));
            let before = &of_packet[..of_packet.len() - 1];
            prop_assert!(before.iter().all(|it| it.copies_under_way > 0));
        }
        prop_assert_eq!(counters.duplicated, duplicated);
        prop_assert_eq!(counters.packets, arrivals.len() as u64);
        prop_assert_eq!(
            counters.packets,
            counters.delivered + counters.queue_drops + counters.losses
        );
    }

    /// Packets that are not duplicated meet the same fates as without duplication: no other random
    /// stream moves, and a share of 0 % changes nothing.
    #[test]
    fn the_last_node_changes_nothing_but_copies(
        arrivals in arrivals(),
        share in prop::sample::select(vec!["0 %", "30 %"]),
    ) {
        let words = "rate = \"20 Mbit/s\"\nloss = \"20 %\"\nqueue = \"3 packets\"";
        let with = format!("{words}\nduplicate = \"{share}\"");
        let [without, with] = [words, &with].map(|words| {
            let mut path = link(words);
            for (id, (now, ip_bytes)) in (0..).zip(&arrivals) {
                path.enqueue(ns(*now), packet(id, *ip_bytes));
            }
            path.advance(Time::NEVER);
            let found: Vec<Outcome> = std::iter::from_fn(|| path.outcome()).collect();
            let own = found.iter().filter(|it| !it.is_copy);
            let own: Vec<_> = own.map(|it| (it.packet, it.fate)).collect();
            (own, found.len())
        });
        prop_assert_eq!(&without.0, &with.0);
        prop_assert!(share != "0 %" || without.1 == with.1);
    }
}
