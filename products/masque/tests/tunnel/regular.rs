//! Clients and proxies that keep to the rules.

use std::time::Duration;

use bentpipe_masque::Refusal;

use crate::world::{DELAY, World, address, client, clock, proxy, proxy_settings};

const SECOND: Duration = Duration::from_secs(1);

/// A world with one client, both with these options.
fn pair(words: &str, of_client: &str) -> (World, bentpipe_masque::Client) {
    let clock = clock();
    let proxy = proxy(&clock, words, &[]);
    let client = client(&clock, &format!("{words} {of_client}"), None);
    (World::new(clock, proxy), client)
}

#[test]
fn the_first_datagram_comes_a_round_trip_later_than_without_and_none_where_it_is_warm() {
    for (mode, sent, due) in [
        ("mode=cold", Duration::ZERO, 3 * DELAY),
        ("mode=warm", 5 * SECOND, 5 * SECOND + DELAY),
    ] {
        let (mut world, mut client) = pair("", mode);
        world.run(sent, &mut client);
        client.send(world.now, address(7), 0, b"hello");
        world.run(sent + 2 * SECOND, &mut client);
        let (came, flow, payload) = world.at_target.first().expect("it comes").clone();
        assert_eq!(payload, &b"hello"[..]);
        // Some microseconds: each step of this world takes one.
        let late = came.checked_sub(due).expect("not before");
        assert!(late < Duration::from_millis(1), "{mode}: {late:?}");
        world.proxy.handle_reply(world.now, flow, 0, b"and back");
        world.run(sent + 4 * SECOND, &mut client);
        let back = client.poll_arrived().expect("it comes back");
        assert_eq!((back.to, &back.payload[..]), (address(7), &b"and back"[..]));
    }
}

#[test]
fn losses_are_the_endpoints_to_repair_unless_datagrams_go_in_streams() {
    for (words, all) in [("carry=datagrams", false), ("carry=streams", true)] {
        let (mut world, mut client) = pair(words, "mode=warm");
        world.run(5 * SECOND, &mut client);
        world.loses = |number| number % 10 == 0;
        for number in 0..200_u8 {
            client.send(world.now, address(7), 0, &[number; 1000]);
            let next = world.now + Duration::from_millis(5);
            world.run(next, &mut client);
        }
        world.run(60 * SECOND, &mut client);
        let came: Vec<u8> = world.at_target.iter().map(|(_, _, it)| it[0]).collect();
        assert!(came.is_sorted(), "{words}");
        assert_eq!(came.len() == 200, all, "{words}: {}", came.len());
        assert!(came.len() > 150, "{words}: {}", came.len());
        let counts = client.counts();
        let sent = (counts.sent_datagrams_total, counts.sent_capsules_total);
        assert_eq!(sent, if all { (0, 200) } else { (200, 0) });
    }
}

#[test]
fn a_datagram_fits_up_to_the_size_that_the_manual_says() {
    let (mut world, mut client) = pair("", "mode=warm");
    world.run(5 * SECOND, &mut client);
    for size in [1412, 1413] {
        client.send(world.now, address(7), 0, &vec![0; size]);
        world.run(world.now + SECOND, &mut client);
    }
    let sizes: Vec<usize> = world.at_target.iter().map(|it| it.2.len()).collect();
    assert_eq!(
        (sizes, client.counts().too_large_datagrams_total),
        (vec![1412], 1)
    );
}

#[test]
fn what_comes_when_the_queue_is_full_is_dropped() {
    for words in [
        "queue=20000 cc=newreno",
        "queue=20000 cc=newreno carry=streams",
    ] {
        let (mut world, mut client) = pair(words, "mode=warm");
        world.run(5 * SECOND, &mut client);
        for _ in 0..20_000 {
            client.send(world.now, address(7), 0, &[0; 1000]);
        }
        world.run(120 * SECOND, &mut client);
        let counts = client.counts();
        let sent = counts.sent_datagrams_total + counts.sent_capsules_total;
        assert_eq!(sent + counts.queue_full_datagrams_total, 20_000, "{words}");
        assert!(
            counts.queue_full_datagrams_total > 10_000,
            "{words}: {counts:?}"
        );
        assert!(counts.most_queued_bytes <= 20_000, "{words}: {counts:?}");
        assert_eq!(world.at_target.len() as u64, sent, "{words}");
    }
}

