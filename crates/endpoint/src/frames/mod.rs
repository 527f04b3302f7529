//! Frames with deadlines (contract, section 2): who makes and sends them, and who watches.

mod header;
mod publisher;
mod viewer;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::publisher::Publisher;
pub use self::viewer::Viewer;

/// What a viewer asks.
const QUESTION: &[u8] = b"GET /frames\r\n";
/// The error code of a frame whose time is over, and of what nobody asked for.
const EXPIRED: u32 = 1;

/// A stream of frames, as both ends are told of it. The requests name its frames, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameStream {
    /// From one frame to the next, in microseconds.
    pub interval_us: u64,
    /// A frame is of use for so long after it was made, in milliseconds.
    pub deadline_ms: u64,
    /// What carries the frames.
    pub over: Carrier,
}

/// The word for what carries frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// Each has a unidirectional stream of its own.
    Streams,
    /// DATAGRAM frames (RFC 9221), as many as each needs.
    Datagrams,
}

impl FrameStream {
    fn interval(&self) -> Duration {
        Duration::from_micros(self.interval_us)
    }

    fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }
}
