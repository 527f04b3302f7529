//! Delays that change, and keep the order.

use bentpipe_link::{Delay, Fate, Path, Scenario};
use bentpipe_units::Span;
use proptest::prelude::*;

use crate::decided::Decides;
use crate::{SEED, file, ns};

const STEPS: &str = "delay = { trace = \"inline\", steps = [[\"0 s\", \"30 ns\"], [\"100 ns\", \"5 \
                     ns\"], [\"200 ns\", \"50 ns\"]] }";

fn link(forward: &str) -> Path {
    let scenario = Scenario::parse(&file(forward), "test.toml", &[]).unwrap();
    Path::of_link(&scenario.satellite.forward, Span::ZERO, SEED)
}

fn arrivals(link: &mut Path, times: &[u64]) -> Vec<u64> {
    let arrival = |now: &u64| match link.admit(ns(*now), 1) {
        Fate::Delivered { at } => at.as_nanos(),
        other => panic!("{other:?}"),
    };
    times.iter().map(arrival).collect()
}

#[test]
fn steps_hold_until_the_next_and_the_last_for_ever() {
    let times = [0, 69, 130, 199, 200, 1_000_000];
    assert_eq!(
        arrivals(&mut link(STEPS), &times),
        [30, 99, 135, 204, 250, 1_000_050]
    );
}

#[test]
fn steps_without_a_file_are_read_told_and_written() {
    let steps =
        "delay = { steps = [[\"0 s\", \"30 ms\"], [\"15 s\", \"28 ms\"]], period = \"30 s\" }";
    let scenario = Scenario::parse(&file(steps), "test.toml", &[]).unwrap();
    let delay = &scenario.satellite.forward.delay;
    assert_eq!(
        delay.to_string(),
        "30 ms, from 15 s 28 ms, again every 30 s"
    );
    let json = serde_json::to_string(&scenario).unwrap();
    let written = r#""delay":{"steps":[["0 ms","30 ms"],["15 s","28 ms"]],"period":"30 s"}"#;
    assert!(json.contains(written), "{json}");
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
    let rows: Vec<String> = (0..9)
        .map(|at| format!("[\"{at} s\", \"{} ms\"]", 40 - at))
        .collect();
    let many = format!("delay = {{ steps = [{}] }}", rows.join(", "));
    let many = Scenario::parse(&file(&many), "test.toml", &[]).unwrap();
    let told = many.satellite.forward.delay.to_string();
    assert_eq!(told, "32 ms to 40 ms in 9 steps");
}

#[test]
fn steps_with_a_period_begin_again() {
    let steps =
        "delay = { steps = [[\"0 s\", \"30 ns\"], [\"100 ns\", \"50 ns\"]], period = \"1 us\" }";
    // A packet sent at 1000 arrives with the one that was sent at 999 and took 50 ns.
    assert_eq!(
        arrivals(&mut link(steps), &[0, 99, 100, 999, 1000, 1020, 5099, 5100]),
        [30, 129, 150, 1049, 1049, 1050, 5129, 5150]
    );
    let short = steps.replace("1 us", "100 ns");
    let error = Scenario::parse(&file(&short), "test.toml", &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "test.toml: satellite.forward.delay.period: 100 ns: must be longer than the time of the \
         last step, 100 ns"
    );
}

