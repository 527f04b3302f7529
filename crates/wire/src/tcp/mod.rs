//! TCP segments: what their headers say. Of payloads, only the lengths count.
//!
//! Source: RFC 9293 (segments), RFC 7323 (timestamps, window scale), RFC 2018 (SACK).

mod header;
mod segment;

pub use header::{Header, SackBlocks};
pub use segment::Segment;
