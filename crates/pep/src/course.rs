//! The course of a client's connection: it arrives, is connected on, carries data, and ends.

use std::net::SocketAddr;
use std::time::Instant;

use noq_proto::{Connection, Event as Happened, Incoming, PathId};

use crate::arrivals::{Arrival, First};
use crate::closing::{Closing, Code};
use crate::config::Mode;
use crate::connections::Connections;
use crate::crypto::protocol;
use crate::event::{Event, Number, Refusal};
use crate::hello::Hello;
use crate::pair::{Both, Ending, Facing, Leg, Overdue, Pair};
use crate::pool::Key;
use crate::proxy::Proxy;
use crate::seats::Seat;

/// Where handshakes of more than this part of all connections that there may be are under way, clients have to show that they are at their addresses.
const CROWDED: usize = 4;

/// Clients whose first packets are not complete: above the first number they have to show that they are at their addresses, above the second
/// there are no more.
const MANY_ARRIVALS: usize = 64;
const MOST_ARRIVALS: usize = 1024;

impl Proxy {
    /// The first datagram of a client has come.
    ///
    /// `first`: as it came, if it starts with an Initial packet.
    pub(crate) fn begin_arrival(&mut self, now: Instant, incoming: Incoming, first: Option<First>) {
        let arriving = self.arrivals.count();
        if arriving >= MOST_ARRIVALS {
            return self.side(Facing::Client).ignore(incoming);
        }
        if arriving >= MANY_ARRIVALS && !incoming.remote_address_validated() {
            self.statistics.retried_total += 1;
            return self.side(Facing::Client).retry(incoming);
        }
        let Some(first) = first else {
            return self.arrive(now, Arrival::Wrong(incoming));
        };
        let collector = self.crypto.collector(&first.payload);
        let until = now + self.config.limits.handshake;
        let arrival = self.arrivals.begin(incoming, collector, first, until);
        if let Some(arrival) = arrival {
            self.arrive(now, arrival);
        }
    }

    /// It is known what a client wants.
    pub(crate) fn arrive(&mut self, now: Instant, arrival: Arrival) {
        let (incoming, hello, datagrams) = match arrival {
            Arrival::Complete(incoming, hello, datagrams) => (incoming, hello, datagrams),
            // Whoever sends garbage gets no answer that it could have sent to somebody else.
            Arrival::Wrong(incoming) => {
                let client = incoming.remote_address();
                self.side(Facing::Client).ignore(incoming);
                return self.note_refusal(client, Refusal::Hello);
            }
        };
        let client = incoming.remote_address();
        // Many at once may be of somebody who is not there.
        let most = self.config.limits.connections;
        let is_crowded =
            self.handshaking >= most / CROWDED || self.config.seats.count() >= most / 2;
        if is_crowded && !incoming.remote_address_validated() {
            self.statistics.retried_total += 1;
            return self.side(Facing::Client).retry(incoming);
        }
        let limits = &self.config.limits;
        let seat = if self.is_draining {
            Err(Refusal::Draining)
        } else {
            self.config.seats.take(client.ip(), limits.most())
        };
        let seat = match seat {
            Ok(seat) => seat,
            Err(why) => return self.refuse(incoming, why),
        };
        let next_hop = self.config.next_hop(hello.name.as_deref());
        // Where nobody knows whether the proxy is of use, the connection to the next hop tells; the client waits for that.
        let is_short = next_hop.map_or(Some(false), |next| self.is_short(now, client, next));
        let local = incoming.local_ip();
        if let (Some(next_hop), Some(true)) = (next_hop, is_short)
            && self.may_step_aside(client, 0)
        {
            self.side(Facing::Client).ignore(incoming);
            return self.step_aside(now, (client, local, seat), next_hop, &datagrams);
        }
        let name = hello.name.clone();
        let number = self.add(now, client, seat, hello);
        let waiting = Leg::Waiting(Box::new(incoming));
        let pair = self.pair(number);
        pair.replace_leg(Facing::Client, waiting);
        if is_short.is_none() {
            pair.untouched = Some((local, datagrams));
        }
        let Some(next_hop) = next_hop else {
            // It is accepted only to be told that.
            self.note_refusal(client, Refusal::Name(name));
            return self.end(now, number, Facing::Server, Code::Name.into());
        };
        self.tell(Event::Opened {
            number,
            client,
            name,
            next_hop,
        });
        if self.config.mode != Mode::Warm || !self.take_ready(now, number, next_hop) {
            self.connect(now, number, next_hop);
        }
        if self.config.mode == Mode::Parallel && is_short.is_some() {
            self.accept_waiting(now, number, None);
        }
        self.keep_time(number);
    }

