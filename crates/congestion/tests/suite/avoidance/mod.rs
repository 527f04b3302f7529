//! The congestion avoidances against windows computed by hand.

mod bentpipe;
mod cubic;
mod hybla;
mod pico;
mod tolerant;

/// Bytes of a datagram, for windows that can be read as packets.
const SEGMENT: u64 = 1_000;
