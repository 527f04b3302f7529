//! Return carriers of DVB-RCS2: superframes computed by hand, and properties.

use bentpipe_link::{
    CapacityRequests, Counters, Direction, Fate, Ideal, PacketMeta, Path, Quantity, RequestWait,
    WAVEFORMS,
};
use bentpipe_units::{Span, Time};
use proptest::prelude::*;

use crate::{config, link, ns, parse};

const MS: u64 = 1_000_000;

/// A carrier with 10 slots of 1 ms in a superframe, whose bursts carry 599 bytes, and requests that
/// are granted with the third superframe after that in which they are sent.
fn carrier(keys: &str) -> String {
    let fixed = "standard = \"dvb-rcs2\", symbol_rate = \"1.616 MBd\", superframe = \"10 ms\", \
                 granted_after = \"25 ms\", es_n0 = \"15 dB\", waveform = \"22\"";
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
    // Sources send on for so long.
    path.advance(ns(1_000 * MS));
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

fn ms(times: &[u64]) -> Vec<Option<u64>> {
    times.iter().map(|it| Some(it * MS)).collect()
}

fn requests(path: &Path) -> CapacityRequests {
    path.counters().requests.unwrap()
}

#[test]
fn a_volume_is_requested_by_contention_and_granted() {
    let mut path = link(&carrier("fca = \"off\""));
    // The terminal asks at 10 ms for 3 bursts, and has them from 40 ms on: the request arrives at
    // 35 ms. 594, 597 and 309 bytes go into them.
    assert_eq!(left(&mut path, &[(MS, 1500)]), ms(&[43]));
    let expected = CapacityRequests {
        sent: 1,
        granted: 1,
        longest_wait: Span::from_millis(30),
        waits: Span::from_millis(30),
        ..CapacityRequests::default()
    };
    assert_eq!(requests(&path), expected);
    let answered = RequestWait {
        sent: ns(10 * MS),
        answered: ns(40 * MS),
        granted: true,
    };
    assert_eq!(path.answered_requests(), [answered]);
}

#[test]
fn a_request_in_vain_is_known_to_be_so_when_it_would_have_been_granted() {
    let keys = "fca = \"off\", request_loss = \"100 %\"";
    let mut path = link(&carrier(keys));
    path.enqueue(ns(MS), packet(0, 1500));
    path.advance(ns(45 * MS));
    let lost = RequestWait {
        sent: ns(10 * MS),
        answered: ns(40 * MS),
        granted: false,
    };
    assert_eq!(path.answered_requests(), [lost]);
}

#[test]
fn later_packets_are_requested_along_with_bursts() {
    let mut path = link(&carrier("fca = \"off\""));
    // At 10 ms it asks for one burst; at 20 and 30 ms its request is on the way. That of 40 ms goes
    // with a burst, for the packets of 20 and 25 ms, which are granted with 70 ms.
    let packets = [(MS, 590), (20 * MS, 590), (25 * MS, 590)];
    assert_eq!(left(&mut path, &packets), ms(&[41, 71, 72]));
    assert_eq!(requests(&path).sent, 2);
    // Without that it contends at 40 ms, beside its burst.
    let mut path = link(&carrier("fca = \"off\", piggyback = \"off\""));
    assert_eq!(left(&mut path, &packets), ms(&[41, 71, 72]));
}

#[test]
fn a_requested_rate_holds_until_it_times_out() {
    let keys = "fca = \"off\", vbdc = \"off\", rbdc = \"1 Mbit/s\", rbdc_timeout = \"4\", \
                piggyback = \"off\"";
    // 1250 bytes are 2.09 slots of a superframe, so 2 each from the 4th to the 7th (2 * 5 = 10 are
    // due by the end of the 4th, 8 before it). The first packet takes 3.
    let mut path = link(&carrier(keys));
    assert_eq!(left(&mut path, &[(MS, 1500)]), ms(&[51]));
    // The second packet has the 2 of the 7th, and asks at 70 ms for the rest, which comes with 100
    // ms.
    let mut path = link(&carrier(keys));
    let packets = [(MS, 1500), (65 * MS, 1500)];
    assert_eq!(left(&mut path, &packets), ms(&[51, 101]));
    // Where the rate holds longer, the rest goes with the first slot of 80 ms.
    let mut path = link(&carrier(&keys.replace("\"4\"", "\"5\"")));
    assert_eq!(left(&mut path, &packets), ms(&[51, 81]));
}

#[test]
fn a_volume_adds_to_those_before_or_replaces_them() {
    let found = |kind: &str| {
        let keys = format!(
            "fca = \"off\", {kind} = \"on\", request_every = \"10 ms\", piggyback = \"off\""
        );
        let packets = [(MS, 590), (11 * MS, 590), (45 * MS, 590)];
        left(&mut link(&carrier(&keys)), &packets)
    };
    // A burst is requested at 10 ms, and at 20 ms one more, or two altogether; when that takes
    // effect the first has been assigned. At 50 ms the third packet is requested.
    for kind in ["vbdc", "avbdc"] {
        assert_eq!(found(kind), ms(&[41, 51, 81]), "{kind}");
    }
}

#[test]
fn who_asks_often_for_a_rate_has_it_as_soon() {
    let last = |every: &str| {
        let keys = format!(
            "fca = \"off\", vbdc = \"off\", rbdc = \"2 Mbit/s\", request_every = \"{every}\", \
             piggyback = \"off\""
        );
        let found = left(&mut link(&carrier(&keys)), &[(MS, 1500); 60]);
        found[59].unwrap()
    };
    // 90 kB and headers take 0.37 s at 2 Mbit/s.
    assert!(last("10 ms") <= last("300 ms"));
    assert!(last("10 ms") < 500 * MS);
}

#[test]
fn the_ideal_sender_has_what_is_dealt_out_unasked_and_nothing_in_a_fade() {
    let rate = |keys: &str, from: u64| {
        let scenario = parse(&format!("delay = \"1 ms\"\n{}", carrier(keys))).unwrap();
        let ideal = Ideal::new(&scenario, Direction::Forward, 0);
        ideal
            .bit_nanos(ns(from * MS), ns((from + 10) * MS))
            .unwrap()
            / 10_000_000
    };
    // All 10 slots of a superframe, each 599 bytes.
    assert_eq!(rate("fca = \"on\"", 1), 4_792_000);
    let fade = "attenuation = { steps = [[\"0 s\", \"0 dB\"], [\"1 s\", \"99 dB\"]] }";
    assert_eq!(rate(fade, 2_000), 0);
}

#[test]
fn what_is_left_is_dealt_in_turn() {
    let other = "terminals = [{ sources = [{ kind = \"cbr\", rate = \"1 kbit/s\", stop = \"1 s\" \
                 }] }]";
    let mut path = link(&carrier(&format!("vbdc = \"off\", {other}")));
    // Each has 5 slots; in even superframes the trial's terminal is first. Slot 0 has begun before
    // the packets come.
    let found = left(&mut path, &[(0, 594); 14]);
    let expected = [2, 3, 4, 5, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25];
    assert_eq!(found, ms(&expected));
    assert_eq!(requests(&path).sent, 0);
}

#[test]
fn terminals_that_want_more_than_there_is_have_slots_in_turn() {
    let keys = "fca = \"off\", request_every = \"10 ms\", piggyback = \"off\", terminals = [{ \
                sources = [{ kind = \"cbr\", rate = \"6 Mbit/s\", packet = \"594 B\", stop = \"1 \
                s\" }] }]";
    let mut path = link(&carrier(keys));
    // Both ask at 10 ms, for 21 slots and for 10 or more.
    let found = left(&mut path, &[(MS, 594); 20]);
    let superframes = [40, 55, 60, 75];
    let expected = superframes.iter().flat_map(|it| it + 1..=it + 5);
    assert_eq!(found, ms(&expected.collect::<Vec<_>>()));
}

#[test]
fn a_request_that_is_lost_is_sent_again() {
    // Nothing is received at 10 ms, and that is known with the superframe of 40 ms.
    let fade = carrier("fca = \"off\", request_every = \"10 ms\"").replace(
        "es_n0 = \"15 dB\"",
        "es_n0 = { steps = [[\"0 s\", \"15 dB\"], [\"9 ms\", \"-1 dB\"], [\"11 ms\", \"15 dB\"]] }",
    );
    let mut path = link(&fade);
    assert_eq!(left(&mut path, &[(MS, 1500)]), ms(&[73]));
    let found = requests(&path);
    assert_eq!((found.sent, found.lost, found.granted), (2, 1, 1));
    assert_eq!(found.longest_wait, Span::from_millis(30));
}

#[test]
fn a_terminal_that_is_never_heard_gives_up() {
    for keys in ["request_loss = \"100 %\"", "request_denial = \"100 %\""] {
        let mut path = link(&carrier(&format!("fca = \"off\", {keys}")));
        assert_eq!(left(&mut path, &[(MS, 1500), (MS, 40)]), [None, None]);
        let Counters { queue_drops, .. } = path.counters();
        let found = requests(&path);
        assert_eq!(queue_drops, 2);
        // One in 3 to 19 superframes, for a minute.
        assert!((315..2001).contains(&found.sent), "{found:?}");
        assert_eq!(found.sent, found.lost + found.denied);
        assert_eq!(found.granted, 0);
    }
}

#[test]
fn two_requests_in_one_slot_collide() {
    let keys = "fca = \"off\", backoff = \"3\", terminals = [{ sources = [{ kind = \"cbr\", rate = \
                \"600 kbit/s\", packet = \"375 B\", stop = \"6 ms\" }] }]";
    let mut path = link(&carrier(keys));
    // The other has a packet every 5 ms, so both contend at 10 ms, and know with 40 ms.
    let found = left(&mut path, &[(MS, 500)]);
    let at = found[0].unwrap();
    assert!(at >= 71 * MS && at % (10 * MS) == MS, "{at}");
    let found = requests(&path);
    assert!(
        found.collided >= 1 && found.sent == found.collided + 1,
        "{found:?}"
    );
}

#[test]
fn a_constant_rate_is_exact() {
    // 239.6 kbit/s are a slot in every second superframe.
    let keys = "fca = \"off\", vbdc = \"off\", cra = \"239600 bit/s\"";
    let mut path = link(&carrier(keys));
    let found = left(&mut path, &[(0, 594); 50]);
    let expected: Vec<u64> = (0..50).map(|it| 20 * it + 11).collect();
    assert_eq!(found, ms(&expected));
    assert_eq!(requests(&path).sent, 0);
}

#[test]
fn a_burst_that_is_not_received_loses_parts_of_packets() {
    let fade = carrier("vbdc = \"off\"").replace(
        "es_n0 = \"15 dB\"",
        "es_n0 = { steps = [[\"0 s\", \"15 dB\"], [\"2500 us\", \"0 dB\"], [\"3500 us\", \"15 \
         dB\"]] }",
    );
    // The burst of 3 ms is lost, with the end of the 1st packet and parts of the 2nd: 594, 597, 309
    // bytes of the one, and 282, 597, 597, 24 of the other.
    let found = left(&mut link(&fade), &[(0, 1500), (0, 1500), (0, 500)]);
    assert_eq!(found, [None, None, Some(7 * MS)]);
}

#[test]
fn a_terminal_sends_on_one_carrier_at_a_time() {
    let keys = "vbdc = \"off\", carriers = \"3\"";
    let found = left(&mut link(&carrier(keys)), &[(0, 594); 12]);
    let expected: Vec<u64> = (2..=10).chain(11..=13).collect();
    assert_eq!(found, ms(&expected));
}

#[test]
fn waveforms_carry_what_the_standard_says() {
    // Bits per symbol in hundredths, rounded down, from payloads and lengths of annex A.
    let expected = [
        56, 88, 126, 143, 161, 171, 194, 214, 261, 289, 60, 93, 130, 147, 164, 175, 198, 219, 266,
        296,
    ];
    let found = WAVEFORMS
        .iter()
        .map(|it| it.payload_bytes * 800 / it.burst.symbols());
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let ids = WAVEFORMS.iter().map(|it| it.id);
    assert!(ids.eq(3..=22));
}

#[test]
fn the_waveform_is_the_fastest_that_reception_allows() {
    let rate = |es_n0: &str, burst: &str| {
        let keys = format!(
            "rate = {{ standard = \"dvb-rcs2\", symbol_rate = \"1.2 MBd\", burst = \"{burst}\", \
             es_n0 = \"{es_n0}\" }}"
        );
        config(&keys).rate.unwrap().nominal().bps()
    };
    // 19 long bursts in a superframe of 31800 symbols, or 59 short ones.
    let of = |slots: u64, payload: u64| slots * payload * 8 * 1_000_000_000 / 26_500_000;
    assert_eq!(rate("12.54 dB", "long"), of(19, 599));
    assert_eq!(rate("12.53 dB", "long"), of(19, 539));
    assert_eq!(rate("-0.5 dB", "long"), of(19, 123));
    assert_eq!(rate("7.18 dB", "short"), of(59, 108));
}

#[test]
fn an_ideal_sender_asks_for_everything_with_its_first_bytes() {
    let rate = carrier("fca = \"off\", cra = \"239600 bit/s\"");
    let scenario = parse(&format!("delay = \"1 ms\"\n{rate}")).unwrap();
    let ideal = Ideal::new(&scenario, Direction::Forward, 0);
    // 10 slots of 599 bytes in 10 ms are 599 bytes a millisecond; for 25 ms it has the 749 bytes of
    // the constant rate. A round trip, the request and the way back.
    let bytes = 599 * 1000;
    let took = ideal.limit(bytes, 1, Time::ZERO).as_nanos();
    let on_link = u128::from(bytes) * 105 / 100 * 8 * 1_000_000_000;
    let constant = 239_600 * 25_000_000;
    let expected = 2_000_000 + 25_000_000 + (on_link - constant).div_ceil(4_792_000);
    assert_eq!(u128::from(took), expected);
    let second = ideal.bit_nanos(ns(MS), ns(1001 * MS));
    assert_eq!(second, Some(4_792_000 * 1_000_000_000));
    assert!(scenario.timelines().is_empty());
    assert_eq!(scenario.forward_rate().unwrap().bps(), 4_792_000);
    assert_eq!(
        scenario.lowest_rate(Direction::Forward).unwrap().bps(),
        239_600
    );
}

#[test]
fn reception_has_a_timeline() {
    let rain = carrier("fca = \"off\"").replace(
        "es_n0 = \"15 dB\"",
        "es_n0 = \"15 dB\", attenuation = { steps = [[\"0 s\", \"0 dB\"], [\"30 s\", \"9 dB\"]] }",
    );
    let scenario = parse(&format!("delay = \"1 ms\"\n{rain}")).unwrap();
    let [es_n0, waveform] = &scenario.timelines()[..] else {
        panic!("two timelines");
    };
    assert_eq!(
        (es_n0.quantity, waveform.quantity),
        (Quantity::EsN0, Quantity::Modcod)
    );
    // This carrier keeps to waveform 22, whatever the weather.
    assert_eq!(waveform.names.len(), 1);
    assert!(waveform.names[0].1.starts_with("22: "));
    assert_eq!((es_n0.least, es_n0.most), (6_000, 15_000));
}

#[test]
fn json_says_the_same() {
    let group = "terminals = [{ count = \"3\", cra = \"8 kbit/s\", vbdc = \"off\", sources = [{ \
                 kind = \"cbr\", rate = \"1 kbit/s\", stop = \"1 s\" }] }]";
    for keys in [
        "cra = \"8 kbit/s\"",
        "request_every = \"1 s\", avbdc = \"on\"",
        group,
    ] {
        let scenario = parse(&format!("delay = \"1 ms\"\n{}", carrier(keys))).unwrap();
        let json = serde_json::to_string(&scenario).unwrap();
        let again: bentpipe_link::Scenario = serde_json::from_str(&json).unwrap();
        assert_eq!(again, scenario);
    }
}

#[track_caller]
fn refused(keys: &str, message: &str) {
    let rate = format!("rate = {{ standard = \"dvb-rcs2\", {keys} }}\ndelay = \"1 ms\"");
    let error = parse(&rate).unwrap_err();
    let expected = format!("test.toml: satellite.forward.{message}");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_cannot_be_is_refused() {
    let plain = "symbol_rate = \"1.2 MBd\", es_n0 = \"9 dB\"";
    let with = |keys: &str| format!("{plain}, {keys}");
    refused(
        "es_n0 = \"9 dB\"",
        "rate.symbol_rate: missing; write symbol_rate = \"40 MBd\"",
    );
    refused(
        &with("superframe = \"1 ms\""),
        "rate.superframe: 1 ms: no room for a burst of 1616 symbols, which takes 1.346667 ms at \
         1.2 MBd; write a longer superframe",
    );
    refused(
        "symbol_rate = \"1.2 MBd\", es_n0 = \"-1 dB\"",
        "rate.standard: dvb-rcs2: Es/N0 is never above -1 dB, and QPSK 1/3, the most robust \
         waveform here (13), needs -0.51 dB; raise es_n0, or lower attenuation",
    );
    refused(
        &with("waveform = \"9\""),
        "rate.waveform: 9: no waveform of this carrier's bursts; they have 13 to 22",
    );
    refused(
        &with("cra = \"200 kbit/s\", terminals = [{ count = \"11\", sources = [] }]"),
        "rate.terminals: [{ count = \"11\", sources = [] }]: the cra of all terminals need 23 \
         slots of a superframe, and it has 19; lower them, or raise symbol_rate or carriers",
    );
    refused(
        &with("cra = \"3 Mbit/s\", carriers = \"2\""),
        "rate.standard: dvb-rcs2: a cra of 3 Mbit/s is more than the 19 bursts of 355 bytes that a \
         terminal can send in a superframe; lower it",
    );
    refused(
        &with("fca = \"off\", vbdc = \"off\""),
        "rate.standard: dvb-rcs2: the terminal never gets capacity; write vbdc = \"on\", or give \
         it a cra or rbdc",
    );
    refused(
        &with("fca = \"off\", contention_slots = \"0\""),
        "rate.standard: dvb-rcs2: the terminal has no way to ask for capacity; write \
         contention_slots = \"1\", or request_every = \"1 s\"",
    );
    refused(
        &with("backoff = \"4\", request_every = \"1 s\""),
        "rate.backoff: 4: terminals that have slots of their own do not contend; leave it out",
    );
    refused(
        &with("vbdc = \"on\", avbdc = \"on\""),
        "rate.avbdc: on: stands in place of vbdc; write vbdc = \"off\"",
    );
    refused(
        &with("carriers = \"0\""),
        "rate.carriers: 0: carriers is from 1 to 100",
    );
    refused(
        &format!("{plain} }}\nframe = \"10 ms\"\noutages = {{ at = \"1 s\""),
        "frame: 10 ms: the carrier has frames of its own; leave it out",
    );
}

#[derive(Clone, Debug)]
struct Case {
    keys: String,
    /// The slots of a superframe, and what a burst carries at most.
    slots: u64,
    payload: u64,
    packets: Vec<(u64, u32)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let capacity = prop::sample::select(vec![
        "cra = \"64 kbit/s\"",
        "rbdc = \"1 Mbit/s\"",
        "rbdc = \"300 kbit/s\", vbdc = \"off\"",
        "avbdc = \"on\"",
        "cra = \"20 kbit/s\", rbdc = \"200 kbit/s\", vbdc = \"off\", avbdc = \"on\"",
    ]);
    let asking = prop::sample::select(vec![
        "request_every = \"200 ms\"",
        "contention_slots = \"2\"",
        "contention_slots = \"1\", piggyback = \"off\", request_loss = \"20 %\"",
        "request_denial = \"20 %\"",
    ]);
    let packets = prop::collection::vec((0..400 * MS, 40u32..1500), 1..60);
    let rest = (any::<bool>(), any::<bool>(), 1u64..4, 0u64..6, 0u32..14);
    (capacity, asking, packets, rest).prop_map(|(capacity, asking, mut packets, rest)| {
        let (fca, short, carriers, others, es_n0) = rest;
        let on = |it| if it { "on" } else { "off" };
        let (burst, slots, payload) = if short {
            ("short", 59, 194)
        } else {
            ("long", 19, 599)
        };
        let others = match others {
            0 => String::new(),
            count => format!(
                ", terminals = [{{ count = \"{count}\", sources = [{{ kind = \"web\", load = \"50 \
                 kbit/s\", peak = \"500 kbit/s\", stop = \"1 s\" }}] }}]"
            ),
        };
        packets.sort_unstable();
        Case {
            keys: format!(
                "queue = \"1000 packets\"\nrate = {{ standard = \"dvb-rcs2\", symbol_rate = \"1.2 \
                 MBd\", carriers = \"{carriers}\", burst = \"{burst}\", es_n0 = \"{es_n0}.5 dB\", \
                 fca = \"{}\", {capacity}, {asking}{others} }}",
                on(fca)
            ),
            slots,
            payload,
            packets,
        }
    })
}

proptest! {
    /// All packets arrive, in their order, and no superframe has more of them than its slots carry.
    #[test]
    fn a_carrier_keeps_what_it_is_given(case in cases()) {
        let mut path = link(&case.keys);
        let found = left(&mut path, &case.packets);
        prop_assert!(found.iter().all(Option::is_some), "{found:?}");
        prop_assert!(found.is_sorted());
        let mut superframes = std::collections::BTreeMap::new();
        for (at, (sent, ip_bytes)) in found.iter().map(|it| it.unwrap()).zip(&case.packets) {
            prop_assert!(at > *sent);
            *superframes.entry((at - 1) / 26_500_000).or_insert(0) += u64::from(*ip_bytes);
        }
        // A packet may have begun in the one before.
        let most = case.slots * case.payload + 1500;
        prop_assert!(superframes.values().all(|it| *it <= most), "{superframes:?}");
        let counters = path.counters();
        prop_assert_eq!(counters.delivered, case.packets.len() as u64);
        if let Some(sources) = counters.sources {
            prop_assert_eq!(sources.lost, 0);
            prop_assert_eq!(sources.bytes, sources.delivered_bytes);
        }
        let requests = requests(&path);
        let not_heard = requests.lost + requests.denied + requests.collided;
        prop_assert!(requests.granted + not_heard <= requests.sent);
        prop_assert!(requests.granted == 0 || requests.longest_wait >= Span::from_millis(500));
    }

    /// However time advances, the same packets leave at the same times.
    #[test]
    fn what_happens_does_not_depend_on_who_looks(
        case in cases(), mut looks in prop::collection::vec(0..500 * MS, 0..40),
    ) {
        let expected = left(&mut link(&case.keys), &case.packets);
        let mut path = link(&case.keys);
        looks.sort_unstable();
        let mut found = vec![None; case.packets.len()];
        let mut looks = looks.into_iter().peekable();
        let mut next = Time::ZERO;
        for (id, (now, ip_bytes)) in (0..).zip(&case.packets) {
            while let Some(look) = looks.next_if(|it| it <= now) {
                path.advance(ns(look));
                prop_assert!(path.next_arrival() >= next.min(ns(look)));
            }
            next = path.next_arrival();
            path.enqueue(ns(*now), packet(id, *ip_bytes));
        }
        path.advance(ns(1_000 * MS));
        path.advance(Time::NEVER);
        while let Some(outcome) = path.outcome() {
            if let Fate::Delivered { at } = outcome.fate {
                found[usize::try_from(outcome.packet.id).unwrap()] = Some(at.as_nanos() - MS);
            }
        }
        prop_assert_eq!(found, expected);
    }

    /// The announced time of a carrier's next packet is never too late.
    #[test]
    fn no_packet_leaves_before_it_is_announced(case in cases()) {
        let mut path = link(&case.keys);
        for (id, (now, ip_bytes)) in (0..).zip(&case.packets) {
            path.enqueue(ns(*now), packet(id, *ip_bytes));
        }
        let mut steps = 0;
        loop {
            let next = path.next_arrival();
            while path.outcome().is_some() {}
            if next == Time::NEVER {
                break;
            }
            path.advance(Time::from_nanos(next.as_nanos() - MS));
            while let Some(outcome) = path.outcome() {
                if let Fate::Delivered { at } = outcome.fate {
                    prop_assert!(at >= next);
                }
            }
            steps += 1;
            prop_assert!(steps < 1_000_000, "no progress at {next}");
        }
    }
}
