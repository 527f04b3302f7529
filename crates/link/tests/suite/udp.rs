//! The MTU, and UDP that is treated otherwise than the rest.

use bentpipe_link::{Direction, Fate, Outcome, PacketMeta, Path};
use bentpipe_units::Time;
use proptest::prelude::*;

use crate::properties::arrivals;
use crate::{link, ns, parse};

const MS: u64 = 1_000_000;

fn packet(id: u64, ip_bytes: u32, is_udp: bool) -> PacketMeta {
    PacketMeta {
        id,
        ip_bytes,
        ecn: 0,
        flow: u64::from(is_udp),
        is_udp,
    }
}

/// The outcomes of packets that are sent at these times with these sizes, of UDP or not, in their
/// order.
fn outcomes(path: &mut Path, packets: &[(u64, u32, bool)]) -> Vec<Outcome> {
    for (id, (now, ip_bytes, is_udp)) in (0..).zip(packets) {
        path.enqueue(ns(*now), packet(id, *ip_bytes, *is_udp));
    }
    path.advance(Time::NEVER);
    let mut found: Vec<_> = std::iter::from_fn(|| path.outcome()).collect();
    found.sort_by_key(|it| it.packet.id);
    found
}

/// The same of packets of 1000 bytes at these milliseconds: when each leaves, in milliseconds.
fn left_ms(keys: &str, packets: &[(u64, bool)]) -> Vec<Result<u64, Fate>> {
    let packets: Vec<_> = packets
        .iter()
        .map(|(ms, udp)| (ms * MS, 1000, *udp))
        .collect();
    let found = outcomes(&mut link(keys), &packets);
    let left = |it: &Outcome| match it.fate {
        Fate::Delivered { at } => Ok(at.as_nanos() / MS - 1),
        fate => Err(fate),
    };
    found.iter().map(left).collect()
}

const DROP: Result<u64, Fate> = Err(Fate::QueueDrop);
const U: bool = true;
const T: bool = false;

#[test]
fn what_is_larger_than_the_mtu_is_lost_and_takes_no_capacity() {
    let mut path = link("mtu = \"1400 B\"\nrate = \"8 Mbit/s\"");
    let found = outcomes(
        &mut path,
        &[(0, 1400, U), (0, 1401, U), (0, 1401, T), (0, 1000, T)],
    );
    let told: Vec<_> = found.iter().map(|it| (it.fate, it.exceeds_mtu)).collect();
    let at = |us: u64| Fate::Delivered {
        at: ns(MS + us * 1000),
    };
    let lost = (Fate::Loss, Some(1400));
    assert_eq!(told, [(at(1400), None), lost, lost, (at(2400), None)]);
    assert_eq!(path.counters().losses, 2);
    // Another loss says nothing of an MTU.
    let lossy = "mtu = \"1400 B\"\nloss = { model = \"periodic\", every = \"1 packet\" }";
    let found = outcomes(&mut link(lossy), &[(0, 1400, U)]);
    assert_eq!((found[0].fate, found[0].exceeds_mtu), (Fate::Loss, None));
}

#[test]
fn the_paths_mtu_is_the_smallest() {
    let text = crate::file("delay = \"1 ms\"\nmtu = \"1400 B\"");
    let text = text + "[ground.return]\nmtu = \"1300 B\"\n";
    let scenario = bentpipe_link::Scenario::parse(&text, "test.toml", &[]).unwrap();
    assert_eq!(scenario.whole().mtu().unwrap().bytes(), 1300);
    assert_eq!(parse("delay = \"1 ms\"").unwrap().whole().mtu(), None);
}

#[test]
fn udp_has_a_policer_of_its_own() {
    let keys = "udp = { rate = \"8 Mbit/s\", burst = \"2 kB\" }";
    let packets = [
        (0, U),
        (0, T),
        (0, U),
        (0, U),
        (0, T),
        (1, U),
        (1, T),
        (1, U),
    ];
    let found = left_ms(keys, &packets);
    assert_eq!(
        found,
        [Ok(0), Ok(0), Ok(0), DROP, Ok(0), Ok(1), Ok(1), DROP]
    );
}

