//! Which clients are accepted, and the limits of all resources.
//!
//! Promises: what one client takes never keeps others away, and what it has taken is free again
//! when it is gone. Knows addresses and counts; must not know connections or datagrams.

mod admission;
mod flow_credit;

pub use admission::{Admission, Unproven};
pub use flow_credit::{FIRST_FLIGHT, FlowCredit, ReceiveWindow};
use std::time::Duration;

use bentpipe_service::quota::ConnectionLimits;

/// The buffer of a stream, in bytes: what 250 Mbit/s need over a geostationary satellite, and some
/// more.
const BUFFER: usize = 32 << 20;

/// The limits of a proxy and its connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections of clients at once.
    pub connections: usize,
    /// Connections of one client address at once.
    pub connections_per_client: usize,
    /// Streams of one kind that a peer may have open at once, if the other side allows as many.
    pub streams: u32,
    /// Bytes of one stream and direction that are taken out of one side and wait for the other.
    pub stream_buffer: usize,
    /// Bytes of all streams of a connection and direction that do.
    pub connection_buffer: usize,
    /// The time that the handshakes of a connection may take, both sides.
    pub handshake: Duration,
    /// The time that either side may be silent (RFC 9000, section 10.1).
    pub idle: Duration,
    /// The time that a peer may leave a gap open in a stream whose buffer is full.
    pub gap: Duration,
    /// The time without an acknowledgement after which what one side sent before it closed is given
    /// up.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_client: 1000,
            streams: 1000,
            stream_buffer: BUFFER,
            connection_buffer: 2 * BUFFER,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            gap: Duration::from_secs(30),
            linger: Duration::from_mins(1),
        }
    }
}

impl Limits {
    /// The limits that clients' connections are counted against.
    pub(crate) fn connection_limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            total: self.connections,
            of_client: self.connections_per_client,
        }
    }
}
