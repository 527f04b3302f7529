//! The proxy between real clients and servers, in memory and virtual time.

mod crowding_out;
mod crowds;
mod disturbed;
mod handshakes;
mod hostile;
mod peer;
mod setup;
mod stream_limits;
mod streams;
mod traffic;
mod world;
