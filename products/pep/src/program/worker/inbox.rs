//! The messages to a worker.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bentpipe_endpoint::Received;
use bentpipe_pep::{Config, Statistics};

/// The messages up to which datagrams of others may wait; further ones are lost, as on their way.
pub const MOST_DATAGRAMS: usize = 4096;

/// A message to a worker.
pub enum Message {
    /// Connections to come are like this.
    Reconfigure(Box<Config>),
    /// Take nobody any more; those there are may go on for so long.
    Drain(Duration),
    /// End at once.
    End,
    /// Say what was counted.
    Count(SyncSender<WorkerCounters>),
    /// One that came to another worker.
    Datagram(Received),
}

/// The counters of a worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerCounters {
    pub statistics: Statistics,
    /// Calls to receive or send that failed.
    pub socket_errors: u64,
    /// Datagrams that were another worker's.
    pub handed_on: u64,
    /// Datagrams among them that overflowed the inbox.
    pub lost: u64,
}

/// The messages for a worker.
pub type Inbox = bentpipe_service::inbox::Inbox<Message>;