#[test]
fn udp_alone_is_lost() {
    let packets: Vec<_> = (0..4000).map(|number| (number, number % 2 == 0)).collect();
    let found = left_ms("udp = { drop = \"10 %\" }", &packets);
    let lost = |udp: bool| {
        let mut of_kind = packets.iter().zip(&found).filter(|((_, it), _)| *it == udp);
        of_kind.clone().count() - of_kind.by_ref().filter(|(_, it)| it.is_ok()).count()
    };
    assert_eq!(lost(T), 0);
    // 2000 draws: 200 on average, with a standard deviation of 13.
    assert!((120..280).contains(&lost(U)), "{}", lost(U));
    // The draws are of their own: what the link loses besides does not depend on them.
    let both = "udp = { drop = \"10 %\" }\nloss = \"10 %\"";
    let of_tcp = |keys: &str| {
        let packets: Vec<_> = (0..1000).map(|number| (number, T)).collect();
        left_ms(keys, &packets)
    };
    assert_eq!(of_tcp(both), of_tcp("loss = \"10 %\""));
}

#[test]
fn udp_waits_for_the_rest_or_the_rest_for_udp() {
    let keys = |priority: &str| {
        format!("rate = \"8 Mbit/s\"\nqueue = \"4 packets\"\nudp = {{ priority = \"{priority}\" }}")
    };
    // The first is sent at once and not interrupted. Four wait, then one more is dropped, whichever
    // it is; at 1 ms one fits.
    let packets = [
        (0, U),
        (0, U),
        (0, T),
        (0, U),
        (0, T),
        (0, T),
        (0, U),
        (1, T),
    ];
    let low = left_ms(&keys("low"), &packets);
    assert_eq!(low, [Ok(1), Ok(5), Ok(2), Ok(6), Ok(3), DROP, DROP, Ok(4)]);
    let high = left_ms(&keys("high"), &packets);
    assert_eq!(high, [Ok(1), Ok(2), Ok(4), Ok(3), Ok(5), DROP, DROP, Ok(6)]);
}

#[test]
fn a_priority_alone_is_no_node() {
    let keys = "delay = \"1 ms\"\nrate = \"8 Mbit/s\"\nudp = { priority = \"low\" }\n";
    let scenario = parse(&format!("{keys}order = [\"queue\", \"delay\"]")).unwrap();
    assert_eq!(scenario.rate(Direction::Forward).unwrap().bps(), 8_000_000);
}

proptest! {
    /// Where all packets are alike a priority changes nothing; else it changes the order between
    /// the two kinds only, and drops no less in packets.
    #[test]
    fn a_priority_keeps_the_order_of_each_kind(
        rate in 1_000_000_u64..100_000_000,
        limit in 1_u64..30,
        priority in prop::sample::select(vec!["low", "high"]),
        arrivals in arrivals(),
        kinds in prop::collection::vec(any::<bool>(), 200),
    ) {
        let keys = format!("rate = \"{rate} bit/s\"\nqueue = \"{limit} packets\"\n");
        let with = format!("{keys}udp = {{ priority = \"{priority}\" }}");
        let of = |kind: Option<bool>| -> Vec<(u64, u32, bool)> {
            let both = arrivals.iter().zip(&kinds);
            both.map(|((now, bytes), udp)| (*now, *bytes, kind.unwrap_or(*udp))).collect()
        };
        for kind in [U, T] {
            let packets = of(Some(kind));
            let found = outcomes(&mut link(&with), &packets);
            prop_assert_eq!(found, outcomes(&mut link(&keys), &packets));
        }
        let mut path = link(&with);
        let packets = of(None);
        let found = outcomes(&mut path, &packets);
        prop_assert_eq!(found.len(), packets.len());
        for kind in [U, T] {
            let mut last = Time::ZERO;
            for outcome in found.iter().filter(|it| it.packet.is_udp == kind) {
                if let Fate::Delivered { at } = outcome.fate {
                    prop_assert!(at >= last);
                    last = at;
                }
            }
        }
        prop_assert_eq!(path.queue_bytes(Time::NEVER), 0);
    }
}
