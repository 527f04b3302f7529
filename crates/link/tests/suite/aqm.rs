//! Queue disciplines, against what their RFCs' pseudocode gives, reckoned by hand.

use bentpipe_link::{Fate, Outcome, PacketMeta, Path};
use bentpipe_units::Time;
use proptest::prelude::*;

use crate::properties::arrivals;
use crate::{link, ns};

const MS: u64 = 1_000_000;
const NONE: [u64; 0] = [];
/// The delay of a link of [`link`].
const DELAY: u64 = MS;

/// A packet of 1000 bytes, which takes 1 ms at 8 Mbit/s.
fn packet(id: u64, ecn: u8, flow: u64) -> PacketMeta {
    PacketMeta {
        id,
        ip_bytes: 1000,
        ecn,
        flow,
        is_udp: false,
    }
}

/// All outcomes of packets that are sent at these milliseconds, in the order of their numbers.
fn outcomes(path: &mut Path, sent: impl IntoIterator<Item = (u64, u8, u64)>) -> Vec<Outcome> {
    let mut found = Vec::new();
    for (id, (at_ms, ecn, flow)) in (0..).zip(sent) {
        path.enqueue(ns(at_ms * MS), packet(id, ecn, flow));
    }
    path.advance(Time::NEVER);
    found.extend(std::iter::from_fn(|| path.outcome()));
    found.sort_by_key(|it| it.packet.id);
    found
}

/// Numbers of the packets that were dropped.
fn dropped(outcomes: &[Outcome]) -> Vec<u64> {
    let lost = outcomes.iter().filter(|it| it.fate == Fate::QueueDrop);
    lost.map(|it| it.packet.id).collect()
}

/// Numbers of the packets that were marked.
fn marked(outcomes: &[Outcome]) -> Vec<u64> {
    let marked = outcomes.iter().filter(|it| it.is_marked);
    marked.map(|it| it.packet.id).collect()
}

/// When each packet left, in milliseconds.
fn left_ms(outcomes: &[Outcome]) -> Vec<Option<u64>> {
    let at = |it: &Outcome| match it.fate {
        Fate::Delivered { at } => Some((at.as_nanos() - DELAY) / MS),
        _ => None,
    };
    outcomes.iter().map(at).collect()
}

fn queue(words: &str) -> Path {
    link(&format!(
        "rate = \"8 Mbit/s\"\nqueue = {{ size = \"1 MB\", {words} }}"
    ))
}

#[test]
fn a_step_marks_what_waited_longer_and_can_be_marked() {
    let mut path = queue("aqm = \"step\", mark_above = \"3 ms\"");
    // The packet with number n starts at n ms.
    let sent = [0, 1, 2, 3, 0, 1, 2, 3].map(|ecn| (0, ecn, 0));
    let found = outcomes(&mut path, sent);
    assert_eq!(dropped(&found), NONE);
    // Those from number 4 on waited longer than 3 ms: number 4 cannot be marked, 7 is already.
    assert_eq!(marked(&found), [5, 6]);
    assert_eq!(found[5].packet.ecn, 3);
    assert_eq!(path.counters().marked, 2);
}

#[test]
fn head_drop_drops_the_oldest() {
    let mut path =
        link("rate = \"8 Mbit/s\"\nqueue = { size = \"3 packets\", aqm = \"head-drop\" }");
    let found = outcomes(&mut path, (0..6).map(|_| (0, 0, 0)));
    assert_eq!(dropped(&found), [1, 2]);
    let left = left_ms(&found);
    assert_eq!(left, [Some(1), None, None, Some(2), Some(3), Some(4)]);
}

/// 300 packets at once at 1 ms each: the packet with number n waits n ms, less those that were
/// dropped before it. The first drop is an interval after the target is reached; the next ones
/// follow the control law: 100 ms after the first, 100/sqrt(2) = 70.7 ms after the second.
#[test]
fn codel_drops_by_the_control_law() {
    let mut path = queue("aqm = \"codel\"");
    let found = outcomes(&mut path, (0..300).map(|_| (0, 0, 0)));
    // Number 5 starts at 5 ms, which is not below the target, and the interval begins. At 105 ms
    // number 105 is dropped; at 205 ms number 206; the next is due at 205 + 70.7 = 275.7 ms: at 276
    // ms number 278, for two were dropped before.
    assert_eq!(dropped(&found), [105, 206, 278]);
}

