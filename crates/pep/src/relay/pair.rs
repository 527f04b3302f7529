//! A client's connection and the one that it is carried over.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use noq_proto::{Connection, Event, Incoming, SendDatagramError, Side, StreamEvent, StreamId};

use crate::config::Config;
use crate::handshake::client_hello::Hello;
use crate::handshake::incomplete_hello::First;
use crate::limits::quota::Seat;
use crate::proxy::event::Why;
use crate::proxy::statistics::Statistics;
use crate::relay::close::{Closing, Code};
use crate::relay::direction::{Ends, Relay};

/// One of the two sides of the proxy on which there are connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Facing {
    Client,
    Server,
}

impl Facing {
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The connection of a pair on one side.
pub enum Leg {
    /// The client's, which is to be accepted when it is known with what.
    Waiting(Box<Incoming>),
    /// Not begun.
    Missing,
    /// By its handle.
    There { handle: usize, is_connected: bool },
    /// It has ended.
    Gone,
}

/// What is still to be done on one side because the other has ended.
pub struct Ending {
    /// The side that is left.
    pub left: Facing,
    pub closing: Closing,
    pub until: Instant,
    /// ACK frames that had come from the side that is left when `until` was set.
    pub acks: u64,
    /// What the other side has ended with, for the log.
    pub why: Why,
}

/// A client's connection and the one to the next hop.
pub struct Pair {
    pub config: Arc<Config>,
    pub hello: Hello,
    /// Where the client is.
    pub client: SocketAddr,
    /// Is free again when the pair is forgotten.
    _seat: Seat,
    legs: [Leg; 2],
    /// By the side that data come from.
    relays: [Relay; 2],
    pub ending: Option<Ending>,
    /// Both handshakes have been complete.
    pub is_established: bool,
    /// The client has sent data in 0-RTT packets (RFC 9001, section 2.1), which it may where the configuration says so.
    is_early: bool,
    /// Until when both handshakes must be complete.
    pub handshake_until: Option<Instant>,
    /// What the client has sent so far and where to, as long as it may still be forwarded untouched.
    pub untouched: Option<(Option<IpAddr>, Vec<First>)>,
    /// When the proxy shuts down.
    pub until: Option<Instant>,
    /// When to look for signs of life to hand on, and how many there were before.
    life: Option<(Instant, [u64; 2])>,
    /// Gaps that there were when this timer was set.
    gaps: Option<(Instant, Gaps)>,
    /// Under which it is in the set of timers.
    pub timer: Option<Instant>,
}

/// What is to be done because a time is over.
pub enum Overdue {
    /// Close all that is left, with this.
    Close(Closing),
    /// The next hop has not answered in time.
    NextHop,
}

type Gaps = std::collections::BTreeSet<(StreamId, u64)>;

/// In an idle time it is looked so often for signs of life.
const LOOKS: u32 = 4;

/// The two connections of a pair, as far as they are there.
pub type Both<'a> = [Option<&'a mut Connection>; 2];

impl Pair {
    pub fn new(
        config: Arc<Config>,
        (client, seat): (SocketAddr, Seat),
        hello: Hello,
        until: Instant,
    ) -> Self {
        let relays = [
            Relay::new(Side::Client, &config.client, &config.limits),
            Relay::new(Side::Server, &config.server, &config.limits),
        ];
        Self {
            config,
            hello,
            client,
            _seat: seat,
            legs: [Leg::Missing, Leg::Missing],
            relays,
            ending: None,
            is_established: false,
            is_early: false,
            handshake_until: Some(until),
            untouched: None,
            until: None,
            life: None,
            gaps: None,
            timer: None,
        }
    }

    pub fn leg(&self, facing: Facing) -> &Leg {
        &self.legs[facing as usize]
    }

    pub fn replace_leg(&mut self, facing: Facing, leg: Leg) -> Leg {
        std::mem::replace(&mut self.legs[facing as usize], leg)
    }

    pub fn handle_of(&self, facing: Facing) -> Option<usize> {
        match self.leg(facing) {
            Leg::There { handle, .. } => Some(*handle),
            _ => None,
        }
    }

    pub fn is_connected(&self, facing: Facing) -> bool {
        let leg = self.leg(facing);
        matches!(
            leg,
            Leg::There {
                is_connected: true,
                ..
            }
        )
    }

    /// Whether anything that came from this side is still to be delivered.
    pub fn has_cargo(&self, from: Facing) -> bool {
        self.relays[from as usize].has_cargo()
    }

    pub fn held(&self) -> usize {
        self.relays.iter().map(Relay::held).sum()
    }

