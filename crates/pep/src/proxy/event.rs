//! What happened in a proxy, for its log.

use std::net::SocketAddr;

/// A client's connection, counted from 1 since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(pub u64);

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A client has come, and its next hop is being connected to.
    Opened {
        /// Its connection.
        number: Number,
        /// Its address.
        client: SocketAddr,
        /// The server name that it asks for.
        name: Option<String>,
        /// Where it goes.
        next_hop: SocketAddr,
    },
    /// Both handshakes are complete.
    Established {
        /// The client's connection.
        number: Number,
        /// The application protocol.
        protocol: Vec<u8>,
    },
    /// A connection is no more, on neither side.
    Closed {
        /// The client's connection.
        number: Number,
        /// Why.
        why: Why,
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
    /// Datagrams of a client are forwarded untouched from now on: they need a socket of their own on the server side.
    Aside {
        /// Its number in [`crate::Side::Aside`].
        flow: u64,
        /// The client's address.
        client: SocketAddr,
        /// Where its datagrams go.
        next_hop: SocketAddr,
    },
    /// That has ended: its socket may be closed.
    AsideClosed {
        /// Its number.
        flow: u64,
    },
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The client's application closed it with this code.
    ByClient(u64),
    /// The server's application closed it with this code.
    ByServer(u64),
    /// The proxy closed it, on one or both sides, with this application error code, and these words.
    ByProxy(u64, String),
}

/// Why a client was turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There are as many connections as there may be.
    Connections,
    /// There are as many of this client's address as there may be.
    ConnectionsOfClient,
    /// The server name is not among those that are allowed.
    Name(Option<String>),
    /// Its first packets hold no `ClientHello`, or none that was complete in time.
    Hello,
    /// The proxy is shutting down.
    Draining,
}
