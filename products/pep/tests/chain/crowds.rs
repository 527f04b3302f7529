//! Many connections and flows that are forwarded untouched: nothing is mixed up, and nothing is
//! left.

use std::time::Duration;

use bentpipe_pep::Event;
use noq_proto::{Connection, Side, TransportConfig};

use crate::hostile::connect;
use crate::setup::{Plan, client_tls};
use crate::traffic::{Application, Plan as Stream};
use crate::world::{Path, World};

/// A connection with one exchange; how long it took.
pub fn ask(world: &mut World, bytes: usize) -> Duration {
    let start = world.now;
    world.client.events.clear();
    world.server.events.clear();
    let tls = client_tls(&world.clock, &["test"]);
    let handle = world
        .client
        .connect(start, tls, TransportConfig::default(), "server");
    let streams = [Stream::both_ways(bytes)];
    let mut client = Application::new(Side::Client, &streams, 1);
    let mut server = Application::new(Side::Server, &streams, 2);
    while !(client.is_done() && server.is_done()) {
        assert!(
            world.step(start + Duration::from_mins(1)),
            "it came to a stop"
        );
        client.act(&mut world.client);
        server.act(&mut world.server);
    }
    client.check();
    server.check();
    let took = world.now.saturating_sub(start);
    world.client.close(world.now, handle, 0, "");
    world.run(Duration::from_secs(2));
    took
}

#[test]
fn who_needs_no_proxy_is_forwarded_untouched() {
    for words in ["auto=on", "auto=on mode=sequential"] {
        let mut world = Plan::of(&[words]).build();
        // The first is measured, and waits for that.
        ask(&mut world, 1000);
        world.run(Duration::from_mins(1));
        ask(&mut world, 100_000);
        let statistics = world.proxies[0].statistics();
        assert_eq!(statistics.asides_total, 2);
        assert_eq!(statistics.established_total, 0);
        assert_eq!(statistics.connections_total, 1, "the one that was measured");
        world.run(Duration::from_secs(100));
        let events: Vec<_> = std::iter::from_fn(|| world.proxies[0].poll_event()).collect();
        assert!(events.contains(&Event::BypassClosed { flow: 2 }));
        world.assert_clean();
    }
}

/// Two clients, one after the other, through two proxies that both know before that the hop between
/// them is short; how many flows each proxy forwarded untouched, and how many connections each
/// ended.
fn both_step_aside(one_socket: bool, pause: Duration) -> [(u64, u64); 2] {
    let plan = Plan::of(&["mode=warm auto=on", "mode=warm auto=on"]);
    let mut world = plan.build_with(|_, config| {
        config.pool.from_start = vec![("server".to_owned(), b"test".to_vec())];
        config.one_socket = one_socket;
    });
    world.one_socket = one_socket;
    world.run(Duration::from_secs(5));
    for _ in 0..2 {
        ask(&mut world, 100_000);
        world.run(pause);
    }
    let counted = [0, 1].map(|proxy| {
        let statistics = world.proxies[proxy].statistics();
        (statistics.asides_total, statistics.connections_total)
    });
    // The pooled connections are as they were.
    world.run(Duration::from_secs(100));
    assert!(world.proxies.iter().all(|it| it.statistics().warm == 1));
    assert!(world.proxies.iter().all(|it| it.statistics().asides == 0));
    counted
}

#[test]
fn flows_of_one_address_go_as_those_of_many() {
    let long = Duration::from_mins(1);
    let apart = both_step_aside(false, long);
    assert_eq!(apart, [(2, 0), (2, 1)]);
    assert_eq!(both_step_aside(true, long), apart);
    // The second comes while the first flow is still there.
    assert_eq!(both_step_aside(true, Duration::ZERO), apart);
}

#[test]
fn marks_go_untouched_too() {
    let mut world = Plan::of(&["auto=on"]).build();
    for what in ["a flow that was measured first", "one that was not"] {
        world.unmarked.fill(0);
        ask(&mut world, 1000);
        assert_eq!(world.unmarked[0], world.unmarked[1], "{what}");
    }
}

