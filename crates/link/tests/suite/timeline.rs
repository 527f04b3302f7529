//! How what changes with time is summed up, against figures computed by hand and by a reference.

use bentpipe_link::{Delay, LinkRate, LinkTimeline, PARTS, Quantity};
use bentpipe_units::{Span, Time};
use proptest::prelude::*;

use crate::parse;

fn timelines(forward: &str) -> Vec<LinkTimeline> {
    let delay = if forward.contains("delay") {
        ""
    } else {
        "delay = \"1 ms\"\n"
    };
    parse(&format!("{delay}{forward}")).unwrap().timelines()
}

#[test]
fn figures_are_weighted_by_time() {
    let steps = "[[\"0 s\", \"4 bit/s\"], [\"1 s\", \"0 bit/s\"], [\"3 s\", \"10 bit/s\"]]";
    let (one, ..) = pick(timelines(&format!(
        "rate = {{ steps = {steps}, period = \"6 s\" }}"
    )));
    assert_eq!(
        (one.quantity, one.length, one.repeats, one.drawn),
        (Quantity::Rate, Span::from_secs(6), true, false)
    );
    // 1 s of 4, 2 s of 0, 3 s of 10: the lower half of the 6 s ends with the 4.
    assert_eq!(
        (one.least, one.median, one.most, one.mean),
        (0, 4, 10, 34 / 6)
    );
    let expected: Vec<i64> = [(10, 4), (20, 0), (30, 10)]
        .into_iter()
        .flat_map(|(parts, value)| std::iter::repeat_n(value, parts))
        .collect();
    assert_eq!(one.parts, expected);
}

#[test]
fn a_part_has_the_mean_of_what_holds_in_it() {
    // A part lasts 1 s.
    let steps = "[[\"0 s\", \"8 Mbit/s\"], [\"250 ms\", \"4 Mbit/s\"], [\"1 s\", \"2 Mbit/s\"]]";
    let (one, ..) = pick(timelines(&format!("rate = {{ steps = {steps} }}")));
    assert_eq!(
        (one.length, one.repeats),
        (Span::from_secs(60), false),
        "as long as a trial may last"
    );
    assert_eq!(one.parts[..3], [5_000_000, 2_000_000, 2_000_000]);
}

#[test]
fn losses_of_handovers_and_delays_have_a_timeline() {
    let loss = "{ model = \"handover\", every = \"15 s\", first = \"5 s\", lasts = \"100 ms\", \
                loss = \"20 %\" }";
    let (one, ..) = pick(timelines(&format!("loss = {loss}")));
    assert_eq!(
        (one.quantity, one.least, one.median, one.most),
        (Quantity::Loss, 0, 0, 200_000_000)
    );
    // Four handovers in 60 s.
    assert_eq!(one.mean, 200_000_000 * 4 / 600);
    assert_eq!((one.parts[5], one.parts[6]), (20_000_000, 0));
    let (one, ..) = pick(timelines(
        "delay = { base = \"14 ms\", jitter = \"4 ms\", every = \"15 s\" }",
    ));
    assert!(one.drawn && one.quantity == Quantity::Delay);
    assert!(one.least >= 14_000_000 && one.most <= 18_000_000 && one.least < one.most);
}

#[test]
fn what_comes_after_the_last_step_is_said() {
    let steps = "steps = [[\"0 s\", \"4 ms\"], [\"15 s\", \"8 ms\"]]";
    let (one, ..) = pick(timelines(&format!("delay = {{ {steps} }}")));
    let after = (one.repeats, one.last_from, one.length);
    assert_eq!(
        after,
        (
            false,
            Some(Time::from_nanos(15_000_000_000)),
            Span::from_secs(60)
        )
    );
    assert_eq!((one.least, one.mean), (4_000_000, 7_000_000));
    let (one, ..) = pick(timelines(&format!(
        "delay = {{ {steps}, period = \"20 s\" }}"
    )));
    let after = (one.repeats, one.last_from, one.length);
    assert_eq!(after, (true, None, Span::from_secs(20)));
    assert_eq!(one.mean, 5_000_000);
    let ratios = "steps = [[\"0 s\", \"0 %\"], [\"15 s\", \"10 %\"]], period = \"20 s\"";
    let loss = format!("loss = {{ model = \"steps\", {ratios} }}");
    let (one, ..) = pick(timelines(&loss));
    assert_eq!(
        (one.quantity, one.repeats, one.mean),
        (Quantity::Loss, true, 25_000_000)
    );
}

#[test]
fn what_hangs_on_packets_has_none() {
    for steady in [
        "rate = \"1 Mbit/s\"\nloss = \"1 %\"",
        "delay = { base = \"14 ms\", jitter = \"4 ms\" }",
    ] {
        assert_eq!(timelines(steady), []);
    }
}

#[test]
fn many_steps_are_counted_when_they_are_told() {
    let steps: Vec<String> = (0..7)
        .map(|second| format!("[\"{second} s\", \"{} Mbit/s\"]", second + 1))
        .collect();
    let scenario = parse(&format!(
        "delay = \"1 ms\"\nrate = {{ steps = [{}] }}",
        steps.join(", ")
    ))
    .unwrap();
    let rate = scenario.satellite.forward.rate.as_ref();
    assert_eq!(
        rate.map(LinkRate::to_string).as_deref(),
        Some("1 Mbit/s to 7 Mbit/s in 7 steps")
    );
    assert!(matches!(scenario.satellite.forward.delay, Delay::Fixed(_)));
}

/// The first of one or more.
fn pick(found: Vec<LinkTimeline>) -> (LinkTimeline, usize) {
    let count = found.len();
    (found.into_iter().next().unwrap(), count)
}

proptest! {
    #[test]
    fn figures_are_those_of_each_millisecond(
        lengths in prop::collection::vec(1_i64..50, 1..20),
        values in prop::collection::vec(0_i64..1000, 20),
    ) {
        let mut at = 0;
        let mut steps = Vec::new();
        let mut each = Vec::new();
        for (length, value) in lengths.iter().zip(&values) {
            steps.push(format!("[\"{at} ms\", \"{} bit/s\"]", value + 1));
            each.extend(std::iter::repeat_n(value + 1, usize::try_from(*length).unwrap()));
            at += length;
        }
        let (one, count) = pick(timelines(&format!("rate = {{ steps = [{}], period = \"{at} ms\" \
            }}", steps.join(", "))));
        prop_assert_eq!(count, 1);
        let sum: i64 = each.iter().sum();
        prop_assert_eq!(one.mean, sum / at);
        each.sort_unstable();
        prop_assert_eq!((one.least, one.most), (each[0], each[each.len() - 1]));
        prop_assert_eq!(one.median, each[each.len().div_ceil(2) - 1]);
        prop_assert_eq!(one.parts.len(), PARTS);
        prop_assert!(one.parts.iter().all(|part| (one.least..=one.most).contains(part)));
    }
}
