//! All pairs, from when a client is known until both of its connections have ended.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bentpipe_endpoint::Received;
use noq_proto::{Connection, Event as ConnectionEvent, Incoming, PathId};

use super::close::{CloseCode, CloseReason};
use super::pair::{
    BypassCandidate, ConnectionPair, HopConnection, NewPair, PendingClose, TimeoutAction,
};
use super::pair_table::PairTable;
use crate::config::HandshakeMode;
use crate::connections::{DatagramOwner, Driven, Side};
use crate::events::{ConnectionNumber, Event, EventQueue, Statistics};
use crate::handshake::{Connector, application_protocol};

/// The pairs of connections, and the endpoints that these are of.
///
/// What is done to a connection touches it; [`Self::next_notice`] is then to be asked what that led
/// to.
pub struct PairedConnections {
    /// Makes connections, and has them.
    pub connector: Connector,
    pairs: PairTable,
    /// The connection whose events are being handled.
    driven: Option<Driven>,
    /// A connection that is touched when the notice has been taken care of.
    touched_next: Option<(Side, usize)>,
    /// Events for the driver.
    pub events: EventQueue,
}

/// Something that has happened to a connection, and that is not for its pair alone to decide on.
pub enum Notice {
    /// A handshake of a pair is complete.
    Connected {
        /// The pair.
        number: ConnectionNumber,
        /// On this side.
        side: Side,
    },
    /// A connection to a next hop that is of no pair has something to say.
    Unpaired {
        /// Its handle.
        handle: usize,
        /// The event.
        event: ConnectionEvent,
    },
}

/// A next hop that is connected.
pub struct ConnectedNextHop {
    /// Its address.
    pub address: SocketAddr,
    /// The application protocol that it chose.
    pub protocol: Vec<u8>,
}

/// The end of one side of a pair.
struct SideEnd<'a> {
    side: Side,
    reason: CloseReason,
    /// The connection, if its endpoint has it no more.
    drained: Option<&'a mut Connection>,
}

impl PairedConnections {
    /// No pair yet.
    pub fn new(connector: Connector) -> Self {
        Self {
            connector,
            pairs: PairTable::default(),
            driven: None,
            touched_next: None,
            events: EventQueue::default(),
        }
    }

    /// A datagram has arrived on a side; the client that it is the first of, if it is that.
    pub fn receive(
        &mut self,
        now: Instant,
        side: Side,
        datagram: Received,
    ) -> Option<Box<Incoming>> {
        let endpoints = &mut self.connector.endpoints;
        match endpoints.of(side).handle(now, datagram) {
            DatagramOwner::Connection(handle) => endpoints.touch(side, handle),
            DatagramOwner::NewConnection(incoming) => return Some(incoming),
            DatagramOwner::Nobody => {}
        }
        None
    }

    /// Whether the notices of a connection are being taken care of: others wait for their turn.
    pub fn is_driving(&self) -> bool {
        self.driven.is_some()
    }

    /// Asks connections that were touched what that led to, until there is something to decide.
    pub fn next_notice(&mut self, now: Instant) -> Option<Notice> {
        if let Some((side, handle)) = self.touched_next.take() {
            self.connector.endpoints.touch(side, handle);
        }
        loop {
            let driven = self.driven.take();
            let mut driven = driven.or_else(|| self.connector.endpoints.drive_next())?;
            while let Some(event) = driven.events.pop_front() {
                if let Some(notice) = self.handle_event(now, event, &mut driven) {
                    self.driven = Some(driven);
                    return Some(notice);
                }
            }
            let owner = driven.owner;
            self.connector.endpoints.finish(driven);
            if let Some(number) = owner {
                self.progress(now, number);
            }
        }
    }

    fn handle_event(
        &mut self,
        now: Instant,
        event: ConnectionEvent,
        driven: &mut Driven,
    ) -> Option<Notice> {
        let Driven { side, handle, .. } = *driven;
        let Some(number) = driven.owner else {
            return (side == Side::Server).then_some(Notice::Unpaired { handle, event });
        };
        let pair = self.pairs.get_mut(number)?;
        if let ConnectionEvent::ConnectionLost { reason } = &event {
            let reason = match side {
                Side::Client => CloseReason::of_client(reason),
                Side::Server => CloseReason::of_next_hop(reason, pair.is_connected(side)),
            };
            let drained = driven.drained.as_deref_mut();
            self.end_side(
                now,
                number,
                SideEnd {
                    side,
                    reason,
                    drained,
                },
            );
            return None;
        }
        let is_connected = matches!(event, ConnectionEvent::Connected);
        let both = self.connector.endpoints.both(pair.handles());
        pair.handle(side, event, both, &mut self.events.statistics);
        let other = pair.handle_of(side.other());
        let other = other.map(|handle| (side.other(), handle));
        if is_connected {
            self.touched_next = other;
            return Some(Notice::Connected { number, side });
        }
        if let Some((side, handle)) = other {
            self.connector.endpoints.touch(side, handle);
        }
        None
    }

