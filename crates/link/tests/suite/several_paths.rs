//! Scenarios with more than one path.

use bentpipe_link::{Direction, Fate, Ideal, PATH_LIMIT, PacketMeta, Path, Scenario, path_seed};
use bentpipe_units::{Span, Time};
use proptest::prelude::*;

use crate::file;

const FIRST: &str = "rate = \"8 Mbit/s\"\ndelay = \"29 ms\"";
const OTHER: &str = "[paths.b.satellite.forward]\nrate = \"16 Mbit/s\"\ndelay = \"4 ms\"\n\
                     [paths.b.satellite.return]\ndelay = \"2 ms\"\n";

fn two(others: &str) -> Result<Scenario, String> {
    let text = format!("path = \"a\"\n{}{others}", file(FIRST));
    Scenario::parse(&text, "two.toml", &[]).map_err(|it| it.to_string())
}

#[track_caller]
fn refused(text: &str, message: &str) {
    let error = Scenario::parse(text, "two.toml", &[]).unwrap_err();
    assert_eq!(error.to_string(), format!("two.toml: {message}"));
}

#[test]
fn each_path_is_a_scenario_of_its_own() {
    let scenario = two(OTHER).unwrap();
    assert_eq!(scenario.path_names(), ["a", "b"]);
    let each = scenario.each_path();
    let rtts: Vec<_> = each.iter().map(|it| it.rtt().to_string()).collect();
    assert_eq!(rtts, ["30 ms", "6 ms"]);
    assert_eq!(scenario.rtt(), each[0].rtt(), "the first path's");
    let all = scenario.rate_of_all_paths(Direction::Forward).unwrap();
    assert_eq!(all.bps(), 24_000_000);
    assert_eq!(scenario.rate_of_all_paths(Direction::Return), None);
    let json = serde_json::to_string(&scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
}

#[test]
fn a_single_path_is_as_it_was() {
    let one = Scenario::parse(&file(FIRST), "one.toml", &[]).unwrap();
    assert_eq!(one.each_path(), std::slice::from_ref(&one));
    assert_eq!(one.path_names(), ["path"]);
    let json = serde_json::to_value(&one).unwrap();
    assert!(json.get("path").is_none() && json.get("paths").is_none());
    assert_eq!(path_seed(7, 0), 7);
}

#[test]
fn settings_reach_every_path() {
    let sets = [
        ("paths.b.forward.rate", "1 Mbit/s"),
        ("paths.b.ground.return.delay", "9 ms"),
        ("forward.rate", "2 Mbit/s"),
    ];
    let sets = sets.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let text = format!("path = \"a\"\n{}{OTHER}", file(FIRST));
    let each = Scenario::parse(&text, "two.toml", &sets)
        .unwrap()
        .each_path();
    let rates = each.iter().map(|it| it.forward_rate().unwrap().bps());
    assert_eq!(rates.collect::<Vec<_>>(), [2_000_000, 1_000_000]);
    assert_eq!(each[1].rtt(), Span::from_millis(15));
    let wrong = [("paths.b.forward.rat".to_owned(), "1 Mbit/s".to_owned())];
    let error = Scenario::parse(&text, "two.toml", &wrong)
        .unwrap_err()
        .to_string();
    let file = "two.toml with --set paths.b.forward.rat=1 Mbit/s";
    let key = "paths.b.satellite.forward.rat";
    let hint = "1 Mbit/s: unknown key; did you mean \"rate\"?";
    assert!(
        error.starts_with(&format!("{file}: {key}: {hint}")),
        "{error}"
    );
}

#[test]
fn a_setting_of_a_path_that_there_is_none_of_names_those_that_there_are() {
    let text = format!("path = \"a\"\n{}{OTHER}", file(FIRST));
    let set = |key: &str, value: &str| {
        let sets = [(key.to_owned(), value.to_owned())];
        Scenario::parse(&text, "two.toml", &sets).map_err(|it| it.to_string())
    };
    let error = set("paths.c.forward.rate", "1 Mbit/s").unwrap_err();
    assert!(
        error.contains("no path c; beside the first there are b"),
        "{error}"
    );
    let error = set("paths.a.forward.rate", "1 Mbit/s").unwrap_err();
    assert!(error.contains("a is the first path"), "{error}");
    let both_ways = "{satellite={forward={delay=\"1 ms\"}, return={delay=\"1 ms\"}}}";
    let three = set("paths.c", both_ways).unwrap();
    assert_eq!(three.path_names(), ["a", "b", "c"]);
}

#[test]
fn names_are_needed_and_tell_paths_apart() {
    refused(
        &format!("{}{OTHER}", file(FIRST)),
        "path: missing; where there are several paths, the first one, that of [satellite], needs \
         a name, too: write path = \"geo\"",
    );
    refused(
        &format!("path = \"a\"\n{}", file(FIRST)),
        "path: a: there is one path, which needs no name; leave it out, or describe another in \
         [paths.NAME.satellite.forward]",
    );
    refused(
        &format!("path = \"b\"\n{}{OTHER}", file(FIRST)),
        "path: b: another path has this name",
    );
    refused(
        &format!("path = \"a b\"\n{}{OTHER}", file(FIRST)),
        "path: a b: a path's name has 1 to 16 letters, digits and -",
    );
    let five = ["b", "c", "d", "e"].map(|name| OTHER.replace("paths.b", &format!("paths.{name}")));
    refused(
        &format!("path = \"a\"\n{}{}", file(FIRST), five.concat()),
        "paths: a scenario has at most 4 paths",
    );
    assert_eq!(five.len() + 1, PATH_LIMIT + 1);
    let four = two(&five[..3].concat()).unwrap();
    assert_eq!(four.path_names(), ["a", "b", "c", "d"]);
}

#[test]
fn what_is_wrong_with_a_path_is_said_with_its_name() {
    let without = "[paths.b.satellite.forward]\ndelay = \"4 ms\"\n";
    let error = two(without).unwrap_err();
    let start = "two.toml: paths.b.satellite.return.delay: a path needs a delay above 0";
    assert!(error.starts_with(start), "{error}");
    let error = two("[paths.b.ground.forward]\ndelay = \"4 ms\"\n").unwrap_err();
    assert!(
        error.starts_with("two.toml: paths.b.satellite: missing"),
        "{error}"
    );
    let error = two("[paths]\nb = 3\n").unwrap_err();
    assert_eq!(error, "two.toml: paths.b: 3: a table is needed here");
    let error = two("[paths]\n").unwrap_err();
    assert!(error.contains("no path is in it"), "{error}");
    let slow = OTHER.replace("2 ms", "31 s");
    let error = two(&slow).unwrap_err();
    assert!(
        error.starts_with("two.toml: timeout: 60 s: nothing can") && error.ends_with("(b)"),
        "{error}"
    );
}

/// The request is at the server 1 ms after the handshake's round trip of 30 ms. From 31 ms on
/// both paths send, of which the second's bytes arrive from 35 ms on at 2 bytes/us, the first's
/// from 60 ms on at 1 byte/us.
#[test]
fn the_ideal_sender_fills_all_paths() {
    let scenario = two(OTHER).unwrap();
    let ideal = Ideal::new(&scenario, Direction::Forward, 1);
    let limit = |ip_bytes: u64| ideal.limit(ip_bytes * 100 / 105, 2, Time::ZERO);
    assert_eq!(limit(42_000), Span::from_millis(35 + 21));
    // 50,000 by 60 ms; then 3 bytes/us.
    assert_eq!(
        limit(113_925),
        Span::from_nanos(60_000_000 + 63_925_000 / 3 + 1)
    );
    let second = ideal.bit_nanos(
        Time::from_nanos(1_000_000_000),
        Time::from_nanos(2_000_000_000),
    );
    assert_eq!(second, Some(24_000_000 * 1_000_000_000));
    let alone = Ideal::new(&scenario.each_path()[0], Direction::Forward, 1);
    assert!(alone.limit(1_000_000, 2, Time::ZERO) > limit(1_000_000) * 2);
}

/// The request is sent 30 ms after the beginning, with the file behind it. The second path's bytes
/// arrive from 32 ms on at 1 byte/us; the answer comes back over the faster path, in 4 ms.
#[test]
fn the_answer_to_an_upload_takes_the_fastest_path() {
    let upload = OTHER.replace("delay = \"2 ms\"", "rate = \"8 Mbit/s\"\ndelay = \"2 ms\"");
    let slow = "[satellite.return]\nrate = \"8 kbit/s\"";
    let text = format!("path = \"a\"\n{}{upload}", file(FIRST));
    let text = text.replace("[satellite.return]", slow);
    let scenario = Scenario::parse(&text, "two.toml", &[]).unwrap();
    let ideal = Ideal::new(&scenario, Direction::Return, 1);
    let limit = ideal.limit(10_000 * 100 / 105, 2, Time::ZERO);
    let until = Span::from_millis(32 + 10 + 4);
    assert!(
        limit <= until && until <= limit + Span::from_millis(1),
        "{limit}"
    );
}

/// Which of many packets are lost, sent at once.
fn lost(scenario: &Scenario, seed: u64) -> Vec<bool> {
    let mut path = Path::new(scenario, Direction::Forward, seed);
    let mut lost = Vec::new();
    for number in 0..200 {
        let packet = PacketMeta {
            id: number,
            ip_bytes: 100,
            ecn: 0,
            flow: 0,
            is_udp: true,
        };
        path.enqueue(Time::from_nanos(number * 1_000_000), packet);
        path.advance(Time::from_nanos(number * 1_000_000 + 1));
        while let Some(outcome) = path.outcome() {
            lost.push(outcome.fate == Fate::Loss);
        }
    }
    lost
}

#[test]
fn equal_paths_draw_different_losses() {
    let loss = "loss = \"30 %\"\n";
    let keys = format!("{FIRST}\n{loss}");
    let other = format!(
        "[paths.b.satellite.forward]\n{keys}[paths.b.satellite.return]\ndelay = \"1 ms\"\n"
    );
    let text = format!("path = \"a\"\n{}{other}", file(&keys));
    let each = Scenario::parse(&text, "two.toml", &[]).unwrap().each_path();
    assert_eq!(each[0].satellite, each[1].satellite);
    let [first, second] = [0, 1].map(|number| lost(&each[number], path_seed(5, number)));
    assert_eq!(first.len(), 200);
    assert_ne!(first, second);
    assert_eq!(second, lost(&each[1], path_seed(5, 1)), "again");
}

/// At 8 and 16 Mbit/s a packet of 1000 bytes leaves after 1 ms and 0.5 ms. Of five and eight sent
/// at once, all but the first wait; at 2 ms two and four are gone, and the next are leaving.
#[test]
fn each_path_has_a_queue_and_the_fullest_counts() {
    let each = two(OTHER).unwrap().each_path();
    let mut paths = [0, 1].map(|number| Path::new(&each[number], Direction::Forward, 1));
    for (path, count) in paths.iter_mut().zip([5, 8]) {
        for id in 0..count {
            let packet = PacketMeta {
                id,
                ip_bytes: 1000,
                ecn: 0,
                flow: 0,
                is_udp: true,
            };
            path.enqueue(Time::ZERO, packet);
        }
        path.advance(Time::from_nanos(2_000_000));
    }
    let after = Time::from_nanos(2_000_000);
    let waiting = paths.each_ref().map(|path| path.queue_bytes(after));
    let most = paths.each_ref().map(|path| path.counters().max_queue_bytes);
    assert_eq!((waiting, most), ([2000, 3000], [4000, 7000]));
    let [first, second] = paths.map(|path| path.counters());
    assert_eq!(first.and(second).max_queue_bytes, 7000);
}

proptest! {
    #[test]
    fn no_name_or_table_of_paths_makes_it_panic(name in "\\PC{0,20}", value in "\\PC{0,40}") {
        let text = format!("path = {name:?}\n{}[paths]\n{name:?} = {value}\n", file(FIRST));
        drop(Scenario::parse(&text, "two.toml", &[]));
    }

    #[test]
    fn the_ideal_sender_of_two_paths_is_between_either_and_their_sum(
        bytes in 0_u64..50_000_000,
        rates in prop::array::uniform2(1_u64..100),
        delays in prop::array::uniform2(1_u64..300),
    ) {
        let keys = |number: usize| {
            format!("rate = \"{} Mbit/s\"\ndelay = \"{} ms\"\n", rates[number], delays[number])
        };
        let other = format!(
            "[paths.b.satellite.forward]\n{}[paths.b.satellite.return]\ndelay = \"1 ms\"\n",
            keys(1)
        );
        let text = format!("path = \"a\"\n{}{other}", file(&keys(0)));
        let scenario = Scenario::parse(&text, "two.toml", &[]).unwrap();
        let of = |scenario: &Scenario| {
            Ideal::new(scenario, Direction::Forward, 1).limit(bytes, 2, Time::ZERO)
        };
        let both = of(&scenario);
        prop_assert!(both <= of(&scenario.each_path()[0]));
        let sum = scenario.rate_of_all_paths(Direction::Forward).unwrap();
        prop_assert!(both >= sum.time_for(bentpipe_units::Size::from_bytes(bytes)));
    }
}