#[test]
fn a_target_that_is_not_allowed_is_refused_and_so_is_who_shows_no_token() {
    let refused = |world: &mut World, client: &mut bentpipe_masque::Client| {
        client.send(world.now, address(7), 0, b"hello");
        world.run(world.now + 5 * SECOND, client);
        assert_eq!(client.counts().refused_requests_total, 1);
        client.error().expect("it is said").to_owned()
    };
    let (mut world, mut client) = pair("", "");
    world.answer = Some(Err(Refusal::NotAllowed));
    assert!(refused(&mut world, &mut client).contains("403"));
    assert!(world.at_target.is_empty());
    assert_eq!(world.closed.len(), 1);

    for (token, passes) in [(None, false), (Some("wrong"), false), (Some("right"), true)] {
        let clock = clock();
        let proxy = proxy(&clock, "", &["other", "right"]);
        let mut client = crate::world::client(&clock, "", token);
        let mut world = World::new(clock, proxy);
        if passes {
            client.send(world.now, address(7), 0, b"hello");
            world.run(5 * SECOND, &mut client);
            assert_eq!(world.at_target.len(), 1);
        } else {
            assert!(
                refused(&mut world, &mut client).contains("407"),
                "{token:?}"
            );
            assert!(world.flows.is_empty());
        }
    }
}

#[test]
fn after_a_lost_connection_the_next_datagram_begins_another() {
    let (mut world, mut client) = pair("", "");
    client.send(world.now, address(7), 0, b"one");
    world.run(5 * SECOND, &mut client);
    world.loses = |_| true;
    world.run(60 * SECOND, &mut client);
    assert!(client.error().is_some());
    world.loses = |_| false;
    client.send(world.now, address(7), 0, b"two");
    world.run(70 * SECOND, &mut client);
    let payloads: Vec<_> = world.at_target.iter().map(|it| it.2.clone()).collect();
    assert_eq!(payloads, [&b"one"[..], b"two"]);
    assert_eq!(client.counts().connections_total, 2);
    assert_eq!(world.proxy.busy(), (1, 1));
}

#[test]
fn a_request_that_nobody_answers_has_failed_and_a_late_answer_changes_nothing() {
    let (mut world, mut client) = pair("", "");
    world.answer = None;
    client.send(world.now, address(7), 0, b"one");
    world.run(25 * SECOND, &mut client);
    assert!(client.error().unwrap().contains("does not answer"));
    assert_eq!(client.counts().failed_requests_total, 1);
    let [flow] = world.flows[..] else {
        panic!("{:?}", world.flows);
    };
    world.proxy.answer(world.now, flow, Ok(()));
    world.answer = Some(Ok(()));
    client.send(world.now, address(7), 0, b"two");
    world.run(30 * SECOND, &mut client);
    assert_eq!(world.closed, [flow]);
    assert_eq!(world.proxy.busy(), (1, 1));
    assert_eq!(client.counts().failed_requests_total, 1);
    assert_eq!(world.at_target.last().unwrap().2, &b"two"[..]);
}

#[test]
fn a_flow_whose_socket_fails_ends_and_the_next_datagram_begins_another() {
    let (mut world, mut client) = pair("", "");
    client.send(world.now, address(7), 0, b"one");
    world.run(5 * SECOND, &mut client);
    let flow = world.flows[0];
    world.proxy.fail(world.now, flow, "no route");
    world.run(6 * SECOND, &mut client);
    assert_eq!(world.closed, [flow]);
    assert_eq!(world.proxy.counts().failed_requests_total, 1);
    client.send(world.now, address(7), 0, b"two");
    world.run(10 * SECOND, &mut client);
    let payloads: Vec<_> = world.at_target.iter().map(|it| it.2.clone()).collect();
    assert_eq!(payloads, [&b"one"[..], b"two"]);
}

#[test]
fn who_closes_says_so_and_that_is_no_error() {
    for by_client in [true, false] {
        let (mut world, mut client) = pair("", "mode=warm");
        world.run(5 * SECOND, &mut client);
        if by_client {
            client.close(world.now);
        } else {
            world.proxy.close(world.now);
        }
        world.run(6 * SECOND, &mut client);
        assert_eq!(world.proxy.busy(), (0, 0));
        assert_eq!(client.error(), None);
    }
}

#[test]
fn a_silent_flow_ends_and_its_socket_is_closed() {
    let (mut world, mut client) = pair("", "");
    client.send(world.now, address(7), 0, b"one");
    world.run(100 * SECOND, &mut client);
    assert!(world.closed.is_empty());
    world.run(150 * SECOND, &mut client);
    assert_eq!(world.closed.len(), 1);
    assert_eq!(world.proxy.busy(), (1, 0));
}

