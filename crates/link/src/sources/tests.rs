//! The traffic of sources, compared with their descriptions.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares are held to a per cent"
)]

use bentpipe_units::{Size, Time};

use super::*;
use crate::{Direction, DirectionConfig, PacketMeta, Path, SegmentName, SourceCounters};

const SEED: LinkSeed = LinkSeed {
    seed: 7,
    direction: Direction::Forward,
    segment: SegmentName::Satellite,
};

/// All that a source sends over a link of 20 Mbit/s and 600 ms.
fn sent(source: &Source) -> Vec<Emission> {
    let link = SourceLink {
        rate: Rate::from_bps(20_000_000),
        rtt: Span::from_millis(600),
        mtu: None,
        seed: SEED,
    };
    let mut traffic = CrossTraffic::new(&[(0, source.clone())], link).unwrap();
    std::iter::from_fn(|| traffic.next(Time::NEVER)).collect()
}

fn source(text: &str) -> Source {
    let text = format!(
        "title = \"t\"\nsource = \"s\"\ntimeout = \"60 s\"\n\
         [satellite.forward]\nrate = \"20 Mbit/s\"\ndelay = \"300 ms\"\nsources = [{{ {text} }}]\n\
         [satellite.return]\ndelay = \"300 ms\"\n"
    );
    let scenario = crate::Scenario::parse(&text, "t.toml", &[]).unwrap();
    let json = serde_json::to_string(&scenario).unwrap();
    assert_eq!(
        serde_json::from_str::<crate::Scenario>(&json).unwrap(),
        scenario
    );
    scenario.satellite.forward.sources[0].clone()
}

/// The packets of a transfer of `packets` packets, all of them sent after the start.
fn whole_transfer(sent: &[Emission], packets: usize) -> Vec<Emission> {
    let of = |flow: u64| sent.iter().copied().filter(move |it| it.flow == flow);
    let flow = sent
        .iter()
        .map(|it| it.flow)
        .find(|flow| of(*flow).count() == packets);
    of(flow.expect("one is whole")).collect()
}

fn bits(sent: &[Emission]) -> f64 {
    8.0 * sent.iter().map(|it| f64::from(it.ip_bytes)).sum::<f64>()
}

/// 1250 bytes at 1 Mbit/s are 10 ms: 100 packets a second and flow.
#[test]
fn a_constant_rate_is_kept_to_the_packet() {
    let text = "kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"1250 B\", flows = 3, \
                start = \"1 s\", stop = \"3 s\"";
    let sent = sent(&source(text));
    assert_eq!(sent.len(), 600);
    assert!(sent.is_sorted_by_key(|it| it.at));
    let first: Vec<Time> = (0..3)
        .map(|flow| {
            let of_flow: Vec<Time> = sent
                .iter()
                .filter(|it| it.flow == first_flow(0) + flow)
                .map(|it| it.at)
                .collect();
            assert!(
                of_flow
                    .windows(2)
                    .all(|it| it[1] - it[0] == Span::from_millis(10))
            );
            of_flow[0]
        })
        .collect();
    assert!(first.iter().all(|at| *at < Time::from_nanos(1_010_000_000)));
    assert!(
        first[0] != first[1] && first[1] != first[2],
        "they are not in step"
    );
}

/// A third of the time on, at 3 Mbit/s: 1 Mbit/s in the mean.
#[test]
fn periods_have_their_mean() {
    let text = "kind = \"on-off\", rate = \"3 Mbit/s\", on = \"100 ms\", off = \"200 ms\", \
                flows = 20, stop = \"300 s\"";
    let sent = sent(&source(text));
    let mean = bits(&sent) / 300.0 / 20.0;
    assert!((0.97e6..1.03e6).contains(&mean), "{mean}");
    assert!(sent.is_sorted_by_key(|it| it.at));
}