#[test]
fn codel_marks_in_place_of_drops() {
    let mut path = queue("aqm = \"codel\"");
    let found = outcomes(&mut path, (0..300).map(|_| (0, 2, 0)));
    assert_eq!(dropped(&found), NONE);
    assert_eq!(marked(&found), [105, 205, 276]);
    let mut path = queue("aqm = \"codel\", ecn = \"off\"");
    let found = outcomes(&mut path, (0..300).map(|_| (0, 2, 0)));
    assert_eq!(dropped(&found), [105, 206, 278]);
    assert_eq!(marked(&found), NONE);
}

#[test]
fn codel_leaves_a_queue_alone_that_is_below_the_target_once_an_interval() {
    let mut path = queue("aqm = \"codel\"");
    // Bursts of 60 packets every 100 ms: the queue is empty for 40 ms of each.
    let bursts = (0..10).flat_map(|burst| (0..60).map(move |_| (burst * 100, 0, 0)));
    assert_eq!(dropped(&outcomes(&mut path, bursts)), NONE);
}

#[test]
fn flows_share_by_turns_and_a_sparse_flow_waits_for_one_packet() {
    let mut path = queue("aqm = \"fq\", quantum = \"1000 B\"");
    // Two bulk flows of 50 packets each, and a packet of a third one at 20 ms.
    let bulk = (0..50).flat_map(|_| [(0, 0, 1), (0, 0, 2)]);
    let found = outcomes(&mut path, bulk.chain([(20, 0, 3)]));
    let left = left_ms(&found);
    // At 20 ms a transmission starts before it arrives.
    assert_eq!(left[100], Some(22));
    // The first packet goes at once; then each flow has every second place.
    let second: Vec<u64> = (0..50).map(|n| left[2 * n + 1].unwrap()).collect();
    assert!(
        second.windows(2).all(|pair| pair[1] - pair[0] <= 3),
        "{second:?}"
    );
}

/// A flow's first packet leaves 500 of 1500 bytes to it, and then the link falls idle. Its next one
/// begins anew, with 1500: two of its packets go before the one of another flow.
#[test]
fn a_flow_begins_anew_when_the_link_has_been_idle() {
    let mut path = queue("aqm = \"fq\", quantum = \"1500 B\"");
    let found = outcomes(&mut path, [(0, 0, 1), (5, 0, 1), (5, 0, 2), (5, 0, 1)]);
    assert_eq!(left_ms(&found), [Some(1), Some(6), Some(8), Some(7)]);
}

#[test]
fn an_overload_hits_the_longest_queue() {
    let words = "rate = \"8 Mbit/s\"\nqueue = { size = \"10 packets\", aqm = \"fq\" }";
    let mut path = link(words);
    // Nine of flow 1 wait, and one of flow 2; one more is too many. Half of flow 1's bytes go.
    let sent = (0..10).map(|_| (0, 0, 1)).chain([(0, 0, 2), (0, 0, 2)]);
    let found = outcomes(&mut path, sent);
    assert_eq!(dropped(&found), [1, 2, 3, 4, 5]);
}

/// With a weight of 1 the mean is the length itself: of a burst of eight, one is sent, three wait.
/// At a mean of 2 the probability is 0, at 3 it is 50 %, and with a packet since the last drop
/// 100 %.
#[test]
fn red_drops_by_the_mean_length() {
    let words = "aqm = \"red\", min = \"2 packets\", max = \"4 packets\", weight = 1, \
                 max_probability = \"100 %\"";
    let queue = format!("queue = {{ size = \"100 packets\", {words} }}");
    let text = format!("rate = \"8 Mbit/s\"\n{queue}");
    let found = outcomes(&mut link(&text), (0..8).map(|_| (0, 0, 0)));
    assert_eq!(dropped(&found), [4, 5, 6, 7]);
    let found = outcomes(&mut link(&text), (0..8).map(|_| (0, 1, 0)));
    // Marked, number 4 waits, too, and at a mean of 4 and more packets are dropped.
    assert_eq!((marked(&found), dropped(&found)), (vec![4], vec![5, 6, 7]));
}

