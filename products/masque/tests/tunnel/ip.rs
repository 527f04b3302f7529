//! IP packets in a tunnel (RFC 9484): what passes and what does not, and peers that break rules.

use std::net::IpAddr;
use std::time::Duration;

use bentpipe_endpoint::Role;
use bentpipe_masque::{
    Access, Addressing, Client, ClientSettings, IpSettings, IpTemplate, MasqueProxy, Numbered,
    Prefix, Purpose, Route,
};
use bentpipe_wire::{Endpoints, IpHeader, TCP, encapsulate};
use bytes::BytesMut;
use noq_proto::{Dir, TransportConfig};
use proptest::prelude::*;

use crate::frames::{CONTROL, data, request};
use crate::raw::Raw;
use crate::world::{World, address, clock, proxy_settings, tls, tunnel};

const SECOND: Duration = Duration::from_secs(1);
const H3_MESSAGE_ERROR: u64 = 0x10e;

/// Those behind the client, and the server.
const NEAR: [&str; 2] = ["198.51.100.1", "2001:db8::1"];
const FAR: [&str; 2] = ["203.0.113.1", "2001:db8:f::1"];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn access() -> Access {
    Access {
        clients: NEAR.map(|it| Prefix::of(ip(it))).to_vec(),
        routes: FAR.map(|it| Route::to(Prefix::of(ip(it)))).to_vec(),
    }
}

fn world(words: &str) -> World {
    let clock = clock();
    let mut settings = proxy_settings(&clock, words, &[]);
    settings.ip = Some(IpSettings::Shared(access()));
    World::new(clock.clone(), MasqueProxy::new(settings, clock).unwrap())
}

fn client(world: &World, words: &str, clients: &[&str]) -> Client {
    let settings = ClientSettings {
        tunnel: tunnel(&world.clock, Role::Client, words),
        proxy: address(2),
        proxy_name: "server".to_owned(),
        wanted: Purpose::Ip {
            template: IpTemplate::of_proxy("server").unwrap(),
            clients: Some(clients.iter().map(|it| Prefix::of(ip(it))).collect()),
        },
        token: None,
        tls: tls(&world.clock).0,
    };
    Client::new(settings, world.clock.clone()).unwrap()
}

fn udp(from: &str, to: &str, payload: usize) -> Vec<u8> {
    let at = |text: &str, port| (ip(text), port).into();
    let ends = Endpoints {
        source: at(from, 1000),
        destination: at(to, 443),
    };
    let mut packet = Vec::new();
    encapsulate(&mut packet, ends, 2, 0, &vec![7; payload]);
    packet
}

/// The bytes of a packet behind its hop limit and checksum, which routers do not change.
fn content(packet: &[u8]) -> &[u8] {
    &packet[if packet[0] >> 4 == 4 { 12 } else { 8 }..]
}

#[test]
fn packets_of_both_versions_pass_both_ways_a_round_trip_after_the_first() {
    for words in ["", "carry=streams"] {
        let mut world = world(words);
        let mut client = client(&world, words, &NEAR);
        for (near, far) in NEAR.into_iter().zip(FAR) {
            let (there, back) = (udp(near, far, 100), udp(far, near, 100));
            client.send_packet(world.now, &there);
            world.run(world.now + 2 * SECOND, &mut client);
            let came = world.routed.pop().expect("it comes");
            assert_eq!(content(&came), content(&there));
            world.proxy.handle_packet(world.now, &back);
            world.run(world.now + SECOND, &mut client);
            let came = client.poll_packet().expect("it comes back");
            assert_eq!(content(&came), content(&back));
            let hops = if came[0] >> 4 == 4 { came[8] } else { came[7] };
            assert_eq!(hops, 63, "decremented where it goes into the tunnel");
        }
        assert_eq!(client.counts().requests_total, 1, "{words}");
        assert_eq!(client.counts().refused_packets_total, 0);
    }
}

#[test]
fn packets_with_other_addresses_or_lengths_do_not_pass() {
    let mut world = world("");
    let mut client = client(&world, "mode=warm", &NEAR);
    world.run(5 * SECOND, &mut client);
    // Before the proxy has said where it leads to, any destination will do.
    client.send_packet(world.now, &udp(NEAR[0], FAR[0], 9));
    world.run(world.now + 2 * SECOND, &mut client);
    let mut short = udp(NEAR[0], FAR[0], 9);
    short.pop();
    for wrong in [
        udp("198.51.100.2", FAR[0], 9),
        udp(NEAR[0], "203.0.113.2", 9),
        udp(NEAR[0], FAR[0], 9)[..19].to_vec(),
        short,
        Vec::new(),
    ] {
        client.send_packet(world.now, &wrong);
    }
    for wrong in [
        udp(FAR[0], "198.51.100.2", 9),
        udp("203.0.113.2", NEAR[0], 9),
    ] {
        world.proxy.handle_packet(world.now, &wrong);
    }
    world.run(world.now + SECOND, &mut client);
    assert_eq!(world.routed.len(), 1);
    assert_eq!(client.poll_packet(), None);
    assert_eq!(client.counts().refused_packets_total, 5);
    assert_eq!(world.proxy.counts().refused_packets_total, 2);
}

