//! QUIC packets, taken apart as somebody who holds the secrets and watches the wire can do it.
//!
//! Source: RFC 9000 (version 1), RFC 9001 (protection), RFC 9369 (version 2),
//! draft-ietf-quic-tls-29 to -34 (drafts). An [`Observer`] is a place on the wire: it is shown
//! datagrams in the order in which they pass, and keeps for itself what it learns from them. What
//! other observers see changes nothing for it.

mod ack;
mod client_hello;
mod connection;
mod connection_id;
#[cfg(test)]
mod crafted;
mod crypto_stream;
mod decoded;
mod frame;
mod handshake;
mod header;
pub(crate) mod keys;
mod midway;
mod observer;
mod packet_number;
mod protection;
mod secrets;
pub(crate) mod tls;
mod transport_parameters;
mod version;

use serde::{Deserialize, Serialize};

pub use ack::{AckRanges, EcnCounts};
pub use client_hello::ClientHello;
pub use connection_id::ConnectionId;
pub use decoded::{Decoded, Identity, Packet, Reason, Undecoded};
pub use frame::{Frame, FrameError, Frames};
pub use handshake::Handshake;
pub use header::{PacketType, Space};
pub use observer::{MOST_WAITING, Observer};
pub use protection::Scratch;
pub use transport_parameters::{InitialCredit, TransportParameters};
pub use version::version_name;

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The end that sent the first Initial packet.
    Client,
    /// The other one.
    Server,
}

impl End {
    /// The end at the other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// "client" or "server".
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}