/// The load is the mean over all transfers. Sizes of the web have a heavy tail, so only those of
/// one size are held to 3 % here.
#[test]
fn transfers_have_their_load_and_begin_as_a_slow_start() {
    let text = "kind = \"web\", load = \"5 Mbit/s\", sizes = \"150 kB\", stop = \"600 s\"";
    let sent = sent(&source(text));
    let mean = bits(&sent) / 600.0;
    assert!((4.85e6..5.15e6).contains(&mean), "{mean}");
    let begun = whole_transfer(&sent, 100);
    let after = |packet: usize| begun[packet].at - begun[0].at;
    // 10 packets in the first 600 ms, 20 in the next, 40 in the third.
    assert_eq!(after(9), Span::from_millis(540));
    assert_eq!(after(10), Span::from_millis(600));
    assert_eq!(after(30), Span::from_millis(1200));
    assert_eq!(after(70), Span::from_millis(1800));
}

/// From its start on it sends its load, not only once large transfers have begun.
#[test]
fn transfers_are_under_way_at_the_start() {
    let text = "kind = \"web\", load = \"5 Mbit/s\", sizes = \"3 MB\", stop = \"2 s\"";
    let early = (0..600).map(|seed| {
        let link = SourceLink {
            rate: Rate::from_bps(20_000_000),
            rtt: Span::from_millis(600),
            mtu: Some(Size::from_bytes(1200)),
            seed: LinkSeed { seed, ..SEED },
        };
        let mut traffic = CrossTraffic::new(&[(0, source(text))], link).unwrap();
        let sent: Vec<_> = std::iter::from_fn(|| traffic.next(Time::NEVER)).collect();
        assert!(sent.iter().all(|it| it.ip_bytes <= 1200));
        bits(&sent) / 2.0
    });
    let mean = early.sum::<f64>() / 600.0;
    assert!((4.5e6..5.5e6).contains(&mean), "{mean}");
}

#[test]
fn a_transfer_is_never_faster_than_its_peak() {
    let text = "kind = \"web\", load = \"1 Mbit/s\", sizes = \"3 MB\", peak = \"2 Mbit/s\", \
                stop = \"120 s\"";
    let sent = sent(&source(text));
    let begun: Vec<Time> = whole_transfer(&sent, 2000).iter().map(|it| it.at).collect();
    // 1500 bytes at 2 Mbit/s are 6 ms.
    assert!(
        begun
            .windows(2)
            .all(|it| it[1] - it[0] >= Span::from_millis(6))
    );
    assert_eq!(begun[1999] - begun[1998], Span::from_millis(6));
}

/// SURGE: 93 % lognormal, 7 % Pareto, by the formulae of its authors.
#[test]
fn sizes_of_the_web_are_those_of_surge() {
    let mut dice = SEED.source(0, 0);
    let mut sizes: Vec<u64> = (0..200_000)
        .map(|_| TransferSizes::Web.draw(&mut dice))
        .collect();
    sizes.sort_unstable();
    let share_above = |bytes: u64| {
        let below = sizes.partition_point(|it| *it <= bytes);
        (sizes.len() - below) as f64 / sizes.len() as f64
    };
    assert!((share_above(133_000) - 0.07).abs() < 0.002);
    for factor in [2.0, 4.0, 16.0_f64] {
        let expected = 0.07 * factor.powf(-1.1);
        let seen = share_above((133_000.0 * factor) as u64);
        assert!(
            (seen / expected - 1.0).abs() < 0.1,
            "{factor}: {seen} and {expected}"
        );
    }
    // The body's median: exp(9.357) would have half of a lognormal without an end below it.
    let body = sizes.partition_point(|it| *it <= 133_000);
    let below = sizes.partition_point(|it| (*it as f64) <= 9.357_f64.exp());
    assert!((below as f64 / body as f64 * 0.968 - 0.5).abs() < 0.01);
    assert_eq!(TransferSizes::Web.mean_bytes(), 75_103);
    assert_eq!(TransferSizes::Fixed(Size::from_bytes(9)).mean_bytes(), 9);
}

