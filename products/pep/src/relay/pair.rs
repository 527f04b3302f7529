//! A client's connection and the one that it is carried over.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use noq_proto::{Connection, Event, Incoming, SendDatagramError, Side as Initiator, StreamEvent};

use super::close::{CloseCode, CloseReason};
use super::direction::DirectionRelay;
use super::ends::{BothConnections, RelayEnds};
use super::gap_watch::GapWatch;
use super::keep_alive::KeepAlive;
use bentpipe_service::quota::ConnectionPermit;

use crate::config::Config;
use crate::connections::Side;
use crate::events::{ClosedBy, Statistics};
use crate::handshake::{ClientHello, InitialDatagram};

/// The connection of a pair on one side.
pub enum HopConnection {
    /// The client's, which is to be accepted when it is known with what.
    Incoming(Box<Incoming>),
    /// None so far.
    NotStarted,
    /// One of the endpoint of that side.
    Open {
        /// Its handle.
        handle: usize,
        /// Whether its handshake is complete.
        is_connected: bool,
    },
    /// It has ended.
    Closed,
}

/// The close that is still to be done on one side because the other has ended.
pub struct PendingClose {
    /// The side that is left.
    pub left: Side,
    /// The reason with which it is closed.
    pub reason: CloseReason,
    /// When it is closed, whatever is still to be delivered.
    pub until: Instant,
    /// ACK frames that had come from the side that is left when `until` was set.
    pub acks: u64,
    /// The end that closed the other side, for the log.
    pub by: ClosedBy,
}

/// A client that may still be forwarded untouched.
pub struct BypassCandidate {
    /// The proxy's own address that it sends to.
    pub local: Option<IpAddr>,
    /// All that it has sent so far.
    pub datagrams: Vec<InitialDatagram>,
}

/// A client that is to be relayed.
pub struct NewPair {
    /// Its address.
    pub client: SocketAddr,
    /// The library's state of it.
    pub incoming: Box<Incoming>,
    /// Its permit, which is given back when the pair is forgotten.
    pub permit: ConnectionPermit,
    /// Its `ClientHello`.
    pub hello: ClientHello,
    /// The candidate for forwarding it untouched, which may still turn out to be better.
    pub bypass: Option<BypassCandidate>,
}

/// A client's connection and the one to the next hop.
pub struct ConnectionPair {
    /// As it was when the client came.
    pub config: Arc<Config>,
    /// The client's `ClientHello`.
    pub hello: ClientHello,
    /// Where the client is.
    pub client: SocketAddr,
    _permit: ConnectionPermit,
    connections: [HopConnection; 2],
    /// By the side that data come from.
    relays: [DirectionRelay; 2],
    /// One side has ended.
    pub pending_close: Option<PendingClose>,
    /// Both handshakes have been complete.
    pub is_established: bool,
    /// The client has sent data in 0-RTT packets (RFC 9001, section 2.1), which it may where the
    /// configuration says so.
    is_early: bool,
    /// Until when both handshakes must be complete.
    handshake_until: Option<Instant>,
    /// The client may still be forwarded untouched.
    pub bypass: Option<BypassCandidate>,
    /// When the proxy shuts down.
    pub until: Option<Instant>,
    keep_alive: KeepAlive,
    gaps: GapWatch,
    /// The time under which it is in the set of timers.
    pub timer: Option<Instant>,
}

/// The action that a pair's timeout asks for.
pub enum TimeoutAction {
    /// Close all that is left, with this.
    Close(CloseReason),
    /// Give up the next hop, which has not answered in time.
    GiveUpNextHop,
}

impl ConnectionPair {
    /// A client that is not accepted yet, and has until `until` for that.
    pub fn new(config: Arc<Config>, new: NewPair, until: Instant) -> Self {
        let relays = [
            DirectionRelay::new(Initiator::Client, &config.client, &config.limits),
            DirectionRelay::new(Initiator::Server, &config.server, &config.limits),
        ];
        Self {
            config,
            hello: new.hello,
            client: new.client,
            _permit: new.permit,
            connections: [
                HopConnection::Incoming(new.incoming),
                HopConnection::NotStarted,
            ],
            relays,
            pending_close: None,
            is_established: false,
            is_early: false,
            handshake_until: Some(until),
            bypass: new.bypass,
            until: None,
            keep_alive: KeepAlive::default(),
            gaps: GapWatch::default(),
            timer: None,
        }
    }

    /// The connection on a side.
    pub fn connection(&self, side: Side) -> &HopConnection {
        &self.connections[side as usize]
    }

    /// Puts another connection in the place of the one on a side, which it returns.
    pub fn replace(&mut self, side: Side, connection: HopConnection) -> HopConnection {
        std::mem::replace(&mut self.connections[side as usize], connection)
    }

    /// The handle of the connection on a side, if it is there.
    pub fn handle_of(&self, side: Side) -> Option<usize> {
        match self.connection(side) {
            HopConnection::Open { handle, .. } => Some(*handle),
            _ => None,
        }
    }

