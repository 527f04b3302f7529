//! The QUIC library's endpoint of one side, with its connections.

pub mod endpoint;
