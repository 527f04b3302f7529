//! When and with what handshakes are completed: modes, names, protocols, long `ClientHello`s,
//! sessions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_pep::{Event, NextHop};
use noq_proto::crypto::rustls::HandshakeData;
use noq_proto::{Connection, Dir, Event as Happened, Side, StreamEvent, TransportConfig};

use crate::hostile::FOREVER;
use crate::setup::{Plan, client_tls};
use crate::traffic::Application;
use crate::world::{Path, World, listening};

/// Connects, and says when the client's handshake was complete and what it speaks.
pub fn shake(world: &mut World, protocols: &[&str], name: &str) -> Option<(Duration, Vec<u8>)> {
    let start = world.now;
    world.client.events.clear();
    let tls = client_tls(&world.clock, protocols);
    let handle = world
        .client
        .connect(start, tls, TransportConfig::default(), name);
    let mut client = Application::new(Side::Client, &[], 1);
    while !client.connected && client.closed.is_none() {
        world.step(start + Duration::from_mins(1));
        client.act(&mut world.client);
    }
    let session = world.client.connections.get(&handle)?.crypto_session();
    let data = session.handshake_data()?.downcast::<HandshakeData>().ok()?;
    Some((world.now.saturating_sub(start), data.protocol?))
}

fn over_a_satellite(words: &[&'static str]) -> Plan {
    let mut plan = Plan::of(words);
    plan.paths[1] = Path::of(300);
    plan
}

#[test]
fn the_client_waits_for_its_own_hop_or_for_all() {
    for (words, at_least, below) in [
        ("mode=parallel", 20, 40),
        ("mode=sequential", 640, 700),
        ("mode=warm", 640, 700),
    ] {
        let mut world = over_a_satellite(&[words, words]).build();
        let (took, protocol) = shake(&mut world, &["test"], "server").unwrap();
        assert!(took >= Duration::from_millis(at_least), "{words}: {took:?}");
        assert!(took < Duration::from_millis(below), "{words}: {took:?}");
        assert_eq!(protocol, b"test");
    }
}

#[test]
fn a_chain_that_is_warm_answers_at_once() {
    let mut world = over_a_satellite(&["mode=warm", "mode=warm"]).build();
    shake(&mut world, &["other", "test"], "server").unwrap();
    // Longer than anybody stays connected in silence.
    world.run(Duration::from_secs(100));
    for proxy in &world.proxies {
        assert_eq!(proxy.statistics().warm, 1);
    }
    let (took, protocol) = shake(&mut world, &["other", "test"], "server").unwrap();
    assert!(took < Duration::from_millis(40), "{took:?}");
    assert_eq!(protocol, b"test");
    let statistics = world.proxies[0].statistics();
    assert_eq!(
        (statistics.warm_hits_total, statistics.warm_misses_total),
        (1, 1)
    );
    assert!(statistics.resumed_total > 0);
    // No server answers for so long that it is given up.
    world.run(Duration::from_mins(20));
    for proxy in &world.proxies {
        assert_eq!(proxy.statistics().warm, 0);
    }
    world.assert_clean();
}

#[test]
fn what_is_wanted_from_the_start_is_ready_before_anybody_comes() {
    let plan = over_a_satellite(&["mode=warm"]);
    let mut world = plan.build_with(|_, config| {
        config.pool.from_start = vec![("server".to_owned(), b"test".to_vec())];
    });
    world.run(Duration::from_secs(2));
    let (took, _) = shake(&mut world, &["test"], "server").unwrap();
    assert!(took < Duration::from_millis(40), "{took:?}");
}

/// Over a long way to the proxy, a request in the client's first packets: when the server had it,
/// and when the client had the answer.
fn early(words: &'static str, is_allowed: bool) -> (Duration, Duration) {
    let mut plan = Plan::of(&[words]);
    plan.paths[0] = Path::of(300);
    let mut world = plan.build_with(|_, config| {
        let mut tls = rustls::ServerConfig::clone(&config.client_tls);
        tls.max_early_data_size = if is_allowed { u32::MAX } else { 0 };
        config.client_tls = Arc::new(tls);
    });
    let mut tls = client_tls(&world.clock, &["test"]);
    tls.enable_early_data = true;
    let transport = TransportConfig::default();
    let for_a_ticket = world
        .client
        .connect(world.now, tls.clone(), transport, "server");
    world.run(Duration::from_secs(3));
    world.client.close(world.now, for_a_ticket, 0, "");
    world.run(Duration::from_secs(3));
    let start = world.now;
    world.server.events.clear();
    let handle = world
        .client
        .connect(start, tls, TransportConfig::default(), "server");
    let client = world.client.connections.get_mut(&handle).unwrap();
    assert_eq!(client.has_0rtt(), is_allowed);
    if !is_allowed {
        while world.client.connections[&handle].is_handshaking() {
            world.step(start + Duration::from_mins(1));
        }
    }
    let client = world.client.connections.get_mut(&handle).unwrap();
    let id = client.streams().open(Dir::Bi).unwrap();
    client.send_stream(id).write(b"what?").unwrap();
    client.send_stream(id).finish().unwrap();
    let server = loop {
        assert!(world.step(start + Duration::from_mins(1)), "it never came");
        let is_it = |(_, event): &(usize, Happened)| {
            matches!(event, Happened::Stream(StreamEvent::Opened { .. }))
        };
        if let Some((server, _)) = world.server.events.iter().find(|it| is_it(it)) {
            break *server;
        }
    };
    let asked = world.now.saturating_sub(start);
    let server = world.server.connections.get_mut(&server).unwrap();
    assert_eq!(server.streams().accept(Dir::Bi), Some(id));
    server.send_stream(id).write(b"that").unwrap();
    server.send_stream(id).finish().unwrap();
    loop {
        assert!(
            world.step(start + Duration::from_mins(1)),
            "it never came back"
        );
        let client = world.client.connections.get_mut(&handle).unwrap();
        let mut stream = client.recv_stream(id);
        let mut chunks = stream.read(true).unwrap();
        if let Ok(Some(chunk)) = chunks.next(100) {
            assert_eq!(&chunk.bytes[..], b"that");
            break;
        }
    }
    let answered = world.now.saturating_sub(start);
    world.client.close(world.now, handle, 0, "");
    world.run(Duration::from_secs(200));
    world.assert_clean();
    (asked, answered)
}

#[test]
fn what_a_client_sends_early_is_carried_early() {
    let ms = Duration::from_millis;
    // 300 ms lie before the proxy and 10 ms behind it, whose own handshake there takes 20 ms where
    // it is not done ahead.
    for words in ["mode=warm", "mode=sequential", "mode=parallel"] {
        let (asked, answered) = early(words, true);
        assert!(asked < ms(340), "{words}: {asked:?}");
        assert!(answered < ms(660), "{words}: {answered:?}");
        let (asked, answered) = early(words, false);
        assert!(asked >= ms(910), "{words}: {asked:?}");
        assert!(answered >= ms(1220), "{words}: {answered:?}");
    }
}

/// When a client gets the server's own first message, where that closes its connection at once or
/// does not.
fn first_word(words: &'static str, is_closed: bool) -> Duration {
    let mut plan = Plan::of(&[words]);
    plan.paths[0] = Path::of(300);
    let mut world = plan.build();
    let tls = client_tls(&world.clock, &["test"]);
    let transport = TransportConfig::default();
    world.client.connect(world.now, tls, transport, "server");
    while world
        .server
        .connections
        .values()
        .all(Connection::is_handshaking)
    {
        assert!(world.step(FOREVER), "it never came");
    }
    let (handle, server) = world.server.connections.iter_mut().next().unwrap();
    let handle = *handle;
    let id = server.streams().open(Dir::Uni).unwrap();
    server.send_stream(id).write(b"welcome").unwrap();
    world.step(FOREVER);
    if is_closed {
        world.server.close(world.now, handle, 7, "");
    }
    let is_it = |(_, event): &(usize, Happened)| {
        matches!(event, Happened::Stream(StreamEvent::Opened { .. }))
    };
    while !world.client.events.iter().any(is_it) {
        assert!(world.step(FOREVER), "it never came");
    }
    world.now
}

#[test]
fn a_client_that_has_not_shown_itself_is_sent_nothing_of_the_servers() {
    for words in ["mode=sequential", "mode=parallel"] {
        for is_closed in [false, true] {
            let heard = first_word(words, is_closed);
            // Two round trips to the proxy.
            assert!(heard >= Duration::from_millis(1200), "{words}: {heard:?}");
        }
    }
}

#[test]
fn the_server_chooses_the_protocol_unless_there_is_no_time_for_it() {
    for (mode, expected) in [("mode=sequential", "second"), ("mode=parallel", "first")] {
        let mut plan = Plan::of(&[mode, mode]);
        plan.protocols = vec!["second", "first"];
        let (_, protocol) = shake(&mut plan.build(), &["first", "second"], "server").unwrap();
        assert_eq!(protocol, expected.as_bytes(), "{mode}");
    }
}

#[test]
fn a_hello_of_several_packets_is_understood() {
    // Some 8 KiB; and some 2 KiB over paths that lose packets: until a hello is complete, nothing
    // of it is acknowledged.
    understands(40, 0);
    understands(10, 5);
}

fn understands(names: usize, loss: u64) {
    let long: Vec<_> = (0..names)
        .map(|n| format!("{n}-{}", "x".repeat(200)))
        .collect();
    let mut protocols: Vec<&str> = long.iter().map(String::as_str).collect();
    protocols.push("test");
    for seed in 1..20 {
        let mut plan = Plan::of(&["mode=sequential", "mode=sequential"]);
        for path in &mut plan.paths {
            path.jitter = Duration::from_millis(30);
            path.loss = loss;
            path.twice = 10;
        }
        plan.seed = seed;
        let patient = |_, config: &mut bentpipe_pep::Config| {
            config.limits.handshake = Duration::from_mins(1);
            config.limits.idle = Duration::from_mins(1);
        };
        let mut world = plan.build_with(patient);
        let shaken = shake(&mut world, &protocols, "server");
        let (_, protocol) = shaken.unwrap_or_else(|| panic!("seed {seed}: no handshake"));
        assert_eq!(protocol, b"test", "seed {seed}");
    }
}

#[test]
fn names_lead_to_next_hops() {
    let mut world = Plan::of(&[""]).build_with(|_, config| {
        let names = BTreeMap::from([("server".to_owned(), listening(2))]);
        config.next_hop = NextHop::ByName(names);
    });
    shake(&mut world, &["test"], "SERVER").unwrap();
    let opened = world.proxies[0].poll_event().unwrap();
    let Event::Opened {
        server_name,
        next_hop,
        ..
    } = opened
    else {
        panic!("{opened:?}");
    };
    assert_eq!(
        (server_name.as_deref(), next_hop),
        (Some("server"), listening(2))
    );
}

/// Sends PING every ten seconds for two minutes; whether the connection lives.
fn lives(pinging: Side) -> bool {
    let mut world = Plan::of(&["", ""]).build();
    shake(&mut world, &["test"], "server").unwrap();
    world.run(Duration::from_secs(1));
    world.client.events.clear();
    for _ in 0..12 {
        let peer = match pinging {
            Side::Client => &mut world.client,
            Side::Server => &mut world.server,
        };
        if let Some(connection) = peer.connections.values_mut().next() {
            connection.ping();
        }
        world.run(Duration::from_secs(10));
    }
    let is_lost =
        |(_, event): &(usize, _)| matches!(event, noq_proto::Event::ConnectionLost { .. });
    !world.client.events.iter().any(is_lost) && !world.client.connections.is_empty()
}

#[test]
fn who_keeps_one_hop_alive_keeps_all() {
    assert!(lives(Side::Client));
    assert!(lives(Side::Server));
}
