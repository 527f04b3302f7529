//! Packets of QUIC that pass beside the tunnel.

use std::time::Duration;

use bentpipe_endpoint::Received;
use bentpipe_masque::Client;
use bytes::BytesMut;
use noq_proto::{Dir, TransportConfig};
use proptest::prelude::*;

use crate::frames::{CONTROL, data, request_with};
use crate::raw::Raw;
use crate::world::{World, address, client, clock, proxy};

const SECOND: Duration = Duration::from_secs(1);
const H3_MESSAGE_ERROR: u64 = 0x10e;

const CE: u8 = 3;

fn pair(of_client: &str, of_proxy: &str) -> (World, Client) {
    let clock = clock();
    let proxy = proxy(&clock, of_proxy, &[]);
    let client = client(&clock, &format!("{of_client} mode=warm"), None);
    let mut world = World::new(clock, proxy);
    let mut client = client;
    world.run(5 * SECOND, &mut client);
    (world, client)
}

/// A packet with a long header, of version 1.
fn long(destination: &[u8], source: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xc3, 0, 0, 0, 1];
    for id in [destination, source] {
        packet.push(u8::try_from(id.len()).unwrap());
        packet.extend_from_slice(id);
    }
    packet.resize(1200, 9);
    packet
}

/// A packet with a short header.
fn short(destination: &[u8], rest: u8) -> Vec<u8> {
    [&[0x51][..], destination, &[rest; 300]].concat()
}

/// Begins a connection whose ends have these connection IDs.
fn begin(world: &mut World, client: &mut Client, [of_client, of_target]: [&[u8]; 2]) {
    client.send(world.now, address(7), 0, &long(&[1; 8], of_client));
    world.run(world.now + 2 * SECOND, client);
    let flow = world.flows[0];
    world
        .proxy
        .handle_reply(world.now, flow, 0, &long(of_client, of_target));
    world.run(world.now + 2 * SECOND, client);
    assert!(client.poll_arrived().is_some());
    world.at_target.clear();
    world.marks.clear();
    world.wire.clear();
}

/// Sends a packet each way, and says whether they arrived as they were sent.
fn exchange(world: &mut World, client: &mut Client, [of_client, of_target]: [&[u8]; 2]) {
    let (there, back) = (short(of_target, 5), short(of_client, 6));
    client.send(world.now, address(7), CE, &there);
    let flow = world.flows[0];
    world.proxy.handle_reply(world.now, flow, CE, &back);
    world.run(world.now + SECOND, client);
    let (_, _, came) = world.at_target.pop().expect("it comes");
    assert_eq!(came, there);
    let came = client.poll_arrived().expect("it comes back");
    assert_eq!((came.to, &came.payload[..]), (address(7), &back[..]));
}

#[test]
fn short_headers_pass_beside_the_tunnel_with_their_marks_and_come_out_as_they_went_in() {
    let ids: [[&[u8]; 2]; 4] = [
        [&[3; 8], &[4; 8]],
        [&[], &[4; 20]],
        [&[3; 20], &[4; 1]],
        [&[3; 5], &[]],
    ];
    for transform in [
        "forward=scramble",
        "forward=identity",
        "forward=scramble nested=off",
        "forward=scramble carry=streams",
    ] {
        for ids in ids {
            let (mut world, mut client) = pair(transform, transform);
            begin(&mut world, &mut client, ids);
            exchange(&mut world, &mut client, ids);
            let (ours, theirs) = (client.counts(), world.proxy.counts());
            for counts in [&ours, &theirs] {
                assert_eq!(counts.forwarded_packets_total, 1, "{ids:?}");
                assert_eq!(counts.received_forwarded_packets_total, 1, "{ids:?}");
                assert_eq!(counts.virtual_connection_ids_total, 2, "{ids:?}");
                assert_eq!(counts.failed_requests_total, 0);
            }
            assert_eq!(world.marks, [CE]);
            // Who sees the packets between client and proxy recognizes them only if he may.
            let shows = |filler: u8| {
                let mut packets = world.wire.iter();
                packets.any(|it| it.windows(100).any(|it| it == [filler; 100]))
            };
            let is_plain = transform == "forward=identity";
            assert_eq!([shows(5), shows(6)], [is_plain; 2], "{transform}");
        }
    }
}