#[test]
fn each_of_those_behind_it_has_a_flow_of_its_own_up_to_the_limit() {
    let (mut world, mut client) = pair("", "mode=warm");
    world.run(5 * SECOND, &mut client);
    // Two more than a connection may have at a time: they wait for a place.
    for last in 10..20 {
        client.send(world.now, address(last), 0, &[last]);
    }
    world.run(10 * SECOND, &mut client);
    assert_eq!((world.flows.len(), world.at_target.len()), (8, 8));
    for (_, flow, payload) in world.at_target.clone() {
        world.proxy.handle_reply(world.now, flow, 0, &payload);
    }
    world.run(12 * SECOND, &mut client);
    let mut back = 0;
    while let Some(came) = client.poll_arrived() {
        assert_eq!(came.to, address(came.payload[0]));
        back += 1;
    }
    assert_eq!(back, 8);
}

#[test]
fn a_proxy_that_drains_takes_nobody_new_and_serves_who_is_there() {
    let (mut world, mut client) = pair("", "");
    client.send(world.now, address(7), 0, b"one");
    world.run(5 * SECOND, &mut client);
    world.proxy.drain(world.now);
    client.send(world.now, address(7), 0, b"two");
    client.send(world.now, address(8), 0, b"new");
    world.run(10 * SECOND, &mut client);
    let payloads: Vec<_> = world.at_target.iter().map(|it| it.2.clone()).collect();
    assert_eq!(payloads, [&b"one"[..], b"two"]);
    let counts = client.counts();
    let ended = counts.failed_requests_total + counts.refused_requests_total;
    assert_eq!(ended, 1, "the new one: {:?}", client.error());
    assert_eq!(world.proxy.busy(), (1, 1));
    world.proxy.close(world.now);
    world.run(20 * SECOND, &mut client);
    assert_eq!(world.proxy.busy(), (0, 0));
}

#[test]
fn without_nested_control_a_burst_leaves_at_once_and_unmarked() {
    let (mut world, mut client) = pair("nested=off", "mode=warm");
    world.run(5 * SECOND, &mut client);
    for _ in 0..1000 {
        client.send(world.now, address(7), 0, &[0; 1000]);
    }
    let mut buffer = Vec::new();
    let most = std::num::NonZeroUsize::new(10).unwrap();
    let mut sent = 0;
    while let Some(transmit) = client.poll_transmit(world.now, most, &mut buffer) {
        assert_eq!(transmit.ecn, 0);
        sent += buffer.len();
        buffer.clear();
    }
    assert!(sent > 1_000_000, "{sent}");
}

#[test]
fn a_request_that_crosses_the_goaway_is_told_so_even_if_the_answer_is_lost_at_first() {
    let (mut world, mut client) = pair("", "");
    client.send(world.now, address(7), 0, b"hello");
    world.run(3 * SECOND, &mut client);
    let first = world.flows[0];
    world.proxy.drain(world.now);
    client.send(world.now, address(8), 0, b"too late");
    world.run(world.now + DELAY * 9 / 10, &mut client);
    world.loses = |_| true;
    world.run(world.now + DELAY / 5, &mut client);
    assert_eq!(world.proxy.counts().refused_requests_total, 1);
    world.proxy.fail(world.now, first, "its target is gone");
    assert_eq!(
        world.proxy.busy(),
        (1, 0),
        "its client is still to be answered"
    );
    world.loses = |_| false;
    world.run(world.now + 10 * SECOND, &mut client);
    assert_eq!(client.counts().refused_requests_total, 1);
    assert_eq!(world.proxy.busy(), (0, 0));
    assert_eq!(world.at_target.len(), 1);
}

#[test]
fn a_token_that_is_withdrawn_opens_no_request_on_a_connection_that_stands() {
    let clock = clock();
    let mut world = World::new(clock.clone(), proxy(&clock, "", &["first"]));
    let mut client = client(&clock, "", Some("first"));
    client.send(world.now, address(7), 0, b"hello");
    world.run(3 * SECOND, &mut client);
    let settings = proxy_settings(&clock, "", &["second"]);
    world.proxy.reconfigure(world.now, settings).unwrap();
    client.send(world.now, address(8), 0, b"another");
    client.send(world.now, address(7), 0, b"more");
    world.run(6 * SECOND, &mut client);
    assert!(client.error().unwrap().contains("407"));
    let payloads: Vec<_> = world.at_target.iter().map(|it| &it.2[..]).collect();
    assert_eq!(
        payloads,
        [&b"hello"[..], b"more"],
        "the request that was there goes on"
    );
}

#[test]
fn who_asks_again_and_again_without_a_token_loses_the_connection() {
    let clock = clock();
    let mut world = World::new(clock.clone(), proxy(&clock, "", &["token"]));
    let mut client = client(&clock, "mode=warm", None);
    world.run(2 * SECOND, &mut client);
    for (last, stays) in [(7, 1), (8, 1), (9, 1), (10, 0)] {
        client.send(world.now, address(last), 0, b"hello");
        world.run(world.now + SECOND / 2, &mut client);
        assert_eq!(world.proxy.busy(), (stays, 0), "{last}");
    }
}