/// Twice as much as the link sends, for ten seconds: the delay settles around the target, without a
/// drop in the first 150 ms.
#[test]
fn pie_keeps_the_delay_at_its_target() {
    for ecn in [0, 2] {
        let mut path = queue("aqm = \"pie\"");
        let found = outcomes(&mut path, (0..20_000).map(|n| (n / 2, ecn, 0)));
        let first = found
            .iter()
            .position(|it| it.fate == Fate::QueueDrop || it.is_marked);
        assert!((300..1000).contains(&first.unwrap()), "{first:?}");
        let last = found[10_000..].iter().filter_map(|it| match it.fate {
            Fate::Delivered { at } => Some(at.as_nanos() - DELAY - it.packet.id / 2 * MS),
            _ => None,
        });
        let delays: Vec<u64> = last.collect();
        let mean = delays.iter().sum::<u64>() / delays.len() as u64;
        assert!((10 * MS..25 * MS).contains(&mean), "{mean} ns");
        // Above 10 % it drops what could be marked.
        assert_eq!(found.iter().any(|it| it.is_marked), ecn == 2);
    }
}

/// 95 packets at once at 1 ms each. At 15 ms the oldest has waited for 15 ms, at 30 ms for 30 ms,
/// so with alpha = 0.15 and beta = 3 an update adds 3 * 0.015 + 0.15 * (delay - 0.015) to p': it is
/// 0.045, 0.09225, 0.14175, 0.1935, 0.2475, 0.30375, and its square 0.002025, 0.008510, 0.020093,
/// 0.037442, 0.061256, 0.092264.
#[test]
fn pi2_acts_by_the_square_of_the_base_probability() {
    for words in ["aqm = \"pi2\"", "aqm = \"dualpi2\""] {
        // The first three probabilities, 15 packets each, sum up to 0.459422. Of the fourth 14
        // packets give 0.983614, and the 15th, number 74, 1.021056: it is dropped, and number 75
        // goes at the same time, which gives 0.058498. 15 of the fifth give 0.977342; at 90 ms
        // number 91 is the next.
        let found = outcomes(&mut queue(words), (0..95).map(|_| (0, 0, 0)));
        assert_eq!((dropped(&found), marked(&found)), (vec![74, 91], vec![]));
        // Marked, number 74 goes at 74 ms, and from 0.021056 it is 0.939900 at 89 ms.
        let found = outcomes(&mut queue(words), (0..95).map(|_| (0, 2, 0)));
        assert_eq!((dropped(&found), marked(&found)), (vec![], vec![74, 90]));
    }
    let mut path = queue("aqm = \"pi2\", ecn = \"off\"");
    let found = outcomes(&mut path, (0..95).map(|_| (0, 2, 0)));
    assert_eq!((dropped(&found), marked(&found)), (vec![74, 91], vec![]));
}

/// Twice as much as the link sends, for ten seconds, of packets that cannot be marked, that can,
/// and of L4S: all are overload, for half of them have to go. The delay settles at the target.
#[test]
fn pi2_and_dualpi2_keep_the_delay_at_their_target() {
    for (words, ecn) in [
        ("pi2", 0),
        ("pi2", 2),
        ("dualpi2", 0),
        ("dualpi2", 2),
        ("dualpi2", 1),
    ] {
        let mut path = queue(&format!("aqm = \"{words}\""));
        let found = outcomes(&mut path, (0..20_000).map(|n| (n / 2, ecn, 0)));
        let last = found[10_000..].iter().filter_map(|it| match it.fate {
            Fate::Delivered { at } => Some(at.as_nanos() - DELAY - it.packet.id / 2 * MS),
            _ => None,
        });
        let delays: Vec<u64> = last.collect();
        let mean = delays.iter().sum::<u64>() / delays.len() as u64;
        assert!(
            (12 * MS..20 * MS).contains(&mean),
            "{words} {ecn}: {mean} ns"
        );
        assert_eq!(found.iter().any(|it| it.is_marked), ecn != 0);
    }
}