#[test]
fn the_latest_of_many_connections_of_one_address_are_forwarded() {
    let (mut world, mut client) = pair("forward=scramble", "forward=scramble");
    let mut begun = Vec::new();
    for number in 10..22 {
        let ids = [[number; 8], [100 + number; 8]];
        begin(&mut world, &mut client, [&ids[0], &ids[1]]);
        begun.push(ids);
    }
    // Sixteen connection IDs are registered at a time.
    for (at, [of_client, of_target]) in begun.iter().enumerate() {
        let before = world.proxy.counts().forwarded_packets_total;
        exchange(&mut world, &mut client, [of_client, of_target]);
        let forwarded = world.proxy.counts().forwarded_packets_total - before;
        assert_eq!(forwarded, u64::from(at >= 4), "{at}");
    }
    assert_eq!(client.counts().failed_requests_total, 0);
}

#[test]
fn a_client_that_moves_goes_on_through_the_tunnel() {
    let (mut world, mut client) = pair("forward=scramble", "forward=scramble");
    let ids: [&[u8]; 2] = [&[3; 8], &[4; 8]];
    begin(&mut world, &mut client, ids);
    exchange(&mut world, &mut client, ids);
    world.client_at = address(55);
    // What is forwarded from there the proxy does not know, until the client has asked it in vain.
    for _ in 0..10 {
        client.send(world.now, address(7), 0, &short(ids[1], 5));
        world.run(world.now + SECOND, &mut client);
    }
    assert!(world.at_target.len() > 3, "{}", world.at_target.len());
    world.at_target.clear();
    let forwarded = world.proxy.counts().forwarded_packets_total;
    exchange(&mut world, &mut client, ids);
    assert_eq!(world.proxy.counts().forwarded_packets_total, forwarded);
    assert_eq!(client.counts().failed_requests_total, 0);
    assert_eq!(client.counts().connections_total, 1);
}

#[test]
fn a_packet_that_the_tunnel_would_not_carry_is_not_forwarded() {
    let (mut world, mut client) = pair("forward=scramble", "forward=scramble");
    let ids: [&[u8]; 2] = [&[3; 8], &[4; 8]];
    begin(&mut world, &mut client, ids);
    for (size, forwarded) in [(1412, 1), (1413, 1)] {
        let mut packet = short(ids[1], 5);
        packet.resize(size, 5);
        client.send(world.now, address(7), 0, &packet);
        assert_eq!(client.counts().forwarded_packets_total, forwarded, "{size}");
    }
    assert_eq!(client.counts().too_large_datagrams_total, 1);
}

#[test]
fn connection_ids_that_nobody_registered_go_through_the_tunnel() {
    let (mut world, mut client) = pair("forward=scramble", "forward=scramble");
    begin(&mut world, &mut client, [&[3; 8], &[4; 8]]);
    exchange(&mut world, &mut client, [&[33; 8], &[44; 8]]);
    assert_eq!(world.marks, [0], "the tunnel has none of the packet's");
    assert_eq!(client.counts().forwarded_packets_total, 0);
    assert_eq!(world.proxy.counts().forwarded_packets_total, 0);
}

#[test]
fn where_one_end_does_not_forward_all_goes_through_the_tunnel() {
    for [of_client, of_proxy] in [
        ["forward=scramble", ""],
        ["forward=scramble", "forward=identity"],
        ["", "forward=scramble"],
    ] {
        let (mut world, mut client) = pair(of_client, of_proxy);
        let ids: [&[u8]; 2] = [&[3; 8], &[4; 8]];
        begin(&mut world, &mut client, ids);
        exchange(&mut world, &mut client, ids);
        for counts in [client.counts(), world.proxy.counts()] {
            assert_eq!(counts.forwarded_packets_total, 0, "{of_client}, {of_proxy}");
            assert_eq!(counts.virtual_connection_ids_total, 0);
            assert_eq!(counts.failed_requests_total, 0);
        }
    }
}

#[test]
fn packets_with_a_virtual_connection_id_are_of_its_client_alone_and_of_none_once_that_has_gone() {
    let (mut world, mut client) = pair("forward=identity", "forward=identity");
    let ids: [&[u8]; 2] = [&[3; 8], &[4; 8]];
    begin(&mut world, &mut client, ids);
    exchange(&mut world, &mut client, ids);
    let is_forwarded = |it: &&Vec<u8>| it.ends_with(&[5; 300]);
    let forwarded = world.wire.iter().find(is_forwarded).unwrap().clone();
    let mut again = |world: &mut World, last| {
        let datagram = Received {
            remote: address(last),
            local_ip: None,
            ecn: 0,
            payload: BytesMut::from(&forwarded[..]),
        };
        world.proxy.handle_datagram(world.now, datagram);
        world.run(world.now + SECOND, &mut client);
        std::mem::take(&mut world.at_target).len()
    };
    assert_eq!(again(&mut world, 1), 1, "from where it came");
    assert_eq!(again(&mut world, 99), 0, "from elsewhere");
    world.proxy.close(world.now);
    assert_eq!(again(&mut world, 1), 0, "after the end");
}

