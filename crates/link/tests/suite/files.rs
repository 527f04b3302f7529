//! The scenario files of the project.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bentpipe_link::{Direction, Ideal, Loss, Scenario};
use bentpipe_units::{Span, Time};

fn all() -> BTreeMap<String, Scenario> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"));
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let scenarios = files.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    scenarios
        .map(|path| Scenario::load(&path, &[]).unwrap_or_else(|error| panic!("{error}")))
        .map(|scenario| (scenario.name.clone(), scenario))
        .collect()
}

#[test]
fn every_file_loads_says_where_it_is_from_and_comes_back_from_json() {
    let all = all();
    assert_eq!(all.len(), 55);
    for (name, scenario) in all {
        assert!(
            scenario.source.len() > 10 && !scenario.title.is_empty(),
            "{name}"
        );
        assert!(
            scenario.forward_rate().is_some() && scenario.return_rate().is_some(),
            "{name}"
        );
        let json = serde_json::to_string(&scenario).unwrap();
        assert_eq!(
            serde_json::from_str::<Scenario>(&json).unwrap(),
            scenario,
            "{name}"
        );
    }
}

#[test]
fn rates_delays_and_losses_are_the_published_ones() {
    // name, kbit/s forward and return, RTT in ms, loss ratio both ways in 1/10000
    let published = [
        ("4sat-congested-uplink", 50_000, 500, 650, 0),
        ("4sat-large", 250_000, 3_000, 650, 0),
        ("4sat-lossy", 250_000, 3_000, 650, 100),
        ("4sat-medium", 50_000, 10_000, 650, 0),
        ("4sat-small", 10_000, 2_000, 650, 0),
        ("astra", 20_000, 2_000, 600, 10),
        ("astra-connect", 20_000, 2_000, 600, 0),
        ("bigblu", 16_000, 3_000, 600, 0),
        ("cnes-250-3-loss1", 250_000, 3_000, 600, 0), // beside it, see below
        ("cnes-250-3-loss1-satellite", 250_000, 3_000, 600, 100),
        ("cnes-50-10", 50_000, 10_000, 600, 0),
        ("crosstraffic", 10_000, 10_000, 30, 0),
        ("custura-2020", 8_500, 1_500, 600, 100),
        ("custura-2020-real", 8_500, 1_500, 630, 0),
        ("deutschmann-2019-15-3", 15_000, 3_000, 650, 0),
        ("deutschmann-2019-30-2", 30_000, 2_000, 650, 0),
        ("dvb-s2-clear", 150_331, 20_000, 500, 0),
        ("dvb-s2-rain", 102_907, 20_000, 500, 0),
        ("eutelsat", 50_000, 5_000, 600, 10),
        ("fairhurst-2019", 8_500, 1_400, 639, 0),
        ("geo-leo", 19_600, 5_200, 580, 0), // the first of two paths, see below
        ("geo-tum", 19_600, 5_200, 580, 0),
        ("geo-tum-opensand", 19_143, 9_700, 580, 0),
        ("goodput", 10_000, 10_000, 30, 0),
        ("inflight", 1_890, 1_890, 760, 600),
        ("konnect-zen", 50_000, 5_000, 600, 0),
        ("kuhn-2021-1", 1_000, 100, 500, 0),
        ("kuhn-2021-10", 10_000, 2_000, 500, 0),
        ("kuhn-2021-200", 200_000, 100_000, 500, 0),
        ("kuhn-2021-50", 50_000, 25_000, 500, 0),
        ("leo-tum", 19_600, 5_200, 112, 0),
        ("leo-walker", 100_000, 20_000, 7, 0),
        ("longrtt", 10_000, 10_000, 1500, 0),
        ("oneweb-like", 100_000, 20_000, 16, 0),
        ("rcs2-shared", 30_904, 2_294, 600, 0),
        ("rula-2018-half", 3_780, 3_780, 380, 300),
        ("sat", 20_000, 2_000, 600, 0),
        ("sat-2021", 20_000, 2_000, 600, 0),
        ("satloss", 20_000, 2_000, 600, 100),
        ("satloss-2021", 20_000, 2_000, 600, 100),
        ("skydsl", 50_000, 6_000, 600, 0),
        ("terrestrial-leo", 20_000, 5_000, 100, 0),
        ("thomas-2019", 25_000, 5_000, 750, 0),
        ("viasat", 150_000, 150_000, 600, 0),
        ("viasat-dama", 150_000, 11_753, 600, 0),
        ("wang-2018", 10_000, 10_000, 600, 0),
        ("yang-2018", 10_000, 10_000, 500, 0),
        ("zhang-2018", 1_000, 1_000, 600, 119),
    ];
    let changing = [
        "4sat-variable",
        "leo-terrestrial",
        "public-satcom-wifi",
        "public-satcom-wired",
        "sat-allocation",
        "starlink",
        "viasat-varying",
    ];
    let steady = all().into_values();
    let steady = steady.filter(|scenario| !changing.contains(&scenario.name.as_str()));
    let found = steady.map(|scenario| {
        let rate = |direction| scenario.rate(direction).unwrap().bps() / 1000;
        let losses =
            [&scenario.satellite.forward, &scenario.satellite.return_].map(|at| match &at.loss {
                Loss::None => 0,
                Loss::Uniform(ratio) => ratio.ppb() / 100_000,
                other => panic!("{other:?}"),
            });
        assert_eq!(losses[0], losses[1]);
        let rtt = scenario.rtt().as_nanos() / 1_000_000;
        (
            scenario.name.clone(),
            rate(Direction::Forward),
            rate(Direction::Return),
            rtt,
            losses[0],
        )
    });
    let published = published.map(|(name, f, r, rtt, loss)| (name.to_owned(), f, r, rtt, loss));
    assert_eq!(found.collect::<Vec<_>>(), published);
}

