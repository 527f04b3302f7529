//! Clients that are not there, or do not complete their requests, keep no others away.

use std::net::SocketAddr;
use std::time::Duration;

use bentpipe_endpoint::Clock;
use noq_proto::TransportConfig;

use crate::crowds::ask;
use crate::handshakes::shake;
use crate::hostile::connect;
use crate::peer::Peer;
use crate::setup::{Plan, client_tls};
use crate::world::{World, calling};

/// The first datagrams of `count` clients. Each is all that one asks for, or a part of that.
fn firsts(clock: &Clock, count: usize, is_complete: bool) -> Vec<Vec<u8>> {
    let long = "x".repeat(250);
    let protocols = if is_complete {
        vec!["test"]
    } else {
        vec![long.as_str(); 10]
    };
    let first = |_| {
        let mut client = Peer::client(clock);
        let tls = client_tls(clock, &protocols);
        client.connect(clock.elapsed(), tls, TransportConfig::default(), "server");
        let mut buffer = Vec::new();
        let transmit = client.poll_transmit(clock.elapsed(), &mut buffer).unwrap();
        buffer.truncate(transmit.segment_size.unwrap_or(buffer.len()));
        buffer
    };
    (0..count).map(first).collect()
}

fn assert_clean(mut world: World) {
    world.client.forget_all();
    world.run(Duration::from_secs(200));
    world.assert_clean();
}

#[test]
fn who_does_not_finish_what_it_asks_keeps_nobody_away() {
    let mut world = Plan::of(&[""]).build_with(|_, config| config.limits.connections = 160);
    for (number, first) in (1..).zip(firsts(&world.clock, 200, false)) {
        let made_up = SocketAddr::from(([198, 51, 100, number], 4000));
        world.inject(0, made_up, &first);
    }
    let statistics = world.proxies[0].statistics();
    assert_eq!((statistics.arriving, statistics.retried_total), (10, 190));
    ask(&mut world, 1000);
    let statistics = world.proxies[0].statistics();
    assert_eq!(statistics.established_total, 1);
    assert_eq!(statistics.retried_total, 191, "the client, too");
    assert_clean(world);
}

#[test]
fn who_does_not_finish_what_it_asks_uses_up_its_own_seats() {
    let mut world =
        Plan::of(&[""]).build_with(|_, config| config.limits.connections_per_client = 10);
    let one = SocketAddr::from(([198, 51, 100, 1], 4000));
    for first in firsts(&world.clock, 20, false) {
        world.inject(0, one, &first);
    }
    let statistics = world.proxies[0].statistics();
    assert_eq!((statistics.arriving, statistics.retried_total), (5, 15));
    ask(&mut world, 1000);
    let statistics = world.proxies[0].statistics();
    assert_eq!(statistics.retried_total, 15, "nobody else");
    assert_clean(world);
}

#[test]
fn packets_from_a_clients_address_do_not_use_up_its_seats() {
    let mut world =
        Plan::of(&[""]).build_with(|_, config| config.limits.connections_per_client = 10);
    for (number, first) in (1..).zip(firsts(&world.clock, 100, true)) {
        let mut made_up = calling(0);
        made_up.set_port(1000 + number);
        world.inject(0, made_up, &first);
    }
    let statistics = world.proxies[0].statistics();
    assert_eq!((statistics.connections, statistics.retried_total), (5, 95));
    ask(&mut world, 1000);
    let statistics = world.proxies[0].statistics();
    assert_eq!(
        (statistics.established_total, statistics.retried_total),
        (1, 96)
    );
    assert_clean(world);
}

#[test]
fn who_has_shown_that_it_is_there_may_ask_for_much() {
    let mut world =
        Plan::of(&[""]).build_with(|_, config| config.limits.connections_per_client = 2);
    connect(&mut world, "server");
    world.run(Duration::from_secs(1));
    let long = "x".repeat(250);
    let mut protocols = vec![long.as_str(); 10];
    protocols.insert(0, "test");
    shake(&mut world, &protocols, "server").unwrap();
    world.run(Duration::from_secs(1));
    let statistics = world.proxies[0].statistics();
    assert_eq!(statistics.established_total, 2);
    assert!(statistics.retried_total > 0);
    assert_clean(world);
}

#[test]
fn who_was_sent_a_retry_is_not_forwarded_untouched() {
    let mut world = Plan::of(&["auto=on"]).build_with(|_, config| config.limits.connections = 16);
    ask(&mut world, 1000);
    world.run(Duration::from_secs(100));
    let one = SocketAddr::from(([198, 51, 100, 1], 4000));
    world.inject(0, one, &firsts(&world.clock, 1, false)[0]);
    ask(&mut world, 1000);
    let statistics = world.proxies[0].statistics();
    assert_eq!((statistics.asides_total, statistics.retried_total), (1, 1));
    assert_eq!(statistics.established_total, 1);
    assert_clean(world);
}

#[test]
fn names_that_somebody_made_up_are_not_kept_ready() {
    let mut world = Plan::of(&["mode=warm"]).build();
    for (number, first) in (1..).zip(firsts(&world.clock, 20, true)) {
        let made_up = SocketAddr::from(([198, 51, 100, number], 4000));
        world.inject(0, made_up, &first);
    }
    world.run(Duration::from_secs(5));
    assert_eq!(world.proxies[0].statistics().warm, 0);
    ask(&mut world, 1000);
    assert_eq!(world.proxies[0].statistics().warm, 1);
    // Nor are others' for longer.
    for (number, first) in (1..).zip(firsts(&world.clock, 20, true)) {
        world.run(Duration::from_mins(1));
        let made_up = SocketAddr::from(([198, 51, 100, number], 5000));
        world.inject(0, made_up, &first);
    }
    world.run(Duration::from_mins(1));
    assert_eq!(world.proxies[0].statistics().warm, 0);
}
