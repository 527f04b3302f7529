//! Facts about the path and the transfer that are known beside the capture: measurements are held
//! against it.

use serde::{Deserialize, Serialize};

use crate::connection::Connection;
use crate::ledger::LedgerEntry;
use crate::link_events::LinkEvents;
use bentpipe_wire::quic::End;

/// Facts about the path of a connection. Each may be unknown; what depends on it is then estimated,
/// or left open.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkFacts {
    /// Bit/s of IP packets at the bottleneck from server to client.
    pub forward_rate_bps: Option<u64>,
    /// The same from client to server.
    pub return_rate_bps: Option<u64>,
    /// Both ways, without queues and transmission.
    pub rtt_ms: Option<f64>,
    /// The capacity of the bottleneck queue towards the client, in bytes of IP packets.
    pub forward_queue_bytes: Option<u64>,
    /// The same towards the server.
    pub return_queue_bytes: Option<u64>,
    /// Whether a queue towards the client marks packets of ECN-capable senders (RFC 3168).
    pub forward_marks: Option<bool>,
    /// The same towards the server.
    pub return_marks: Option<bool>,
    /// The largest IP packet that the path carries.
    pub mtu_bytes: Option<u64>,
    /// Completion time of an ideal sender.
    pub limit_s: Option<f64>,
    /// Bytes of the files that were asked for.
    pub size_bytes: Option<u64>,
    /// The sender of the files. Where that is not known, the server is measured, and who sent more
    /// data is judged.
    pub sender: Option<End>,
    /// The events of its links in the trial.
    pub events: Option<LinkEvents>,
}

impl LinkFacts {
    /// The end whose data are measured: the one that sends the files; where that is not known, the
    /// server.
    pub(crate) fn files_sender(&self) -> End {
        self.sender.unwrap_or(End::Server)
    }

    /// The end that sends the files; where that is not known, the one that sent more stream data.
    pub(crate) fn data_sender(&self, connection: &Connection, entries: &[LedgerEntry]) -> End {
        self.sender
            .unwrap_or_else(|| connection.data_sender(entries))
    }
}