#[test]
fn paths_are_those_of_the_scenarios_that_they_are_taken_from() {
    let all = all();
    let both = all["geo-leo"].each_path();
    for (path, of) in both.iter().zip(["geo-tum", "leo-tum"]) {
        assert_eq!(path.satellite, all[of].satellite, "{of}");
        assert_eq!(path.ground, all[of].ground, "{of}");
    }
    let both = &all["leo-terrestrial"];
    assert_eq!(both.path_names(), ["leo", "terrestrial"]);
    let sum = Direction::BOTH.map(|it| both.rate_of_all_paths(it).unwrap().bps() / 1000);
    assert_eq!(sum, [39_600, 10_200]);
    let [leo, terrestrial] = &both.each_path()[..] else {
        panic!("two paths");
    };
    assert_eq!(leo.rtt(), all["leo-tum"].rtt());
    assert_eq!(terrestrial.rtt(), Span::from_millis(100));
}

#[test]
fn losses_beside_the_satellite_and_in_bursts_are_the_published_ones() {
    let all = all();
    let beside = all["cnes-250-3-loss1"].access.as_ref().unwrap();
    let losses = [&beside.forward, &beside.return_].map(|at| at.loss.to_string());
    assert_eq!(losses, ["1 %", "1 %"]);
    for (name, from_good, from_bad) in [
        ("public-satcom-wired", "1.7 %", "6.5 %"),
        ("public-satcom-wifi", "1.8 %", "35.5 %"),
    ] {
        let loss = all[name].satellite.forward.loss.to_string();
        let model = format!("bursts (Gilbert-Elliott, P(b|g) {from_good}, P(b|b) {from_bad})");
        assert_eq!(loss, model);
        assert_eq!(all[name].satellite.return_.loss, Loss::None);
    }
}

#[test]
fn what_changes_is_the_published() {
    let all = all();
    let rates = |name: &str| {
        let of = |direction| {
            let lowest = all[name].lowest_rate(direction).unwrap().bps() / 1000;
            (lowest, all[name].rate(direction).unwrap().bps() / 1000)
        };
        Direction::BOTH.map(of)
    };
    assert_eq!(rates("4sat-variable"), [(10_000, 50_000), (10_000, 10_000)]);
    assert_eq!(rates("sat-allocation"), [(20_000, 20_000), (128, 2_000)]);
    assert_eq!(rates("starlink"), [(0, 84_549), (0, 25_882)]);
    assert_eq!(
        rates("viasat-varying"),
        [(120_000, 180_000), (150_000, 150_000)]
    );
    let rtt = |name: &str| all[name].rtt().as_nanos() / 1_000_000;
    assert_eq!(
        [
            "4sat-variable",
            "sat-allocation",
            "starlink",
            "viasat-varying"
        ]
        .map(rtt),
        [650, 600, 16, 600]
    );
    // The server of the source sends at no more than 200 Mbit/s, and may queue for 1.5 s.
    let ground = all["viasat-varying"].ground.as_ref().unwrap();
    let rate = ground.forward.rate.as_ref().unwrap();
    assert_eq!(rate.to_string(), "200 Mbit/s");
    assert_eq!(ground.forward.queue.size.to_string(), "1.5 s");
}

#[test]
fn the_ideal_sender_of_sat_takes_5_6_seconds() {
    let sat = &all()["sat"];
    let limit = |direction, round_trips| {
        Ideal::new(sat, direction, 1).limit(10_485_760, round_trips, Time::ZERO)
    };
    // 2 * 600 ms, and 10 MiB * 8 * 1.05 / 20 Mbit/s = 4.404 019 2 s.
    assert_eq!(
        limit(Direction::Forward, 2),
        Span::from_nanos(5_604_019_200)
    );
    // The other way at 2 Mbit/s, 600 ms + 44.040 192 s.
    assert_eq!(
        limit(Direction::Return, 1),
        Span::from_nanos(44_640_192_000)
    );
    assert_eq!(sat.min_one_way(Direction::Forward), Span::from_millis(300));
    assert_eq!(sat.bdp(&sat.satellite.forward).bytes(), 1_500_000);
    assert_eq!(sat.bdp(&sat.satellite.return_).bytes(), 150_000);
}
