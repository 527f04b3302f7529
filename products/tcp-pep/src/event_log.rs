//! The lines of the log about connections.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bentpipe_service::quota::OverLimit;
use rustix::io::Errno;
use tracing::{info, warn};

use crate::pair::Ends;

/// The reason why a pair is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// Both directions have ended in order.
    Ended,
    /// One of its connections was reset, refused, or silent for longer than TCP bears.
    Reset(Errno),
    /// Nothing moved, or nobody answered, for too long.
    TooLong,
    /// The proxy ends.
    Ending,
}

/// The writer of lines about connections.
pub struct EventLog {
    worker: usize,
}

/// The number of a connection, which each worker counts.
struct Key {
    worker: usize,
    number: u64,
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.worker, self.number)
    }
}

impl EventLog {
    /// For a worker.
    pub fn new(worker: usize) -> Self {
        Self { worker }
    }

    pub fn opened(&self, number: u64, ends: Ends) {
        let (connection, Ends { client, server }) = (self.key(number), ends);
        info!(%connection, %client, %server, "opened");
    }

    /// The next hop has answered after so long.
    pub fn established(&self, number: u64, taken: Duration) {
        let connection = self.key(number);
        // With three digits after the point.
        let handshake_ms = (taken.as_secs_f64() * 1e6).round() / 1e3;
        info!(%connection, handshake_ms, "established");
    }

    /// `carried`: bytes to the client and to the server.
    pub fn closed(&self, number: u64, why: EndReason, lasted: Duration, carried: [u64; 2]) {
        let (connection, seconds) = (self.key(number), lasted.as_secs_f64());
        let [to_client, to_server] = carried;
        let why = match why {
            EndReason::Ended => "ended".to_owned(),
            EndReason::Reset(error) => std::io::Error::from(error).to_string(),
            EndReason::TooLong => "nothing moved for too long".to_owned(),
            EndReason::Ending => "shutting down".to_owned(),
        };
        info!(%connection, why, seconds, to_server, to_client, "closed");
    }

    pub fn refused(client: SocketAddr, limit: OverLimit) {
        let why = match limit {
            OverLimit::Connections => "limits.connections",
            OverLimit::ConnectionsOfClient => "limits.connections-per-client",
        };
        warn!(%client, why, "refused");
    }

    fn key(&self, number: u64) -> Key {
        Key {
            worker: self.worker,
            number,
        }
    }
}