    /// Takes a client that is not accepted yet.
    pub fn begin(&mut self, now: Instant, new: NewPair) -> ConnectionNumber {
        self.events.statistics.connections_total += 1;
        let number = ConnectionNumber(self.events.statistics.connections_total);
        let until = now + self.connector.config.limits.handshake;
        let pair = ConnectionPair::new(self.connector.config.clone(), new, until);
        self.pairs.insert(number, pair);
        number
    }

    /// Connects a pair to its next hop.
    pub fn connect(&mut self, now: Instant, number: ConnectionNumber, next_hop: SocketAddr) {
        let hello = &self.pairs.expect(number).hello;
        let name = hello.server_name.clone();
        let mut protocols = hello.protocols.clone();
        if self.connector.config.mode == HandshakeMode::Parallel {
            // The client is given the one that it likes best before the next hop has said anything.
            protocols.truncate(1);
        }
        let connector = &mut self.connector;
        match connector.connect(now, next_hop, name.as_deref(), &protocols) {
            Some(handle) => self.adopt(number, Side::Server, handle),
            None => self.end(now, number, Side::Server, CloseCode::NextHopFailed.into()),
        }
    }

    /// A connection that was just begun, or is of no pair, becomes part of one.
    pub fn adopt(&mut self, number: ConnectionNumber, side: Side, handle: usize) {
        let entry = self.connector.endpoints.get(side, handle);
        let entry = entry.expect("a connection that was just made");
        entry.owner = Some(number);
        let is_connected = !entry.connection.is_handshaking();
        let connection = HopConnection::Open {
            handle,
            is_connected,
        };
        self.pairs.expect(number).replace(side, connection);
        self.connector.endpoints.touch(side, handle);
    }

    /// Accepts the client of a pair, if it waits for that, to speak `protocol`, or the one of its
    /// own that it likes best.
    pub fn accept(&mut self, now: Instant, number: ConnectionNumber, protocol: Option<Vec<u8>>) {
        let Some(pair) = self.pairs.get_mut(number) else {
            return;
        };
        if !matches!(pair.connection(Side::Client), HopConnection::Incoming(_)) {
            return;
        }
        let waiting = pair.replace(Side::Client, HopConnection::NotStarted);
        let HopConnection::Incoming(incoming) = waiting else {
            return;
        };
        let mut protocols = protocol.map_or_else(|| pair.hello.protocols.clone(), |one| vec![one]);
        // Who offers none is given none.
        protocols.retain(|protocol| !protocol.is_empty());
        let peers = pair.config.client.peers.clone();
        match self.connector.accept(now, *incoming, &protocols, &peers) {
            Ok(handle) => self.adopt(number, Side::Client, handle),
            Err(error) => self.end(now, number, Side::Client, CloseReason::of_client(&error)),
        }
    }

    /// The next hop of a pair, if it is connected to or about to be.
    pub fn next_hop(&mut self, number: ConnectionNumber) -> Option<ConnectedNextHop> {
        let handle = self.pairs.get(number)?.handle_of(Side::Server)?;
        let connection = &self
            .connector
            .endpoints
            .get(Side::Server, handle)?
            .connection;
        let path = connection.network_path(PathId::ZERO).ok()?;
        Some(ConnectedNextHop {
            address: path.remote(),
            protocol: application_protocol(connection),
        })
    }

    /// The address and the round-trip time of the peer of a pair on a side.
    pub fn rtt(&mut self, number: ConnectionNumber, side: Side) -> Option<(SocketAddr, Duration)> {
        let handle = self.pairs.get(number)?.handle_of(side)?;
        self.connector.endpoints.rtt(side, handle)
    }

    /// The address of a pair's client, if it may still be forwarded untouched.
    pub fn bypass_candidate(&self, number: ConnectionNumber) -> Option<SocketAddr> {
        let pair = self.pairs.get(number)?;
        pair.bypass.as_ref().map(|_| pair.client)
    }