#[test]
fn a_delay_may_change_evenly() {
    let steps = "delay = { steps = [[\"0 s\", \"100 ns\"], [\"1 us\", \"400 ns\"], [\"2 us\", \"50 \
                 ns\"]], between = \"linear\" }";
    // 500 * 300 / 1000 more; 1 ns of falling is 0.35 less, rounded towards 400; the last holds.
    let times = [0, 500, 999, 1000, 1001, 1003, 2500];
    assert_eq!(
        arrivals(&mut link(steps), &times),
        [100, 750, 1398, 1400, 1401, 1402, 2550]
    );
    let scenario = Scenario::parse(&file(steps), "test.toml", &[]).unwrap();
    assert_eq!(scenario.satellite.forward.delay.min(), Span::from_nanos(50));
    let json = serde_json::to_string(&scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
}

#[test]
fn a_trial_may_not_outlast_delays_that_end() {
    let steps = "delay = { steps = [[\"0 s\", \"30 ms\"]], ends = \"60 s\" }";
    let scenario = Scenario::parse(&file(steps), "test.toml", &[]).unwrap();
    assert_eq!(
        scenario.satellite.forward.delay.to_string(),
        "30 ms, until 60 s"
    );
    let json = serde_json::to_string(&scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
    let error = |steps: &str| {
        let error = Scenario::parse(&file(steps), "test.toml", &[]).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        error(&steps.replace("60 s", "59 s")),
        "test.toml: satellite.forward.delay.ends: 59 s: nothing is known after it, and a trial may \
         last until 60 s; lower the timeout, or write period = \"59 s\" in its place to begin again"
    );
    assert_eq!(
        error(&steps.replace("ends", "period = \"60 s\", ends")),
        "test.toml: satellite.forward.delay.ends: 60 s: either period or ends, not both; leave one \
         out"
    );
}

#[test]
fn jitter_within_adds_up() {
    let keys = "delay = { base = \"1 ms\", jitter = \"500 us\", every = \"50 ms\", within = [{ \
                jitter = \"300 us\", every = \"5 ms\" }] }";
    let times: Vec<u64> = (0..10_000).map(|packet| packet * 5_000_000).collect();
    let arrivals = arrivals(&mut link(keys), &times);
    let delays: Vec<u64> = arrivals
        .iter()
        .zip(&times)
        .map(|(at, sent)| at - sent)
        .collect();
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!((1_000_000..1_020_000).contains(least) && (1_780_000..=1_800_000).contains(most));
    // In each of the longer intervals the delays differ by no more than the shorter adds.
    for ten in delays.chunks(10) {
        let spread = ten.iter().max().unwrap() - ten.iter().min().unwrap();
        assert!((1..=300_000).contains(&spread));
    }
    let scenario = Scenario::parse(&file(keys), "test.toml", &[]).unwrap();
    let delay = &scenario.satellite.forward.delay;
    assert_eq!(
        delay.to_string(),
        "1 ms to 1.8 ms, drawn every 50 ms and every 5 ms"
    );
    let json = serde_json::to_string(&scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
}

#[test]
fn order_is_kept_when_the_delay_falls() {
    // Sent at 99 it arrives at 129, so those sent from 100 on with 5 ns wait for it.
    let times = [98, 99, 100, 110, 124, 125];
    assert_eq!(
        arrivals(&mut link(STEPS), &times),
        [128, 129, 129, 129, 129, 130]
    );
}

#[test]
fn the_delay_is_that_of_the_last_bit() {
    // A byte takes 8 ns: it is through at 99 or at 100.
    let rate = format!("rate = \"1 Gbit/s\"\n{STEPS}");
    assert_eq!(arrivals(&mut link(&rate), &[91]), [129]);
    assert_eq!(arrivals(&mut link(&rate), &[92]), [105]);
}

#[test]
fn a_step_may_be_skipped() {
    assert_eq!(arrivals(&mut link(STEPS), &[0, 300]), [30, 350]);
}

#[test]
fn the_smallest_step_is_the_base_delay() {
    let scenario = Scenario::parse(&file(STEPS), "test.toml", &[]).unwrap();
    assert_eq!(scenario.satellite.forward.delay.min(), Span::from_nanos(5));
    assert_eq!(scenario.rtt(), Span::from_nanos(1_000_005));
}

const JITTER: &str = "delay = { base = \"100 ns\", jitter = \"50 ns\" }";

#[test]
fn jitter_reaches_all_of_its_range_and_no_further() {
    // Packets are so far apart that none waits for the one before.
    let times: Vec<u64> = (0..10_000).map(|packet| packet * 1000).collect();
    let delays = |seed| {
        let scenario = Scenario::parse(&file(JITTER), "test.toml", &[]).unwrap();
        let seed = bentpipe_link::LinkSeed { seed, ..SEED };
        let mut link = Path::of_link(&scenario.satellite.forward, Span::ZERO, seed);
        let arrivals = arrivals(&mut link, &times);
        let both = arrivals.iter().zip(&times);
        both.map(|(at, sent)| at - sent).collect::<Vec<u64>>()
    };
    let mut counts = [0; 51];
    for delay in delays(7) {
        counts[usize::try_from(delay - 100).unwrap()] += 1;
    }
    // 196 of each are expected; a fair count differs by more than 80 once in 10^8.
    assert!(
        counts.iter().all(|count| (116..277).contains(count)),
        "{counts:?}"
    );
    assert_eq!(delays(7), delays(7));
    assert_ne!(delays(7), delays(8));
}

#[test]
fn jitter_keeps_the_order_of_packets_that_are_close() {
    let arrivals = arrivals(&mut link(JITTER), &(0..1000).collect::<Vec<u64>>());
    assert!(arrivals.is_sorted());
    let late = (0..1000)
        .zip(&arrivals)
        .filter(|(sent, at)| **at >= sent + 140);
    // Of packets that are far apart 11 in 51 would be as late; here 3 in 4 are, since they wait for
    // one before them that was.
    assert!((650..850).contains(&late.count()));
}

#[test]
fn jitter_of_an_interval_holds_for_it() {
    let text =
        "delay = { base = \"1 ms\", jitter = \"500 us\", every = \"10 ms\", first = \"4 ms\" }";
    let mut link = link(text);
    let times: Vec<u64> = (0..400).map(|packet| packet * 100_000).collect();
    let arrivals = arrivals(&mut link, &times);
    // Changes are at 4, 14, 24 and 34 ms. The packets that are sent just after a change may wait
    // for those before.
    for (from, to) in [(0, 4), (4, 14), (14, 24), (24, 34), (34, 40)] {
        let held = |packet: &usize| packet / 10 >= from && packet / 10 < to;
        let delays = (0..400)
            .filter(held)
            .map(|packet| arrivals[packet] - times[packet]);
        let mut delays: Vec<u64> = delays.skip(6).collect();
        delays.dedup();
        assert_eq!(delays.len(), 1, "from {from} ms: {delays:?}");
        assert!((1_000_000..=1_500_000).contains(&delays[0]));
    }
}

#[test]
fn jitter_does_not_depend_on_what_is_lost() {
    let times: Vec<u64> = (0..300).map(|packet| packet * 1000).collect();
    let fates = |text: &str| {
        let scenario = Scenario::parse(&file(text), "test.toml", &[]).unwrap();
        let mut link = Path::of_link(&scenario.satellite.forward, Span::ZERO, SEED);
        let admit = |now: &u64| link.admit(ns(*now), 1);
        times.iter().map(admit).collect::<Vec<Fate>>()
    };
    let lossy = fates(&format!("{JITTER}\nloss = \"30 %\""));
    let both = fates(JITTER).into_iter().zip(lossy);
    assert!(
        both.filter(|(_, lossy)| *lossy != Fate::Loss)
            .all(|(clean, lossy)| clean == lossy)
    );
}

fn trace(name: &str, content: &str) -> Result<Scenario, String> {
    let folder = std::env::temp_dir().join(format!("bentpipe-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("delay.csv"), content).unwrap();
    let path = folder.join("s.toml");
    std::fs::write(&path, file("delay = { trace = \"delay.csv\" }")).unwrap();
    let result = Scenario::load(&path, &[]).map_err(|error| {
        error
            .to_string()
            .replace(&folder.display().to_string(), "FOLDER")
    });
    std::fs::remove_dir_all(&folder).unwrap();
    result
}

#[test]
fn a_file_is_read_exactly_and_travels_in_json() {
    let scenario = trace(
        "good",
        "time_s,delay_ms\n0,300\n0.000000001,299.999999\n15,1.5\n",
    )
    .unwrap();
    let Delay::Steps(read) = &scenario.satellite.forward.delay else {
        panic!("not steps");
    };
    let steps = [
        (0, 300_000_000),
        (1, 299_999_999),
        (15_000_000_000, 1_500_000),
    ];
    assert_eq!(
        read.steps,
        steps.map(|(time, delay)| (ns(time), Span::from_nanos(delay)))
    );
    // The folder is gone by now: a job in JSON needs no file.
    let json = serde_json::to_string(&scenario).unwrap();
    assert!(json.contains(r#""delay":{"trace":"delay.csv","steps":[["0 ms","300 ms"],["1 ns","#));
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
}

#[test]
fn further_columns_are_for_people() {
    let content = "time_s,delay_ms,satellite\n0,300,1-1\n15,280,1-2\n";
    let scenario = trace("columns", content).unwrap();
    let Delay::Steps(read) = &scenario.satellite.forward.delay else {
        panic!("not steps");
    };
    let steps = [(0, 300_000_000), (15_000_000_000, 280_000_000)];
    let steps = steps.map(|(time, delay)| (ns(time), Span::from_nanos(delay)));
    assert_eq!(read.steps, steps);
}

#[test]
fn a_bad_file_is_refused() {
    let message = |name, content| trace(name, content).unwrap_err();
    let key = "FOLDER/s.toml: satellite.forward.delay.trace: delay.csv: ";
    let row = "a row is a time in seconds and a delay in milliseconds, like 15,300";
    for (name, content, expected) in [
        (
            "empty",
            "",
            "line 1: the header must be \"time_s,delay_ms\"".to_owned(),
        ),
        (
            "header",
            "time,delay\n0,1\n",
            "line 1: the header must be \"time_s,delay_ms\"".to_owned(),
        ),
        (
            "rows",
            "time_s,delay_ms\n",
            "no row after the header".to_owned(),
        ),
        (
            "first",
            "time_s,delay_ms\n1,300\n",
            "line 2: 1,300: the first time must be 0".to_owned(),
        ),
        (
            "order",
            "time_s,delay_ms\n0,300\n5,200\n5,100\n",
            "line 4: 5,100: times must increase".to_owned(),
        ),
        (
            "unit",
            "time_s,delay_ms\n0,300 ms\n",
            format!("line 2: 0,300 ms: {row}"),
        ),
        (
            "negative",
            "time_s,delay_ms\n0,-300\n",
            format!("line 2: 0,-300: {row}"),
        ),
        (
            "column",
            "time_s,delay_ms\n0,300,1\n",
            format!("line 2: 0,300,1: {row}"),
        ),
        (
            "no column",
            "time_s,delay_ms,satellite\n0,300\n",
            format!("line 2: 0,300: {row}"),
        ),
        (
            "another unit",
            "time_s,delay_ms2,satellite\n0,300,1\n",
            "line 1: the header must be \"time_s,delay_ms\"".to_owned(),
        ),
        ("short", "time_s,delay_ms\n0\n", format!("line 2: 0: {row}")),
        (
            "blank",
            "time_s,delay_ms\n0,300\n\n",
            format!("line 3: : {row}"),
        ),
        (
            "fine",
            "time_s,delay_ms\n0,0.0000001\n",
            format!("line 2: 0,0.0000001: {row}"),
        ),
    ] {
        assert_eq!(message(name, content), format!("{key}{expected}"), "{name}");
    }
}

const AGAIN: &str = "delay = { steps = [[\"0 s\", \"30 ns\"], [\"100 ns\", \"5 ns\"], [\"200 ns\", \
                     \"50 ns\"]], period = \"1 us\" }";

#[test]
fn steps_begin_again_after_a_period() {
    let times = [0, 150, 250, 999, 1_000, 1_099, 1_150, 3_000_150];
    // At 1000 it is 30 ns again, and the packet waits for the one before, which arrives at 1049.
    assert_eq!(
        arrivals(&mut link(AGAIN), &times),
        [30, 155, 300, 1_049, 1_049, 1_129, 1_155, 3_000_155]
    );
}

#[test]
fn steps_need_no_file_and_travel_in_json() {
    let scenario = Scenario::parse(&file(AGAIN), "test.toml", &[]).unwrap();
    let json = serde_json::to_string(&scenario).unwrap();
    assert!(
        json.contains(r#""delay":{"steps":[["0 ms","30 ns"],"#),
        "{json}"
    );
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
    let shown = scenario.satellite.forward.delay.to_string();
    assert_eq!(
        shown,
        "30 ns, from 100 ns 5 ns, from 200 ns 50 ns, again every 1 us"
    );
}

/// Steps of a delay in nanoseconds, and a period.
fn steps() -> impl Strategy<Value = (Vec<(u64, u64)>, Option<u64>)> {
    let steps = prop::collection::vec((1_u64..500, 1_u64..2_000), 1..12);
    (steps, any::<bool>()).prop_map(|(steps, repeats)| {
        let mut end = 0;
        let mut all = Vec::new();
        for (lasts, delay) in steps {
            all.push((end, delay));
            end += lasts;
        }
        (all, repeats.then_some(end))
    })
}

proptest! {
    /// Each packet arrives after the delay that holds when it is sent, or with the one before it.
    #[test]
    fn steps_are_those_of_a_reference_and_keep_the_order(
        (steps, period) in steps(),
        gaps in prop::collection::vec(0_u64..900, 1..80),
    ) {
        let rows = steps.iter().map(|(from, delay)| format!("[\"{from} ns\", \"{delay} ns\"]"));
        let rows = rows.collect::<Vec<_>>().join(", ");
        let again = period.map_or(String::new(), |period| format!(", period = \"{period} ns\""));
        let mut link = link(&format!("delay = {{ steps = [{rows}]{again} }}"));
        let (mut now, mut last) = (0, 0);
        for gap in gaps {
            now += gap;
            let within = period.map_or(now, |period| now % period);
            let holds = steps.iter().rfind(|(from, _)| *from <= within).unwrap().1;
            last = last.max(now + holds);
            prop_assert_eq!(arrivals(&mut link, &[now]), [last]);
        }
    }
}