#[test]
fn the_sender_of_a_packet_that_is_too_large_is_told() {
    let mut world = world("");
    let mut client = client(&world, "mode=warm", &NEAR);
    world.run(5 * SECOND, &mut client);
    client.send_packet(world.now, &udp(NEAR[0], FAR[0], 1412 - 28));
    client.send_packet(world.now, &udp(NEAR[0], FAR[0], 1413 - 28));
    let told = client.poll_packet().expect("an answer at once");
    assert_eq!(
        (told[9], told[20], told[21]),
        (1, 3, 4),
        "fragmentation needed"
    );
    assert_eq!(told[26..28], 1412_u16.to_be_bytes());
    world.run(world.now + 2 * SECOND, &mut client);
    assert_eq!(world.routed.len(), 1, "1412 bytes fit");
    world
        .proxy
        .handle_packet(world.now, &udp(FAR[1], NEAR[1], 1413 - 48));
    world.run(world.now + SECOND, &mut client);
    let told = world.routed.pop().expect("an answer by the route");
    assert_eq!((told[6], told[40]), (58, 2), "packet too big");
    let counts = [client.counts(), world.proxy.counts()];
    assert_eq!(counts.map(|it| it.too_large_datagrams_total), [1, 1]);
}

#[test]
fn a_client_has_what_the_proxy_assigns_and_no_more() {
    let mut world = world("");
    let stranger = "192.0.2.77";
    let mut client = client(&world, "", &[stranger]);
    client.send_packet(world.now, &udp(stranger, FAR[0], 9));
    world.run(world.now + 3 * SECOND, &mut client);
    assert!(world.routed.is_empty(), "it was not assigned");
    assert_eq!(world.proxy.counts().refused_packets_total, 1);
    client.send_packet(world.now, &udp(stranger, FAR[0], 9));
    client.send_packet(world.now, &udp(NEAR[0], FAR[0], 9));
    world.run(world.now + SECOND, &mut client);
    assert_eq!(client.counts().refused_packets_total, 2, "by then it knows");
    assert!(
        world.routed.is_empty(),
        "what it did not ask for is not its own"
    );
}

#[test]
fn a_proxy_for_udp_alone_says_so() {
    let clock = clock();
    let proxy = crate::world::proxy(&clock, "", &[]);
    let mut world = World::new(clock, proxy);
    let mut client = client(&world, "", &NEAR);
    client.send_packet(world.now, &udp(NEAR[0], FAR[0], 9));
    world.run(world.now + 3 * SECOND, &mut client);
    assert!(
        client.error().unwrap().contains("501"),
        "{:?}",
        client.error()
    );
}

fn with_raw() -> (World, Raw) {
    let mut world = world("");
    let raw = Raw::connect_with(&world.clock, TransportConfig::default());
    world.peers.insert(Raw::from(), Box::new(raw.clone()));
    world.run_raw(2 * SECOND);
    raw.write(Dir::Uni, &CONTROL);
    (world, raw)
}

fn regular() -> Vec<u8> {
    request("CONNECT", "connect-ip", "/.well-known/masque/ip/*/*/")
}

/// Somebody else is served.
fn serves_others(mut world: World) {
    let mut client = client(&world, "", &NEAR);
    let before = world.routed.len();
    client.send_packet(world.now, &udp(NEAR[0], FAR[0], 9));
    world.run(world.now + 3 * SECOND, &mut client);
    assert_eq!(world.routed[before..].len(), 1, "{:?}", client.error());
}

#[test]
fn capsules_that_are_wrong_too_long_or_cut_short_end_their_stream_alone() {
    for (capsule, finishes) in [
        (&[1, 7, 0, 4, 192, 0, 2, 1, 33][..], false), // a prefix longer than an address
        (&[1, 7, 0, 5, 192, 0, 2, 1, 32], false),     // a version that is none
        (&[2, 0], false),                             // a request for nothing
        (&[2, 7, 0, 4, 0, 0, 0, 0, 32], false),       // a request without a number
        (&[3, 10, 4, 9, 0, 0, 0, 1, 0, 0, 0, 0], false), // a range that ends before it begins
        (&[1, 0x50, 1], false),                       // 4097 bytes are to come
        (&[3, 0xd0, 0, 0, 0, 0, 0, 0, 0], false),     // 2^60 bytes are to come
        (&[0, 0x80, 1, 0, 0x50], false),              // 65,616 bytes are to come
        (&[3, 10, 4, 9], true),                       // the stream ends in it
    ] {
        let (mut world, raw) = with_raw();
        let id = raw.write(Dir::Bi, &[regular(), data(capsule)].concat());
        if finishes {
            raw.finish(id);
        }
        world.run_raw(6 * SECOND);
        assert!(raw.resets().contains(&H3_MESSAGE_ERROR), "{capsule:?}");
        assert_eq!(raw.closed_with(), None);
        serves_others(world);
    }
}