/// A world whose proxy forwards, and a request by hand for that.
fn by_hand() -> (World, Raw, noq_proto::StreamId) {
    let clock = clock();
    let proxy = proxy(&clock, "forward=identity", &[]);
    let mut world = World::new(clock.clone(), proxy);
    let raw = Raw::connect_with(&clock, TransportConfig::default());
    world.peers.insert(Raw::from(), Box::new(raw.clone()));
    world.run_raw(2 * SECOND);
    raw.write(Dir::Uni, &CONTROL);
    let path = "/.well-known/masque/udp/192.0.2.6/443/";
    let field = ("proxy-quic-forwarding", "?1;accept-transform=\"identity\"");
    let id = raw.write(
        Dir::Bi,
        &request_with("CONNECT", "connect-udp", path, &[field]),
    );
    world.run_raw(4 * SECOND);
    (world, raw, id)
}

/// A capsule of this type, 0xffe600 and what is added.
fn capsule(kind: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    let header = [0x80, 0xff, 0xe6, kind, 0x40, length];
    data(&[&header[..], value].concat())
}

#[test]
fn capsules_that_break_the_rules_end_their_request_alone() {
    let register = |last| capsule(0x00, &[1, 2, 3, 4, 5, 6, 7, last]);
    let too_many: Vec<u8> = (0..40).flat_map(register).collect();
    for (what, bytes) in [
        ("too many registrations", too_many),
        ("a capsule of proxies", capsule(0x02, &[1, 7, 1, 8])),
        ("one that is cut short", capsule(0x01, &[9, 1, 2])),
        (
            "a connection ID of 256 bytes",
            capsule(0x01, &[&[0x41, 0][..], &[0; 60]].concat()),
        ),
    ] {
        let (mut world, raw, id) = by_hand();
        raw.append(id, &bytes);
        world.run_raw(6 * SECOND);
        assert!(raw.resets().contains(&H3_MESSAGE_ERROR), "{what}");
        assert_eq!(raw.closed_with(), None, "{what}");
        assert_eq!(world.closed, world.flows, "{what}");
    }
}

#[test]
fn one_that_begins_with_another_is_refused_and_one_that_is_closed_makes_room() {
    let (mut world, raw, id) = by_hand();
    let refusal = |id: &[u8]| {
        let header = [0x80, 0xff, 0xe6, 0x05, u8::try_from(id.len()).unwrap()];
        [&header[..], id].concat()
    };
    let has = |raw: &Raw, wanted: &[u8]| raw.answers().windows(wanted.len()).any(|it| it == wanted);
    raw.append(id, &capsule(0x00, &[1, 2, 3, 4]));
    raw.append(id, &capsule(0x00, &[1, 2]));
    world.run_raw(6 * SECOND);
    assert!(has(&raw, &refusal(&[1, 2])));
    assert!(!has(&raw, &refusal(&[1, 2, 3, 4])));
    raw.append(id, &capsule(0x05, &[1, 2, 3, 4]));
    raw.append(id, &capsule(0x00, &[1, 2]));
    world.run_raw(8 * SECOND);
    assert_eq!(world.proxy.counts().virtual_connection_ids_total, 2);
    assert!(raw.resets().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_capsules_and_packets_do_no_harm(
        capsules in prop::collection::vec(
            (0..10_u8, prop::collection::vec(any::<u8>(), 0..60)), 0..60),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
    ) {
        let (mut world, raw, id) = by_hand();
        for (kind, value) in capsules {
            raw.append(id, &capsule(kind, &value));
        }
        world.run_raw(6 * SECOND);
        for payload in packets {
            let datagram = Received {
                remote: Raw::from(),
                local_ip: None,
                ecn: 0,
                payload: BytesMut::from(&payload[..]),
            };
            world.proxy.handle_datagram(world.now, datagram);
            let flow = world.flows[0];
            world.proxy.handle_reply(world.now, flow, 0, &payload);
        }
        world.run_raw(8 * SECOND);
        let mut client = client(&world.clock.clone(), "", None);
        let before = world.at_target.len();
        client.send(world.now, address(7), 0, b"hello");
        world.run(world.now + 3 * SECOND, &mut client);
        prop_assert_eq!(world.at_target.len() - before, 1);
    }
}
