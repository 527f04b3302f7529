//! The course of a client's connection: what happens on either side of its pair, and what that leads to.

use std::net::SocketAddr;
use std::time::Instant;

use noq_proto::{Connection, Event as Happened, PathId};

use crate::config::Mode;
use crate::connections::endpoint::Connections;
use crate::handshake::crypto::protocol;
use crate::pool::ready::Key;
use crate::proxy::Proxy;
use crate::proxy::event::{Event, Number};
use crate::relay::close::Closing;
use crate::relay::pair::{Both, Facing, Leg, Pair};

impl Proxy {
    pub(crate) fn pair(&mut self, number: Number) -> &mut Pair {
        self.pairs.get_mut(&number).expect("a pair that is there")
    }

    /// Asks a connection that was touched what that led to, and others that this touched.
    pub(crate) fn settle(&mut self, now: Instant, facing: Facing, handle: usize) {
        self.touched.push_back((facing, handle));
        // Whoever is already at it does it.
        if self.touched.len() == 1 {
            self.settle_touched(now);
        }
    }

    pub(crate) fn settle_touched(&mut self, now: Instant) {
        let mut events = Vec::new();
        while let Some(&(facing, handle)) = self.touched.front() {
            let side = self.side(facing);
            let owner = side.get(handle).and_then(|member| member.owner);
            let mut drained = side.settle(handle, &mut events);
            for event in events.drain(..) {
                match owner {
                    Some(number) => {
                        self.handle_event(now, number, facing, event, drained.as_mut());
                    }
                    None if facing == Facing::Server => self.handle_ready(now, handle, &event),
                    None => {}
                }
            }
            if let Some(number) = owner {
                self.progress(now, number);
            }
            self.touched.pop_front();
        }
    }

    fn handle_event(
        &mut self,
        now: Instant,
        number: Number,
        at: Facing,
        event: Happened,
        drained: Option<&mut Connection>,
    ) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        if let Happened::ConnectionLost { reason } = &event {
            let closing = match at {
                Facing::Client => Closing::of_client(reason),
                Facing::Server => Closing::of_next_hop(reason, pair.is_connected(at)),
            };
            return self.end_with(now, number, at, closing, drained);
        }
        let is_connected = matches!(event, Happened::Connected);
        let both = both(&mut self.sides, pair);
        pair.handle(at, event, both, &mut self.statistics);
        let other = pair.handle_of(at.other());
        if is_connected {
            self.handle_connected(now, number, at);
        }
        if let Some(handle) = other {
            self.touched.push_back((at.other(), handle));
        }
    }

    /// A handshake of a pair is complete.
    fn handle_connected(&mut self, now: Instant, number: Number, at: Facing) {
        if let Some(handle) = self.pair(number).handle_of(at) {
            self.learn_rtt(now, at, handle);
        }
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let [_, server] = both(&mut self.sides, pair);
        let chosen = server.map(|connection| protocol(connection));
        let next_hop = server_address(&mut self.sides, pair);
        if let (Some(_), Some(next_hop)) = (&pair.untouched, next_hop)
            && at == Facing::Server
        {
            let client = pair.client;
            if self.is_short(now, client, next_hop) == Some(true) && self.may_step_aside(client, 1)
            {
                return self.turn_aside(now, number, next_hop);
            }
        }
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let complete = Facing::BOTH.iter().all(|facing| pair.is_connected(*facing));
        let name = pair.hello.name.clone();
        if at == Facing::Server {
            self.accept_waiting(now, number, chosen.clone());
        }
        if let Some(protocol) = chosen
            && complete
            && let Some(pair) = self.pairs.get_mut(&number)
        {
            pair.is_established = true;
            let both = both(&mut self.sides, pair);
            pair.hand_on_signs_of_life(now, both);
            self.handshaking -= 1;
            self.statistics.established_total += 1;
            // Not before: a client that is not there could ask for any name.
            if let (Mode::Warm, Some(next_hop)) = (self.config.mode, next_hop) {
                let key = Key {
                    next_hop,
                    name,
                    protocol: protocol.clone(),
                };
                self.ask(now, &key);
            }
            self.tell(Event::Established { number, protocol });
        }
        self.keep_time(number);
    }

    /// The connection to the next hop has shown that it needs no proxy: the client, who waits, is forwarded untouched.
    fn turn_aside(&mut self, now: Instant, number: Number, next_hop: SocketAddr) {
        let pair = self.pair(number);
        let client = pair.client;
        let Some((local, datagrams)) = pair.untouched.take() else {
            return;
        };
        if let Leg::Waiting(incoming) = pair.replace_leg(Facing::Client, Leg::Gone) {
            self.side(Facing::Client).ignore(*incoming);
        }
        let measured = Closing {
            code: 0,
            reason: b"proxy: stepping aside".to_vec(),
            is_theirs: false,
        };
        self.finish(now, number, Facing::Client, Some(measured));
        // The pair has just left one free, if nobody else was quicker.
        let most = self.config.limits.most();
        if let Ok(seat) = self.config.seats.take(client.ip(), most) {
            self.step_aside(now, (client, local, seat), next_hop, &datagrams);
        }
    }

    /// Notes when a pair wants to be called.
    pub(crate) fn keep_time(&mut self, number: Number) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let time = pair.next_timeout();
        if time == pair.timer {
            return;
        }
        if let Some(before) = pair.timer {
            self.timers.remove(&(before, number));
        }
        self.timers.extend(time.map(|time| (time, number)));
        pair.timer = time;
    }
}

/// The connections of a pair.
pub(crate) fn both<'a>(sides: &'a mut [Connections; 2], pair: &Pair) -> Both<'a> {
    let [client, server] = sides;
    let of = |side: &'a mut Connections, facing| -> Option<&'a mut Connection> {
        Some(&mut side.get(pair.handle_of(facing)?)?.connection)
    };
    [of(client, Facing::Client), of(server, Facing::Server)]
}

/// Where the next hop of a pair is.
fn server_address(sides: &mut [Connections; 2], pair: &Pair) -> Option<SocketAddr> {
    let handle = pair.handle_of(Facing::Server)?;
    let member = sides[Facing::Server as usize].get(handle)?;
    let path = member.connection.network_path(PathId::ZERO).ok()?;
    Some(path.remote())
}
