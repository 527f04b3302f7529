//! Clients that each have addresses of their own of a pool (RFC 9484): what passes, who is told why
//! something does not, and what a client can cost.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_endpoint::Role;
use bentpipe_masque::{
    Assigned, Client, ClientSettings, Header, IpSettings, IpTemplate, MasqueProxy, Pool, Prefix,
    ProxySettings, Purpose, Route,
};
use bentpipe_wire::{Endpoints, encapsulate};
use noq_proto::Dir;

use crate::frames::{CONTROL, request};
use crate::raw::Raw;
use crate::world::{World, address, clock, proxy_settings, tls, tunnel};

const SECOND: Duration = Duration::from_secs(1);
const FAR: &str = "203.0.113.1";
const PATH: &str = "/.well-known/masque/ip/*/*/";

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

fn settings(clock: &bentpipe_endpoint::Clock, pool: &Arc<Pool>, routes: &[&str]) -> ProxySettings {
    let mut settings = proxy_settings(clock, "", &[]);
    settings.ip = Some(IpSettings::Assigned(Assigned {
        pool: pool.clone(),
        thread: 0,
        most_of_client: 3,
        routes: routes.iter().map(|it| Route::to(prefix(it))).collect(),
    }));
    settings
}

/// A proxy with a pool of these prefixes, which carries packets to one network.
fn world(prefixes: &[&str]) -> (World, Arc<Pool>) {
    let prefixes: Vec<_> = prefixes.iter().map(|it| prefix(it)).collect();
    let pool = Arc::new(Pool::new(&prefixes).unwrap());
    let clock = clock();
    let settings = settings(&clock, &pool, &["203.0.113.0/24"]);
    let proxy = MasqueProxy::new(settings, clock.clone()).unwrap();
    (World::new(clock, proxy), pool)
}

fn client(world: &World) -> Client {
    let settings = ClientSettings {
        tunnel: tunnel(&world.clock, Role::Client, ""),
        proxy: address(2),
        proxy_name: "server".to_owned(),
        wanted: Purpose::Ip {
            template: IpTemplate::of_proxy("server").unwrap(),
            clients: None,
        },
        token: None,
        tls: tls(&world.clock).0,
    };
    Client::new(settings, world.clock.clone()).unwrap()
}

fn raw(world: &mut World) -> Raw {
    let raw = Raw::connect(&world.clock);
    world.peers.insert(Raw::from(), Box::new(raw.clone()));
    world.run_raw(world.now + 2 * SECOND);
    raw.write(Dir::Uni, &CONTROL);
    raw
}

fn udp(from: &str, to: &str, payload: usize) -> Vec<u8> {
    let at = |text: &str, port| (text.parse::<IpAddr>().unwrap(), port).into();
    let ends = Endpoints {
        source: at(from, 1000),
        destination: at(to, 443),
    };
    let mut packet = Vec::new();
    encapsulate(&mut packet, ends, 0, 0, &vec![7; payload]);
    packet
}

fn hop_limit(packet: &[u8]) -> u8 {
    Header::read(packet).unwrap().hop_limit
}

/// Type and code of a message of ICMP in IPv4, and who it is from.
fn icmp(packet: &[u8]) -> ([u8; 2], String) {
    let header = Header::read(packet).unwrap();
    assert_eq!(header.protocol, 1);
    ([packet[20], packet[21]], header.source.to_string())
}

