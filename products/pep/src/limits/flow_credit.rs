//! How much a peer may send before anything of it is read, and how many streams it may open before
//! the other side has said how many.

use crate::limits::Limits;

/// The streams that a peer may open before it is known what the other side allows, bidirectional
/// and unidirectional.
///
/// Should that be less, what it sends on those that then have to wait is kept beside all else: so
/// they are few, though enough for the control streams of HTTP/3 (RFC 9114, section 6.2) and what a
/// browser asks for at first.
pub const FIRST_FLIGHT: [u32; 2] = [16, 3];

/// The flow control window of one side: what its peer may send before anything of it is read (RFC
/// 9000, section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveWindow {
    /// The bytes that may be buffered according to [`Limits`].
    Buffers,
    /// This number of bytes, of a stream and of all together, as the transport has it.
    Bytes(u64),
    /// noq's own: all streams together are not limited.
    Library,
}

/// The flow control credit of a peer, in bytes (RFC 9000, section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowCredit {
    /// The credit of all streams together.
    pub connection: u64,
    /// The credit of one stream.
    pub stream: u64,
}

impl FlowCredit {
    /// The credit that a window comes to; `None`: all streams together are not limited.
    pub fn of(window: ReceiveWindow, limits: &Limits) -> Option<Self> {
        match window {
            ReceiveWindow::Buffers => Some(Self {
                connection: limits.connection_buffer as u64,
                stream: limits.stream_buffer as u64,
            }),
            ReceiveWindow::Bytes(bytes) => Some(Self {
                connection: bytes,
                stream: bytes,
            }),
            ReceiveWindow::Library => None,
        }
    }

    /// The credit of the connection while this number of streams may have to wait. The library
    /// announces new credit when it comes to an eighth of the window, which is not to be more than
    /// what those leave of it.
    pub fn with_waiting(self, streams: u64) -> u64 {
        let one = self.stream.saturating_mul(8).div_ceil(7);
        self.connection.saturating_add(streams.saturating_mul(one))
    }
}
