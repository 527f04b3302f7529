//! Peers that break rules or are not there: the other side gets a defined code, and nothing is
//! left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_endpoint::{AnyCertificate, Clock};
use bentpipe_pep::{CloseCode, NextHop, Refusal};
use noq_proto::congestion::NewRenoConfig;
use noq_proto::{
    ConnectionError, Dir, EndpointConfig, Event, ServerConfig, Side, StreamId, TransportConfig,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::peer::Peer;
use crate::setup::{Plan, certificate, client_tls, client_tls_by, server_tls, server_tls_by};
use crate::traffic::Application;
use crate::world::{EPOCH, Path, World, listening};

pub const FOREVER: Duration = Duration::from_mins(10);

/// The error code that somebody was closed with by an application.
pub fn code(closed: Option<&Event>) -> u64 {
    match closed {
        Some(Event::ConnectionLost {
            reason: ConnectionError::ApplicationClosed(close),
        }) => close.error_code.into_inner(),
        other => panic!("closed by {other:?}"),
    }
}

pub fn connect(world: &mut World, name: &str) -> usize {
    let tls = client_tls(&world.clock, &["test"]);
    world
        .client
        .connect(world.now, tls, world.transport.clone(), name)
}

/// Checks the code with which a world's client is closed; then nothing is left.
fn closes_with(mut world: World, expected: CloseCode) {
    connect(&mut world, "server");
    let mut client = Application::new(Side::Client, &[], 1);
    while client.closed.is_none() {
        assert!(world.step(FOREVER), "nothing happens any more");
        client.act(&mut world.client);
    }
    assert_eq!(code(client.closed.as_ref()), expected.value());
    world.run(Duration::from_mins(2));
    world.assert_clean();
}

fn modes() -> [Plan; 3] {
    let both: [&[&str]; 3] = [
        &["mode=parallel"],
        &["mode=sequential"],
        &["mode=parallel", "mode=sequential"],
    ];
    both.map(Plan::of)
}

fn with_certificate(mut world: World, chain: CertificateDer<'static>, key: &[u8]) -> World {
    let key = PrivateKeyDer::try_from(key.to_vec()).unwrap();
    let shown = (vec![chain], key);
    let tls = server_tls_by(ring::default_provider(), &world.clock, &["test"], shown);
    world.server = Peer::server(&world.clock, tls, TransportConfig::default());
    world
}

#[test]
fn a_next_hop_that_refuses() {
    for plan in modes() {
        let mut world = plan.build();
        world.server.refuses = true;
        closes_with(world, CloseCode::NextHopRefused);
    }
}

#[test]
fn a_next_hop_that_does_not_answer() {
    for plan in modes() {
        let mut world = plan.build();
        world.silent = Some(world.last());
        closes_with(world, CloseCode::NextHopUnreachable);
    }
}

#[test]
fn a_next_hop_whose_certificate_nobody_knows() {
    for plan in modes() {
        let made = rcgen::generate_simple_self_signed(vec!["server".to_owned()]).unwrap();
        let key = made.signing_key.serialize_der();
        let world = with_certificate(plan.build(), made.cert.der().clone(), &key);
        closes_with(world, CloseCode::Certificate);
    }
}

#[test]
fn a_next_hop_of_another_name_or_time() {
    for name in ["other.example", "server"] {
        let mut world = Plan::of(&[""]).build_with(|_, config| {
            let clock = Clock::new(Duration::from_secs(if name == "server" {
                1
            } else {
                946_684_800
            }));
            config.server_tls = Arc::new(client_tls(&clock, &[]));
        });
        // The client does not mind what the proxy shows it.
        let mut tls = client_tls(&world.clock, &["test"]);
        tls.dangerous()
            .set_certificate_verifier(Arc::new(AnyCertificate::default()));
        world
            .client
            .connect(world.now, tls, TransportConfig::default(), name);
        let mut client = Application::new(Side::Client, &[], 1);
        while client.closed.is_none() {
            assert!(world.step(FOREVER), "nothing happens any more");
            client.act(&mut world.client);
        }
        assert_eq!(
            code(client.closed.as_ref()),
            CloseCode::Certificate.value(),
            "{name}"
        );
        world.run(Duration::from_mins(2));
        world.assert_clean();
    }
}

#[test]
fn a_next_hop_that_speaks_something_else() {
    let warm = Plan::of(&["mode=warm"]);
    for mut plan in modes().into_iter().chain([warm]) {
        plan.protocols = vec!["unknown"];
        closes_with(plan.build(), CloseCode::Protocol);
    }
}

#[test]
fn a_next_hop_of_another_version() {
    for plan in modes() {
        let mut world = plan.build();
        let mut config = EndpointConfig::default();
        config.supported_versions(vec![0xff00_001d]);
        let tls = server_tls(&world.clock, &["test"]);
        let tls = noq_proto::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
        let server = ServerConfig::with_crypto(Arc::new(tls));
        world.server = Peer::new(&world.clock, config, Some(server));
        closes_with(world, CloseCode::Version);
    }
}

#[test]
fn a_next_hop_with_which_there_is_no_key_exchange() {
    let only = |group| CryptoProvider {
        kx_groups: vec![group],
        ..ring::default_provider()
    };
    for words in ["mode=parallel", "mode=sequential"] {
        let mut world = Plan::of(&[words]).build_with(|_, config| {
            let tls = client_tls_by(only(ring::kx_group::X25519), &Clock::new(EPOCH), &[]);
            config.server_tls = Arc::new(tls);
        });
        let other = only(ring::kx_group::SECP256R1);
        let tls = server_tls_by(other, &world.clock, &["test"], certificate());
        world.server = Peer::server(&world.clock, tls, TransportConfig::default());
        closes_with(world, CloseCode::NextHopFailed);
    }
}

#[test]
fn a_next_hop_that_nobody_can_be_connected_to() {
    for words in ["mode=parallel", "mode=sequential", "mode=warm"] {
        let world = Plan::of(&[words]).build_with(|_, config| {
            let mut nowhere = listening(2);
            nowhere.set_port(0);
            config.next_hop = NextHop::Fixed(nowhere);
        });
        closes_with(world, CloseCode::NextHopFailed);
    }
}

#[test]
fn a_client_that_does_not_trust_the_proxy() {
    let mut plan = Plan::of(&["mode=parallel"]);
    // The next hop is connected before the client knows whom it talks to.
    plan.paths[0] = Path::of(300);
    let mut world = plan.build();
    // By this clock no certificate holds yet.
    let tls = client_tls(&Clock::new(Duration::from_secs(1)), &["test"]);
    let transport = TransportConfig::default();
    world.client.connect(world.now, tls, transport, "server");
    let mut server = Application::new(Side::Server, &[], 2);
    while server.closed.is_none() {
        assert!(world.step(FOREVER), "nothing happens any more");
        server.act(&mut world.server);
    }
    assert_eq!(
        code(server.closed.as_ref()),
        CloseCode::ClientFailed.value()
    );
    world.run(Duration::from_mins(2));
    world.assert_clean();
}

#[test]
fn a_client_that_leaves_a_gap_open_and_fills_the_buffer() {
    let mut world = Plan::of(&["buffer=20000"])
        .build_with(|_, config| config.limits.gap = Duration::from_secs(5));
    // Lost packets are retransmitted automatically: everything else has left by then.
    let mut congestion = NewRenoConfig::default();
    congestion.initial_window(1 << 40);
    let mut transport = TransportConfig::default();
    transport
        .mtu_discovery_config(None)
        .congestion_controller_factory(Arc::new(congestion));
    let tls = client_tls(&world.clock, &["test"]);
    let handle = world.client.connect(world.now, tls, transport, "server");
    let mut client = Application::new(Side::Client, &[], 1);
    let mut server = Application::new(Side::Server, &[], 2);
    world.run(Duration::from_secs(1));
    world.swallowed = Some((0, 300..400));
    // The first piece never comes, of the others all that flow control allows.
    for (bytes, pause) in [(300, 1)].into_iter().chain([(6050, 500); 10]) {
        let connection = world.client.connections.get_mut(&handle).unwrap();
        let id = StreamId::new(Side::Client, Dir::Bi, 0);
        if bytes == 300 {
            assert_eq!(connection.streams().open(Dir::Bi), Some(id));
        }
        let _ = connection.send_stream(id).write(&vec![7; bytes]);
        world.run(Duration::from_millis(pause));
    }
    while client.closed.is_none() || server.closed.is_none() {
        assert!(world.step(FOREVER), "nothing happens any more");
        client.act(&mut world.client);
        server.act(&mut world.server);
    }
    assert_eq!(code(client.closed.as_ref()), CloseCode::Buffer.value());
    assert_eq!(code(server.closed.as_ref()), CloseCode::Buffer.value());
    world.run(Duration::from_mins(2));
    world.assert_clean();
}

#[test]
fn a_name_that_is_not_allowed() {
    let world = Plan::of(&[""]).build_with(|_, config| {
        let names = BTreeMap::from([("elsewhere".to_owned(), listening(2))]);
        config.next_hop = NextHop::ByName(names);
    });
    closes_with(world, CloseCode::Name);
}

#[test]
fn more_clients_than_there_may_be_are_refused_and_the_others_go_on() {
    let mut world =
        Plan::of(&[""]).build_with(|_, config| config.limits.connections_per_client = 1);
    connect(&mut world, "server");
    world.run(Duration::from_secs(1));
    connect(&mut world, "server");
    world.run(Duration::from_secs(1));
    let lost = world
        .client
        .events
        .iter()
        .filter_map(|(handle, event)| match event {
            Event::ConnectionLost {
                reason: ConnectionError::ConnectionClosed(_),
            } => Some(*handle),
            _ => None,
        });
    assert_eq!(lost.collect::<Vec<_>>(), [1]);
    let events = std::iter::from_fn(|| world.proxies[0].poll_event());
    let refused = events.filter(|event| {
        matches!(
            event,
            bentpipe_pep::Event::Refused {
                why: Refusal::ConnectionsOfClient,
                ..
            }
        )
    });
    assert_eq!(refused.count(), 1);
    assert_eq!(world.proxies[0].statistics().connections, 1);
}
