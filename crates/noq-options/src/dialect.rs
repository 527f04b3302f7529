//! What noq's options differ in from quinn's.

pub use crate::congestion::congestion_control;
pub use crate::peers::Peers;

/// The library.
pub const NAME: &str = "noq";

/// noq is what congestion control is studied on here: its flow control must not be the limit, on any path. Its own window, 1.25 MB for a
/// stream, lets 16 Mbit/s through where a round trip takes 600 ms.
pub const DEFAULT_WINDOW: Option<u64> = Some(512 << 20);