    pub(crate) fn refuse(&mut self, incoming: Incoming, why: Refusal) {
        let client = incoming.remote_address();
        self.side(Facing::Client).refuse(incoming);
        self.note_refusal(client, why);
    }

    fn note_refusal(&mut self, client: SocketAddr, why: Refusal) {
        self.statistics.refused_total += 1;
        self.tell(Event::Refused { client, why });
    }

    fn add(&mut self, now: Instant, client: SocketAddr, seat: Seat, hello: Hello) -> Number {
        self.statistics.connections_total += 1;
        let number = Number(self.statistics.connections_total);
        let until = now + self.config.limits.handshake;
        let pair = Pair::new(self.config.clone(), (client, seat), hello, until);
        self.pairs.insert(number, pair);
        self.handshaking += 1;
        *self.client_addresses.entry(client).or_default() += 1;
        number
    }

    fn pair(&mut self, number: Number) -> &mut Pair {
        self.pairs.get_mut(&number).expect("a pair that is there")
    }

    fn connect(&mut self, now: Instant, number: Number, next_hop: SocketAddr) {
        let config = self.config.clone();
        let pair = self.pair(number);
        // The library takes an address for a name; then the certificate must be of that.
        let address = next_hop.ip().to_string();
        let name = pair.hello.name.clone().unwrap_or(address);
        let protocols = match config.mode {
            // The client is given the one that it likes best before the next hop has said anything.
            Mode::Parallel => pair.hello.protocols.iter().take(1).cloned().collect(),
            Mode::Sequential | Mode::Warm => pair.hello.protocols.clone(),
        };
        let connecting = self.crypto.to_connect(&config, &protocols);
        let side = self.side(Facing::Server);
        let to = (next_hop, name.as_str());
        match side.connect(now, connecting, to, &config.server.peers) {
            Ok(handle) => self.join(now, number, Facing::Server, handle),
            Err(_) => self.end(now, number, Facing::Server, Code::NextHopFailed.into()),
        }
    }

    /// A connection becomes part of a pair.
    pub(crate) fn join(&mut self, now: Instant, number: Number, facing: Facing, handle: usize) {
        let member = self.side(facing).get(handle);
        let member = member.expect("a connection that was just made");
        member.owner = Some(number);
        let is_connected = !member.connection.is_handshaking();
        let leg = Leg::There {
            handle,
            is_connected,
        };
        self.pair(number).replace_leg(facing, leg);
        self.settle(now, facing, handle);
    }

