//! Scenario files, and changes to them.

use bentpipe_link::{Delay, Direction, Loss, Packets, Queue, QueueSize, RandomDrop, Scenario};
use bentpipe_units::{Ratio, Size, Span};

use crate::{config, file};

fn set(changes: &[(&str, &str)]) -> Scenario {
    let text = file("rate = \"20 Mbit/s\"\ndelay = \"300 ms\"");
    let pairs: Vec<(String, String)> = changes
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Scenario::parse(&text, "scenarios/sat.toml", &pairs).unwrap()
}

#[test]
fn what_is_left_out_is_transparent() {
    let scenario = set(&[]);
    assert_eq!(scenario.name, "sat");
    assert_eq!(scenario.access, None);
    assert_eq!(scenario.satellite.return_.rate, None);
    assert_eq!(scenario.return_rate(), None);
    assert_eq!(scenario.satellite.forward.queue, Queue::default());
    assert_eq!(scenario.satellite.forward.queue.size.to_string(), "1 BDP");
    assert_eq!(scenario.satellite.forward.loss, Loss::None);
}

#[test]
fn every_form_of_a_queue() {
    let queue = |text: &str| config(&format!("queue = {text}")).queue;
    let size = |size| Queue {
        size,
        random_drop: None,
        aqm: None,
    };
    assert_eq!(
        queue("\"25 packets\""),
        size(QueueSize::Packets(Packets(25)))
    );
    assert_eq!(
        queue("\"36 MB\""),
        size(QueueSize::Bytes(Size::from_bytes(36_000_000)))
    );
    assert_eq!(
        queue("\"200ms\""),
        size(QueueSize::Time(Span::from_millis(200)))
    );
    assert_eq!(queue("\"0.25 BDP\""), size(QueueSize::Bdp(250_000_000)));
    assert_eq!(
        queue("{ size = \"36 MB\", drop_above = \"0.5BDP\", drop_ratio = \"25 %\" }"),
        Queue {
            size: QueueSize::Bytes(Size::from_bytes(36_000_000)),
            random_drop: Some(RandomDrop {
                above: QueueSize::Bdp(500_000_000),
                ratio: Ratio::from_ppb(250_000_000),
            }),
            aqm: None,
        }
    );
}

#[test]
fn the_json_form_has_the_same_shape() {
    let scenario = set(&[
        ("ground.return.delay", "40ms"),
        ("notes", "n"),
        ("forward.loss", "1%"),
    ]);
    let expected = r#"{"name":"sat","title":"t","source":"s","notes":"n","timeout":"60 s","satellite":{"forward":{"rate":"20 Mbit/s","delay":"300 ms","queue":"1 BDP","loss":"1 %"},"return":{"delay":"1 ms","queue":"1 BDP","loss":"none"}},"ground":{"forward":{"delay":"0 ms","queue":"1 BDP","loss":"none"},"return":{"delay":"40 ms","queue":"1 BDP","loss":"none"}}}"#;
    assert_eq!(serde_json::to_string(&scenario).unwrap(), expected);
    assert_eq!(
        serde_json::from_str::<Scenario>(expected).unwrap(),
        scenario
    );
}

