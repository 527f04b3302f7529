//! A server that allows few streams, and clients that would have more.

use std::time::Duration;

use bentpipe_pep::Proxy;
use noq_proto::{Dir, Side};

use crate::hostile::{FOREVER, connect};
use crate::setup::Plan;
use crate::streams::carry;
use crate::traffic::{Application, Plan as Stream, Sending};
use crate::world::{Path, World};

fn allowing(streams: u32, words: &[&'static str]) -> Plan {
    let mut plan = Plan::of(words);
    plan.transport
        .max_concurrent_bidi_streams(streams.into())
        .max_concurrent_uni_streams(streams.into());
    plan
}

/// The maxima, one for each proxy.
#[derive(Debug, Default, PartialEq)]
struct Most {
    waiting: Vec<u64>,
    /// Directions of streams.
    under_way: Vec<u64>,
}

/// Does all of it.
fn most(mut world: World, streams: &[Stream]) -> Most {
    connect(&mut world, "server");
    let mut client = Application::new(Side::Client, streams, 1);
    let mut server = Application::new(Side::Server, streams, 2);
    let mut most = Most {
        waiting: vec![0; world.proxies.len()],
        under_way: vec![0; world.proxies.len()],
    };
    while !(client.is_done() && server.is_done()) {
        assert!(world.step(FOREVER), "it came to a stop");
        client.act(&mut world.client);
        server.act(&mut world.server);
        for (index, proxy) in world.proxies.iter().enumerate() {
            let now = proxy.statistics();
            most.waiting[index] = most.waiting[index].max(now.waiting_streams);
            most.under_way[index] = most.under_way[index].max(now.streams);
        }
    }
    client.check();
    server.check();
    most
}

/// The server allows one stream at a time; what may be sent on those that wait is more than all
/// together may have.
fn one_after_the_other(words: &[&'static str], streams: usize, is_backwards: bool) {
    let mut plan = allowing(1, words);
    plan.paths[words.len() - 1] = Path::of(300);
    let streams = vec![Stream::both_ways(200_000); streams];
    carry(plan.build(), &streams, 1, is_backwards);
}

#[test]
fn streams_that_wait_leave_credit_to_those_under_way() {
    for is_backwards in [false, true] {
        one_after_the_other(&["buffer=20000"], 6, is_backwards);
        // At the first proxy they do not wait, but cannot go on.
        one_after_the_other(&["buffer=20000", "buffer=20000"], 6, is_backwards);
        one_after_the_other(&["buffer=20000"; 3], 6, is_backwards);
    }
}

#[test]
fn a_whole_first_flight_that_waits_leaves_enough() {
    for is_backwards in [false, true] {
        one_after_the_other(&["buffer=20000"], 16, is_backwards);
        one_after_the_other(&["access.window=20000", "window=20000"], 16, is_backwards);
        // Once more than a first flight is allowed, nothing more is lent.
        one_after_the_other(&["buffer=20000"], 40, is_backwards);
        one_after_the_other(&["buffer=20000", "buffer=20000"], 40, is_backwards);
    }
}

#[test]
fn streams_of_a_server_leave_credit_too() {
    for words in [&["buffer=20000"][..], &["buffer=20000", "buffer=20000"]] {
        for dir in [Dir::Bi, Dir::Uni] {
            let mut plan = Plan::of(words);
            plan.paths[1] = Path::of(300);
            let mut world = plan.build();
            world
                .transport
                .max_concurrent_bidi_streams(1_u32.into())
                .max_concurrent_uni_streams(1_u32.into());
            let stream = Stream {
                opener: Side::Server,
                dir,
                ..Stream::both_ways(200_000)
            };
            carry(world, &vec![stream; 16], 1, true);
        }
    }
}

#[test]
fn a_limit_is_known_before_it_is_needed() {
    for mode in ["mode=sequential", "mode=warm"] {
        let mut plan = allowing(40, &[mode]);
        plan.paths[0] = Path::of(300);
        let mut world = plan.build();
        // The second connection finds one that is warm.
        for _ in 0..2 {
            let handle = connect(&mut world, "server");
            world.run(Duration::from_secs(20));
            let client = world.client.connections.get_mut(&handle).unwrap();
            assert_eq!(client.streams().allowed(Dir::Bi), 40, "{mode}");
        }
    }
}

#[test]
fn streams_that_end_unread_leave_room_for_others() {
    let ended = |reset, stop| Sending {
        bytes: 5000,
        reset,
        stop,
    };
    let endings = [
        ended(Some(5), None),
        ended(None, Some((0, 6))),
        ended(Some(5), Some((0, 6))),
    ];
    for opener in [Side::Client, Side::Server] {
        for dir in [Dir::Bi, Dir::Uni] {
            for end in &endings {
                let stream = Stream {
                    opener,
                    dir,
                    forth: end.clone(),
                    back: end.clone(),
                };
                let mut plan = Plan::of(&["", ""]);
                plan.paths[1] = Path::of(300);
                let world = plan.build_with(|_, config| config.limits.streams = 1);
                carry(world, &vec![stream; 5], 1, false);
            }
        }
    }
}

#[test]
fn a_side_that_ends_leaves_nothing_of_streams_that_waited() {
    for gone in [Side::Client, Side::Server] {
        let mut world = allowing(1, &["", ""]).build();
        world.transport.max_concurrent_bidi_streams(1_u32.into());
        let handle = connect(&mut world, "server");
        let stream = Stream {
            opener: !gone,
            ..Stream::both_ways(5_000_000)
        };
        let streams = vec![stream; 6];
        let mut client = Application::new(Side::Client, &streams, 1);
        let mut server = Application::new(Side::Server, &streams, 2);
        (client.is_slow, server.is_slow) = (true, true);
        let waiting = |proxy: &Proxy| proxy.statistics().waiting_streams;
        while world.proxies.iter().map(waiting).sum::<u64>() < 5 {
            assert!(world.step(FOREVER), "it came to a stop");
            client.act(&mut world.client);
            server.act(&mut world.server);
        }
        let at = match gone {
            Side::Client => (&mut world.client, handle),
            Side::Server => {
                let handle = *world.server.connections.keys().next().unwrap();
                (&mut world.server, handle)
            }
        };
        at.0.close(world.now, at.1, 7, "");
        let closed = world.now;
        (client.is_slow, server.is_slow) = (false, false);
        let hears = |application: &Application| application.closed.is_some();
        while !hears(if gone == Side::Client {
            &server
        } else {
            &client
        }) {
            assert!(world.step(FOREVER), "it hears nothing");
            client.act(&mut world.client);
            server.act(&mut world.server);
        }
        let linger = bentpipe_pep::Limits::default().linger;
        assert!(
            world.now < closed + linger / 10,
            "{gone:?}: {:?}",
            world.now
        );
        world.run(Duration::from_secs(200));
        world.assert_clean();
    }
}

#[test]
fn no_more_streams_are_allowed_than_can_go_on() {
    let streams: Vec<_> = (0..300).map(|_| Stream::both_ways(10_000)).collect();
    for mode in ["mode=parallel", "mode=sequential"] {
        // One path where the limit is known late, and one where the proxy is near the server.
        for late in [1, 2] {
            let mut plan = allowing(40, &[mode, mode]);
            plan.paths[late] = Path::of(300);
            assert_eq!(most(plan.build(), &streams).waiting, [0, 0], "{mode}");
        }
    }
}

#[test]
fn a_first_flight_may_wait() {
    let streams: Vec<_> = (0..50).map(|_| Stream::both_ways(10_000)).collect();
    let mut plan = allowing(4, &["", ""]);
    plan.paths[1] = Path::of(300);
    let waiting = most(plan.build(), &streams).waiting;
    assert!(waiting.iter().all(|count| *count <= 16 - 4), "{waiting:?}");
    assert!(waiting[1] > 0, "the limit was known before: {waiting:?}");
}

#[test]
fn a_limit_of_the_proxy_holds() {
    let streams: Vec<_> = (0..50).map(|_| Stream::both_ways(10_000)).collect();
    let mut plan = allowing(100, &[""]);
    plan.paths[1] = Path::of(300);
    let world = plan.build_with(|_, config| config.limits.streams = 5);
    let most = most(world, &streams);
    assert_eq!(most.waiting, [0]);
    assert!(most.under_way[0] <= 2 * 5, "{most:?}");
}
