//! Connections that are disturbed while data are under way: data that were taken are delivered, the
//! other side gets a defined code, and nothing is left.

use std::time::Duration;

use bentpipe_pep::CloseCode;
use noq_proto::{Dir, Side, TransportConfig};

use crate::hostile::{FOREVER, code, connect};
use crate::peer::Peer;
use crate::setup::{Plan, client_tls};
use crate::traffic::{Application, End, Plan as Stream, Sending};
use crate::world::{Random, World, calling};

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
    let mut talk = Talk::begin(Plan::of(&["", ""]), &[Stream::both_ways(50_000_000)]);
    talk.run(Duration::from_secs(1));
    talk.world.silent = Some(talk.world.last());
    talk.run(Duration::from_secs(150));
    assert_eq!(
        code(talk.client.closed.as_ref()),
        CloseCode::NextHopLost.value()
    );
    talk.end();
}

#[test]
fn a_client_that_vanishes_in_the_middle() {
    let mut talk = Talk::begin(Plan::of(&["", ""]), &[Stream::both_ways(50_000_000)]);
    talk.run(Duration::from_secs(1));
    talk.world.silent = Some(0);
    talk.run(Duration::from_secs(150));
    assert_eq!(
        code(talk.server.closed.as_ref()),
        CloseCode::ClientLost.value()
    );
    talk.end();
}

#[test]
fn a_server_that_forgets_all_in_the_middle() {
    let mut talk = Talk::begin(Plan::of(&[""]), &[Stream::both_ways(50_000_000)]);
    talk.run(Duration::from_secs(1));
    talk.world.server.forget_all();
    talk.run(Duration::from_secs(150));
    assert_eq!(
        code(talk.client.closed.as_ref()),
        CloseCode::NextHopLost.value()
    );
    talk.end();
}

#[test]
fn what_was_sent_before_a_close_is_delivered() {
    let mut plan = Plan::of(&["", ""]);
    plan.paths[2].delay = Duration::from_millis(300);
    plan.paths[2].loss = 5;
    let mut streams = [Stream::both_ways(300_000)];
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
    talk.run(Duration::from_mins(1));
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
        let mut plan = Plan::of(&["cc=cubic"]);
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
    // A window for each 600 ms: most of it waits in the proxy, for longer than a client may be
    // silent.
    plan.transport.stream_receive_window(50_000_u32.into());
    let sending = |bytes| Sending {
        bytes,
        reset: None,
        stop: None,
    };
    let streams = [Stream {
        opener: Side::Client,
        dir: Dir::Uni,
        forth: sending(7_000_000),
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
    talk.run(Duration::from_mins(10));
    assert!(talk.server.is_done(), "it has all that the proxy took");
    assert_eq!(
        code(talk.server.closed.as_ref()),
        CloseCode::ClientLost.value()
    );
    talk.end();
}

#[test]
fn memory_is_bounded_where_the_other_side_does_not_read() {
    let streams: Vec<_> = (0..20).map(|_| Stream::both_ways(4_000_000)).collect();
    let mut talk = Talk::begin(Plan::of(&["buffer=100000", "buffer=100000"]), &streams);
    talk.server.is_slow = true;
    talk.run(Duration::from_secs(20));
    for proxy in &talk.world.proxies {
        // Each direction of the connection holds twice the buffer of a stream, and a piece of each
        // stream.
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
    let mut talk = Talk::begin(Plan::of(&[""]), &[Stream::both_ways(2_000_000)]);
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
    let streams: Vec<_> = (0..500).map(|_| Stream::both_ways(10)).collect();
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
    let mut talk = Talk::begin(Plan::of(&[""]), &[Stream::both_ways(1000)]);
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
        CloseCode::ShuttingDown.value()
    );
    assert!(talk.world.proxies[0].is_drained());
    talk.end();
}