    /// Accepts the client that waits, to speak `protocol`, or the one of its own that it likes best.
    pub(crate) fn accept_waiting(
        &mut self,
        now: Instant,
        number: Number,
        protocol: Option<Vec<u8>>,
    ) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        if !matches!(pair.leg(Facing::Client), Leg::Waiting(_)) {
            return;
        }
        let Leg::Waiting(incoming) = pair.replace_leg(Facing::Client, Leg::Missing) else {
            return;
        };
        let mut protocols = protocol.map_or_else(|| pair.hello.protocols.clone(), |one| vec![one]);
        // Who offers none is given none.
        protocols.retain(|protocol| !protocol.is_empty());
        let accepting = self.crypto.to_accept(&protocols);
        let config = pair.config.clone();
        let side = self.side(Facing::Client);
        match side.accept(now, *incoming, accepting, &config.client.peers) {
            Ok(handle) => self.join(now, number, Facing::Client, handle),
            Err(error) => self.end(now, number, Facing::Client, Closing::of_client(&error)),
        }
    }

    /// Asks a connection that was touched what that led to, and others that this touched.
    pub(crate) fn settle(&mut self, now: Instant, facing: Facing, handle: usize) {
        self.touched.push_back((facing, handle));
        // Whoever is already at it does it.
        if self.touched.len() == 1 {
            self.settle_touched(now);
        }
    }

    fn settle_touched(&mut self, now: Instant) {
        let mut events = Vec::new();
        while let Some(&(facing, handle)) = self.touched.front() {
            let side = self.side(facing);
            let owner = side.get(handle).and_then(|member| member.owner);
            side.settle(handle, &mut events);
            for event in events.drain(..) {
                match owner {
                    Some(number) => self.handle_event(now, number, facing, event),
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

    fn handle_event(&mut self, now: Instant, number: Number, at: Facing, event: Happened) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        if let Happened::ConnectionLost { reason } = &event {
            let closing = match at {
                Facing::Client => Closing::of_client(reason),
                Facing::Server => Closing::of_next_hop(reason, pair.is_connected(at)),
            };
            return self.end(now, number, at, closing);
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
            if let (Mode::Warm, Some(protocol), Some(next_hop)) =
                (self.config.mode, chosen.clone(), next_hop)
            {
                let key = Key {
                    next_hop,
                    name,
                    protocol,
                };
                self.ask(now, &key);
            }
        }
        if let Some(protocol) = chosen
            && complete
            && let Some(pair) = self.pairs.get_mut(&number)
        {
            pair.is_established = true;
            let both = both(&mut self.sides, pair);
            pair.hand_on_pings(now, both);
            self.handshaking -= 1;
            self.statistics.established_total += 1;
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

    /// The connection on one side has ended, or never began; the other is told when it has what came before.
    pub(crate) fn end(&mut self, now: Instant, number: Number, gone: Facing, closing: Closing) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let left = gone.other();
        let handle = pair.handle_of(gone);
        let leg = pair.replace_leg(gone, Leg::Gone);
        if let Leg::Waiting(incoming) = leg {
            self.sides[Facing::Client as usize].ignore(*incoming);
        }
        if pair.ending.is_some() {
            return self.finish(now, number, gone, None);
        }
        let until = now + pair.config.limits.linger;
        let why = Pair::why(gone, &closing);
        let member = handle.and_then(|handle| self.sides[gone as usize].get(handle));
        let connection = member.map(|member| {
            member.owner = None;
            &mut member.connection
        });
        let ending = Ending {
            left,
            closing,
            until,
            acks: 0,
            why,
        };
        pair.end(gone, connection, ending);
        self.accept_waiting(now, number, None);
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let nobody_hears =
            left == Facing::Server && !pair.is_connected(left) && !pair.has_cargo(gone);
        match pair.handle_of(left) {
            Some(_) if nobody_hears => self.finish(now, number, left, None),
            None => self.finish(now, number, left, None),
            Some(handle) => {
                let member = self.sides[left as usize].get(handle);
                let member = member.expect("a leg that is there");
                pair.flush(left, &mut member.connection);
                self.settle(now, left, handle);
                self.keep_time(number);
            }
        }
    }

    /// Closes what is left of a pair if it has all that came from the side that has ended.
    fn progress(&mut self, now: Instant, number: Number) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        pair.watch_gaps(now);
        let left = pair.ending.as_ref().map(|ending| ending.left);
        if let Some(left) = left
            && let Some(handle) = pair.handle_of(left)
            && let Some(member) = self.sides[left as usize].get(handle)
            && pair.is_delivered(left, &mut member.connection)
        {
            return self.finish(now, number, left, None);
        }
        self.keep_time(number);
    }

    /// Closes what is left of a pair, and forgets it. `instead`: not with what the other side has ended with.
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        number: Number,
        at: Facing,
        instead: Option<Closing>,
    ) {
        let Some(mut pair) = self.pairs.remove(&number) else {
            return;
        };
        let ending = pair.ending.take();
        let closing = instead.or_else(|| ending.as_ref().map(|ending| ending.closing.clone()));
        let closing = closing.expect("nothing ends without a reason");
        let why = ending.map_or_else(|| Pair::why(at, &closing), |ending| ending.why);
        for facing in Facing::BOTH {
            match pair.replace_leg(facing, Leg::Gone) {
                Leg::There { handle, .. } => {
                    let side = &mut self.sides[facing as usize];
                    side.close(now, handle, closing.code, &closing.reason);
                    self.settle(now, facing, handle);
                }
                Leg::Waiting(incoming) => self.sides[facing as usize].refuse(*incoming),
                Leg::Missing | Leg::Gone => {}
            }
        }
        self.account(number, &pair, &closing);
        self.tell(Event::Closed {
            number,
            why,
            to_server: pair.carried(Facing::Client),
            to_client: pair.carried(Facing::Server),
        });
    }

    /// Takes a pair that has ended out of all books.
    fn account(&mut self, number: Number, pair: &Pair, closing: &Closing) {
        if let Some(time) = pair.timer {
            self.timers.remove(&(time, number));
        }
        if !pair.is_established {
            self.handshaking -= 1;
        }
        let address = self.client_addresses.entry(pair.client).or_default();
        *address -= 1;
        if *address == 0 {
            self.client_addresses.remove(&pair.client);
        }
        let statistics = &mut self.statistics;
        statistics.bytes_to_servers_total += pair.carried(Facing::Client);
        statistics.bytes_to_clients_total += pair.carried(Facing::Server);
        if closing.is_theirs {
            statistics.closed_by_application_total += 1;
        } else {
            statistics.closed_by_error_total += 1;
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

    /// A pair's timer is due, and out of the set of timers.
    pub(crate) fn handle_overdue(&mut self, now: Instant, number: Number) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        pair.timer = None;
        let connections = both(&mut self.sides, pair);
        let handles = Facing::BOTH.map(|facing| (facing, pair.handle_of(facing)));
        if pair.hand_on_pings(now, connections) {
            for (facing, handle) in handles {
                self.touched.extend(handle.map(|handle| (facing, handle)));
            }
            self.settle_touched(now);
        }
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let left = pair.ending.as_ref().map(|ending| ending.left);
        if let Some(left) = left
            && let Some(handle) = pair.handle_of(left)
            && let Some(member) = self.sides[left as usize].get(handle)
        {
            pair.prolong(now, &mut member.connection);
        }
        match pair.overdue(now) {
            Some(Overdue::Close(closing)) => {
                let at = pair.ending.as_ref().map_or(Facing::Client, |it| it.left);
                self.finish(now, number, at, Some(closing));
            }
            // The client is told as soon as its own handshake is complete.
            Some(Overdue::NextHop) => {
                let closing = Closing::from(Code::NextHopUnreachable);
                if let Some(handle) = pair.handle_of(Facing::Server) {
                    let side = &mut self.sides[Facing::Server as usize];
                    side.close(now, handle, closing.code, &closing.reason);
                    self.settle(now, Facing::Server, handle);
                }
                self.end(now, number, Facing::Server, closing);
            }
            None => self.keep_time(number),
        }
    }

    /// A pair may go on until then.
    pub(crate) fn end_by(&mut self, number: Number, until: Instant) {
        let pair = self.pair(number);
        pair.until = Some(until);
        self.keep_time(number);
    }
}

/// The connections of a pair.
fn both<'a>(sides: &'a mut [Connections; 2], pair: &Pair) -> Both<'a> {
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
