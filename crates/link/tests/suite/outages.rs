//! Times at which a link sends nothing.

use bentpipe_link::{Direction, Fate, Ideal, PacketMeta, Path, Quantity};
use bentpipe_units::{Span, Time};
use proptest::prelude::*;

use crate::properties::arrivals;
use crate::{link, ns, parse};

const MS: u64 = 1_000_000;
const DROP: Option<u64> = None;
const GIVEN: &str = "[{ at = \"10 ms\", for = \"5 ms\" }, { at = \"20 ms\", for = \"1 ms\" }]";
const EVERY: &str = "every = \"10 ms\", first = \"2 ms\", for = \"3 ms\"";

/// When packets leave that arrive at these times with these sizes, in nanoseconds; None: dropped.
fn left(path: &mut Path, packets: &[(u64, u32)]) -> Vec<Option<u64>> {
    for (id, (now, ip_bytes)) in (0..).zip(packets) {
        let packet = PacketMeta {
            id,
            ip_bytes: *ip_bytes,
            ecn: 0,
            flow: 0,
            is_udp: false,
        };
        path.enqueue(ns(*now), packet);
    }
    path.advance(Time::NEVER);
    assert_eq!(path.next_arrival(), Time::NEVER);
    let mut found = vec![None; packets.len()];
    while let Some(outcome) = path.outcome() {
        if let Fate::Delivered { at } = outcome.fate {
            found[usize::try_from(outcome.packet.id).unwrap()] = Some(at.as_nanos() - MS);
        }
    }
    found
}

/// The same in milliseconds, of packets that take 1 ms each.
fn left_ms(keys: &str, times: &[u64]) -> Vec<Option<u64>> {
    let packets: Vec<_> = times.iter().map(|ms| (ms * MS, 1000)).collect();
    let found = left(&mut link(&format!("rate = \"8 Mbit/s\"\n{keys}")), &packets);
    let in_ms = |at: Option<u64>| at.map(|at| at / MS);
    found.into_iter().map(in_ms).collect()
}

#[test]
fn what_waits_goes_on_after_an_outage() {
    for aqm in ["", ", aqm = \"fq\""] {
        let keys = format!("queue = {{ size = \"9 packets\"{aqm} }}\noutages = {GIVEN}");
        // The second of three at 8 ms is sent when the first outage begins. What comes in the
        // outage waits; six packets later the second outage begins.
        let times = [8, 8, 8, 12, 14, 16, 16, 16, 16];
        let expected = [9, 10, 16, 17, 18, 19, 20, 22, 23];
        assert_eq!(left_ms(&keys, &times), expected.map(Some), "{aqm}");
    }
}

#[test]
fn an_outage_may_begin_in_the_middle_of_a_packet() {
    let packets = [(9 * MS + MS / 2, 1000)];
    let mut link = link(&format!("rate = \"8 Mbit/s\"\noutages = {GIVEN}"));
    assert_eq!(left(&mut link, &packets), [Some(15 * MS + MS / 2)]);
}

#[test]
fn the_queue_overflows_in_an_outage() {
    let keys = format!("queue = \"2 packets\"\noutages = {GIVEN}");
    let found = left_ms(&keys, &[10, 11, 12, 13, 15]);
    // The first counts as in transmission.
    assert_eq!(found, [Some(16), Some(17), Some(18), DROP, DROP]);
}

#[test]
fn a_flush_drops_what_has_not_left_and_what_arrives() {
    for aqm in ["", ", aqm = \"fq\"", ", aqm = \"codel\""] {
        let keys = format!(
            "queue = {{ size = \"9 packets\"{aqm} }}\n\
             outages = {{ times = {GIVEN}, queue = \"flush\" }}"
        );
        // The second at 8 ms has just left when the outage begins, the third has not.
        let found = left_ms(&keys, &[8, 8, 8, 10, 14, 15, 19, 19, 20, 21]);
        let at = Some;
        let expected = [
            at(9),
            at(10),
            DROP,
            DROP,
            DROP,
            at(16),
            at(20),
            DROP,
            DROP,
            at(22),
        ];
        assert_eq!(found, expected, "{aqm}");
    }
}

#[test]
fn a_flush_cuts_the_packet_in_transmission() {
    for aqm in ["", ", aqm = \"fq\""] {
        let keys = format!(
            "rate = \"8 Mbit/s\"\nqueue = {{ size = \"9 packets\"{aqm} }}\n\
             outages = {{ times = {GIVEN}, queue = \"flush\" }}"
        );
        let packets = [(9 * MS + 1, 1000), (15 * MS, 1000)];
        assert_eq!(left(&mut link(&keys), &packets), [DROP, Some(16 * MS)]);
    }
}

