//! Properties of every link and every sequence of arrivals.

use bentpipe_link::{Counters, Fate, Path};
use bentpipe_units::Span;
use proptest::prelude::*;

use crate::decided::Decides;
use crate::{SEED, config, ns};

/// A sequence of (arrival, bytes), often at one instant, around the pace of the link.
pub fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![Just(0_u64), 0_u64..20, 0_u64..2_000_000];
    prop::collection::vec((gap, 1_u32..1501), 1..200).prop_map(|steps| {
        let mut now = 0;
        let arrive = |(gap, bytes)| {
            now += gap;
            (now, bytes)
        };
        steps.into_iter().map(arrive).collect()
    })
}

/// A rate, a queue limit in packets, one in bytes: exactly one of the two is set.
fn limits() -> impl Strategy<Value = (u64, Option<u64>, Option<u64>)> {
    let rate = prop_oneof![
        1_000_000_u64..100_000_000,
        1_u64..10_000_000_000,
        Just(8_000_000)
    ];
    let packets = (0_u64..30).prop_map(|limit| (Some(limit), None));
    let bytes = (0_u64..30_000).prop_map(|limit| (None, Some(limit)));
    (rate, prop_oneof![packets, bytes]).prop_map(|(rate, (packets, bytes))| (rate, packets, bytes))
}

fn queue(packets: Option<u64>, bytes: Option<u64>) -> String {
    match (packets, bytes) {
        (Some(limit), _) => format!("{limit} packets"),
        (_, limit) => format!("{} B", limit.unwrap()),
    }
}

fn link(rate: u64, queue: &str, more: &str) -> Path {
    let text = format!("rate = \"{rate} bit/s\"\nqueue = \"{queue}\"\n{more}");
    Path::of_link(&config(&text), Span::from_millis(10), SEED)
}

/// The same link in another way of reckoning: time in units of 1 ns / rate, so that every
/// transmission is a whole number of them, and a list of all packets taken instead of a queue.
struct Reference {
    rate: u128,
    packets: Option<u64>,
    bytes: Option<u64>,
    /// Start and end of each transmission, and its bytes.
    taken: Vec<(u128, u128, u64)>,
}

impl Reference {
    fn admit(&mut self, now: u64, ip_bytes: u32) -> Option<u64> {
        let now = u128::from(now) * self.rate;
        let start = self.taken.last().map_or(now, |(_, end, _)| now.max(*end));
        let waiting: Vec<u64> = self
            .taken
            .iter()
            .filter(|(start, ..)| *start > now)
            .map(|taken| taken.2)
            .collect();
        let full = self
            .packets
            .is_some_and(|limit| waiting.len() as u64 + 1 > limit)
            || self
                .bytes
                .is_some_and(|limit| waiting.iter().sum::<u64>() + u64::from(ip_bytes) > limit);
        if start > now && full {
            return None;
        }
        let end = start + u128::from(ip_bytes) * 8_000_000_000;
        self.taken.push((start, end, ip_bytes.into()));
        Some(u64::try_from(end.div_ceil(self.rate)).unwrap())
    }
}

proptest! {
    #[test]
    fn departures_and_drops_are_those_of_the_reference(
        (rate, packets, bytes) in limits(),
        arrivals in arrivals(),
    ) {
        let mut link = link(rate, &queue(packets, bytes), "");
        let mut reference = Reference { rate: rate.into(), packets, bytes, taken: Vec::new() };
        for (now, ip_bytes) in arrivals {
            let expected = match reference.admit(now, ip_bytes) {
                Some(departure) => Fate::Delivered { at: ns(departure + 1_000_000) },
                None => Fate::QueueDrop,
            };
            prop_assert_eq!(link.admit(ns(now), ip_bytes), expected);
        }
    }

    #[test]
    fn the_rate_is_never_exceeded_over_any_window(
        (rate, packets, bytes) in limits(),
        arrivals in arrivals(),
    ) {
        let mut link = link(rate, &queue(packets, bytes), "");
        let mut departures = Vec::new();
        for (now, ip_bytes) in arrivals {
            if let Fate::Delivered { at } = link.admit(ns(now), ip_bytes) {
                departures.push((at.as_nanos(), ip_bytes));
            }
        }
        for (index, (from, _)) in departures.iter().enumerate() {
            let mut bits = 0_u128;
            for (to, ip_bytes) in &departures[index + 1..] {
                bits += u128::from(*ip_bytes) * 8;
                // Departures are rounded up: the window may seem shorter by less than 1 ns.
                let window = u128::from(to - from) + 1;
                prop_assert!(bits * 1_000_000_000 < u128::from(rate) * window);
            }
        }
    }

    #[test]
    fn packets_are_conserved_and_keep_their_order(
        (rate, packets, bytes) in limits(),
        arrivals in arrivals(),
        steps in prop::collection::vec((1_u64..3_000_000, 1_u64..5_000_000), 1..20),
    ) {
        let mut from = 0;
        let row = |(gap, delay): &(u64, u64)| {
            let row = format!("[\"{from} ns\", \"{delay} ns\"]");
            from += gap;
            row
        };
        let rows = steps.iter().map(row).collect::<Vec<String>>().join(", ");
        let scenario = crate::parse(&format!(
            "rate = \"{rate} bit/s\"\nqueue = \"{}\"\nloss = \"10 %\"\n\
             delay = {{ trace = \"inline\", steps = [{rows}] }}",
            queue(packets, bytes)
        ));
        let forward = scenario.unwrap().satellite.forward;
        let mut link = Path::of_link(&forward, Span::ZERO, SEED);
        let mut expected = Counters::default();
        let mut last = 0;
        for (now, ip_bytes) in arrivals {
            expected.packets += 1;
            expected.bytes += u64::from(ip_bytes);
            match link.admit(ns(now), ip_bytes) {
                Fate::Delivered { at } => {
                    expected.delivered += 1;
                    expected.delivered_bytes += u64::from(ip_bytes);
                    prop_assert!(at.as_nanos() >= last);
                    prop_assert!(at.as_nanos() >= now + forward.delay.min().as_nanos());
                    last = at.as_nanos();
                }
                Fate::QueueDrop => expected.queue_drops += 1,
                Fate::Loss => expected.losses += 1,
            }
        }
        let counters = link.counters();
        prop_assert_eq!(counters.packets, counters.delivered + counters.queue_drops
            + counters.losses);
        if let Some(limit) = bytes {
            prop_assert!(counters.max_queue_bytes <= limit);
        }
        prop_assert_eq!(Counters { max_queue_bytes: 0, ..counters }, expected);
    }
}
