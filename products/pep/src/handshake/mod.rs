//! A client's request before it is accepted, and TLS of both sides.
//!
//! Promises: server name and application protocols are read from a client's Initial packets, in
//! whatever pieces they come, and no length in them is believed. Knows packets and TLS; must not
//! know what becomes of a client.

mod client_hello;
mod connector;
mod crypto;
mod incomplete_hello;
mod initial;
mod reader;
mod session_tickets;

pub use client_hello::ClientHello;
pub use connector::Connector;
pub use crypto::{Crypto, application_protocol};
pub use incomplete_hello::{
    ArrivedClient, FirstHello, IncompleteHellos, InitialDatagram, PendingClient,
};
pub use reader::Reader;