    /// Forgets a pair whose client is to be forwarded untouched.
    pub fn release(&mut self, now: Instant, number: ConnectionNumber) -> Option<BypassCandidate> {
        let pair = self.pairs.expect(number);
        let candidate = pair.bypass.take()?;
        let waiting = pair.replace(Side::Client, HopConnection::Closed);
        if let HopConnection::Incoming(incoming) = waiting {
            self.connector.endpoints.of(Side::Client).ignore(*incoming);
        }
        let measured = CloseReason {
            code: 0,
            reason: b"proxy: stepping aside".to_vec(),
            is_application: false,
        };
        self.finish(now, number, Side::Client, Some(measured));
        Some(candidate)
    }

    /// Whether both handshakes of a pair are complete.
    pub fn is_connected_on_both(&self, number: ConnectionNumber) -> bool {
        let pair = self.pairs.get(number);
        pair.is_some_and(ConnectionPair::is_connected_on_both)
    }

    /// Both handshakes of a pair have just been completed, with this application protocol.
    pub fn establish(&mut self, now: Instant, number: ConnectionNumber, protocol: Vec<u8>) {
        let Some(pair) = self.pairs.get_mut(number) else {
            return;
        };
        let both = self.connector.endpoints.both(pair.handles());
        pair.forward_keep_alive(now, both);
        self.pairs.note_established(number);
        self.events.statistics.established_total += 1;
        self.events.push(Event::Established { number, protocol });
    }

    /// The connection on one side has ended, or never began; the other is closed when it has what
    /// came before.
    pub fn end(&mut self, now: Instant, number: ConnectionNumber, side: Side, reason: CloseReason) {
        let end = SideEnd {
            side,
            reason,
            drained: None,
        };
        self.end_side(now, number, end);
    }

    fn end_side(&mut self, now: Instant, number: ConnectionNumber, end: SideEnd<'_>) {
        let Some(pair) = self.pairs.get_mut(number) else {
            return;
        };
        let (gone, left) = (end.side, end.side.other());
        let handle = pair.handle_of(gone);
        let was = pair.replace(gone, HopConnection::Closed);
        if let HopConnection::Incoming(incoming) = was {
            self.connector.endpoints.of(Side::Client).ignore(*incoming);
        }
        if pair.pending_close.is_some() {
            return self.finish(now, number, gone, None);
        }
        let entry = pair.handle_of(left);
        let entry = entry.and_then(|handle| self.connector.endpoints.get(left, handle));
        let close = PendingClose {
            left,
            until: now + pair.config.limits.linger,
            acks: entry.map_or(0, |entry| entry.connection.stats().frame_rx.acks),
            by: end.reason.by(gone),
            reason: end.reason,
        };
        let connection = end.drained.or_else(|| {
            let entry = self.connector.endpoints.get(gone, handle?)?;
            entry.owner = None;
            Some(&mut entry.connection)
        });
        pair.end(connection, close);
        self.accept(now, number, None);
        self.close_what_is_left(now, number, left);
    }

    /// One side of a pair has just ended: hands on to the other what can be, or closes it at once
    /// where there is nothing to deliver.
    fn close_what_is_left(&mut self, now: Instant, number: ConnectionNumber, left: Side) {
        let Some(pair) = self.pairs.get_mut(number) else {
            return;
        };
        let nobody_hears =
            left == Side::Server && !pair.is_connected(left) && !pair.has_data_from(left.other());
        match pair.handle_of(left) {
            Some(handle) if !nobody_hears => {
                let entry = self.connector.endpoints.get(left, handle);
                let entry = entry.expect("a connection that is there");
                pair.flush(left, &mut entry.connection);
                self.connector.endpoints.touch(left, handle);
                self.pairs.keep_time(number);
            }
            _ => self.finish(now, number, left, None),
        }
    }

    /// A connection of a pair was touched: lets each side open what streams the other allows, or
    /// closes what is left of the pair if it has all that came from the side that has ended.
    fn progress(&mut self, now: Instant, number: ConnectionNumber) {
        let Some(pair) = self.pairs.get_mut(number) else {
            return;
        };
        pair.watch_gaps(now);
        let both = self.connector.endpoints.both(pair.handles());
        let told = pair.allow_streams(both);
        for (side, is_new) in Side::BOTH.into_iter().zip(told) {
            if is_new && let Some(handle) = pair.handle_of(side) {
                self.connector.endpoints.touch(side, handle);
            }
        }
        let left = pair.pending_close.as_ref().map(|close| close.left);
        if let Some(left) = left
            && let Some(handle) = pair.handle_of(left)
            && let Some(entry) = self.connector.endpoints.get(left, handle)
            && pair.is_delivered(left, &mut entry.connection)
        {
            return self.finish(now, number, left, None);
        }
        self.pairs.keep_time(number);
    }

