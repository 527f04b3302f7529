//! Timelines of a trial's links: by its seed, up to a time, in bounded length.

use bentpipe_link::{
    Between, Interruption, InterruptionKind, LinkTimeline, MOST_POINTS, Quantity, Scenario,
    ServingSatellite,
};
use bentpipe_units::{Span, Time};

use crate::parse;

fn at(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

fn of(found: &[LinkTimeline], quantity: Quantity) -> &LinkTimeline {
    found.iter().find(|it| it.quantity == quantity).unwrap()
}

fn spans(found: &[Interruption], kind: InterruptionKind) -> Vec<(Time, Span)> {
    let mine = found.iter().filter(|it| it.kind == kind);
    mine.map(|it| (it.from, it.until - it.from)).collect()
}

const ORBIT: &str = "rate = \"10 Mbit/s\"
delay = { steps = [[\"0 s\", \"4 ms\"], [\"10 s\", \"4 ms\"], [\"20 s\", \"6 ms\"]], \
    satellites = [[\"1-1\", \"60\", \"3\"], [\"1-2\", \"60\", \"3\"], [\"\", \"0\", \"0\"]], \
    between = \"linear\" }
handovers = { times = [{ at = \"10 s\" }, { at = \"20 s\" }], gap = \"80 ms\", \
    in_flight = \"lost\" }";

#[test]
fn handovers_and_outages_have_their_times_and_satellites() {
    let outages = "outages = [{ at = \"1 s\", for = \"2 s\" }]";
    let scenario = parse(&format!("{ORBIT}\n{outages}")).unwrap();
    let found = scenario.interruptions(7, at(60_000));
    let gap = Span::from_millis(80);
    assert_eq!(
        spans(&found, InterruptionKind::Handover),
        [(at(10_000), gap), (at(20_000), gap)]
    );
    assert_eq!(
        spans(&found, InterruptionKind::Outage),
        [(at(1_000), Span::from_secs(2))]
    );
    let satellites: Vec<_> = found.iter().map(|it| it.satellite.as_deref()).collect();
    assert_eq!(
        satellites,
        [None, Some("1-2"), None],
        "none serves from 20 s on"
    );
    let early = scenario.interruptions(7, at(19_999));
    assert_eq!(
        spans(&early, InterruptionKind::Handover),
        [(at(10_000), gap)]
    );
}

#[test]
fn satellites_have_timelines_and_no_effect() {
    let scenario = parse(ORBIT).unwrap();
    let found = scenario.timelines_in_trial(1, at(30_000));
    let elevation = of(&found, Quantity::Elevation);
    assert_eq!(elevation.between, Between::Even);
    assert_eq!(
        elevation.points,
        [
            (at(0), 60_000),
            (at(10_000), 60_000),
            (at(20_000), 0),
            (at(30_000), 0)
        ]
    );
    let names: Vec<_> = elevation
        .names
        .iter()
        .map(|(at, name)| (*at, name.as_str()))
        .collect();
    assert_eq!(
        names,
        [(at(0), "1-1"), (at(10_000), "1-2"), (at(20_000), "")]
    );
    let in_view = of(&found, Quantity::InView);
    assert_eq!(in_view.points, [(at(0), 3), (at(20_000), 0)]);
    assert!(in_view.between == Between::Held && in_view.names.is_empty());
    // Where it begins to change, an even delay has another point.
    let delay = of(&found, Quantity::Delay);
    assert!(delay.between == Between::Even && delay.points.contains(&(at(10_000), 4_000_000)));
}

const SLOPE: &str = "delay = { steps = [[\"0 s\", \"10 ms\"], [\"15 s\", \"100 ms\"]], \
    satellites = [[\"a\", \"30\", \"1\"], [\"a\", \"15\", \"1\"]], between = \"linear\"";

#[test]
fn an_even_course_ends_with_the_value_at_its_end() {
    let scenario = parse(&format!("{SLOPE} }}")).unwrap();
    // A third of the way: 10 ms + 30 ms, and 30 degrees - 5 degrees.
    let found = scenario.timelines_in_trial(1, at(5_000));
    let delay = of(&found, Quantity::Delay);
    assert_eq!(delay.points.last(), Some(&(at(5_000), 40_000_000)));
    let elevation = of(&found, Quantity::Elevation);
    assert_eq!(elevation.points, [(at(0), 30_000), (at(5_000), 25_000)]);
    // After the last step nothing changes.
    let found = scenario.timelines_in_trial(1, at(20_000));
    let last = of(&found, Quantity::Delay).points.iter().rev().take(2);
    let last: Vec<_> = last.copied().collect();
    assert_eq!(last, [(at(20_000), 100_000_000), (at(15_000), 100_000_000)]);
}

#[test]
fn an_even_course_jumps_where_its_steps_begin_again() {
    let scenario = parse(&format!("{SLOPE}, period = \"20 s\" }}")).unwrap();
    let found = scenario.timelines_in_trial(1, at(23_000));
    assert_eq!(
        of(&found, Quantity::Elevation).points,
        [
            (at(0), 30_000),
            (at(15_000), 15_000),
            (at(20_000), 15_000),
            (at(20_000), 30_000),
            (at(23_000), 27_000)
        ]
    );
    let delay = &of(&found, Quantity::Delay).points;
    let jump: Vec<_> = delay
        .iter()
        .filter(|(time, _)| *time == at(20_000))
        .collect();
    assert_eq!(
        jump,
        [&(at(20_000), 100_000_000), &(at(20_000), 10_000_000)]
    );
    assert_eq!(delay.last(), Some(&(at(23_000), 28_000_000)));
    // At the end of the period itself it has not begun again.
    let whole = scenario.timelines();
    let end = of(&whole, Quantity::Delay).points.last();
    assert_eq!(end, Some(&(at(20_000), 100_000_000)));
}

#[test]
fn an_even_course_has_no_more_points_than_others() {
    let most = u64::try_from(MOST_POINTS).unwrap();
    for (steps, between) in [(most - 1, Between::Even), (most, Between::Mean)] {
        let each = |step: u64| {
            (
                format!("[\"{step} s\", \"4 ms\"]"),
                "[\"a\", \"30\", \"1\"]",
            )
        };
        let (steps, satellites): (Vec<_>, Vec<_>) = (0..steps).map(each).unzip();
        let (steps, satellites) = (steps.join(", "), satellites.join(", "));
        let scenario = parse(&format!(
            "delay = {{ steps = [{steps}], satellites = [{satellites}], between = \"linear\" }}"
        ));
        let found = scenario.unwrap().timelines_in_trial(1, at(1_000 * most));
        let elevation = of(&found, Quantity::Elevation);
        assert_eq!(
            (elevation.points.len(), elevation.between),
            (MOST_POINTS, between)
        );
    }
}

#[test]
fn satellites_travel_along_in_json() {
    let scenario = parse(ORBIT).unwrap();
    let text = serde_json::to_string(&scenario).unwrap();
    let read: Scenario = serde_json::from_str(&text).unwrap();
    assert_eq!(read, scenario);
    assert_eq!(
        read.interruptions(1, at(60_000)),
        scenario.interruptions(1, at(60_000))
    );
    let row = ServingSatellite {
        satellite: "1-1".to_owned(),
        elevation: 60_000,
        in_view: 3,
    };
    assert_eq!(
        serde_json::to_string(&row).unwrap(),
        "[\"1-1\",\"60\",\"3\"]"
    );
}

#[test]
fn satellites_that_are_none_are_refused() {
    let with = |satellites: &str| {
        let steps = "[[\"0 s\", \"4 ms\"], [\"10 s\", \"5 ms\"]]";
        parse(&format!(
            "delay = {{ steps = {steps}, satellites = {satellites} }}"
        ))
        .unwrap_err()
    };
    for (satellites, says) in [
        ("[[\"a\", \"1\", \"2\"]]", "1 satellites for 2 steps"),
        ("\"a\"", "write them like [[\"12-7\""),
        (
            "[[\"a\", \"1\"], [\"b\", \"1\"]]",
            "write them like [[\"12-7\"",
        ),
        (
            "[[\"a\", \"high\", \"2\"], [\"b\", \"1\", \"2\"]]",
            "high: an elevation is in degrees",
        ),
        (
            "[[\"a\", \"1\", \"few\"], [\"b\", \"1\", \"2\"]]",
            "few: the satellites in view",
        ),
    ] {
        let error = with(satellites).to_string();
        assert!(
            error.contains("satellite.forward.delay.satellites"),
            "{error}"
        );
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn what_is_drawn_is_that_of_the_seed() {
    let text = "delay = \"4 ms\"\n\
                rate = { mean = \"48 Mbit/s\", spread = \"25 %\", every = \"15 s\", \
                phase = \"random\" }\nhandovers = { every = \"15 s\", phase = \"random\", gap = \
                [\"59 ms\", \"135 ms\"], in_flight = \"lost\" }";
    let scenario = parse(text).unwrap();
    let [one, again, other] = [1, 1, 2].map(|seed| {
        let rate = scenario.timelines_in_trial(seed, at(60_000));
        (
            of(&rate, Quantity::Rate).points.clone(),
            scenario.interruptions(seed, at(60_000)),
        )
    });
    assert_eq!(one, again);
    assert_ne!(one.0, other.0);
    assert_ne!(one.1, other.1);
    // The rate is 0 exactly in the gaps.
    let zero: Vec<Time> = one.0.iter().filter(|it| it.1 == 0).map(|it| it.0).collect();
    assert_eq!(zero, one.1.iter().map(|it| it.from).collect::<Vec<_>>());
    assert_eq!(one.1.len(), 4);
}

#[test]
fn a_course_with_too_many_changes_has_means() {
    let text = "rate = \"1 Mbit/s\"\n\
                delay = { base = \"4 ms\", jitter = \"4 ms\", every = \"20 ms\" }";
    let scenario = parse(text).unwrap();
    let exact = scenario.timelines_in_trial(1, at(10_000));
    let exact = of(&exact, Quantity::Delay);
    assert!(exact.between != Between::Mean && exact.points.len() <= 500);
    let longer = scenario.timelines_in_trial(1, at(40_000));
    let longer = of(&longer, Quantity::Delay);
    assert_eq!(longer.between, Between::Mean);
    assert_eq!(longer.points.len(), MOST_POINTS);
    // A part of 40 ms has the mean of two intervals.
    assert_eq!(longer.points[3].0, at(120));
    let two = exact.points[6].1 + exact.points[7].1;
    assert_eq!(longer.points[3].1, two / 2);
}