#[test]
fn requests_for_addresses_without_end_end_their_stream() {
    // Who takes no answers: its stream has credit for 1000 bytes.
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(1000_u32.into());
    let mut world = world("");
    let raw = Raw::connect_with(&world.clock, transport);
    world.peers.insert(Raw::from(), Box::new(raw.clone()));
    world.run_raw(2 * SECOND);
    raw.write(Dir::Uni, &CONTROL);
    let number = |request| Numbered {
        request,
        prefix: Prefix::of(ip("192.0.2.1")),
    };
    let mut capsule = BytesMut::new();
    Addressing::Request((1..500).map(number).collect()).put(&mut capsule);
    let id = raw.write(Dir::Bi, &regular());
    for _ in 0..100 {
        if !raw.resets().is_empty() {
            break;
        }
        raw.append(id, &data(&capsule));
        world.run_raw(world.now + SECOND);
    }
    assert_eq!(raw.resets(), [H3_MESSAGE_ERROR]);
    serves_others(world);
}

#[test]
fn packets_that_were_made_by_hand_do_not_pass_unless_they_are_right() {
    let (mut world, raw) = with_raw();
    raw.write(Dir::Bi, &regular());
    world.run_raw(4 * SECOND);
    let mut damaged = udp(NEAR[0], FAR[0], 9);
    damaged[8] = 1; // and its checksum is as before
    let mut longer = udp(NEAR[0], FAR[0], 9);
    longer.push(0);
    for packet in [
        udp("198.51.100.2", FAR[0], 9), // not assigned
        udp(NEAR[0], "203.0.113.2", 9), // no route
        udp(NEAR[0], "224.0.0.1", 9),   // of one link alone
        udp(NEAR[1], FAR[1], 9)[..47].to_vec(),
        longer,
        damaged,
        Vec::new(),
        vec![0x55; 40],
    ] {
        raw.datagram(&[&[0, 0][..], &packet].concat());
    }
    let right = udp(NEAR[1], FAR[1], 9);
    raw.datagram(&[&[0, 0][..], &right].concat());
    world.run_raw(world.now + SECOND);
    assert_eq!(world.routed, [right]);
    assert_eq!(world.proxy.counts().refused_packets_total, 8);
    assert_eq!(raw.closed_with(), None);
}

#[test]
fn what_a_request_is_limited_to_holds() {
    let limited = |path: &str| request("CONNECT", "connect-ip", path);
    let tcp = |from: &str, to: &str| {
        let header = IpHeader {
            source: ip(from),
            destination: ip(to),
            ecn: 0,
            identification: 0,
            protocol: TCP,
        };
        let mut packet = Vec::new();
        header.write(&mut packet, &[0; 20]);
        packet
    };
    let (mut world, raw) = with_raw();
    raw.write(
        Dir::Bi,
        &limited("/.well-known/masque/ip/203.0.113.0%2F24/6/"),
    );
    world.run_raw(4 * SECOND);
    for packet in [
        udp(NEAR[0], FAR[0], 9),
        tcp(NEAR[1], FAR[1]),
        tcp(NEAR[0], FAR[0]),
    ] {
        raw.datagram(&[&[0, 0][..], &packet].concat());
    }
    world.run_raw(world.now + SECOND);
    assert_eq!(world.routed, [tcp(NEAR[0], FAR[0])]);
    for path in ["192.0.2.0%2F24/*", "target.example/*", "*"] {
        let (mut world, raw) = with_raw();
        raw.write(
            Dir::Bi,
            &limited(&format!("/.well-known/masque/ip/{path}/")),
        );
        world.run_raw(4 * SECOND);
        assert_eq!(world.proxy.counts().refused_requests_total, 1, "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_do_no_harm(
        capsules in prop::collection::vec(
            (0_u8..5, prop::collection::vec(any::<u8>(), 0..40)), 0..8),
        rest in prop::collection::vec(any::<u8>(), 0..100),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..20),
    ) {
        let (mut world, raw) = with_raw();
        let whole = capsules.iter().flat_map(|(kind, value)| {
            let length = u8::try_from(value.len()).unwrap();
            [&[*kind, length][..], value].concat()
        });
        let capsules: Vec<u8> = whole.chain(rest).collect();
        raw.write(Dir::Bi, &[regular(), data(&capsules)].concat());
        for packet in packets {
            raw.datagram(&[&[0, 0][..], &packet].concat());
        }
        world.run_raw(8 * SECOND);
        serves_others(world);
    }
}