    /// The handles of both sides.
    pub fn handles(&self) -> [Option<usize>; 2] {
        Side::BOTH.map(|side| self.handle_of(side))
    }

    /// Whether the handshake on a side is complete.
    pub fn is_connected(&self, side: Side) -> bool {
        let connection = self.connection(side);
        matches!(
            connection,
            HopConnection::Open {
                is_connected: true,
                ..
            }
        )
    }

    /// Whether the handshakes on both sides are.
    pub fn is_connected_on_both(&self) -> bool {
        Side::BOTH.iter().all(|side| self.is_connected(*side))
    }

    /// Whether anything that came from this side is still to be delivered.
    pub fn has_data_from(&self, side: Side) -> bool {
        self.relays[side as usize].has_data()
    }

    /// Adds what it has carried, and what is under way and waits.
    pub fn add_to(&self, statistics: &mut Statistics) {
        self.add_carried_to(statistics);
        for relay in &self.relays {
            statistics.held_bytes += relay.held() as u64;
            statistics.streams += relay.count() as u64;
            statistics.waiting_streams += relay.waiting();
        }
    }

    /// Adds what it has carried.
    pub fn add_carried_to(&self, statistics: &mut Statistics) {
        statistics.bytes_to_servers_total += self.carried(Side::Client);
        statistics.bytes_to_clients_total += self.carried(Side::Server);
    }

    /// Bytes of streams that came from a side and were written to the other.
    pub fn carried(&self, from: Side) -> u64 {
        self.relays[from as usize].carried
    }

    /// One of its connections says something that is about streams, datagrams or the handshake.
    pub fn handle(
        &mut self,
        at: Side,
        event: Event,
        both: BothConnections<'_>,
        statistics: &mut Statistics,
    ) {
        let [client, server] = both;
        let (here, there) = match at {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        let Some(here) = here else { return };
        match event {
            Event::Connected => {
                if let HopConnection::Open { is_connected, .. } = &mut self.connections[at as usize]
                {
                    *is_connected = true;
                }
                self.begin(at, here, there, statistics);
            }
            Event::Stream(_) | Event::DatagramReceived
                if at == Side::Client && !self.takes_data(at) =>
            {
                self.is_early = true;
                let mut there = there;
                self.begin(at, here, there.as_deref_mut(), statistics);
                let both = [Some(here), there];
                self.handle(at, event, both, statistics);
            }
            Event::Stream(event) => self.handle_stream(at, &event, here, there),
            Event::DatagramReceived => {
                if let Some(there) = there
                    && self.takes_data(at.other())
                {
                    forward_datagrams(here, there, statistics);
                }
            }
            _ => {}
        }
    }

    /// Whether this side may be sent what comes from the other: when its handshake is complete, or
    /// it is a client that has sent early data, which nobody but who has the key of an earlier
    /// session can have made, or can read the answer to.
    fn takes_data(&self, side: Side) -> bool {
        self.is_connected(side) || side == Side::Client && self.is_early
    }

    /// From now on a side takes data: what has waited for that goes there.
    fn begin(
        &mut self,
        at: Side,
        here: &mut Connection,
        there: Option<&mut Connection>,
        statistics: &mut Statistics,
    ) {
        if self.is_connected_on_both() {
            self.handshake_until = None;
        }
        let [outward, inward] = self.relays_from(at);
        let mut ends = RelayEnds {
            from: there,
            to: here,
        };
        inward.open(outward, &mut ends);
        inward.carry_all(&mut ends);
        if let Some(there) = ends.from {
            forward_datagrams(there, ends.to, statistics);
        }
    }

    fn handle_stream(
        &mut self,
        at: Side,
        event: &StreamEvent,
        here: &mut Connection,
        there: Option<&mut Connection>,
    ) {
        let may_leave = self.takes_data(at.other());
        let may_come = self.takes_data(at);
        let [outward, inward] = self.relays_from(at);
        let mut there = there;
        let mut coming = RelayEnds {
            from: there.as_deref_mut(),
            to: here,
        };
        match event {
            StreamEvent::Writable { id } if may_come => inward.carry(&mut coming, *id),
            // One that was opened by nothing but this is asked when it is accepted.
            StreamEvent::Stopped { id, error_code } if outward.is_open(*id) => {
                inward.stop(&mut coming, *id, *error_code);
            }
            _ => {}
        }
        // It may have been what a stream has waited for.
        if may_come {
            inward.open(outward, &mut coming);
        }
        if let Some(there) = there
            && may_leave
        {
            let mut leaving = RelayEnds::between(here, there);
            if let StreamEvent::Readable { id } = event {
                outward.carry(&mut leaving, *id);
            }
            outward.open(inward, &mut leaving);
        }
    }

    /// Lets each side open as many streams as the other allows; returns to which something new is
    /// to be sent.
    ///
    /// The library does not report the ends of streams, so this is looked at whenever a connection
    /// was touched.
    pub fn allow_streams(&mut self, both: BothConnections<'_>) -> [bool; 2] {
        let [Some(client), Some(server)] = both else {
            return [false, false];
        };
        let is_known = Side::BOTH.map(|side| self.is_connected(side));
        let [from_client, from_server] = &mut self.relays;
        [
            is_known[Side::Server as usize] && from_client.allow(client, server),
            is_known[Side::Client as usize] && from_server.allow(server, client),
        ]
    }

    /// The relays of data that come from this side, and of those that go there.
    fn relays_from(&mut self, at: Side) -> [&mut DirectionRelay; 2] {
        let [client, server] = &mut self.relays;
        match at {
            Side::Client => [client, server],
            Side::Server => [server, client],
        }
    }

    /// The connection on one side has ended, and `close` is what is to follow on the other. What
    /// came from there is still to be delivered: `gone` is the connection, as long as there is
    /// anything to read from it.
    pub fn end(&mut self, gone: Option<&mut Connection>, close: PendingClose) {
        let side = close.left.other();
        let [outward, inward] = self.relays_from(side);
        inward.clear(outward);
        match gone {
            Some(connection) => outward.read_remaining(connection),
            None => outward.clear(inward),
        }
        self.connections[side as usize] = HopConnection::Closed;
        self.gaps = GapWatch::default();
        self.keep_alive = KeepAlive::default();
        self.handshake_until = None;
        self.pending_close = Some(close);
    }

    /// Hands on what can be without waiting for an event: the side that data come from has just
    /// ended.
    pub fn flush(&mut self, left: Side, connection: &mut Connection) {
        if !self.takes_data(left) {
            return;
        }
        let [outward, inward] = self.relays_from(left);
        let mut ends = RelayEnds {
            from: None,
            to: connection,
        };
        inward.open(outward, &mut ends);
        inward.carry_all(&mut ends);
    }

    /// Whether all that came from the side that has ended is delivered to the one that is left.
    pub fn is_delivered(&self, left: Side, connection: &mut Connection) -> bool {
        self.is_connected(left) && self.relays[left.other() as usize].is_delivered(connection)
    }

    /// Sets or removes the timer that watches over gaps.
    pub fn watch_gaps(&mut self, now: Instant) {
        if self.pending_close.is_none() {
            self.gaps.look(now, self.config.limits.gap, &self.relays);
        }
    }

    /// When it wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        let close = self.pending_close.as_ref().map(|close| close.until);
        let gaps = self.gaps.next_timeout();
        let keep_alive = self.keep_alive.next_timeout();
        [self.handshake_until, self.until, close, gaps, keep_alive]
            .into_iter()
            .flatten()
            .min()
    }