/// Of 32 packets of L4S and 4 others, every 16th is one of the others, as long as there are both.
#[test]
fn dualpi2_serves_l4s_first_and_the_others_with_a_sixteenth() {
    let mut path = queue("aqm = \"dualpi2\"");
    let sent = [(0, 0, 0)].into_iter();
    let sent = sent
        .chain((0..32).map(|_| (0, 1, 1)))
        .chain((0..4).map(|_| (0, 0, 0)));
    let left = left_ms(&outcomes(&mut path, sent));
    assert_eq!(left[0], Some(1), "nothing else was there");
    let l4s: Vec<u64> = left[1..33].iter().map(|at| at.unwrap()).collect();
    let expected: Vec<u64> = (2..=16).chain(18..=32).chain(34..=35).collect();
    assert_eq!(l4s, expected);
    assert_eq!(left[33..], [17, 33, 36, 37].map(Some));
}

/// The packet with number n starts at n ms: from 2 to 6 ms the probability rises by a quarter each,
/// and sums up to 1.5 with number 5. Number 8 is the last one, alone in its queue.
#[test]
fn dualpi2_marks_l4s_by_sojourn_time_where_more_than_one_waits() {
    let mut path = queue("aqm = \"dualpi2\", mark_above = \"2 ms\", range = \"4 ms\"");
    let found = outcomes(&mut path, (0..9).map(|_| (0, 1, 0)));
    assert_eq!((dropped(&found), marked(&found)), (vec![], vec![5, 6, 7]));
    // Packets that arrive with CE go to the same queue, and are not marked again.
    let found = outcomes(&mut path, (0..9).map(|n| (100, 1 + 2 * (n % 2), 0)));
    assert_eq!(marked(&found).len(), 2);
}

/// The two queues share one buffer.
#[test]
fn dualpi2_drops_what_both_queues_together_cannot_hold() {
    let words = "rate = \"8 Mbit/s\"\nqueue = { size = \"3 packets\", aqm = \"dualpi2\" }";
    let found = outcomes(&mut link(words), (0..6).map(|n| (0, n % 2, 0)));
    assert_eq!(dropped(&found), [4, 5]);
}

/// The disciplines, with thresholds that packets reach.
fn disciplines() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "aqm = \"head-drop\"",
        "aqm = \"step\", mark_above = \"1 us\"",
        "red", // its thresholds are in the unit of the size
        "aqm = \"codel\", target = \"1 us\", interval = \"50 us\"",
        "aqm = \"pie\", target = \"1 us\", update = \"10 us\", max_burst = \"20 us\"",
        "aqm = \"pi2\", target = \"1 us\", update = \"10 us\", rtt_max = \"30 us\"",
        DUALPI2,
        "aqm = \"fq\", flows = 3, quantum = \"700 B\"",
        "aqm = \"fq-codel\", flows = 3, target = \"1 us\", interval = \"50 us\"",
    ])
}

const DUALPI2: &str = "aqm = \"dualpi2\", target = \"1 us\", update = \"10 us\", \
                       rtt_max = \"30 us\", mark_above = \"1 us\", range = \"5 us\"";