#[test]
fn outages_come_at_intervals() {
    let keys = format!("outages = {{ {EVERY} }}");
    let found = left_ms(&keys, &[1, 2, 4, 11, 12, 14, 22]);
    assert_eq!(found, [2, 6, 7, 12, 16, 17, 26].map(Some));
}

#[test]
fn outages_are_known_to_the_ideal_sender_and_to_timelines() {
    let keys = format!("delay = \"1 ms\"\nrate = \"8 Mbit/s\"\noutages = {{ {EVERY} }}");
    let scenario = parse(&keys).unwrap();
    assert!(!scenario.is_steady(Direction::Forward));
    assert_eq!(scenario.lowest_rate(Direction::Forward).unwrap().bps(), 0);
    let ideal = Ideal::new(&scenario, Direction::Forward, 1);
    // From 1 to 11 ms at the link, which is out from 2 to 5 ms.
    let bits = ideal.bit_nanos(ns(2 * MS), ns(12 * MS)).unwrap();
    assert_eq!(bits, 7 * 8_000 * 1_000_000_000);
    let timelines = scenario.timelines();
    assert_eq!(timelines.len(), 1);
    assert_eq!(timelines[0].quantity, Quantity::Rate);
    assert_eq!(timelines[0].length, Span::from_secs(60));
    // 6000 outages of 3 ms in a minute.
    assert_eq!((timelines[0].least, timelines[0].mean), (0, 5_600_000));
}

fn outages() -> impl Strategy<Value = (Vec<(u64, u64)>, String)> {
    proptest::collection::vec((0_u64..20_000_000, 1_u64..5_000_000), 1..8).prop_map(|gaps| {
        let mut end = 0;
        let outage = |(gap, lasts)| {
            let begin = end + gap;
            end = begin + lasts;
            (begin, lasts)
        };
        let times: Vec<_> = gaps.into_iter().map(outage).collect();
        let row =
            |(at, lasts): &(u64, u64)| format!("{{ at = \"{at} ns\", for = \"{lasts} ns\" }}");
        let rows: Vec<_> = times.iter().map(row).collect();
        (times, format!("[{}]", rows.join(", ")))
    })
}

proptest! {
    /// Outages are the same as steps of a rate to 0 and back: for every queue.
    #[test]
    fn outages_are_steps_to_nothing(
        (times, rows) in outages(),
        rate in 1_000_000_u64..100_000_000,
        aqm in prop::sample::select(vec!["", ", aqm = \"fq\"", ", aqm = \"codel\""]),
        packets in arrivals(),
    ) {
        let mut steps = std::collections::BTreeMap::from([(0, rate)]);
        for (begin, lasts) in times {
            steps.insert(begin, 0);
            steps.insert(begin + lasts, rate);
        }
        let steps = steps.iter().map(|(at, bps)| format!("[\"{at} ns\", \"{bps} bit/s\"]"));
        let steps = steps.collect::<Vec<_>>().join(", ");
        let queue = format!("queue = {{ size = \"20 packets\"{aqm} }}\n");
        let mut with_steps = link(&format!("{queue}rate = {{ steps = [{steps}] }}"));
        let mut with_outages = link(&format!("{queue}rate = \"{rate} bit/s\"\noutages = {rows}"));
        prop_assert_eq!(left(&mut with_outages, &packets), left(&mut with_steps, &packets));
    }

    /// With a flush nothing is in transmission in an outage, nothing crosses one, and what arrives
    /// after it finds an empty link. Both kinds of queue decide alike.
    #[test]
    fn a_flush_empties_the_link(
        (times, rows) in outages(),
        rate in 1_000_000_u64..100_000_000,
        packets in arrivals(),
    ) {
        let keys = |queue: &str| format!(
            "rate = \"{rate} bit/s\"\nqueue = {queue}\n\
             outages = {{ times = {rows}, queue = \"flush\" }}"
        );
        let found = left(&mut link(&keys("\"1 MB\"")), &packets);
        // A queue that holds packets, with one flow: the order of arrival, too.
        let held = left(&mut link(&keys("{ size = \"1 MB\", aqm = \"fq\" }")), &packets);
        prop_assert_eq!(&found, &held);
        let mut free = 0;
        for ((now, ip_bytes), left) in packets.iter().zip(found) {
            let out = times.iter().any(|(begin, lasts)| (*begin..begin + lasts).contains(now));
            prop_assert!(!(out && left.is_some()));
            let Some(at) = left else { continue };
            let crossed = times.iter().any(|(begin, _)| now < begin && *begin < at);
            prop_assert!(!crossed);
            let needs = (u64::from(*ip_bytes) * 8_000_000_000).div_ceil(rate);
            prop_assert!(at >= free && at >= now + needs);
            free = at;
        }
    }
}
