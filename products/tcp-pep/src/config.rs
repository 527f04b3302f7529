//! The configuration of a relay, from a trial or an operator.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bentpipe_service::quota::{ConnectionLimits, ConnectionQuota};

/// A side of the proxy: what its connections are like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// The initial window in packets; None: the kernel's.
    pub initial_window: Option<u32>,
    /// The most that one connection sends, in bits per second; None: as much as its window lets it.
    pub rate: Option<u64>,
    /// Whether a window is spread over the round trip, and not sent at once.
    pub is_paced: bool,
}

/// A rate that nothing reaches, in bytes per second. The kernel paces a socket that has any bound.
const UNBOUNDED: u64 = 1 << 62;

impl Side {
    /// The bound of a connection's rate, in bytes per second; None: it is not paced.
    #[must_use]
    pub fn pacing(&self) -> Option<u64> {
        let bound = self.rate.map(|rate| rate / 8);
        bound.or(self.is_paced.then_some(UNBOUNDED))
    }
}

/// The time at which a client's handshake is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accept {
    /// At once.
    #[default]
    Early,
    /// When the connection to the next hop stands.
    Late,
}

/// The destination of connections that come without a preamble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// The address that the client wanted: its packets were intercepted.
    Wanted,
    /// All to one place.
    Fixed(SocketAddr),
}

/// The pool of connections to the gateway that a terminal keeps ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolConfig {
    /// Where the gateway takes them.
    pub gateway: SocketAddr,
    /// The address that they come from; None: the host's own.
    pub from: Option<IpAddr>,
    /// How many.
    pub connections: usize,
}

/// The times after which something is given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// A pair in which nothing moves for so long ends.
    pub idle: Option<Duration>,
    /// A connection to the next hop stands after so long, or never.
    pub handshake: Option<Duration>,
}

/// The configuration of a relay.
#[derive(Debug, Clone)]
pub struct Config {
    /// Towards the client.
    pub client_side: Side,
    /// Towards the server.
    pub server_side: Side,
    /// Whether it takes and uses the addresses of others (`IP_TRANSPARENT`, ip(7)).
    pub is_transparent: bool,
    /// Where connections go that come without a preamble.
    pub destination: Destination,
    /// When a client's handshake is answered.
    pub accept: Accept,
    /// The ports that late acceptance is for.
    pub ports: Vec<u16>,
    /// The pool towards the gateway, if this is a terminal that has one.
    pub pool: Option<PoolConfig>,
    /// The addresses of those that may open connections of a pool here; None: anybody.
    pub terminals: Option<Vec<IpAddr>>,
    /// Bytes that may wait between two connections, in each direction.
    pub buffer: usize,
    /// Bytes of all buffers of the relay.
    pub memory: usize,
    /// How many clients there may be.
    pub limits: ConnectionLimits,
    /// The count of connections, of all relays.
    pub quota: Arc<ConnectionQuota>,
    /// When something is given up.
    pub times: Times,
}
