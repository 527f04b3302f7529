//! Wire data: capture files, and the packets in them.
//!
//! [`capture::Reader`] gives the packets of any capture, [`Datagram::of`] the UDP datagram in each,
//! and a [`quic::Observer`] per interface the QUIC packets in that, with what a [`KeyLog`] opens.
//! [`tcp::Segment::of`] gives the TCP segment in a packet that is no datagram, and a [`TlsReader`]
//! the TLS records in its streams.
//!
//! Writing goes the other way: [`encapsulate`] puts headers around a datagram, and a [`Writer`]
//! makes a trace, one pcapng file with an interface per side. A packet stands on the sender's
//! interface at the time of its departure and, unless it was dropped or lost, on the receiver's at
//! the time of its arrival. The TLS secrets are inside, so Wireshark and tshark open it decrypted.

pub mod capture;
mod cursor;
mod datagram;
mod decapsulation_error;
mod ip;
mod ip_layer;
mod keylog;
mod link_layer;
mod marking;
pub mod quic;
pub mod tcp;
mod tls;
mod too_big;
mod tunnels;

pub use capture::writer::{Interface, Writer};
pub use datagram::Datagram;
pub use decapsulation_error::DecapsulationError;
pub use ip::{Endpoints, IpHeader, IpVersion, TCP, UDP, UDP_HEADER, encapsulate};
pub use ip_layer::{IpLayer, Path};
pub use keylog::{KeyLog, SecretKind};
pub use marking::{ecn, flow_hash, is_udp, mark};
pub use tls::{TlsReader, TlsRecords};
pub use too_big::too_big;
