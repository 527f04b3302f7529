//! The emulated links: what a packet meets between two hosts, and the thread that forwards it.

pub(crate) mod emulated_link;
pub(crate) mod engine;
pub(crate) mod fidelity;
pub(crate) mod forwarder;
pub(crate) mod link_positions;
pub(crate) mod segment_counters;
pub(crate) mod wakeup;