#[test]
fn a_flow_that_gets_no_socket_is_forgotten() {
    let mut world = Plan::of(&["auto=on"]).build();
    ask(&mut world, 1000);
    world.run(Duration::from_mins(1));
    while world.proxies[0].poll_event().is_some() {}
    let tls = client_tls(&world.clock, &["test"]);
    let transport = TransportConfig::default();
    let now = world.now;
    let handle = world.client.connect(now, tls, transport, "server");
    // Without a socket nothing gets through.
    world.paths[1].loss = 100;
    while world.proxies[0].statistics().asides_total < 2 {
        assert!(world.step(Duration::from_mins(10)), "no flow");
    }
    world.proxies[0].forget_bypass(2);
    world.paths[1].loss = 0;
    let events: Vec<_> = std::iter::from_fn(|| world.proxies[0].poll_event()).collect();
    assert_eq!(events.last(), Some(&Event::BypassClosed { flow: 2 }));
    // The client tries again, and there is a socket for that.
    world.run(Duration::from_secs(5));
    assert!(!world.client.connections[&handle].is_handshaking());
    assert_eq!(world.proxies[0].statistics().asides_total, 3);
    world.client.close(world.now, handle, 0, "");
    world.run(Duration::from_secs(100));
    world.assert_clean();
}

#[test]
fn whose_hop_is_long_is_not() {
    for words in [&["auto=on"][..], &["", "auto=on"]] {
        let mut plan = Plan::of(words);
        plan.paths[1] = Path::of(300);
        let mut world = plan.build();
        for _ in 0..3 {
            ask(&mut world, 1000);
            world.run(Duration::from_mins(1));
        }
        let proxy = world.proxies.last().unwrap();
        assert_eq!(proxy.statistics().asides_total, 0);
    }
}

#[test]
fn a_crowd_has_to_show_that_it_is_there() {
    let mut world = Plan::of(&["mode=sequential"]).build_with(|_, config| {
        // No handshake may be under way beside another.
        config.limits.connections = 4;
    });
    for _ in 0..2 {
        connect(&mut world, "server");
    }
    world.run(Duration::from_secs(1));
    let statistics = world.proxies[0].statistics();
    assert_eq!(
        (statistics.retried_total, statistics.established_total),
        (1, 2)
    );
}

#[test]
fn many_connections_at_once() {
    connections_at_once(150);
}

#[test]
#[ignore = "half a minute: make soak"]
fn a_thousand_connections_at_once() {
    connections_at_once(1000);
}

fn connections_at_once(count: u64) {
    let mut world = Plan::of(&[""]).build();
    for _ in 0..count {
        let tls = client_tls(&world.clock, &["test"]);
        world
            .client
            .connect(world.now, tls, TransportConfig::default(), "server");
    }
    world.run(Duration::from_secs(5));
    let statistics = world.proxies[0].statistics();
    assert_eq!(statistics.established_total, count);
    assert_eq!(statistics.connections, count);
    let handles: Vec<_> = world.client.connections.keys().copied().collect();
    for handle in handles {
        world.client.close(world.now, handle, 0, "");
    }
    world.run(Duration::from_mins(1));
    world.assert_clean();
}

#[test]
fn datagrams_cross_both_ways_while_there_is_room() {
    let mut world = Plan::of(&["", ""]).build();
    let tls = client_tls(&world.clock, &["test"]);
    let handle = world
        .client
        .connect(world.now, tls, TransportConfig::default(), "server");
    // They may be sent before the next hop is connected.
    while world.client.connections[&handle].is_handshaking() {
        world.step(Duration::from_mins(1));
    }
    let send = |connection: &mut Connection, text: &'static [u8]| {
        connection.datagrams().send(text.into(), false).unwrap();
    };
    send(world.client.connections.get_mut(&handle).unwrap(), b"one");
    world.run(Duration::from_secs(2));
    send(world.client.connections.get_mut(&handle).unwrap(), b"two");
    let server = world.server.connections.values_mut().next().unwrap();
    send(server, b"back");
    world.run(Duration::from_secs(2));
    let server = world.server.connections.values_mut().next().unwrap();
    let received: Vec<_> = std::iter::from_fn(|| server.datagrams().recv()).collect();
    assert_eq!(received, ["one", "two"]);
    let client = world.client.connections.get_mut(&handle).unwrap();
    assert_eq!(client.datagrams().recv().unwrap(), "back");
    for proxy in &world.proxies {
        assert_eq!(proxy.statistics().datagrams_total, 3);
    }
}

/// The memory of this process that is its own, in KiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// `cargo test --release -p bentpipe-pep --test chain -- --ignored --nocapture a_hundred_thousand`
#[test]
#[ignore = "takes minutes: 100,000 connections through two proxies"]
fn a_hundred_thousand_requests_leave_nothing() {
    let mut world = Plan::of(&["", ""]).build();
    let mut before = 0;
    for number in 1..=100_000_u64 {
        ask(&mut world, 2000);
        if number % 10_000 == 0 {
            println!("{number} requests: {} KiB", memory());
        }
        if number == 20_000 {
            before = memory();
        }
    }
    assert!(memory() < before + 4096, "{before} KiB became {}", memory());
    world.run(Duration::from_secs(200));
    world.assert_clean();
    assert_eq!(world.proxies[1].statistics().established_total, 100_000);
}
