//! Clients that break rules: an error that RFC 9114 or RFC 9297 names, in bounded memory, and
//! others are served as before.

use std::time::Duration;

use noq_proto::{Dir, TransportConfig};
use proptest::prelude::*;

use crate::frames::{CONTROL, data, request};
use crate::raw::Raw;
use crate::world::{World, address, client, clock, proxy};

const SECOND: Duration = Duration::from_secs(1);

// RFC 9114, section 8.1, and RFC 9297, section 5.2.
const H3_DATAGRAM_ERROR: u64 = 0x33;
const H3_FRAME_UNEXPECTED: u64 = 0x105;
const H3_EXCESSIVE_LOAD: u64 = 0x107;
const H3_REQUEST_CANCELLED: u64 = 0x10c;
const H3_MESSAGE_ERROR: u64 = 0x10e;

fn with_raw() -> (World, Raw) {
    with_raw_and("", TransportConfig::default())
}

/// With these options of the proxy, and this configuration of the peer.
fn with_raw_and(words: &str, transport: TransportConfig) -> (World, Raw) {
    let clock = clock();
    let mut world = World::new(clock.clone(), proxy(&clock, words, &[]));
    let raw = Raw::connect_with(&clock, transport);
    world.peers.insert(Raw::from(), Box::new(raw.clone()));
    world.run_raw(2 * SECOND);
    (world, raw)
}

fn regular() -> Vec<u8> {
    request(
        "CONNECT",
        "connect-udp",
        "/.well-known/masque/udp/192.0.2.6/443/",
    )
}

/// Somebody else is served.
fn serves_others(mut world: World) {
    let mut client = client(&world.clock.clone(), "", None);
    let before = world.at_target.len();
    client.send(world.now, address(7), 0, b"hello");
    let until = world.now + 3 * SECOND;
    world.run(until, &mut client);
    assert_eq!(world.at_target[before..].len(), 1, "{:?}", client.error());
}

/// Whether an answer has this status.
fn has_status(raw: &Raw, status: &str) -> bool {
    let wanted = match status {
        // In the static table (RFC 9204, appendix A).
        "200" => vec![0xd9],
        "400" => vec![0xff, 67 - 63],
        // Not in the table: three digits in Huffman's code (RFC 7541, appendix B).
        "405" => vec![0x83, 0x68, 0x0d, 0xff],
        "501" => vec![0x82, 0x6c, 0x01],
        other => panic!("{other}"),
    };
    let answers = raw.answers();
    answers.windows(wanted.len()).any(|it| it == wanted)
}

#[test]
fn a_regular_request_by_hand_succeeds_and_its_contexts_are_bounded() {
    let (mut world, raw) = with_raw();
    raw.write(Dir::Uni, &CONTROL);
    raw.write(Dir::Bi, &regular());
    world.run_raw(4 * SECOND);
    assert!(has_status(&raw, "200"), "{:x?}", raw.answers());
    // Stream 0, contexts that nobody registered, then one payload.
    for context in 0..2000_u16 {
        let [high, low] = (0x4000 | context).to_be_bytes();
        raw.datagram(&[0, high, low, 1, 2, 3]);
    }
    world.run_raw(10 * SECOND);
    let payloads: Vec<_> = world.at_target.iter().map(|it| &it.2[..]).collect();
    assert_eq!(payloads, [&[1, 2, 3][..]], "context 0, in two bytes");
    assert_eq!(world.proxy.counts().unknown_datagrams_total, 1999);
    assert_eq!(raw.closed_with(), None);
}

#[test]
fn a_request_for_anything_else_is_answered_with_an_error() {
    for (method, protocol, path, status) in [
        (
            "CONNECT",
            "connect-udp",
            "/.well-known/masque/udp/192.0.2.6/0/",
            "400",
        ),
        (
            "CONNECT",
            "connect-udp",
            "/{target_host}/{target_port}/",
            "400",
        ),
        (
            "CONNECT",
            "connect-udp",
            "/.well-known/masque/udp/%zz/443/",
            "400",
        ),
        ("CONNECT", "webtransport", "/", "501"),
        ("GET", "", "/.well-known/masque/udp/192.0.2.6/443/", "405"),
    ] {
        let (mut world, raw) = with_raw();
        raw.write(Dir::Uni, &CONTROL);
        raw.write(Dir::Bi, &request(method, protocol, path));
        world.run_raw(4 * SECOND);
        assert!(has_status(&raw, status), "{path}: {:x?}", raw.answers());
        assert!(world.flows.is_empty(), "{path}");
        serves_others(world);
    }
}