proptest! {
    /// `dualpi2` keeps the order of a flow's packets in each of its two queues, the others of all.
    #[test]
    fn every_packet_comes_out_once_and_flows_keep_their_order(
        words in disciplines(),
        size in prop_oneof![Just("3 packets"), Just("20 kB"), Just("1 GB")],
        arrivals in arrivals(),
        sent in prop::collection::vec((0_u64..5, 0_u8..4), 200),
        rate in 1_000_000_u64..10_000_000_000,
    ) {
        let words = match (words, size) {
            ("red", "3 packets") => "aqm = \"red\", min = \"1 packet\", max = \"2 packets\"",
            ("red", _) => "aqm = \"red\", min = \"2 kB\", max = \"4 kB\", weight = 2",
            _ => words,
        };
        let text = format!("rate = \"{rate} bit/s\"\nqueue = {{ size = \"{size}\", {words} }}");
        let mut path = link(&text);
        let mut found = Vec::new();
        for (id, (now, ip_bytes)) in (0_u64..).zip(&arrivals) {
            let index = usize::try_from(id).unwrap();
            let (flow, ecn) = sent[index];
            let packet = PacketMeta { id, ip_bytes: *ip_bytes, ecn, flow, is_udp: false };
            path.enqueue(ns(*now), packet);
            path.advance(ns(*now));
            let bound = path.next_arrival();
            let decided: Vec<Outcome> = std::iter::from_fn(|| path.outcome()).collect();
            found.extend(decided);
            prop_assert!(bound >= ns(*now + DELAY), "{bound}");
        }
        path.advance(Time::NEVER);
        prop_assert_eq!(path.next_arrival(), Time::NEVER);
        found.extend(std::iter::from_fn(|| path.outcome()));
        prop_assert_eq!(found.len(), arrivals.len());
        let mut last_of = [[0; 2]; 5];
        let mut last = Time::ZERO;
        let mut left = Vec::new();
        for outcome in &found {
            let (flow, ecn) = sent[usize::try_from(outcome.packet.id).unwrap()];
            let is_ect = matches!(ecn, 1 | 2);
            prop_assert!(!outcome.is_marked || is_ect, "only ECT is marked");
            prop_assert_eq!(outcome.packet.ecn, if outcome.is_marked { 3 } else { ecn });
            let Fate::Delivered { at } = outcome.fate else { continue };
            prop_assert!(at >= last, "the order of leaving");
            last = at;
            left.push((at, outcome.packet.ip_bytes));
            let queue = if words == DUALPI2 { usize::from(ecn % 2) } else { 0 };
            let before = &mut last_of[usize::try_from(flow).unwrap()][queue];
            prop_assert!(*before <= outcome.packet.id, "the order within a flow");
            *before = outcome.packet.id;
        }
        for pair in left.windows(2) {
            let nanos = u128::from((pair[1].0 - pair[0].0).as_nanos()) + 1;
            prop_assert!(u128::from(pair[1].1) * 8_000_000_000 <= nanos * u128::from(rate));
        }
        let counters = path.counters();
        prop_assert_eq!(counters.packets, counters.delivered + counters.queue_drops);
    }

    /// A queue that is never full and drops nothing lets packets leave as drop-tail does, to the
    /// nanosecond.
    #[test]
    fn without_drops_packets_leave_as_from_a_drop_tail_queue(
        arrivals in arrivals(),
        rate in 1_000_000_u64..10_000_000_000,
    ) {
        let with = |words| {
            let queue = format!("queue = {{ size = \"1 GB\"{words} }}");
            let mut path = link(&format!("rate = \"{rate} bit/s\"\n{queue}"));
            for (id, (now, ip_bytes)) in (0_u64..).zip(&arrivals) {
                let ip_bytes = *ip_bytes;
                let packet = PacketMeta { id, ip_bytes, ecn: 0, flow: 0, is_udp: false };
                path.enqueue(ns(*now), packet);
            }
            path.advance(Time::NEVER);
            let found: Vec<Outcome> = std::iter::from_fn(|| path.outcome()).collect();
            (found, path.counters())
        };
        let drop_tail = with("");
        prop_assert_eq!(&with(", aqm = \"head-drop\""), &drop_tail);
        prop_assert_eq!(&with(", aqm = \"step\", mark_above = \"1 s\""), &drop_tail);
        prop_assert_eq!(&with(", aqm = \"fq\", flows = 1"), &drop_tail);
        prop_assert_eq!(&with(", aqm = \"pi2\", update = \"100 s\""), &drop_tail);
        prop_assert_eq!(&with(", aqm = \"dualpi2\", update = \"100 s\""), &drop_tail);
    }
}
