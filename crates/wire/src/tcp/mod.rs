//! TCP segments: what their headers say. Of payloads, only the lengths count.
//!
//! Source: RFC 9293 (segments), RFC 7323 (timestamps, window scale), RFC 2018 (SACK), RFC 8684
//! (MPTCP).

mod header;
mod multipath;
mod segment;

pub use header::{Header, SackBlocks};
pub use multipath::{DataMapping, Multipath, key_names};
pub use segment::Segment;
