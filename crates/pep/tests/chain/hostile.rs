//! Who breaks rules, is not there, or vanishes: the other side hears a defined code, and nothing is left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_endpoint::Clock;
use bentpipe_pep::{Code, NextHop, Refusal};
use noq_proto::congestion::NewRenoConfig;
use noq_proto::{
    ConnectionError, Dir, EndpointConfig, Event, ServerConfig, Side, StreamId, TransportConfig,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::peer::Peer;
use crate::setup::{Plan, certificate, client_tls, client_tls_by, server_tls, server_tls_by};
use crate::traffic::{Application, End, Plan as Stream, Sending};
use crate::world::{EPOCH, Path, Random, World, calling, listening};

const FOREVER: Duration = Duration::from_secs(600);

/// The error code that somebody was closed with by an application.
fn code(closed: Option<&Event>) -> u64 {
    match closed {
        Some(Event::ConnectionLost {
            reason: ConnectionError::ApplicationClosed(close),
        }) => close.error_code.into_inner(),
        other => panic!("closed by {other:?}"),
    }
}

fn connect(world: &mut World, name: &str) -> usize {
    let tls = client_tls(&world.clock, &["test"]);
    world
        .client
        .connect(world.now, tls, TransportConfig::default(), name)
}

/// What the client of a world is closed with; then nothing is left.
fn closes_with(mut world: World, expected: Code) {
    connect(&mut world, "server");
    let mut client = Application::new(Side::Client, &[], 1);
    while client.closed.is_none() {
        assert!(world.step(FOREVER), "nothing happens any more");
        client.act(&mut world.client);
    }
    assert_eq!(code(client.closed.as_ref()), expected.value());
    world.run(Duration::from_secs(120));
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
        closes_with(world, Code::NextHopRefused);
    }
}

#[test]
fn a_next_hop_that_does_not_answer() {
    for plan in modes() {
        let mut world = plan.build();
        world.silent = Some(world.last());
        closes_with(world, Code::NextHopUnreachable);
    }
}

#[test]
fn a_next_hop_whose_certificate_nobody_knows() {
    for plan in modes() {
        let made = rcgen::generate_simple_self_signed(vec!["server".to_owned()]).unwrap();
        let key = made.signing_key.serialize_der();
        let world = with_certificate(plan.build(), made.cert.der().clone(), &key);
        closes_with(world, Code::Certificate);
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
        tls.dangerous().set_certificate_verifier(Arc::new(Anybody));
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
            Code::Certificate.value(),
            "{name}"
        );
        world.run(Duration::from_secs(120));
        world.assert_clean();
    }
}

