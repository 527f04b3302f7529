//! UDP over HTTP/3 (RFC 9298): a client and a proxy, without sockets and clocks.
//!
//! A [`Client`] takes datagrams of those behind it, and has a [`UdpProxy`] send them to a target.
//! Between the two is a connection of QUIC, in whose DATAGRAM frames (RFC 9221) they go as HTTP
//! datagrams (RFC 9297), or in capsules on a stream. What they carry stays as it is.
//!
//! `client` and `proxy` are over `tunnel`, the requests of one connection; that over `channel`, one
//! request; that over `session`, `transport` and `streams`, which carry between noq and the library
//! of HTTP/3.

mod capsule;
mod channel;
mod client;
mod config;
mod proxy;
mod requests;
mod session;
mod settings;
mod streams;
mod target;
mod transport;
mod tunnel;

pub use capsule::{CapsuleError, CapsuleReader, MOST_UDP_PAYLOAD};
pub use client::Client;
pub use config::{ClientSettings, ProxySettings};
pub use proxy::{FlowId, Output, UdpProxy};
pub use settings::Settings;
pub use target::{Target, TargetError, Template};
pub use tunnel::{Carriage, Carry, Counts, TunnelCounts};
