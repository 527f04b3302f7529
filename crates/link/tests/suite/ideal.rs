//! The ideal sender, where rates change.

use bentpipe_link::{Direction, Ideal, Scenario};
use bentpipe_units::{Span, Time};

use crate::{file, ns};

const MS: u64 = 1_000_000;

fn parse(forward: &str, more: &str) -> Scenario {
    Scenario::parse(&(file(forward) + more), "test.toml", &[]).unwrap()
}

/// The limit for this number of bytes, headers included, that are requested in the second of two
/// round trips.
fn limit(scenario: &Scenario, ip_bytes: u64, start_ms: u64) -> Span {
    let ideal = Ideal::new(scenario, Direction::Forward, 1);
    ideal.limit(ip_bytes * 100 / 105, 2, ns(start_ms * MS))
}

const STEPS: &str = "delay = \"299 ms\"\nrate = { steps = [[\"0 s\", \"8 Mbit/s\"], [\"1 s\", \"0 \
                     bit/s\"], [\"2 s\", \"80 Mbit/s\"]] }";

#[test]
fn it_follows_the_steps_from_the_request_on() {
    let scenario = parse(STEPS, "");
    // The request is at the server 301 ms after the start: 699 ms at 1 byte/us, nothing for a
    // second, then 10 bytes/us.
    assert_eq!(limit(&scenario, 0, 0), Span::from_millis(600));
    assert_eq!(limit(&scenario, 105_000, 0), Span::from_millis(705));
    assert_eq!(
        limit(&scenario, 699_300, 0),
        Span::from_nanos(2_299 * MS + 30_000)
    );
    assert_eq!(
        limit(&scenario, 2_100_000, 0),
        Span::from_nanos(2_439_100_000)
    );
    // A connection that begins later meets the later rates.
    assert_eq!(
        limit(&scenario, 105_000, 2_000),
        Span::from_nanos(610_500_000)
    );
}

#[test]
fn the_slowest_link_of_each_instant_counts_where_the_bytes_are_then() {
    let ground = "[ground.forward]\ndelay = \"500 ms\"\nrate = \"16 Mbit/s\"\n";
    let scenario = parse(STEPS, ground);
    // Bytes that leave the server at 801 ms and later meet the second step of the satellite until
    // 1.5 s have passed at the server.
    assert_eq!(limit(&scenario, 0, 0), Span::from_millis(1_600));
    // 2 bytes/us from 1.5 s on, for the last has no capacity for more than the ground's.
    assert_eq!(
        limit(&scenario, 210_000, 0),
        Span::from_nanos((1_600 + 699 + 105) * MS)
    );
}

#[test]
fn on_demand_it_asks_for_all_with_the_first_byte() {
    let demand = "delay = \"299 ms\"\nrate = { full = \"80 Mbit/s\", floor = \"8 Mbit/s\", \
                  request_every = \"1 s\", granted_after = \"100 ms\", hold = \"1 s\" }";
    let scenario = parse(demand, "");
    // It asks at 1 s, and is granted at 1.1 s: 799 ms at 1 byte/us, then 10 bytes/us.
    assert_eq!(limit(&scenario, 105_000, 0), Span::from_millis(705));
    assert_eq!(
        limit(&scenario, 1_849_050, 0),
        Span::from_nanos((600 + 799 + 105) * MS + 5_000)
    );
    // Packets that could have come through are counted with the full rate.
    let ideal = Ideal::new(&scenario, Direction::Forward, 1);
    let bit_nanos = ideal.bit_nanos(ns(0), ns(1_000_000_000)).unwrap();
    assert_eq!(bit_nanos, 80_000_000 * 701 * u128::from(MS));
}

#[test]
fn it_knows_what_is_drawn() {
    let drawn =
        "delay = \"299 ms\"\nrate = { mean = \"8 Mbit/s\", spread = \"50 %\", every = \"100 ms\" }";
    let scenario = parse(drawn, "");
    let limits =
        |seed| Ideal::new(&scenario, Direction::Forward, seed).limit(1_000_000, 2, Time::ZERO);
    assert_eq!(limits(1), limits(1));
    assert_ne!(limits(1), limits(2));
    let ideal = Ideal::new(&scenario, Direction::Forward, 1);
    // The bits that it sends until it is done are those that there is capacity for.
    let (from, to) = (ns(600 * MS), Time::ZERO + limits(1));
    let room = ideal.bit_nanos(from, to).unwrap();
    let needed = 1_050_000 * 8_000_000_000_u128;
    assert!(room >= needed && room - needed < 12_000_000, "{room}");
}

#[test]
fn without_a_rate_nothing_limits_it() {
    let scenario = parse("delay = \"299 ms\"", "");
    let ideal = Ideal::new(&scenario, Direction::Forward, 1);
    assert_eq!(ideal.bit_nanos(ns(0), ns(9)), None);
    assert_eq!(ideal.limit(u64::MAX, 2, ns(0)), Span::from_millis(600));
}