#[test]
fn a_client_asks_by_itself_and_sends_from_what_it_is_given() {
    let (mut world, pool) = world(&["10.9.0.0/24", "fd00:9::/64"]);
    let mut client = client(&world);
    world.run(4 * SECOND, &mut client);
    let network = client.poll_network().expect("it was told");
    let addresses = network.addresses.iter().map(ToString::to_string);
    assert_eq!(addresses.collect::<Vec<_>>(), ["10.9.0.2", "fd00:9::2"]);
    assert_eq!(network.routes, [Route::to(prefix("203.0.113.0/24"))]);
    assert_eq!(client.poll_network(), None, "that is not new");
    client.send_packet(world.now, &udp("10.9.0.2", FAR, 100));
    world.run(world.now + SECOND, &mut client);
    assert_eq!(
        hop_limit(&world.routed.pop().unwrap()),
        64,
        "the client is the host"
    );
    let back = udp(FAR, "10.9.0.2", 100);
    assert!(world.proxy.handle_packet(world.now, &back).is_some());
    world.run(world.now + SECOND, &mut client);
    assert_eq!(
        hop_limit(&client.poll_packet().unwrap()),
        63,
        "the proxy is a router"
    );
    // Without packets for long it keeps its addresses.
    world.run(world.now + Duration::from_mins(10), &mut client);
    assert_eq!((pool.count(), client.counts().requests_total), (2, 1));
    client.close(world.now);
    world.run(world.now + 5 * SECOND, &mut client);
    assert_eq!(pool.count(), 0);
    assert!(!world.proxy.has_client("10.9.0.2".parse().unwrap()));
}

#[test]
fn no_client_sends_from_anothers_address_or_gets_its_packets() {
    let (mut world, _) = world(&["10.9.0.0/24"]);
    let raw = raw(&mut world);
    let mut first = client(&world);
    world.run(world.now + 4 * SECOND, &mut first);
    assert_eq!(first.poll_network().unwrap().addresses.len(), 1);
    raw.write(Dir::Bi, &request("CONNECT", "connect-ip", PATH));
    world.run(world.now + 3 * SECOND, &mut first);
    for source in ["10.9.0.2", "10.9.0.1", "192.0.2.1", "10.9.0.3"] {
        raw.datagram(&[&[0, 0][..], &udp(source, FAR, 9)].concat());
    }
    world.run(world.now + SECOND, &mut first);
    assert_eq!(world.routed, [udp("10.9.0.3", FAR, 9)]);
    assert_eq!(world.proxy.counts().refused_packets_total, 3);
    world
        .proxy
        .handle_packet(world.now, &udp(FAR, "10.9.0.2", 9));
    world.run(world.now + SECOND, &mut first);
    assert!(first.poll_packet().is_some());
    assert_eq!(
        world.proxy.error_counts().told,
        0,
        "nobody is told of a forged source"
    );
}

#[test]
fn when_no_address_is_left_a_client_is_refused_until_one_is_free() {
    let (mut world, pool) = world(&["10.9.0.0/30"]);
    let raw = raw(&mut world);
    raw.write(Dir::Bi, &request("CONNECT", "connect-ip", PATH));
    world.run_raw(world.now + 3 * SECOND);
    assert_eq!(pool.count(), 1);
    let mut client = client(&world);
    world.run(world.now + 20 * SECOND, &mut client);
    assert_eq!(client.error(), Some("the proxy answered with status 503"));
    assert_eq!(client.poll_network(), None);
    // After 1, 2, 4 and 8 seconds, each with an answer of one.
    let asked = client.counts().requests_total;
    assert!((4..=6).contains(&asked), "{asked}");
    world.peers.remove(&Raw::from());
    world.run(world.now + Duration::from_mins(2), &mut client);
    assert_eq!(
        client
            .poll_network()
            .expect("the other is gone")
            .addresses
            .len(),
        1
    );
}

#[test]
fn requests_of_one_client_do_not_take_all_addresses() {
    let (mut world, pool) = world(&["10.9.0.0/24"]);
    let raw = raw(&mut world);
    for _ in 0..5 {
        raw.write(Dir::Bi, &request("CONNECT", "connect-ip", PATH));
    }
    world.run_raw(world.now + 3 * SECOND);
    assert_eq!(pool.count(), 3);
    assert_eq!(world.proxy.counts().refused_requests_total, 2);
    // What a request is limited to and must not reach takes none.
    raw.write(
        Dir::Bi,
        &request(
            "CONNECT",
            "connect-ip",
            "/.well-known/masque/ip/192.0.2.1/*/",
        ),
    );
    world.run_raw(world.now + 3 * SECOND);
    assert_eq!(pool.count(), 3);
}

