//! UDP and IP over HTTP/3 (RFC 9298, RFC 9484): a client and a proxy, without sockets and clocks.
//!
//! A [`Client`] takes datagrams of those behind it, and has a [`MasqueProxy`] send them to a
//! target. Between the two is a connection of QUIC, in whose DATAGRAM frames (RFC 9221) they go as
//! HTTP datagrams (RFC 9297), or in capsules on a stream. What they carry stays as it is. Packets
//! of QUIC may pass beside that connection (`forwarding`).
//!
//! `client` and `proxy` are over `tunnel`, the requests of one connection; that over `channel`, one
//! request; that over `session`, `transport` and `streams`, which carry between noq and the library
//! of HTTP/3.

mod capsule;
mod channel;
mod client;
mod config;
mod counts;
mod forwarding;
mod ip;
mod proxy;
mod refusal;
mod requests;
mod segments;
mod session;
mod settings;
mod streams;
mod target;
mod transport;
mod tunnel;

pub use capsule::{
    Capsule, CapsuleError, CapsuleReader, Content, MOST_ADDRESSING, MOST_UDP_PAYLOAD,
};
pub use client::{Client, Delivery};
pub use config::{Assigned, ClientSettings, IpSettings, ProxySettings, Purpose};
pub use counts::Statistics;
pub use forwarding::{Cid, CidCapsule};
pub use ip::{
    Access, AddressSet, Addressing, ErrorCounts, Header, Malformed, Network, Numbered, PacketError,
    Pool, Prefix, Problem, Route, Service, destination, is_of_link,
};
pub use proxy::{Event, FlowId, MasqueProxy, Output};
pub use refusal::Refusal;
pub use segments::Segments;
pub use settings::Settings;
pub use target::{IpTemplate, Target, TargetError, Template};
pub use tunnel::{Carriage, Carry};
