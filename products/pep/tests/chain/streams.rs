//! Streams come out as they went in, for any interleaving of streams, resets and stops, over paths
//! of any kind.

use std::time::Duration;

use bentpipe_pep::CloseCode;
use noq_proto::{ConnectionError, Dir, Event, Side, VarInt};
use proptest::prelude::*;

use crate::setup::{self, client_tls};
use crate::traffic::{Application, Plan, Sending};
use crate::world::{Path, World};

const LONGEST: Duration = Duration::from_mins(10);

fn sending() -> impl Strategy<Value = Sending> {
    let reset = prop::option::weighted(0.2, 0_u32..1000);
    let stop = prop::option::weighted(0.2, (0_usize..60_000, 1000_u32..2000));
    (0_usize..60_000, reset, stop).prop_map(|(bytes, reset, stop)| Sending { bytes, reset, stop })
}

fn plan() -> impl Strategy<Value = Plan> {
    (any::<bool>(), any::<bool>(), sending(), sending()).prop_map(|(client, bi, forth, back)| {
        Plan {
            opener: if client { Side::Client } else { Side::Server },
            dir: if bi { Dir::Bi } else { Dir::Uni },
            forth,
            back,
        }
    })
}

fn path() -> impl Strategy<Value = Path> {
    (1_u64..300, 0_u64..50, 0_u64..8, 0_u64..5).prop_map(|(delay, jitter, loss, twice)| Path {
        delay: Duration::from_millis(delay),
        jitter: Duration::from_millis(jitter),
        loss,
        twice,
    })
}

/// Carries out the plans, writing to the streams in the order in which they were opened, or the
/// other way round; closes, and looks at what is left.
pub fn carry(mut world: World, plans: &[Plan], seed: u64, is_backwards: bool) -> World {
    let mut client = Application::new(Side::Client, plans, seed);
    let mut server = Application::new(Side::Server, plans, seed + 1);
    (client.is_backwards, server.is_backwards) = (is_backwards, is_backwards);
    let tls = client_tls(&world.clock, &["test"]);
    let handle = world
        .client
        .connect(Duration::ZERO, tls, world.transport.clone(), "server");
    while !(client.is_done() && server.is_done()) {
        assert!(world.step(LONGEST), "it came to a stop at {:?}", world.now);
        client.act(&mut world.client);
        server.act(&mut world.server);
        assert!(
            client.closed.is_none() && server.closed.is_none(),
            "{:?} {:?}",
            client.closed,
            server.closed
        );
    }
    // Late requests to stop may still be under way.
    world.run(Duration::from_secs(5));
    client.act(&mut world.client);
    server.act(&mut world.server);
    client.check();
    server.check();
    world.client.close(world.now, handle, 7, "done");
    world.run(Duration::from_mins(2));
    server.act(&mut world.server);
    let is_lossy = world.paths.iter().any(|path| path.loss > 0);
    match server.closed {
        Some(Event::ConnectionLost {
            reason: ConnectionError::ApplicationClosed(close),
        }) if close.error_code == VarInt::from_u32(7) => assert_eq!(&close.reason[..], b"done"),
        // A close that is lost is not sent again to somebody who sends nothing.
        Some(Event::ConnectionLost {
            reason: ConnectionError::TimedOut,
        }) if is_lossy => {}
        Some(Event::ConnectionLost {
            reason: ConnectionError::ApplicationClosed(close),
        }) if is_lossy => assert_eq!(u64::from(close.error_code), CloseCode::ClientLost.value()),
        other => panic!("the server sees {other:?}"),
    }
    world.assert_clean();
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_in_comes_out(
        plans in prop::collection::vec(plan(), 0..24),
        paths in prop::collection::vec(path(), 3),
        one in any::<bool>(),
        buffer in prop::sample::select(vec!["buffer=20000", "buffer=1000000"]),
        streams in 1_u32..20,
        own in prop::sample::select(vec![1_u32, 2, 5, 1000]),
        is_backwards in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut world = setup::Plan::of(if one { &["buffer=30000"] } else { &["buffer=20000",
            "buffer=20000"] });
        for words in &mut world.words {
            *words = buffer;
        }
        world.paths = paths[..world.paths.len()].to_vec();
        world.seed = seed;
        world.transport
            .max_concurrent_bidi_streams(streams.into())
            .max_concurrent_uni_streams(streams.into());
        let world = world.build_with(|_, config| config.limits.streams = own);
        carry(world, &plans, seed >> 1, is_backwards);
    }
}

/// Keys, identifiers and all: nothing here is drawn anew.
#[test]
fn the_same_seed_gives_the_same_datagrams() {
    let fingerprint = |seed: u64| {
        let run = move || {
            let mut plan = setup::Plan::of(&["", ""]);
            plan.seed = seed;
            for path in &mut plan.paths {
                (path.loss, path.jitter) = (5, Duration::from_millis(20));
            }
            let sending = Sending {
                bytes: 50_000,
                reset: None,
                stop: None,
            };
            let stream = Plan {
                opener: Side::Client,
                dir: Dir::Bi,
                forth: sending.clone(),
                back: sending,
            };
            carry(plan.build(), &[stream], 1, false).fingerprint
        };
        // A thread of its own, as each test has: what libraries draw from has no past there.
        std::thread::spawn(run).join().unwrap()
    };
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2));
}

#[test]
fn many_megabytes_cross_two_proxies() {
    let both = Sending {
        bytes: 3_000_000,
        reset: None,
        stop: None,
    };
    let plan = Plan {
        opener: Side::Client,
        dir: Dir::Bi,
        forth: both.clone(),
        back: both,
    };
    let mut world = setup::Plan::of(&["", ""]);
    world.paths[1] = Path::of(300);
    let world = carry(world.build(), &[plan], 1, false);
    for proxy in &world.proxies {
        let statistics = proxy.statistics();
        let carried = (
            statistics.bytes_to_servers_total,
            statistics.bytes_to_clients_total,
        );
        assert_eq!(carried, (3_000_000, 3_000_000));
        assert_eq!(statistics.closed_by_application_total, 1);
    }
}