    /// Closes what is left of a pair, and forgets it. `instead`: not with what the other side has
    /// ended with.
    fn finish(
        &mut self,
        now: Instant,
        number: ConnectionNumber,
        at: Side,
        instead: Option<CloseReason>,
    ) {
        let Some(mut pair) = self.pairs.remove(number) else {
            return;
        };
        let pending = pair.pending_close.take();
        let reason = instead.or_else(|| pending.as_ref().map(|close| close.reason.clone()));
        let reason = reason.expect("nothing ends without a reason");
        let by = pending.map_or_else(|| reason.by(at), |close| close.by);
        for side in Side::BOTH {
            match pair.replace(side, HopConnection::Closed) {
                HopConnection::Open { handle, .. } => {
                    let endpoints = &mut self.connector.endpoints;
                    endpoints.close(now, side, handle, reason.code, &reason.reason);
                }
                HopConnection::Incoming(incoming) => {
                    self.connector.endpoints.of(side).refuse(*incoming);
                }
                HopConnection::NotStarted | HopConnection::Closed => {}
            }
        }
        let statistics = &mut self.events.statistics;
        pair.add_carried_to(statistics);
        if reason.is_application {
            statistics.closed_by_application_total += 1;
        } else {
            statistics.closed_by_error_total += 1;
        }
        self.events.push(Event::Closed {
            number,
            by,
            to_server: pair.carried(Side::Client),
            to_client: pair.carried(Side::Server),
        });
    }

    /// When a connection or a pair wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        let times = [
            self.pairs.next_timeout(),
            self.connector.endpoints.next_timeout(),
        ];
        times.into_iter().flatten().min()
    }

    /// The next pair whose timer is due. What it hands on for it to stay alive has then been
    /// touched; the rest is for [`Self::handle_timeout`].
    pub fn next_due(&mut self, now: Instant) -> Option<ConnectionNumber> {
        let number = self.pairs.pop_due(now)?;
        if let Some(pair) = self.pairs.get_mut(number) {
            let both = self.connector.endpoints.both(pair.handles());
            if pair.forward_keep_alive(now, both) {
                for (side, handle) in Side::BOTH.into_iter().zip(pair.handles()) {
                    if let Some(handle) = handle {
                        self.connector.endpoints.touch(side, handle);
                    }
                }
            }
        }
        Some(number)
    }

    /// Handles the timer of a pair that was due.
    pub fn handle_timeout(&mut self, now: Instant, number: ConnectionNumber) {
        let Some(pair) = self.pairs.get_mut(number) else {
            return;
        };
        let left = pair.pending_close.as_ref().map(|close| close.left);
        if let Some(left) = left
            && let Some(handle) = pair.handle_of(left)
            && let Some(entry) = self.connector.endpoints.get(left, handle)
        {
            pair.prolong(now, &mut entry.connection);
        }
        match pair.handle_timeout(now) {
            Some(TimeoutAction::Close(reason)) => {
                self.finish(now, number, left.unwrap_or(Side::Client), Some(reason));
            }
            // The client is closed as soon as its own handshake is complete.
            Some(TimeoutAction::GiveUpNextHop) => {
                let reason = CloseReason::from(CloseCode::NextHopUnreachable);
                if let Some(handle) = pair.handle_of(Side::Server) {
                    let endpoints = &mut self.connector.endpoints;
                    endpoints.close(now, Side::Server, handle, reason.code, &reason.reason);
                }
                self.end(now, number, Side::Server, reason);
            }
            None => self.pairs.keep_time(number),
        }
    }

    /// The pairs.
    pub fn table(&self) -> &PairTable {
        &self.pairs
    }

    /// Notes when a pair wants to be called.
    pub fn keep_time(&mut self, number: ConnectionNumber) {
        self.pairs.keep_time(number);
    }

    /// All pairs may go on until then.
    pub fn end_by(&mut self, until: Instant) {
        self.pairs.end_by(until);
    }

    /// Whether there is no pair, and no connection that has not drained.
    pub fn is_empty(&self) -> bool {
        self.pairs.len() == 0 && self.connector.endpoints.counts() == [0, 0]
    }

    /// Counters and gauges, as far as they are of connections. Looks at all of them.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.events.statistics.clone();
        self.pairs.add_to(&mut statistics);
        statistics.resumed_total = self.connector.crypto.resumed();
        [statistics.client_side, statistics.server_side] =
            self.connector.endpoints.counts().map(|count| count as u64);
        statistics
    }

    /// All that is kept beside pairs and connections: for the proof that nothing is left behind.
    pub fn entries(&self) -> usize {
        self.connector.endpoints.entries() + self.pairs.entries()
    }
}
