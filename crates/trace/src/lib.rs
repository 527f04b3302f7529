//! What was on the wire in a trial.
//!
//! A trace is one pcapng file with an interface per side: a packet stands on the sender's interface at the time of its
//! departure and, unless it was dropped or lost, on the receiver's at the time of its arrival. The TLS secrets are
//! inside, so Wireshark and tshark open it decrypted.
//!
//! Reading goes the other way, and takes any capture: [`capture::Reader`] gives packets, [`Datagram::of`] the UDP
//! datagram in each, and a [`quic::Observer`] per interface the QUIC packets in that, with what a [`KeyLog`] opens. TCP
//! segments are told in the same words ([`tcp`]).

pub mod capture;
mod captures;
pub mod connection;
mod cursor;
mod datagram;
mod establishment;
pub mod findings;
mod intervals;
mod ip;
mod keylog;
mod ledger;
mod link_facts;
pub mod metrics;
mod pcapng;
pub mod qlog;
pub mod quic;
pub mod tcp;

pub use captures::{Captured, File};
pub use datagram::{Datagram, NoDatagram, Path};
pub use establishment::Establishment;
pub use ip::{Endpoints, IpHeader, IpVersion, TCP, UDP, UDP_HEADER, encapsulate};
pub use keylog::{KeyLog, SecretKind};
pub use ledger::Entry;
pub use link_facts::LinkFacts;
pub use metrics::Metrics;
pub use pcapng::{Interface, Writer};