    /// Directions of streams that are under way.
    pub fn streams(&self) -> usize {
        self.relays.iter().map(Relay::count).sum()
    }

    /// Streams that wait for the other side to allow them.
    pub fn waiting_streams(&self) -> u64 {
        self.relays.iter().map(Relay::waiting).sum()
    }

    pub fn carried(&self, from: Facing) -> u64 {
        self.relays[from as usize].carried
    }

    /// One of its connections says something that is about streams, datagrams or the handshake.
    pub fn handle(
        &mut self,
        at: Facing,
        event: Event,
        both: Both<'_>,
        statistics: &mut Statistics,
    ) {
        let [client, server] = both;
        let (here, there) = match at {
            Facing::Client => (client, server),
            Facing::Server => (server, client),
        };
        let Some(here) = here else { return };
        match event {
            Event::Connected => {
                if let Leg::There { is_connected, .. } = &mut self.legs[at as usize] {
                    *is_connected = true;
                }
                self.begin(at, here, there, statistics);
            }
            Event::Stream(_) | Event::DatagramReceived
                if at == Facing::Client && !self.takes_data(at) =>
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
                    hand_on_datagrams(here, there, statistics);
                }
            }
            _ => {}
        }
    }

    /// Whether this side may be sent what comes from the other: when its handshake is complete, or it is a client that has sent early data,
    /// which nobody but who has the key of an earlier session can have made, or can read the answer to.
    fn takes_data(&self, facing: Facing) -> bool {
        self.is_connected(facing) || facing == Facing::Client && self.is_early
    }

    /// From now on a side takes data: what has waited for that goes there.
    fn begin(
        &mut self,
        at: Facing,
        here: &mut Connection,
        there: Option<&mut Connection>,
        statistics: &mut Statistics,
    ) {
        if Facing::BOTH.iter().all(|facing| self.is_connected(*facing)) {
            self.handshake_until = None;
        }
        let [outward, inward] = self.relays_from(at);
        let mut ends = Ends {
            from: there,
            to: here,
        };
        inward.open(outward, &mut ends);
        inward.carry_all(&mut ends);
        if let Some(there) = ends.from {
            hand_on_datagrams(there, ends.to, statistics);
        }
    }

    fn handle_stream(
        &mut self,
        at: Facing,
        event: &StreamEvent,
        here: &mut Connection,
        there: Option<&mut Connection>,
    ) {
        let may_leave = self.takes_data(at.other());
        let may_come = self.takes_data(at);
        let [outward, inward] = self.relays_from(at);
        let mut there = there;
        let mut coming = Ends {
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
            let mut leaving = Ends::between(here, there);
            if let StreamEvent::Readable { id } = event {
                outward.carry(&mut leaving, *id);
            }
            outward.open(inward, &mut leaving);
        }
    }

    /// Lets each side open as many streams as the other allows; which are to be told anything new.
    ///
    /// Streams end in the library without a word, so this is looked at whenever a connection was touched.
    pub fn allow_streams(&mut self, both: Both<'_>) -> [bool; 2] {
        let [Some(client), Some(server)] = both else {
            return [false, false];
        };
        let is_known = Facing::BOTH.map(|facing| self.is_connected(facing));
        let [from_client, from_server] = &mut self.relays;
        [
            is_known[Facing::Server as usize] && from_client.allow(client, server),
            is_known[Facing::Client as usize] && from_server.allow(server, client),
        ]
    }

    /// Of data that come from this side, and of those that go there.
    fn relays_from(&mut self, at: Facing) -> [&mut Relay; 2] {
        let [client, server] = &mut self.relays;
        match at {
            Facing::Client => [client, server],
            Facing::Server => [server, client],
        }
    }

    /// The connection on the side `gone` has ended. What came from there is still to be delivered.
    pub fn end(&mut self, gone: Facing, gone_connection: Option<&mut Connection>, ending: Ending) {
        let [outward, inward] = self.relays_from(gone);
        inward.clear(outward);
        match gone_connection {
            Some(connection) => outward.salvage(connection),
            None => outward.clear(inward),
        }
        self.legs[gone as usize] = Leg::Gone;
        self.gaps = None;
        self.life = None;
        self.handshake_until = None;
        self.ending = Some(ending);
    }

    /// Hands on what can be without waiting for an event: the side that data come from has just ended.
    pub fn flush(&mut self, left: Facing, connection: &mut Connection) {
        if !self.takes_data(left) {
            return;
        }
        let [outward, inward] = self.relays_from(left);
        let mut ends = Ends {
            from: None,
            to: connection,
        };
        inward.open(outward, &mut ends);
        inward.carry_all(&mut ends);
    }

    /// Whether all that came from the side that has ended is delivered to the one that is left.
    pub fn is_delivered(&self, left: Facing, connection: &mut Connection) -> bool {
        self.is_connected(left) && self.relays[left.other() as usize].is_delivered(connection)
    }

    /// Sets or removes the timer that watches over gaps.
    pub fn watch_gaps(&mut self, now: Instant) {
        if !self.relays.iter().any(Relay::is_gaping) {
            self.gaps = None;
        } else if self.gaps.is_none() && self.ending.is_none() {
            let gaps = self.relays.iter().flat_map(Relay::gaps).collect();
            self.gaps = Some((now + self.config.limits.gap, gaps));
        }
    }

    /// When it wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        let ending = self.ending.as_ref().map(|ending| ending.until);
        let gaps = self.gaps.as_ref().map(|(until, _)| *until);
        let life = self.life.as_ref().map(|(time, _)| *time);
        [self.handshake_until, self.until, ending, gaps, life]
            .into_iter()
            .flatten()
            .min()
    }

    /// What is to be done because a time is over.
    pub fn overdue(&mut self, now: Instant) -> Option<Overdue> {
        let is_due = |until: &Instant| *until <= now;
        if let Some(ending) = &self.ending
            && is_due(&ending.until)
        {
            return Some(Overdue::Close(ending.closing.clone()));
        }
        if self.handshake_until.as_ref().is_some_and(is_due) {
            return Some(if self.is_connected(Facing::Server) {
                Overdue::Close(Code::ClientLost.into())
            } else {
                Overdue::NextHop
            });
        }
        if self.until.as_ref().is_some_and(is_due) {
            return Some(Overdue::Close(Code::ShuttingDown.into()));
        }
        let (_, before) = self.gaps.take_if(|(until, _)| is_due(until))?;
        self.watch_gaps(now);
        let is_stuck = self
            .gaps
            .as_ref()
            .is_some_and(|(_, gaps)| !gaps.is_disjoint(&before));
        is_stuck.then(|| Overdue::Close(Code::Buffer.into()))
    }

    /// Hands on that a peer wants the connection to live (RFC 9000, section 10.1.2): who keeps one hop alive by PING means all. And who has sent
    /// all that it has must not take the connection for dead while the other side is still receiving it: without proxies it would hear of that.
    ///
    /// Every now and then is enough for that; whether there was reason to.
    pub fn hand_on_signs_of_life(&mut self, now: Instant, both: Both<'_>) -> bool {
        let [Some(client), Some(server)] = both else {
            return false;
        };
        let next = now + self.config.limits.idle / LOOKS;
        let signs = [signs(client), signs(server)];
        let Some((time, before)) = self.life else {
            self.life = Some((next, signs));
            return false;
        };
        if time > now {
            return false;
        }
        if signs[0] > before[0] {
            server.ping();
        }
        if signs[1] > before[1] {
            client.ping();
        }
        self.life = Some((next, signs));
        signs != before
    }

    /// Gives the side that is left more time, as long as it goes on acknowledging.
    pub fn prolong(&mut self, now: Instant, left: &mut Connection) {
        let linger = self.config.limits.linger;
        if let Some(ending) = &mut self.ending
            && ending.until <= now
        {
            let acks = left.stats().frame_rx.acks;
            if acks > ending.acks {
                (ending.until, ending.acks) = (now + linger, acks);
            }
        }
    }

    /// Why it has ended, for the log.
    pub fn why(gone: Facing, closing: &Closing) -> Why {
        match gone {
            _ if !closing.is_theirs => {
                let reason = String::from_utf8_lossy(&closing.reason).into_owned();
                Why::ByProxy(closing.code, reason)
            }
            Facing::Client => Why::ByClient(closing.code),
            Facing::Server => Why::ByServer(closing.code),
        }
    }
}

/// What has shown so far that the connection is in use on this side: PINGs of the peer, and data that it was sent. A PING that is handed on adds to neither.
fn signs(connection: &mut Connection) -> u64 {
    let stats = connection.stats();
    stats.frame_rx.ping + stats.frame_tx.stream
}

/// Hands on DATAGRAM frames (RFC 9221). What there is no room for displaces older ones, as the library does.
fn hand_on_datagrams(from: &mut Connection, to: &mut Connection, statistics: &mut Statistics) {
    while let Some(data) = from.datagrams().recv() {
        match to.datagrams().send(data, true) {
            Ok(()) => statistics.datagrams_total += 1,
            Err(SendDatagramError::TooLarge) => statistics.datagrams_too_large_total += 1,
            Err(_) => statistics.datagrams_unsupported_total += 1,
        }
    }
}
