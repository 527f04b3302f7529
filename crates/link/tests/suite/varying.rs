//! Rates that change, and frames, against schedules computed by hand and by a reference.

use bentpipe_link::{Direction, Fate, Ideal, Path, Scenario};
use bentpipe_units::{Span, Time};
use proptest::prelude::*;

use crate::decided::Decides;
use crate::properties::arrivals;
use crate::{SEED, config, departure, file, link, ns};

const FALLS: &str = "queue = \"100 packets\"\nrate = { steps = [[\"0 s\", \"8 Gbit/s\"], [\"100 \
                     ns\", \"3 Gbit/s\"]] }";

#[test]
fn a_rate_changes_in_the_middle_of_a_packet() {
    let mut link = link(FALLS);
    // 60 bytes take 60 ns; of the next, 40 leave before the change, and 20 take 160/3 ns after it.
    assert_eq!(departure(link.admit(ns(0), 60)), 60);
    assert_eq!(departure(link.admit(ns(0), 60)), 154);
    // Free at 153.33, and 8/3 ns more.
    assert_eq!(departure(link.admit(ns(0), 1)), 156);
    assert_eq!(departure(link.admit(ns(200), 3)), 208);
}

#[test]
fn a_packet_may_end_at_the_change() {
    let mut link = link(FALLS);
    assert_eq!(departure(link.admit(ns(0), 100)), 100);
    assert_eq!(departure(link.admit(ns(0), 3)), 108);
}

#[test]
fn steps_begin_again_and_a_rate_of_zero_waits() {
    let mut link = link(
        "queue = \"100 packets\"\nrate = { steps = [[\"0 s\", \"8 Gbit/s\"], [\"10 ns\", \"0 \
         bit/s\"], [\"30 ns\", \"4 Gbit/s\"]], period = \"40 ns\" }",
    );
    // In each 40 ns: 10 bytes from 0 to 10, none to 30, 5 bytes to 40.
    let departures: Vec<u64> = [10, 1, 5, 9, 15, 1]
        .map(|ip_bytes| departure(link.admit(ns(0), ip_bytes)))
        .into();
    assert_eq!(departures, [10, 32, 41, 50, 90, 112]);
    // A day later: 2160000000000 periods.
    let day = 86_400_000_000_000;
    assert_eq!(departure(link.admit(ns(day), 11)), day + 32);
}

#[test]
fn packets_leave_with_the_frame() {
    let mut link = link("frame = \"100 ns\"\nrate = \"8 Gbit/s\"\nqueue = \"2 packets\"");
    let departures: Vec<u64> = [(0, 30), (0, 70), (0, 1), (150, 10), (250, 50), (290, 10)]
        .map(|(now, ip_bytes)| departure(link.admit(ns(now), ip_bytes)))
        .into();
    // The second has its last bit sent with the end of the first frame; the last with 310.
    assert_eq!(departures, [100, 100, 200, 200, 300, 400]);
    let mut unlimited = crate::link("frame = \"100 ns\"");
    assert_eq!(departure(unlimited.admit(ns(101), 1500)), 200);
    assert_eq!(departure(unlimited.admit(ns(200), 1500)), 200);
}

#[test]
fn a_random_rate_stays_in_its_range_and_keeps_its_mean() {
    let text =
        "delay = \"1 ms\"\nrate = { mean = \"8 Mbit/s\", spread = \"25 %\", every = \"1 ms\" }";
    let scenario = crate::parse(text).unwrap();
    let mean = |seed, from_ms: u64, to_ms: u64| {
        let ideal = Ideal::new(&scenario, Direction::Forward, seed);
        // Data sent in a millisecond are received in the next.
        let at = |ms: u64| ns((ms + 1) * 1_000_000);
        let bit_nanos = ideal.bit_nanos(at(from_ms), at(to_ms)).unwrap();
        u64::try_from(bit_nanos / u128::from((to_ms - from_ms) * 1_000_000)).unwrap()
    };
    let rates: Vec<u64> = (0..2000).map(|ms| mean(1, ms, ms + 1)).collect();
    assert!(
        rates
            .iter()
            .all(|rate| (6_000_000..=10_000_000).contains(rate))
    );
    assert!(*rates.iter().min().unwrap() < 6_020_000 && *rates.iter().max().unwrap() > 9_980_000);
    // The standard deviation of the mean of 100 000 draws is 3652 bit/s.
    let long = mean(1, 0, 100_000);
    assert!((7_985_000..8_015_000).contains(&long), "{long}");
    assert_ne!(mean(1, 3, 4), mean(2, 3, 4));
    assert_eq!(mean(1, 3, 4), rates[3]);
}