#[test]
fn a_next_hop_that_speaks_something_else() {
    let warm = Plan::of(&["mode=warm"]);
    for mut plan in modes().into_iter().chain([warm]) {
        plan.protocols = vec!["unknown"];
        closes_with(plan.build(), Code::Protocol);
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
        closes_with(world, Code::Version);
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
        closes_with(world, Code::NextHopFailed);
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
        closes_with(world, Code::NextHopFailed);
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
    assert_eq!(code(server.closed.as_ref()), Code::ClientFailed.value());
    world.run(Duration::from_secs(120));
    world.assert_clean();
}

#[test]
fn a_client_that_leaves_a_gap_open_and_fills_the_buffer() {
    let mut world = Plan::of(&["buffer=20000"])
        .build_with(|_, config| config.limits.gap = Duration::from_secs(5));
    // What is lost is sent anew by itself: everything else has left by then.
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
    assert_eq!(code(client.closed.as_ref()), Code::Buffer.value());
    assert_eq!(code(server.closed.as_ref()), Code::Buffer.value());
    world.run(Duration::from_secs(120));
    world.assert_clean();
}

#[test]
fn a_name_that_is_not_allowed() {
    let world = Plan::of(&[""]).build_with(|_, config| {
        let names = BTreeMap::from([("elsewhere".to_owned(), listening(2))]);
        config.next_hop = NextHop::ByName(names);
    });
    closes_with(world, Code::Name);
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

/// A stream both ways, of so many bytes each.
fn stream(bytes: usize) -> Stream {
    let sending = Sending {
        bytes,
        reset: None,
        stop: None,
    };
    Stream {
        opener: Side::Client,
        dir: Dir::Bi,
        forth: sending.clone(),
        back: sending,
    }
}

const LINGER: Duration = Duration::from_millis(1500);

struct Talk {
    world: World,
    handle: usize,
    client: Application,
    server: Application,
}

impl Talk {
    fn begin(plan: Plan, streams: &[Stream]) -> Self {
        // Shorter than it takes, so that it has to be prolonged.
        let mut world = plan.build_with(|_, config| config.limits.linger = LINGER);
        let handle = connect(&mut world, "server");
        Self {
            world,
            handle,
            client: Application::new(Side::Client, streams, 1),
            server: Application::new(Side::Server, streams, 2),
        }
    }

    fn run(&mut self, duration: Duration) {
        let until = self.world.now + duration;
        loop {
            let goes_on = self.world.step(until);
            self.client.act(&mut self.world.client);
            self.server.act(&mut self.world.server);
            if !goes_on {
                return;
            }
        }
    }

    fn end(mut self) {
        self.run(Duration::from_secs(200));
        self.world.assert_clean();
    }
}

#[test]
fn a_server_that_vanishes_in_the_middle() {
    let mut talk = Talk::begin(Plan::of(&["", ""]), &[stream(50_000_000)]);
    talk.run(Duration::from_secs(1));
    talk.world.silent = Some(talk.world.last());
    talk.run(Duration::from_secs(150));
    assert_eq!(code(talk.client.closed.as_ref()), Code::NextHopLost.value());
    talk.end();
}

#[test]
fn a_client_that_vanishes_in_the_middle() {
    let mut talk = Talk::begin(Plan::of(&["", ""]), &[stream(50_000_000)]);
    talk.run(Duration::from_secs(1));
    talk.world.silent = Some(0);
    talk.run(Duration::from_secs(150));
    assert_eq!(code(talk.server.closed.as_ref()), Code::ClientLost.value());
    talk.end();
}

#[test]
fn a_server_that_forgets_all_in_the_middle() {
    let mut talk = Talk::begin(Plan::of(&[""]), &[stream(50_000_000)]);
    talk.run(Duration::from_secs(1));
    talk.world.server.forget_all();
    talk.run(Duration::from_secs(150));
    assert_eq!(code(talk.client.closed.as_ref()), Code::NextHopLost.value());
    talk.end();
}

#[test]
fn what_was_sent_before_a_close_is_delivered() {
    let mut plan = Plan::of(&["", ""]);
    plan.paths[2].delay = Duration::from_millis(300);
    plan.paths[2].loss = 5;
    let mut streams = [stream(300_000)];
    streams[0].back.bytes = 0;
    let mut talk = Talk::begin(plan, &streams);
    while talk.world.client.connections[&talk.handle].is_handshaking() || !talk.client.is_done() {
        assert!(talk.world.step(FOREVER));
        talk.client.act(&mut talk.world.client);
        let connection = talk.world.client.connections.get_mut(&talk.handle).unwrap();
        // The first proxy has all of it; the server has not.
        if talk.client.connected && connection.streams().send_streams() == 0 {
            break;
        }
    }
    talk.world
        .client
        .close(talk.world.now, talk.handle, 9, "bye");
    talk.run(Duration::from_secs(60));
    let received = talk.server.received.values().next().unwrap();
    assert_eq!(
        (received.bytes, received.end),
        (300_000, Some(End::Finished))
    );
    assert_eq!(code(talk.server.closed.as_ref()), 9);
    talk.end();
}

#[test]
fn who_has_sent_all_stays_while_the_other_side_still_receives() {
    let sending = |bytes| Sending {
        bytes,
        reset: None,
        stop: None,
    };
    for opener in [Side::Client, Side::Server] {
        let mut plan = Plan::of(&[""]);
        let slow = usize::from(opener == Side::Client);
        plan.paths[slow].delay = Duration::from_millis(300);
        plan.paths[slow].loss = 10;
        let streams = [Stream {
            opener,
            dir: Dir::Uni,
            forth: sending(1_000_000),
            back: sending(0),
        }];
        let mut talk = Talk::begin(plan, &streams);
        let begun = talk.world.now;
        talk.run(Duration::from_secs(3));
        let receives = |talk: &Talk| match opener {
            Side::Client => talk.server.is_done(),
            Side::Server => talk.client.is_done(),
        };
        while !receives(&talk) {
            talk.run(Duration::from_secs(1));
            for closed in [&talk.client.closed, &talk.server.closed] {
                assert!(closed.is_none(), "{closed:?} at {:?}", talk.world.now);
            }
        }
        let idle = bentpipe_pep::Limits::default().idle;
        assert!(talk.world.now > begun + idle, "the path is too fast");
        talk.world.client.close(talk.world.now, talk.handle, 0, "");
        talk.end();
    }
}

#[test]
fn what_a_client_sent_before_it_vanished_is_delivered() {
    let mut plan = Plan::of(&[""]);
    plan.paths[1].delay = Duration::from_millis(300);
    plan.paths[1].loss = 10;
    // So little that most of it waits in the proxy.
    plan.transport.stream_receive_window(50_000_u32.into());
    let sending = |bytes| Sending {
        bytes,
        reset: None,
        stop: None,
    };
    let streams = [Stream {
        opener: Side::Client,
        dir: Dir::Uni,
        forth: sending(2_000_000),
        back: sending(0),
    }];
    let mut talk = Talk::begin(plan, &streams);
    talk.run(Duration::from_secs(3));
    talk.world.silent = Some(0);
    let lost = talk.world.now + bentpipe_pep::Limits::default().idle;
    while talk.world.now < lost + Duration::from_secs(1) {
        talk.run(Duration::from_secs(1));
    }
    assert!(!talk.server.is_done(), "the path is too fast");
    talk.run(Duration::from_secs(600));
    assert!(talk.server.is_done(), "it has all that the proxy took");
    assert_eq!(code(talk.server.closed.as_ref()), Code::ClientLost.value());
    talk.end();
}

#[test]
fn memory_is_bounded_where_the_other_side_does_not_read() {
    let streams: Vec<_> = (0..20).map(|_| stream(4_000_000)).collect();
    let mut talk = Talk::begin(Plan::of(&["buffer=100000", "buffer=100000"]), &streams);
    talk.server.is_slow = true;
    talk.run(Duration::from_secs(20));
    for proxy in &talk.world.proxies {
        // Each direction of the connection has room for twice the buffer of a stream, and a piece of each stream.
        let held = proxy.statistics().held_bytes;
        assert!(held <= 2 * 200_000 + 20 * (1 << 16), "{held}");
    }
    assert!(talk.client.closed.is_none() && talk.server.closed.is_none());
    talk.server.is_slow = false;
    talk.run(Duration::ZERO);
    while !(talk.client.is_done() && talk.server.is_done()) {
        assert!(talk.world.step(FOREVER), "it came to a stop");
        talk.client.act(&mut talk.world.client);
        talk.server.act(&mut talk.world.server);
    }
    talk.client.check();
    talk.server.check();
}

#[test]
fn garbage_is_nothing_and_disturbs_nobody() {
    let mut talk = Talk::begin(Plan::of(&[""]), &[stream(2_000_000)]);
    let mut random = Random(7);
    let mut sample = Vec::new();
    let tls = client_tls(&talk.world.clock, &["test"]);
    let mut other = Peer::client(&talk.world.clock);
    other.connect(Duration::ZERO, tls, TransportConfig::default(), "server");
    other.poll_transmit(Duration::ZERO, &mut sample).unwrap();
    for round in 0..3000_u64 {
        let mut source = calling(0);
        source.set_port(1 + u16::try_from(round % 1000).unwrap());
        let mut bytes = sample.clone();
        match round % 3 {
            0 => bytes.truncate(usize::try_from(random.below(1200)).unwrap()),
            1 => {
                let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
                bytes[at] ^= 1 << random.below(8);
            }
            _ => bytes.fill_with(|| random.below(256).to_le_bytes()[0]),
        }
        talk.world.inject(0, source, &bytes);
        talk.run(Duration::from_millis(1));
    }
    talk.run(Duration::from_secs(20));
    assert!(talk.client.is_done() && talk.server.is_done());
    talk.client.check();
    talk.server.check();
    talk.world.client.close(talk.world.now, talk.handle, 0, "");
    talk.end();
}

#[test]
fn a_flood_of_streams_is_limited() {
    let streams: Vec<_> = (0..500).map(|_| stream(10)).collect();
    let mut world = Plan::of(&["", ""]).build_with(|_, config| config.limits.streams = 7);
    let handle = connect(&mut world, "server");
    let mut client = Application::new(Side::Client, &streams, 1);
    let mut server = Application::new(Side::Server, &streams, 2);
    while !(client.is_done() && server.is_done()) {
        assert!(world.step(FOREVER), "it came to a stop");
        client.act(&mut world.client);
        server.act(&mut world.server);
        for proxy in &world.proxies {
            assert!(proxy.statistics().streams <= 14);
        }
    }
    client.check();
    world.client.close(world.now, handle, 0, "");
    world.run(Duration::from_secs(200));
    world.assert_clean();
}

#[test]
fn draining_lets_connections_end_and_then_ends_them() {
    let mut talk = Talk::begin(Plan::of(&[""]), &[stream(1000)]);
    talk.run(Duration::from_secs(1));
    let now = talk.world.now;
    talk.world.proxies[0].drain(now, now + Duration::from_secs(5));
    let second = connect(&mut talk.world, "server");
    talk.run(Duration::from_secs(4));
    assert!(!talk.world.client.connections.contains_key(&second));
    assert!(talk.client.is_done());
    talk.client.closed = None;
    talk.run(Duration::from_secs(10));
    assert_eq!(
        code(talk.client.closed.as_ref()),
        Code::ShuttingDown.value()
    );
    assert!(talk.world.proxies[0].is_drained());
    talk.end();
}

/// Trusts whatever is shown.
#[derive(Debug)]
struct Anybody;

impl rustls::client::danger::ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        unreachable!("QUIC has no TLS 1.2")
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