#[test]
fn a_capsule_that_is_too_long_or_cut_short_ends_its_stream_alone() {
    let too_long = data(&[0x00, 0xc1, 0, 0, 0, 0, 0, 0, 0, 0x00]);
    let cut_short = data(&[0x00, 0x40, 0x64, 0x00, 1, 2, 3]);
    for (bytes, finishes) in [(too_long, false), (cut_short, true)] {
        let (mut world, raw) = with_raw();
        raw.write(Dir::Uni, &CONTROL);
        let id = raw.write(Dir::Bi, &[regular(), bytes].concat());
        if finishes {
            raw.finish(id);
        }
        world.run_raw(6 * SECOND);
        assert!(
            raw.resets().contains(&H3_MESSAGE_ERROR),
            "{:x?}",
            raw.resets()
        );
        assert_eq!(raw.closed_with(), None);
        assert_eq!(world.closed, world.flows);
        serves_others(world);
    }
}

#[test]
fn a_frame_without_end_is_an_excessive_load() {
    // Of an unknown type, of HEADERS, and on the control stream: 2^60 bytes are to come.
    let endless = |kind: u8| [&[kind, 0xd0, 0, 0, 0, 0, 0, 0, 0][..], &vec![7; 400_000]].concat();
    for (dir, bytes) in [
        (Dir::Bi, endless(0x21)),
        (Dir::Bi, endless(0x01)),
        (Dir::Uni, [&CONTROL[..], &endless(0x21)].concat()),
    ] {
        let (mut world, raw) = with_raw();
        raw.write(dir, &bytes);
        world.run_raw(20 * SECOND);
        assert_eq!(raw.closed_with(), Some(H3_EXCESSIVE_LOAD), "{dir:?}");
        serves_others(world);
    }
}

#[test]
fn a_datagram_of_no_stream_and_a_frame_out_of_place_close_the_connection() {
    let (mut world, raw) = with_raw();
    raw.write(Dir::Uni, &CONTROL);
    world.run_raw(3 * SECOND);
    raw.datagram(&[0xff; 8]); // a quarter of no stream ID, and nothing else comes
    world.run_raw(5 * SECOND);
    assert_eq!(raw.closed_with(), Some(H3_DATAGRAM_ERROR));
    serves_others(world);

    let (mut world, raw) = with_raw();
    raw.write(Dir::Uni, &CONTROL);
    raw.write(Dir::Bi, &data(b"before any headers"));
    world.run_raw(4 * SECOND);
    assert_eq!(raw.closed_with(), Some(H3_FRAME_UNEXPECTED));
    serves_others(world);
}

#[test]
fn capsules_of_a_request_that_has_ended_are_stopped() {
    let (mut world, raw) = with_raw_and("carry=streams", TransportConfig::default());
    raw.write(Dir::Uni, &CONTROL);
    let id = raw.write(Dir::Bi, &regular());
    world.run_raw(4 * SECOND);
    raw.stop(id);
    world.run_raw(5 * SECOND);
    let flow = world.flows[0];
    world.proxy.handle_reply(world.now, flow, 0, b"a reply");
    world.run_raw(6 * SECOND);
    assert_eq!(world.closed, [flow]);
    assert!(raw.stops().is_empty());
    let capsule = data(&[&[0x00, 0x40, 101, 0x00][..], &[7; 100]].concat());
    raw.append(id, &capsule);
    world.run_raw(8 * SECOND);
    assert_eq!(raw.stops(), [H3_REQUEST_CANCELLED]);
    assert!(world.at_target.is_empty());
    assert_eq!(raw.closed_with(), None);
    serves_others(world);
}

#[test]
fn who_grants_no_credit_for_answers_cannot_fill_the_memory() {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(0_u32.into());
    let (mut world, raw) = with_raw_and("", transport);
    raw.write(Dir::Uni, &CONTROL);
    let streams = [(); 4].map(|()| raw.write(Dir::Bi, &regular()));
    let (piece, mut written) = (vec![0; 64 << 10], 0);
    while raw.closed_with().is_none() {
        assert!(written < 64 << 20, "{written}");
        for id in streams {
            written += raw.append(id, &piece);
        }
        let next = world.now + Duration::from_millis(100);
        world.run_raw(next);
    }
    // No stream alone has reached what is allowed to all of them.
    assert_eq!(raw.closed_with(), Some(H3_EXCESSIVE_LOAD));
    assert!(written > 30 << 20, "{written}");
    serves_others(world);
}

