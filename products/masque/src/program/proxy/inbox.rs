//! The messages to a worker.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bentpipe_endpoint::Received;
use bentpipe_masque::{ErrorCounts, FlowId, ProxySettings, Statistics, Target};

use crate::program::allow::Rule;

/// The messages for a worker.
pub type Inbox = bentpipe_service::inbox::Inbox<Message>;

/// The settings that a worker is given again when they change.
pub struct Configuration {
    pub proxy: ProxySettings,
    pub rules: Arc<[Rule]>,
}

/// A message to a worker.
pub enum Message {
    /// Connections and requests to come are like this.
    Reconfigure(Box<Configuration>),
    /// Take nobody any more; those there are may go on for so long.
    Drain(Duration),
    /// End at once.
    End,
    /// Say what was counted.
    Count(SyncSender<WorkerCounters>),
    /// One that came to another worker.
    Datagram(Received),
    /// An IP packet to a client of this worker that came by another's queue.
    Packet(Vec<u8>),
    /// The addresses of a target's name.
    Resolved(FlowId, Target, Vec<IpAddr>),
}

/// The counters of a worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerCounters {
    pub statistics: Statistics,
    /// Requests for targets that are not allowed.
    pub not_allowed: u64,
    /// Requests for names without an address.
    pub unresolved: u64,
    /// Requests that were refused since too many names were looked up.
    pub too_many_names: u64,
    /// UDP payloads that a socket did not take, or for which there was none any more.
    pub unsent: u64,
    /// Requests for IP for which no address was left.
    pub exhausted: u64,
    /// IP packets of clients that may not go where they go.
    pub not_allowed_packets: u64,
    /// IP packets that the device did not take.
    pub unsent_packets: u64,
    pub errors: ErrorCounts,
    /// Calls to receive or send that failed.
    pub socket_errors: u64,
    /// Datagrams that were another worker's.
    pub handed_on: u64,
    /// Datagrams among them that overflowed the inbox.
    pub lost: u64,
}
