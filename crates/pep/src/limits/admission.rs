//! A client arrives: whether it is taken, and with what it and the next hop are connected.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use noq_proto::Incoming;

use crate::config::Mode;
use crate::handshake::client_hello::Hello;
use crate::handshake::incomplete_hello::{Arrival, Beginning, Client, First};
use crate::limits::quota::Seat;
use crate::proxy::Proxy;
use crate::proxy::event::{Event, Number, Refusal};
use crate::relay::close::{Closing, Code};
use crate::relay::pair::{Facing, Leg, Pair};

/// Where handshakes of this part of all connections that there may be are under way, clients have to show that they are at their addresses.
const HANDSHAKES: usize = 4;

/// So do they where the first packets of this part are not complete. Each costs more memory than a handshake does.
const ARRIVALS: usize = 16;

impl Proxy {
    /// The first datagram of a client has come.
    ///
    /// `first`: as it came, if it starts with an Initial packet.
    pub(crate) fn begin_arrival(&mut self, now: Instant, incoming: Incoming, first: Option<First>) {
        let client = incoming.remote_address();
        if !incoming.remote_address_validated() && self.is_crowded(client.ip()) {
            self.statistics.retried_total += 1;
            return self.side(Facing::Client).retry(incoming);
        }
        let beginning = first.and_then(|first| {
            let collector = self.crypto.collector(&first.payload)?;
            Some((Beginning::of(collector, &first)?, first))
        });
        let Some((beginning, first)) = beginning else {
            return self.arrive(now, Arrival::Wrong(incoming));
        };
        // Whoever does not finish what it asks has a seat meanwhile: so it can keep away nobody but itself.
        let seat = match self.seat(client.ip()) {
            Ok(seat) => seat,
            Err(why) => return self.refuse(incoming, why),
        };
        let client = Client {
            incoming,
            seat,
            datagrams: vec![first],
        };
        match beginning {
            Beginning::Complete(hello) => self.arrive(now, Arrival::Complete(client, hello)),
            Beginning::Short(collector) => {
                let until = now + self.config.limits.handshake;
                self.arrivals.wait(client, collector, until);
            }
        }
    }

    /// Whether there are so many connections, or so many of this client, that some may be of somebody who is not there.
    fn is_crowded(&self, client: IpAddr) -> bool {
        let most = self.config.limits.most();
        ARRIVALS * self.arrivals.count() >= most.total
            || HANDSHAKES * self.handshaking >= most.total
            || self.config.seats.are_scarce(client, most)
    }

    fn seat(&self, client: IpAddr) -> Result<Seat, Refusal> {
        if self.is_draining {
            return Err(Refusal::Draining);
        }
        self.config.seats.take(client, self.config.limits.most())
    }

    /// It is known what a client wants.
    pub(crate) fn arrive(&mut self, now: Instant, arrival: Arrival) {
        let (client, hello) = match arrival {
            Arrival::Complete(client, hello) => (client, hello),
            // Whoever sends garbage gets no answer that would tell it anything.
            Arrival::Wrong(incoming) => {
                let client = incoming.remote_address();
                self.side(Facing::Client).ignore(incoming);
                return self.note_refusal(client, Refusal::Hello);
            }
        };
        let Client {
            incoming,
            seat,
            datagrams,
        } = client;
        let client = incoming.remote_address();
        let next_hop = self.config.next_hop(hello.name.as_deref());
        // Where nobody knows whether the proxy is of use, the connection to the next hop tells; the client waits for that.
        // One that was sent a Retry looks for it in the handshake (RFC 9000, section 7.3), which only the proxy can complete then.
        let is_short = match next_hop {
            Some(next_hop) if incoming.may_retry() => self.is_short(now, client, next_hop),
            _ => Some(false),
        };
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
}