#[test]
fn senders_are_told_why_by_the_proxy_and_no_more_than_a_bound() {
    let (mut world, _) = world(&["10.9.0.0/24"]);
    let mut client = client(&world);
    world.run(4 * SECOND, &mut client);
    // Nobody has this address; this packet has passed all its routers; this one is too large.
    world
        .proxy
        .handle_packet(world.now, &udp(FAR, "10.9.0.77", 9));
    let mut tired = udp(FAR, "10.9.0.2", 9);
    tired[8] = 1;
    tired[10..12].fill(0);
    let sum: u32 = tired[..20]
        .chunks(2)
        .map(|it| u32::from(it[0]) << 8 | u32::from(it[1]))
        .sum();
    let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    tired[10..12].copy_from_slice(&sum.to_be_bytes());
    world.proxy.handle_packet(world.now, &tired);
    world
        .proxy
        .handle_packet(world.now, &udp(FAR, "10.9.0.2", 1413 - 28));
    world.run(world.now + SECOND, &mut client);
    let told: Vec<_> = world.routed.drain(..).map(|it| icmp(&it)).collect();
    // The kernel takes no packet from the proxy's own address, which is its own.
    let client = || "10.9.0.2".to_owned();
    let expected = [
        ([3, 1], "10.9.0.77".to_owned()),
        ([11, 0], client()),
        ([3, 4], client()),
    ];
    assert_eq!(told, expected);
    for _ in 0..1000 {
        world
            .proxy
            .handle_packet(world.now, &udp(FAR, "10.9.0.77", 9));
    }
    let counts = world.proxy.error_counts();
    assert_eq!((counts.told, counts.withheld), (53, 950));
}

#[test]
fn a_client_is_told_where_no_route_leads() {
    let (mut world, _) = world(&["10.9.0.0/24"]);
    let raw = raw(&mut world);
    raw.write(Dir::Bi, &request("CONNECT", "connect-ip", PATH));
    world.run_raw(world.now + 3 * SECOND);
    let nowhere = udp("10.9.0.2", "192.0.2.9", 9);
    for _ in 0..30 {
        raw.datagram(&[&[0, 0][..], &nowhere].concat());
    }
    world.run_raw(world.now + SECOND);
    assert!(world.routed.is_empty());
    let counts = world.proxy.error_counts();
    assert_eq!((counts.told, counts.withheld), (10, 20));
    assert_eq!(world.proxy.counts().sent_datagrams_total, 10);
    // A client of ours does not even send it, and tells its host.
    world.peers.remove(&Raw::from());
    let mut client = client(&world);
    world.run(world.now + 4 * SECOND, &mut client);
    let own = client.poll_network().unwrap().addresses[0].to_string();
    for _ in 0..30 {
        client.send_packet(world.now, &udp(&own, "192.0.2.9", 9));
    }
    let told = client.poll_packet().expect("it is told at once");
    assert_eq!(icmp(&told), ([3, 13], "192.0.2.9".to_owned()));
    let counts = client.error_counts();
    assert_eq!((counts.told, counts.withheld), (10, 20));
}

#[test]
fn new_routes_hold_for_requests_that_are_there_and_clients_are_told() {
    let (mut world, pool) = world(&["10.9.0.0/24"]);
    let mut client = client(&world);
    world.run(4 * SECOND, &mut client);
    client.poll_network().unwrap();
    let settings = settings(&world.clock, &pool, &["192.0.2.0/24"]);
    world.proxy.reconfigure(world.now, settings).unwrap();
    world.run(world.now + SECOND, &mut client);
    let network = client.poll_network().expect("it is told");
    assert_eq!(network.routes, [Route::to(prefix("192.0.2.0/24"))]);
    client.send_packet(world.now, &udp("10.9.0.2", "192.0.2.9", 9));
    client.send_packet(world.now, &udp("10.9.0.2", FAR, 9));
    world.run(world.now + SECOND, &mut client);
    assert_eq!(world.routed.len(), 1);
    assert_eq!(client.counts().requests_total, 1);
}