#[test]
fn every_model_comes_back_from_json() {
    for (key, value) in [
        (
            "forward.queue",
            "{ size = \"9 packets\", drop_above = \"4 packets\", drop_ratio = \"5 %\" }",
        ),
        ("forward.queue", "0.000000001 BDP"),
        (
            "forward.queue",
            "{ size = \"1 BDP\", aqm = \"pi2\", target = \"50 ms\", ecn = \"off\" }",
        ),
        (
            "forward.queue",
            "{ size = \"1 BDP\", aqm = \"dualpi2\", coupling = 3, range = \"0 ms\" }",
        ),
        (
            "forward.loss",
            "{ model = \"periodic\", every = \"9 packets\", burst = \"1 packet\" }",
        ),
        (
            "forward.loss",
            "{ model = \"gilbert-elliott\", p_bad_given_good = \"1 %\", p_bad_given_bad = \"2 %\", \
             loss_in_good = \"3 %\", loss_in_bad = \"4 %\" }",
        ),
        (
            "forward.delay",
            "{ trace = \"t.csv\", steps = [[\"0 s\", \"1 ms\"], [\"1 s\", \"2 ms\"]] }",
        ),
        (
            "forward.rate",
            "{ steps = [[\"0 s\", \"50 Mbit/s\"], [\"5 s\", \"10 Mbit/s\"]], period = \"9 s\" }",
        ),
        (
            "forward.rate",
            "{ trace = \"t.mahi\", steps = [[\"0 s\", \"12 Mbit/s\"]], period = \"9 s\" }",
        ),
        (
            "forward.rate",
            "{ mean = \"5 Mbit/s\", spread = \"20 %\", every = \"1 s\" }",
        ),
        (
            "forward.rate",
            "{ full = \"5 Mbit/s\", floor = \"1 Mbit/s\", request_every = \"1 s\", granted_after = \
             \"550 ms\", hold = \"2 s\" }",
        ),
        (
            "forward.loss",
            "{ model = \"handover\", every = \"15 s\", first = \"2 s\", lasts = \"1 s\", loss = \
             \"7 %\" }",
        ),
        ("forward.delay", "{ base = \"9 ms\", jitter = \"1 ms\" }"),
        (
            "forward.delay",
            "{ base = \"9 ms\", jitter = \"1 ms\", every = \"15 s\", first = \"2 s\" }",
        ),
        ("forward.frame", "26.5 ms"),
        ("forward.mtu", "1400 B"),
        ("forward.udp", "{ drop = \"0 %\" }"),
        ("forward.udp", "{ drop = \"1 %\", priority = \"low\" }"),
        (
            "forward.udp",
            "{ rate = \"9 Mbit/s\", burst = \"64 kB\", priority = \"high\" }",
        ),
        ("forward.order", "[\"delay\", \"queue\"]"),
        (
            "forward.policer",
            "{ rate = \"9 Mbit/s\", burst = \"64 kB\" }",
        ),
        (
            "forward.shaper",
            "{ rate = \"9 Mbit/s\", burst = \"64 kB\", queue = \"0.5 BDP\" }",
        ),
        ("forward.outages", "[{ at = \"1 s\", for = \"2 s\" }]"),
        (
            "forward.outages",
            "{ times = [{ at = \"1 s\", for = \"2 s\" }], queue = \"flush\" }",
        ),
        (
            "forward.outages",
            "{ every = \"9 s\", first = \"1 s\", for = \"2 s\", queue = \"flush\" }",
        ),
    ] {
        let scenario = set(&[(key, value)]);
        assert_ne!(scenario, set(&[]));
        let json = serde_json::to_string(&scenario).unwrap();
        assert_eq!(
            serde_json::from_str::<Scenario>(&json).unwrap(),
            scenario,
            "{json}"
        );
    }
}

#[test]
fn a_change_may_be_short_or_in_full() {
    let short = set(&[("forward.queue", "0.25BDP")]);
    assert_eq!(
        short.satellite.forward.queue.size,
        QueueSize::Bdp(250_000_000)
    );
    assert_eq!(short, set(&[("satellite.forward.queue", "0.25 BDP")]));
    assert_eq!(
        set(&[("return.delay", "5 ms")]).rtt(),
        Span::from_millis(305)
    );
    assert_eq!(set(&[("timeout", "1 min")]).timeout, Span::from_secs(60));
    assert_eq!(set(&[("forward.rate", "unlimited")]).forward_rate(), None);
    assert_eq!(
        set(&[("forward.loss", "\"1 %\"")]),
        set(&[("forward.loss", "1%")])
    );
}

