//! What a Rust QUIC stack needs to become an endpoint program.
