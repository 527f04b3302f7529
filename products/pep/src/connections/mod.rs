//! The QUIC library's endpoints and their connections, one endpoint for each side of the proxy.
//!
//! Promises what `bentpipe-connections` does. Knows the library; must not know what a connection
//! is for, nor which others belong to it.

pub use bentpipe_connections::DatagramOwner;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use bentpipe_endpoint::Transmit;
use noq_proto::{Connection, EndpointConfig, Event, PathId, ServerConfig};

use crate::events::ConnectionNumber;

type ConnectionEntry = bentpipe_connections::ConnectionEntry<ConnectionNumber>;
/// The library's endpoint of one side.
pub type SideEndpoint = bentpipe_connections::SideEndpoint<ConnectionNumber>;

/// One of the two sides of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Towards the client.
    Client,
    /// Towards the server.
    Server,
}

impl Side {
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The socket that a datagram comes from or goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Socket {
    /// The one that clients connect to.
    Client,
    /// The one that next hops are connected from.
    Server,
    /// One towards the next hop, for a flow that is forwarded untouched.
    ///
    /// With [`crate::Config::one_socket`] these are sent from the one of the server side, and what
    /// comes there is given to [`Socket::Server`].
    Bypass(u64),
}

/// The endpoints of both sides, and the connections that were touched since they were last asked
/// what that led to.
pub struct BothEndpoints {
    endpoints: [SideEndpoint; 2],
    touched: VecDeque<(Side, usize)>,
    /// The allocation of handled events, for the next.
    spare: VecDeque<Event>,
    /// Whose turn it is to send first.
    first: Side,
}

/// A touched connection, and what touching it led to.
pub struct Driven {
    /// Its side.
    pub side: Side,
    /// Its handle there.
    pub handle: usize,
    /// The client's connection that it is part of.
    pub owner: Option<ConnectionNumber>,
    /// Its events.
    pub events: VecDeque<Event>,
    /// The connection itself, if its endpoint has it no more. Boxed: it is large, and most are not
    /// drained.
    pub drained: Option<Box<Connection>>,
}

impl BothEndpoints {
    /// Endpoints that have no connection yet: one that accepts, and one that connects.
    pub fn new(accepting: (EndpointConfig, ServerConfig), connecting: EndpointConfig) -> Self {
        let (config, server) = accepting;
        Self {
            endpoints: [
                SideEndpoint::new(config, Some(server)),
                SideEndpoint::new(connecting, None),
            ],
            touched: VecDeque::new(),
            spare: VecDeque::new(),
            first: Side::Client,
        }
    }

    /// The endpoint of a side.
    pub fn of(&mut self, side: Side) -> &mut SideEndpoint {
        &mut self.endpoints[side as usize]
    }

    /// A connection by its side and handle.
    pub fn get(&mut self, side: Side, handle: usize) -> Option<&mut ConnectionEntry> {
        self.of(side).get(handle)
    }

    /// The connections of these handles, on the client side and on the server side.
    pub fn both(&mut self, handles: [Option<usize>; 2]) -> [Option<&mut Connection>; 2] {
        let [client, server] = &mut self.endpoints;
        [
            connection(client, handles[0]),
            connection(server, handles[1]),
        ]
    }

    /// Notes that something was done to a connection: it is to be asked what that led to.
    pub fn touch(&mut self, side: Side, handle: usize) {
        self.touched.push_back((side, handle));
    }

    /// Asks the next connection that was touched what that led to.
    pub fn drive_next(&mut self) -> Option<Driven> {
        let (side, handle) = self.touched.pop_front()?;
        let mut events = std::mem::take(&mut self.spare);
        let endpoint = self.of(side);
        let owner = endpoint.get(handle).and_then(|entry| entry.owner);
        let drained = endpoint.drive(handle, &mut events);
        Some(Driven {
            side,
            handle,
            owner,
            events,
            drained,
        })
    }

    /// All events of a connection are taken care of.
    pub fn finish(&mut self, driven: Driven) {
        self.spare = driven.events;
    }

    /// Closes a connection, unless it is closed already.
    pub fn close(&mut self, now: Instant, side: Side, handle: usize, code: u64, reason: &[u8]) {
        self.of(side).close(now, handle, code, reason);
        self.touch(side, handle);
    }

    /// The next datagrams to send, and from which side; their connection is touched by that.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        max_datagrams: NonZeroUsize,
        buffer: &mut Vec<u8>,
    ) -> Option<(Side, Transmit)> {
        // The two sides take turns, so that a busy one does not silence the other.
        for side in [self.first, self.first.other()] {
            if let Some((transmit, handle)) =
                self.of(side).poll_transmit(now, max_datagrams, buffer)
            {
                if let Some(handle) = handle {
                    self.touch(side, handle);
                }
                self.first = side.other();
                return Some((side, transmit));
            }
        }
        None
    }

    /// Sends a PING.
    pub fn ping(&mut self, side: Side, handle: usize) {
        if let Some(entry) = self.get(side, handle) {
            entry.connection.ping();
            self.touch(side, handle);
        }
    }

    /// The address of a connection's peer, and the round-trip time to it.
    pub fn rtt(&mut self, side: Side, handle: usize) -> Option<(SocketAddr, Duration)> {
        let connection = &self.get(side, handle)?.connection;
        let path = connection.network_path(PathId::ZERO).ok()?;
        Some((path.remote(), connection.rtt(PathId::ZERO)?))
    }

    /// When a connection wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        let times = self.endpoints.iter().map(SideEndpoint::next_timeout);
        times.flatten().min()
    }

    /// Handles the timers of the next connection of a side for which one is due; whether there was
    /// one.
    pub fn handle_timeout(&mut self, now: Instant, side: Side) -> bool {
        let handle = self.of(side).handle_timeout(now);
        if let Some(handle) = handle {
            self.touch(side, handle);
        }
        handle.is_some()
    }

    /// The connections that have not drained, on each side.
    pub fn counts(&self) -> [usize; 2] {
        self.endpoints.each_ref().map(SideEndpoint::count)
    }

    /// All that is kept beside connections: for the proof that nothing is left behind.
    pub fn entries(&self) -> usize {
        let sides = self.endpoints.iter().map(SideEndpoint::entries);
        sides.sum::<usize>() + self.touched.len()
    }
}

fn connection(endpoint: &mut SideEndpoint, handle: Option<usize>) -> Option<&mut Connection> {
    Some(&mut endpoint.get(handle?)?.connection)
}