#[test]
fn stale_datagrams_leave_room_for_those_that_come_before_their_request() {
    let (mut world, raw) = with_raw();
    raw.write(Dir::Uni, &CONTROL);
    for _ in 0..64 {
        raw.datagram(&[0x3f, 0, 7]); // of a request that never comes
    }
    world.run_raw(world.now + SECOND);
    raw.datagram(&[0, 0, 1, 2, 3]);
    world.run_raw(world.now + SECOND);
    raw.write(Dir::Bi, &regular());
    world.run_raw(world.now + SECOND);
    let payloads: Vec<_> = world.at_target.iter().map(|it| &it.2[..]).collect();
    assert_eq!(payloads, [&[1, 2, 3][..]]);
    assert_eq!(world.proxy.counts().unknown_datagrams_total, 1);
}

#[test]
fn datagrams_of_requests_that_never_come_take_bounded_memory() {
    let (mut world, raw) = with_raw();
    raw.write(Dir::Uni, &CONTROL);
    for _ in 0..1000 {
        raw.datagram(&[&[0x3f, 0][..], &[7; 1000]].concat());
        let next = world.now + Duration::from_millis(5);
        world.run_raw(next);
    }
    world.run_raw(world.now + 60 * SECOND);
    assert!(world.proxy.counts().unknown_datagrams_total > 800);
    serves_others(world);
}

#[test]
fn there_are_no_more_connections_than_are_allowed() {
    let (mut world, _raw) = with_raw();
    for last in 100..110 {
        let raw = Raw::connect(&world.clock.clone());
        world.peers.insert(address(last), Box::new(raw));
    }
    world.run_raw(world.now + 5 * SECOND);
    assert_eq!(world.proxy.busy().0, 4);
}

#[test]
fn who_shows_no_token_keeps_nobody_out() {
    let clock = clock();
    let mut world = World::new(clock.clone(), proxy(&clock, "", &["token"]));
    for last in 100..104 {
        let raw = Raw::connect(&clock);
        world.peers.insert(address(last), Box::new(raw));
    }
    world.run_raw(5 * SECOND);
    assert_eq!(world.proxy.busy().0, 4, "all places are taken");
    world.run_raw(20 * SECOND);
    assert_eq!(
        world.proxy.busy().0,
        1,
        "those that half of the places leave room for"
    );
    let mut client = client(&clock, "", Some("token"));
    client.send(world.now, address(7), 0, b"hello");
    world.run(world.now + 3 * SECOND, &mut client);
    assert_eq!(world.at_target.len(), 1, "{:?}", client.error());
}

#[test]
fn datagrams_that_wait_for_sockets_are_bounded_and_counted() {
    let (mut world, raw) = with_raw();
    world.answer = None;
    raw.write(Dir::Uni, &CONTROL);
    for stream in 0..8_u8 {
        raw.write(Dir::Bi, &regular());
        for _ in 0..6 {
            for _ in 0..10 {
                raw.datagram(&[&[stream, 0][..], &[7; 1000]].concat());
            }
            world.run_raw(world.now + SECOND);
        }
    }
    let counts = world.proxy.counts();
    assert_eq!(counts.received_datagrams_total, 480);
    let fit = (256 << 10) / 1000;
    assert_eq!(counts.queue_full_datagrams_total, 480 - fit);
    for flow in world.flows.clone() {
        world.proxy.answer(world.now, flow, Ok(()));
    }
    world.run_raw(world.now + SECOND);
    assert_eq!(world.at_target.len() as u64, fit);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_do_no_harm(
        streams in prop::collection::vec(
            (any::<bool>(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..200)), 0..4),
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
        capsules in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (mut world, raw) = with_raw();
        raw.write(Dir::Uni, &CONTROL);
        raw.write(Dir::Bi, &[regular(), data(&capsules)].concat());
        for (is_request, follows, bytes) in streams {
            let (dir, start) = match (is_request, follows) {
                (true, true) => (Dir::Bi, regular()),
                (true, false) => (Dir::Bi, Vec::new()),
                (false, true) => (Dir::Uni, vec![0x54]),
                (false, false) => (Dir::Uni, Vec::new()),
            };
            raw.write(dir, &[start, bytes].concat());
        }
        for bytes in datagrams {
            raw.datagram(&bytes);
        }
        world.run_raw(8 * SECOND);
        serves_others(world);
    }
}
