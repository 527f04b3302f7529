//! The events of a proxy, and its counters.
//!
//! Promises: nothing of it changes what the proxy does, and a reader that never comes costs no more
//! than a bounded queue. Knows words and numbers only; must not know connections.

mod statistics;

pub use statistics::Statistics;

use std::collections::VecDeque;
use std::net::SocketAddr;

use bentpipe_service::quota::OverLimit;

/// Events that are kept for whoever fetches them.
const MOST_EVENTS: usize = 1 << 12;

/// The number of a client's connection, counted from 1 since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionNumber(pub u64);

/// An event: something that happened, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A client has come, and its next hop is being connected to.
    Opened {
        /// Its connection.
        number: ConnectionNumber,
        /// Its address.
        client: SocketAddr,
        /// The server name that it asks for.
        server_name: Option<String>,
        /// Where it goes.
        next_hop: SocketAddr,
    },
    /// Both handshakes are complete.
    Established {
        /// The client's connection.
        number: ConnectionNumber,
        /// The application protocol.
        protocol: Vec<u8>,
    },
    /// A connection is no more, on neither side.
    Closed {
        /// The client's connection.
        number: ConnectionNumber,
        /// The end that closed it.
        by: ClosedBy,
        /// Bytes of streams that were carried towards the server.
        to_server: u64,
        /// Bytes of streams that were carried towards the client.
        to_client: u64,
    },
    /// A client was turned away.
    Refused {
        /// Its address.
        client: SocketAddr,
        /// Why.
        why: Refusal,
    },
    /// Datagrams of a client are forwarded untouched from now on: they need a separate socket on
    /// the server side.
    BypassOpened {
        /// Its number in [`crate::Socket::Bypass`].
        flow: u64,
        /// The client's address.
        client: SocketAddr,
        /// Where its datagrams go.
        next_hop: SocketAddr,
    },
    /// A forwarded flow has ended: its socket may be closed.
    BypassClosed {
        /// Its number.
        flow: u64,
    },
}

/// The one who closed a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClosedBy {
    /// The client's application, with this code.
    Client(u64),
    /// The server's application, with this code.
    Server(u64),
    /// The proxy, on one or both sides.
    Proxy {
        /// The application error code.
        code: u64,
        /// The reason phrase.
        reason: String,
    },
}

/// The reason why a client was turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There are as many connections as there may be.
    Connections,
    /// There are as many of this client's address as there may be.
    ConnectionsOfClient,
    /// The server name is not among those that are allowed.
    ServerName(Option<String>),
    /// Its first packets hold no `ClientHello`, or none that was complete in time.
    ClientHello,
    /// The proxy is shutting down.
    Draining,
}

impl From<OverLimit> for Refusal {
    fn from(limit: OverLimit) -> Self {
        match limit {
            OverLimit::Connections => Self::Connections,
            OverLimit::ConnectionsOfClient => Self::ConnectionsOfClient,
        }
    }
}

/// The events that nobody has fetched yet, and the counters.
#[derive(Default)]
pub struct EventQueue {
    waiting: VecDeque<Event>,
    /// Counters since the start; gauges are filled in when somebody asks.
    pub statistics: Statistics,
}

impl EventQueue {
    /// Adds an event; the oldest is lost if nobody fetches them.
    pub fn push(&mut self, event: Event) {
        if self.waiting.len() == MOST_EVENTS {
            self.waiting.pop_front();
            self.statistics.events_lost_total += 1;
        }
        self.waiting.push_back(event);
    }

    /// Counts a client that is turned away.
    pub fn push_refusal(&mut self, client: SocketAddr, why: Refusal) {
        self.statistics.refused_total += 1;
        self.push(Event::Refused { client, why });
    }

    /// The next event.
    pub fn pop(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }
}