#[test]
fn other_seeds_have_other_luck_and_the_same_seed_the_same() {
    let web = source("kind = \"web\", load = \"5 Mbit/s\", stop = \"20 s\"");
    assert_eq!(sent(&web), sent(&web));
    let link = SourceLink {
        rate: Rate::from_bps(20_000_000),
        rtt: Span::from_millis(600),
        mtu: None,
        seed: LinkSeed { seed: 8, ..SEED },
    };
    let mut other = CrossTraffic::new(&[(0, web.clone())], link).unwrap();
    assert_ne!(other.next(Time::NEVER), sent(&web).first().copied());
}

/// Packets of a source meet what those of the caller would that are sent at the same times.
#[test]
fn a_source_is_as_good_as_its_packets() {
    for aqm in ["", ", aqm = \"fq-codel\"", ", aqm = \"pie\""] {
        let queue = format!("queue = {{ size = \"30 packets\"{aqm} }}");
        let sources = "sources = [{ kind = \"web\", load = \"2 Mbit/s\", stop = \"20 s\" }, \
                       { kind = \"on-off\", rate = \"2 Mbit/s\", on = \"50 ms\", \
                       off = \"100 ms\", flows = 5, stop = \"19 s\" }]";
        let with = link(&format!("{queue}\n{sources}"));
        let without = link(&queue);
        let own = (0..4000_u64).map(|number| Emission {
            at: Time::from_nanos(1 + number * 5_000_000),
            ip_bytes: 1200,
            flow: number % 3,
            is_udp: true,
            terminal: 0,
        });
        let (mut one, mut other) = (path(&with), path(&without));
        for emission in own.clone() {
            one.enqueue(emission.at, packet(&emission, 1));
        }
        one.advance(Time::from_nanos(20_000_000_000));
        one.advance(Time::NEVER);
        let mut traffic = CrossTraffic::new(&with.all_sources(), link_of_source()).unwrap();
        let foreign = std::iter::from_fn(|| traffic.next(Time::NEVER)).map(|it| (it, 0));
        let mut all: Vec<(Emission, u64)> = foreign.chain(own.map(|it| (it, 1))).collect();
        all.sort_by_key(|(emission, _)| emission.at);
        for (emission, whose) in &all {
            other.enqueue(emission.at, packet(emission, *whose));
        }
        other.advance(Time::NEVER);
        let seen: Vec<_> = std::iter::from_fn(|| one.outcome()).collect();
        let mut counted = SourceCounters::default();
        let mut expected = Vec::new();
        while let Some(outcome) = other.outcome() {
            match outcome.packet.id {
                0 => counted.count(outcome.fate, outcome.packet.ip_bytes),
                _ => expected.push(outcome),
            }
        }
        assert_eq!(seen, expected, "{aqm}");
        assert_eq!(one.counters().sources, Some(counted), "{aqm}");
        assert!(counted.lost > 0 && one.counters().queue_drops > 0, "{aqm}");
    }
}

fn packet(emission: &Emission, id: u64) -> PacketMeta {
    PacketMeta {
        id,
        ip_bytes: emission.ip_bytes,
        ecn: 0,
        flow: emission.flow,
        is_udp: emission.is_udp,
    }
}

fn link(text: &str) -> DirectionConfig {
    let text = format!(
        "title = \"t\"\nsource = \"s\"\ntimeout = \"60 s\"\n\
         [satellite.forward]\nrate = \"5 Mbit/s\"\ndelay = \"300 ms\"\n{text}\n\
         [satellite.return]\ndelay = \"300 ms\"\n"
    );
    let scenario = crate::Scenario::parse(&text, "t.toml", &[]).unwrap();
    scenario.satellite.forward
}

/// 5 Mbit/s and 600 ms.
fn path(config: &DirectionConfig) -> Path {
    Path::of_link(config, Span::from_millis(600), SEED)
}

fn link_of_source() -> SourceLink {
    SourceLink {
        rate: Rate::from_bps(5_000_000),
        rtt: Span::from_millis(600),
        mtu: None,
        seed: SEED,
    }
}
