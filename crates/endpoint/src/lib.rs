//! What a Rust QUIC stack needs to become an endpoint program.
//!
//! `endpoints/CONTRACT.md` says what an endpoint program is.

pub mod contract;