#[test]
fn a_trace_of_mahimahi_is_read_and_travels_in_json() {
    let folder = std::env::temp_dir().join(format!("bentpipe-{}-mahimahi", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let load = |content: &str| {
        std::fs::write(folder.join("up.mahi"), content).unwrap();
        let path = folder.join("s.toml");
        let text = "delay = \"1 ms\"\nframe = \"1 ms\"\nqueue = \"9 packets\"\nrate = { trace = \
                    \"up.mahi\" }";
        std::fs::write(&path, file(text)).unwrap();
        let wrong = |error: bentpipe_link::ScenarioError| error.to_string();
        Scenario::load(&path, &[]).map_err(wrong)
    };
    let scenario = load("1\n1\n4\n").unwrap();
    let message = |content: &str| {
        let message = load(content).unwrap_err();
        message.split_once("up.mahi: ").unwrap().1.to_owned()
    };
    let whole = "a line is a whole number of milliseconds, up to a day";
    assert_eq!(message(""), "no line");
    assert_eq!(message("1\n2.5\n"), format!("line 2: 2.5: {whole}"));
    assert_eq!(message("2\n1\n"), "line 2: 1: times must not go back");
    assert_eq!(
        message("0\n"),
        "the last time must be above 0: the trace begins again there"
    );
    std::fs::remove_dir_all(&folder).unwrap();

    // 3000 bytes may leave at 1, 1500 at 4, 3000 at 5, 1500 at 8 ms: a period is 4 ms.
    let json = serde_json::to_string(&scenario).unwrap();
    let scenario: Scenario = serde_json::from_str(&json).unwrap();
    let mut link = Path::of_link(&scenario.satellite.forward, Span::ZERO, SEED);
    let departures: Vec<u64> = [1500, 1000, 1000, 1500, 2500, 1]
        .map(|ip_bytes| departure(link.admit(ns(0), ip_bytes)) / 1_000_000)
        .into();
    assert_eq!(departures, [1, 1, 4, 5, 5, 8]);
    assert_eq!(scenario.forward_rate().unwrap().bps(), 9_000_000);
}

/// Steps of a rate: from when on how many bit/s; the last is above 0.
type Steps = Vec<(u64, u64)>;

fn steps() -> impl Strategy<Value = (Steps, Option<u64>)> {
    let rate = prop_oneof![
        Just(0_u64),
        1_000_000_u64..100_000_000,
        1_u64..10_000_000_000
    ];
    let gap = prop_oneof![1_u64..50, 1_u64..3_000_000];
    let steps = prop::collection::vec((gap, rate), 0..12);
    let last = (1_000_000_u64..100_000_000, 1_u64..3_000_000);
    (steps, last, any::<bool>()).prop_map(|(steps, (last, gap), repeats)| {
        let mut from = 0;
        let mut all = Vec::new();
        for (gap, rate) in steps {
            all.push((from, rate));
            from += gap;
        }
        all.push((from, last));
        (all, repeats.then_some(from + gap))
    })
}

fn text(steps: &Steps, period: Option<u64>) -> String {
    let row = |(from, rate): &(u64, u64)| format!("[\"{from} ns\", \"{rate} bit/s\"]");
    let rows: Vec<String> = steps.iter().map(row).collect();
    let period = period.map_or(String::new(), |length| {
        format!(", period = \"{length} ns\"")
    });
    format!("{{ steps = [{}]{period} }}", rows.join(", "))
}

/// The capacity before `time` in billionths of bits, straight from the steps.
fn room(steps: &Steps, period: Option<u64>, time: u64) -> u128 {
    let within = |time: u64| -> u128 {
        let ends = steps.iter().skip(1).map(|(from, _)| *from);
        let ends = ends.chain([u64::MAX]);
        let part = |((from, rate), end): (&(u64, u64), u64)| {
            u128::from(*rate) * u128::from(end.min(time).saturating_sub(*from))
        };
        steps.iter().zip(ends).map(part).sum()
    };
    match period {
        None => within(time),
        Some(length) => u128::from(time / length) * within(length) + within(time % length),
    }
}

/// The first time before which there is capacity for `needed`.
fn time_of(steps: &Steps, period: Option<u64>, needed: u128) -> u64 {
    let (mut low, mut high) = (0, 1_u64 << 56);
    while low < high {
        let middle = u64::midpoint(low, high);
        if room(steps, period, middle) >= needed {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

proptest! {
    /// The same link by another calculation: not in time, but in capacity used since time 0.
    #[test]
    fn steps_are_those_of_the_reference(
        (steps, period) in steps(),
        limit in 0_usize..30,
        arrivals in arrivals(),
    ) {
        let rate = text(&steps, period);
        let mut link = link(&format!("rate = {rate}\nqueue = \"{limit} packets\""));
        let (mut end, mut starts) = (0, Vec::new());
        for (now, ip_bytes) in arrivals {
            let passed = room(&steps, period, now);
            let start = passed.max(end);
            let waiting = starts.iter().filter(|start| **start > passed).count();
            let expected = if start > passed && waiting + 1 > limit {
                Fate::QueueDrop
            } else {
                starts.push(start);
                end = start + u128::from(ip_bytes) * 8_000_000_000;
                let at = time_of(&steps, period, end);
                Fate::Delivered { at: ns(at + 1_000_000) }
            };
            prop_assert_eq!(link.admit(ns(now), ip_bytes), expected, "at {}", now);
        }
    }

    /// For every kind of rate, no window lets more through than the integral of the rate over it.
    #[test]
    fn no_window_lets_more_through_than_its_capacity(
        (steps, period) in steps(),
        drawn in (1_000_000_u64..100_000_000, 0_u32..101, 1_u32..20),
        is_drawn in any::<bool>(),
        arrivals in arrivals(),
    ) {
        let (mean, spread, every) = drawn;
        let rate = if is_drawn {
            format!("{{ mean = \"{mean} bit/s\", spread = \"{spread} %\", every = \"{every} ms\" \
                     }}")
        } else {
            text(&steps, period)
        };
        let text = format!("delay = \"1 ms\"\nrate = {rate}\nqueue = \"25 packets\"");
        let scenario = crate::parse(&text).unwrap();
        let ideal = Ideal::new(&scenario, Direction::Forward, SEED.seed);
        let mut link = Path::of_link(&scenario.satellite.forward, Span::ZERO, SEED);
        let mut arrived: Vec<(Time, u32)> = Vec::new();
        for (now, ip_bytes) in arrivals {
            if let Fate::Delivered { at } = link.admit(ns(now), ip_bytes) {
                arrived.push((at, ip_bytes));
            }
        }
        for (index, (from, _)) in arrived.iter().enumerate().step_by(7) {
            let mut bits = 0_u128;
            for (to, ip_bytes) in &arrived[index + 1..] {
                bits += u128::from(*ip_bytes) * 8;
                // Departures are rounded up: the window may seem shorter by less than 1 ns.
                let before = ns(from.as_nanos() - 1);
                prop_assert!(bits * 1_000_000_000 < ideal.bit_nanos(before, *to).unwrap());
            }
        }
    }

    #[test]
    fn packets_are_conserved_and_keep_their_order_whatever_varies(
        arrivals in arrivals(),
        frame in 1_u32..30_000,
        jitter in 0_u32..20_000,
        allocates in any::<bool>(),
    ) {
        let rate = if allocates {
            "{ full = \"20 Mbit/s\", floor = \"1 Mbit/s\", request_every = \"1 ms\", granted_after \
             = \"5 ms\", hold = \"9 ms\" }"
        } else {
            "{ mean = \"10 Mbit/s\", spread = \"100 %\", every = \"1 ms\" }"
        };
        let text = format!(
            "rate = {rate}\nqueue = \"40 packets\"\nframe = \"{frame} us\"\nloss = \"10 %\"\n\
             delay = {{ base = \"1 ms\", jitter = \"{jitter} us\" }}"
        );
        let forward = crate::parse(&text).unwrap().satellite.forward;
        let mut link = Path::of_link(&forward, Span::ZERO, SEED);
        let mut last = Time::ZERO;
        let mut out = 0;
        for (now, ip_bytes) in &arrivals {
            if let Fate::Delivered { at } = link.admit(ns(*now), *ip_bytes) {
                prop_assert!(at >= last && at.as_nanos() >= now + 1_000_000);
                (last, out) = (at, out + 1);
            }
        }
        let counters = link.counters();
        prop_assert_eq!(counters.packets, arrivals.len() as u64);
        prop_assert_eq!(counters.delivered, out);
        prop_assert_eq!(counters.packets, out + counters.queue_drops + counters.losses);
    }
}

#[test]
fn a_fixed_rate_is_a_timeline_of_one_step() {
    let fates = |rate: &str| {
        let forward = config(&format!("rate = {rate}\nqueue = \"9 packets\""));
        let mut link = Path::of_link(&forward, Span::ZERO, SEED);
        let admit = |packet: u64| link.admit(ns(packet * 103_456), 1500 - (packet % 97) as u32);
        (0..2000).map(admit).collect::<Vec<Fate>>()
    };
    let fixed = fates("\"97 Mbit/s\"");
    assert!(fixed.contains(&Fate::QueueDrop));
    assert_eq!(fixed, fates("{ steps = [[\"0 s\", \"97 Mbit/s\"]] }"));
    assert_eq!(
        fixed,
        fates("{ steps = [[\"0 s\", \"97 Mbit/s\"]], period = \"1 ms\" }")
    );
    let drawn = "{ mean = \"97 Mbit/s\", spread = \"0 %\", every = \"1 ms\" }";
    assert_eq!(fixed, fates(drawn));
}

#[test]
fn a_random_rate_may_have_factors_drawn_within() {
    let keys = "delay = \"1 ms\"\nrate = { mean = \"8 Mbit/s\", spread = \"25 %\", every = \"1 \
                s\", within = [{ spread = \"20 %\", every = \"100 ms\" }] }";
    let scenario = crate::parse(keys).unwrap();
    let rate = scenario.satellite.forward.rate.as_ref().unwrap();
    assert_eq!(
        (rate.lowest().bps(), rate.nominal().bps()),
        (4_800_000, 12_000_000)
    );
    assert_eq!(
        rate.to_string(),
        "4.8 Mbit/s to 12 Mbit/s, drawn every 1 s and every 100 ms"
    );
    let json = serde_json::to_string(&scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
    // The capacity of each tenth of a second of 1000 s.
    let ideal = Ideal::new(&scenario, Direction::Forward, 3);
    let bps = |tenth: u64| {
        let from = Time::from_nanos(1_000_000 + tenth * 100_000_000);
        let bits = ideal
            .bit_nanos(from, from + Span::from_millis(100))
            .unwrap();
        u64::try_from(bits / 100_000_000).unwrap()
    };
    let each: Vec<u64> = (0..10_000).map(bps).collect();
    assert!(
        each.iter()
            .all(|bps| (4_800_000..=12_000_000).contains(bps))
    );
    // The deviation of a mean of 1000 draws over 25 % is 0.46 %.
    let mean = each.iter().sum::<u64>() / 10_000;
    assert!((7_850_000..8_150_000).contains(&mean), "{mean}");
    // Within a second the factor of the second is one: no two differ by more than 1.2 / 0.8.
    for ten in each.chunks(10) {
        let (least, most) = (ten.iter().min().unwrap(), ten.iter().max().unwrap());
        assert!(most * 80 <= least * 120 + 800 && most > least, "{ten:?}");
    }
}