    /// The action that is to be taken because a time is over.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<TimeoutAction> {
        let is_due = |until: &Instant| *until <= now;
        if let Some(close) = &self.pending_close
            && is_due(&close.until)
        {
            return Some(TimeoutAction::Close(close.reason.clone()));
        }
        if self.handshake_until.as_ref().is_some_and(is_due) {
            return Some(if self.is_connected(Side::Server) {
                TimeoutAction::Close(CloseCode::ClientLost.into())
            } else {
                TimeoutAction::GiveUpNextHop
            });
        }
        if self.until.as_ref().is_some_and(is_due) {
            return Some(TimeoutAction::Close(CloseCode::ShuttingDown.into()));
        }
        let gap_timeout = self.config.limits.gap;
        let is_stuck = self.gaps.is_stuck(now, gap_timeout, &self.relays);
        is_stuck.then(|| TimeoutAction::Close(CloseCode::Buffer.into()))
    }

    /// Hands on that a peer wants the connection to live; whether there was reason to.
    pub fn forward_keep_alive(&mut self, now: Instant, both: BothConnections<'_>) -> bool {
        self.keep_alive.forward(now, self.config.limits.idle, both)
    }

    /// Gives the side that is left more time, as long as it goes on acknowledging.
    pub fn prolong(&mut self, now: Instant, left: &mut Connection) {
        let linger = self.config.limits.linger;
        if let Some(close) = &mut self.pending_close
            && close.until <= now
        {
            let acks = left.stats().frame_rx.acks;
            if acks > close.acks {
                (close.until, close.acks) = (now + linger, acks);
            }
        }
    }
}

/// Relays DATAGRAM frames (RFC 9221). Where the buffer is full, new ones displace older ones, as
/// the library does.
fn forward_datagrams(from: &mut Connection, to: &mut Connection, statistics: &mut Statistics) {
    while let Some(data) = from.datagrams().recv() {
        match to.datagrams().send(data, true) {
            Ok(()) => statistics.datagrams_total += 1,
            Err(SendDatagramError::TooLarge) => statistics.datagrams_too_large_total += 1,
            Err(_) => statistics.datagrams_unsupported_total += 1,
        }
    }
}