#[test]
fn a_change_may_add_a_segment() {
    let scenario = set(&[
        ("ground.forward.delay", "40 ms"),
        ("ground.forward.rate", "5 Mbit/s"),
    ]);
    assert_eq!(
        scenario.min_one_way(Direction::Forward),
        Span::from_millis(340)
    );
    assert_eq!(
        scenario.min_one_way(Direction::Return),
        Span::from_millis(1)
    );
    assert_eq!(scenario.forward_rate().unwrap().bps(), 5_000_000);
}

#[test]
fn the_last_change_of_a_key_counts() {
    let scenario = set(&[("forward.delay", "1 ms"), ("forward.delay", "2 ms")]);
    assert_eq!(
        scenario.satellite.forward.delay,
        Delay::Fixed(Span::from_millis(2))
    );
}

#[test]
fn a_bdp_is_of_the_links_rate_and_the_paths_round_trip() {
    let scenario = set(&[
        ("ground.forward.delay", "40 ms"),
        ("ground.forward.rate", "8 Mbit/s"),
    ]);
    // 341 ms at 20 and at 8 Mbit/s.
    assert_eq!(scenario.bdp(&scenario.satellite.forward).bytes(), 852_500);
    assert_eq!(
        scenario
            .bdp(&scenario.ground.as_ref().unwrap().forward)
            .bytes(),
        341_000
    );
}

#[test]
fn a_part_of_a_rate_may_be_changed() {
    let random = "{ mean = \"5 Mbit/s\", spread = \"20 %\", every = \"1 s\" }";
    let scenario = set(&[("forward.rate", random), ("forward.rate.spread", "40 %")]);
    let rate = scenario.satellite.forward.rate.unwrap();
    assert_eq!(rate.lowest().bps(), 3_000_000);
    assert_eq!(rate.nominal().bps(), 7_000_000);
}

#[test]
fn one_figure_stands_for_a_rate_that_changes() {
    let figures = |rate: &str| {
        let scenario = set(&[("forward.rate", rate), ("forward.queue", "1 BDP")]);
        let rate = scenario.satellite.forward.rate.clone().unwrap();
        let queue = scenario.queue(Direction::Forward).unwrap().bytes();
        assert_eq!(scenario.forward_rate(), Some(rate.nominal()));
        assert_eq!(
            scenario.lowest_rate(Direction::Forward),
            Some(rate.lowest())
        );
        assert!(!scenario.is_steady(Direction::Forward) && scenario.is_steady(Direction::Return));
        (
            rate.nominal().bps(),
            rate.lowest().bps(),
            queue,
            rate.to_string(),
        )
    };
    // The BDP is of 301 ms.
    assert_eq!(
        figures("{ steps = [[\"0 s\", \"8 Mbit/s\"], [\"5 s\", \"2 Mbit/s\"]] }"),
        (
            8_000_000,
            2_000_000,
            301_000,
            "8 Mbit/s, from 5 s 2 Mbit/s".to_owned()
        )
    );
    assert_eq!(
        figures("{ mean = \"10 Mbit/s\", spread = \"50 %\", every = \"1 s\" }"),
        (
            15_000_000,
            5_000_000,
            564_375,
            "5 Mbit/s to 15 Mbit/s, drawn every 1 s".to_owned()
        )
    );
    assert_eq!(
        figures(
            "{ full = \"8 Mbit/s\", floor = \"1 Mbit/s\", request_every = \"1 s\", granted_after = \
             \"1 s\", hold = \"1 s\" }"
        ),
        (
            8_000_000,
            1_000_000,
            301_000,
            "1 Mbit/s, on demand up to 8 Mbit/s".to_owned()
        )
    );
    assert_eq!(
        figures(
            "{ trace = \"t\", steps = [[\"0 s\", \"12 Mbit/s\"], [\"1 ms\", \"0 bit/s\"]], period \
             = \"3 ms\" }"
        ),
        (
            4_000_000,
            0,
            150_500,
            "4 Mbit/s on average as in the trace t".to_owned()
        )
    );
}
