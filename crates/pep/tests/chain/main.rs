//! The proxy between real clients and servers, in memory and virtual time.

mod peer;
mod setup;
mod streams;
mod traffic;
mod world;
