//! Carriers of DVB-S2: sequences computed by hand, and properties.

use bentpipe_link::{Direction, Fate, Ideal, PacketMeta, Path, Quantity};
use bentpipe_units::{Rate, Time};
use proptest::prelude::*;

use crate::{config, link, ns, parse};

const MS: u64 = 1_000_000;
/// A normal frame of QPSK 1/4 without pilots: 32490 symbols at 40 million baud.
const FRAME: u64 = 812_250;
/// A dummy frame: 3330 symbols.
const DUMMY: u64 = 83_250;

fn carrier(keys: &str) -> String {
    let fixed = "standard = \"dvb-s2\", symbol_rate = \"40 MBd\", pilots = \"off\"";
    format!("queue = \"1000 packets\"\nrate = {{ {fixed}, {keys} }}")
}

fn packet(id: u64, ip_bytes: u32) -> PacketMeta {
    PacketMeta {
        id,
        ip_bytes,
        ecn: 0,
        flow: 0,
        is_udp: true,
    }
}

/// When packets leave, in nanoseconds, by their numbers; None: they are lost or dropped.
fn left(path: &mut Path, packets: &[(u64, u32)]) -> Vec<Option<u64>> {
    for (id, (now, ip_bytes)) in (0..).zip(packets) {
        path.enqueue(ns(*now), packet(id, *ip_bytes));
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

const ROBUST: &str = "es_n0 = \"9 dB\", modcod = \"QPSK 1/4\"";

#[test]
fn packets_arrive_with_the_frames_that_end_them() {
    let mut path = link(&carrier(ROBUST));
    // A frame carries 1991 bytes: the first packet alone, in 1510; the others wait for it. The next
    // frame has the second, and 481 bytes with 468 of the third, whose other 1032 and a checksum go
    // into the frame after it.
    let left = left(&mut path, &[(0, 1500), (0, 1500), (0, 1500)]);
    assert_eq!(left, [FRAME, 2 * FRAME, 3 * FRAME].map(Some));
}

#[test]
fn what_arrives_in_between_waits_for_the_end_of_a_dummy_frame() {
    let mut path = link(&carrier(ROBUST));
    let left = left(&mut path, &[(100_000, 40), (150_000, 40)]);
    assert_eq!(left, [2 * DUMMY + FRAME; 2].map(Some));
}

#[test]
fn the_modcod_is_the_fastest_that_reception_allows() {
    let rate = |keys: &str| config(&carrier(keys)).rate.unwrap().nominal().bps();
    // 40 MBd times (58192 - 80) / 14490 symbols; 32APSK 9/10 has (58192 - 80) / 13050.
    let of = |bits: u64, symbols: u64| 40_000_000 * bits / symbols;
    assert_eq!(rate("es_n0 = \"16.55 dB\""), of(58_112, 13_050));
    assert_eq!(rate("es_n0 = \"16.54 dB\""), of(57_392, 13_050));
    assert_eq!(
        rate("es_n0 = \"16.54 dB\", margin = \"0 dB\""),
        of(58_112, 13_050)
    );
    // 8PSK 3/5 (5.50 dB) carries less than QPSK 9/10 does (6.42 dB): 8PSK 2/3 follows.
    assert_eq!(rate("es_n0 = \"6.95 dB\""), of(58_112, 32_490));
    assert_eq!(rate("es_n0 = \"7.12 dB\""), of(42_960, 21_690));
    // Below all thresholds with their margin, the most robust one is used.
    assert_eq!(rate("es_n0 = \"-2.35 dB\""), of(15_928, 32_490));
}

#[test]
fn rain_loses_frames_until_the_loop_has_closed() {
    let rain = "es_n0 = { steps = [[\"0 s\", \"11.5 dB\"], [\"1 s\", \"1.5 dB\"]] }";
    let mut path = link(&carrier(&format!("{rain}, loop_delay = \"600 ms\"")));
    // 8PSK 9/10 (10.98 dB) is used up to 1.6 s, and then QPSK 1/2 (1 dB).
    let times = [990, 1000, 1599, 1601].map(|ms| (ms * MS, 1500));
    let left = left(&mut path, &times);
    let is_there: Vec<_> = left.iter().map(Option::is_some).collect();
    assert_eq!(is_there, [true, false, false, true]);
}

#[test]
fn a_lost_frame_loses_parts_of_packets() {
    // Frames after the first carry the 2nd packet and 468 bytes of the 3rd; the rest of it and 939
    // of the 4th; the rest of that and 1410 of the 5th. The next begins at 3.249 ms, and is lost:
    // it has the end of the 5th, the 6th, and 371 bytes of the 7th.
    let gap =
        "es_n0 = { steps = [[\"0 s\", \"9 dB\"], [\"3 ms\", \"-9 dB\"], [\"4 ms\", \"9 dB\"]] }";
    let keys = format!("{gap}, modcod = \"QPSK 1/4\"");
    let found = left(&mut link(&carrier(&keys)), &[(0, 1500); 8]);
    let frames: Vec<_> = found.iter().map(|it| it.map(|at| at / FRAME)).collect();
    let (lost, eighth) = (None, Some(7));
    assert_eq!(frames[..4], [1, 2, 3, 4].map(Some));
    assert_eq!(frames[4..], [lost, lost, lost, eighth]);
}

#[test]
fn hysteresis_keeps_a_modcod_that_would_come_and_go() {
    let course = |up: &str| {
        format!(
            "es_n0 = {{ steps = [[\"0 s\", \"11.3 dB\"], [\"1 s\", \"{up}\"]] }}, \
             loop_delay = \"0 ms\", hysteresis = \"0.3 dB\""
        )
    };
    // 8PSK 9/10 needs 10.98 dB and 0.5 dB: 16APSK 3/4 (10.21 dB) is faster anyway. 16APSK 4/5 needs
    // 11.03 dB, 0.5 dB, and 0.3 dB to be changed to.
    let last = |up: &str| {
        let scenario = parse(&format!("delay = \"1 ms\"\n{}", carrier(&course(up)))).unwrap();
        let timelines = scenario.timelines();
        let rate = timelines.iter().find(|it| it.quantity == Quantity::Rate);
        rate.map(|it| *it.parts.last().unwrap())
    };
    let of = |bits: i64| 40_000_000 * bits / 16_290;
    assert_eq!(last("11.82 dB"), Some(of(48_328)));
    assert_eq!(last("11.83 dB"), Some(of(51_568)));
}

#[test]
fn terminals_share_the_carrier_by_weight() {
    let others = "terminals = [{ weight = \"3\", sources = [{ kind = \"cbr\", \
                  rate = \"30 Mbit/s\", stop = \"9 s\" }] }]";
    let keys = format!("{ROBUST}, {others}");
    let mut path = link(&carrier(&keys));
    for id in 0..1000 {
        path.enqueue(ns(0), packet(id, 1500));
    }
    let mut bytes = 0;
    path.advance(Time::from_nanos(1_000 * MS));
    while let Some(outcome) = path.outcome() {
        let Fate::Delivered { at } = outcome.fate else {
            continue;
        };
        if at <= Time::from_nanos(1_001 * MS) {
            bytes += u64::from(outcome.packet.ip_bytes);
        }
    }
    // A quarter of 1231 frames in a second.
    let whole = 1_231 * 1991 * 1500 / 1520;
    assert!((bytes * 4).abs_diff(whole) < whole / 50, "{bytes}");
}

#[test]
fn an_ideal_sender_has_what_the_modcods_give() {
    let rain = "es_n0 = { steps = [[\"0 s\", \"16.55 dB\"], [\"1 s\", \"1.5 dB\"]] }";
    let scenario = parse(&format!("delay = \"1 ms\"\n{}", carrier(rain))).unwrap();
    let ideal = Ideal::new(&scenario, Direction::Forward, 0);
    let between = |from, to| ideal.bit_nanos(ns(from * MS), ns(to * MS)).unwrap() / 1_000_000_000;
    // 32APSK 9/10 up to 1 s; after the loop's delay, QPSK 1/2.
    assert_eq!(between(1, 1001), 40_000_000 * 58_112 / 13_050);
    assert_eq!(between(1601, 2601), 40_000_000 * 32_128 / 32_490);
}

#[test]
fn who_shares_a_carrier_has_the_trials_weather_unless_it_has_its_own() {
    let lost = |own: &str| {
        // The trial's terminal is received at last.
        let keys = format!(
            "es_n0 = \"9 dB\", modcod = \"QPSK 1/4\", attenuation = {{ steps = [[\"0 s\", \"20 \
             dB\"], [\"9 s\", \"0 dB\"]] }}, terminals = [{{ {own} sources = [{{ kind = \"cbr\", \
             rate = \"1 Mbit/s\", stop = \"50 ms\" }}] }}]"
        );
        let mut path = link(&carrier(&keys));
        path.advance(ns(100 * MS));
        path.advance(Time::NEVER);
        path.counters().sources.unwrap().lost
    };
    assert!(lost("") > 0);
    assert!(lost("es_n0 = \"12 dB\",") > 0);
    assert_eq!(lost("attenuation = \"0 dB\","), 0);
}

#[test]
fn an_es_n0_that_no_frame_survives_carries_nothing() {
    let rain = "es_n0 = { steps = [[\"0 s\", \"16.55 dB\"], [\"1 s\", \"1.5 dB\"]] }";
    let scenario = parse(&format!("delay = \"1 ms\"\n{}", carrier(rain))).unwrap();
    let ideal = Ideal::new(&scenario, Direction::Forward, 0);
    assert_eq!(ideal.bit_nanos(ns(1_100 * MS), ns(1_500 * MS)), Some(0));
    let rate = config(&carrier("es_n0 = \"3 dB\", modcod = \"QPSK 1/2\""))
        .rate
        .unwrap();
    assert!(rate.lowest() > Rate::from_bps(0));
    let low = config(&carrier(
        "es_n0 = { steps = [[\"0 s\", \"3 dB\"], [\"1 s\", \"0 dB\"]] }, modcod = \"QPSK 1/2\"",
    ));
    assert_eq!(low.rate.unwrap().lowest(), Rate::from_bps(0));
}

#[test]
fn extremes_are_those_of_values_at_the_same_time() {
    // Es/N0 rises while attenuation does: 3 dB at all times.
    let both = "es_n0 = { steps = [[\"0 s\", \"3 dB\"], [\"1 s\", \"9 dB\"]] }, \
                attenuation = { steps = [[\"0 s\", \"0 dB\"], [\"1 s\", \"6 dB\"]] }";
    let rate = |keys: &str| config(&carrier(keys)).rate.unwrap().nominal();
    assert_eq!(rate(both), rate("es_n0 = \"3 dB\""));
}

#[test]
fn others_meet_the_carrier_and_nothing_else_of_the_link() {
    let keys = |more: &str| {
        let others = "terminals = [{ sources = [{ kind = \"cbr\", rate = \"1 Mbit/s\", stop = \
                      \"50 ms\" }] }]";
        format!("{}\n{more}", carrier(&format!("{ROBUST}, {others}")))
    };
    let mut path = link(&keys("loss = \"100 %\""));
    path.advance(ns(100 * MS));
    path.advance(Time::NEVER);
    let sources = path.counters().sources.unwrap();
    assert_eq!((sources.lost, sources.packets), (0, 4));
    let policer = "policer = { rate = \"1 Mbit/s\", burst = \"9 kB\" }";
    let error = parse(&keys(policer)).unwrap_err().to_string();
    let expected = "satellite.forward.rate.terminals: terminals share the carrier, and policer";
    assert!(error.contains(expected), "{error}");
    assert!(
        parse(&format!(
            "delay = \"1 ms\"\n{}\norder = [\"queue\", \"policer\", \"delay\"]",
            keys(policer)
        ))
        .is_ok()
    );
}

proptest! {
    /// A carrier that is never idle gives what its MODCOD carries, within a frame, less the headers
    /// of packets; nothing is lost where Es/N0 suffices; the order is kept.
    #[test]
    fn a_full_carrier_gives_its_rate(
        es_n0 in -1i64..17,
        ip_bytes in 40u32..1500,
        pilots in any::<bool>(),
        short in any::<bool>(),
    ) {
        let pilots = if pilots { "on" } else { "off" };
        let length = if short { "short" } else { "normal" };
        let keys = format!(
            "queue = \"100000 packets\"\nrate = {{ standard = \"dvb-s2\", symbol_rate = \"1 MBd\", \
             pilots = \"{pilots}\", fecframe = \"{length}\", es_n0 = \"{es_n0} dB\" }}"
        );
        let rate = config(&keys).rate.unwrap().nominal().bps();
        let count = 200_000 / u64::from(ip_bytes);
        let packets: Vec<_> = (0..count).map(|_| (0, ip_bytes)).collect();
        let found = left(&mut link(&keys), &packets);
        prop_assert!(found.is_sorted() && found.iter().all(Option::is_some));
        let took = found.last().unwrap().unwrap();
        let sent = (u64::from(ip_bytes) + 10) * count * 8;
        let least = sent * 1000 * MS / rate;
        // A packet that goes on in a second frame has up to 10 bytes more, and 3 for each further.
        let frame = 70_000_000;
        prop_assert!(took >= least.saturating_sub(MS), "{took} {least}");
        prop_assert!(took <= least + least / 20 + 2 * frame, "{took} {least}");
    }
}
