//! A client and a proxy, a path between them, and peers that break rules: without a socket.

mod forwarding;
mod frames;
mod hostile;
mod ip;
mod pool;
mod raw;
mod regular;
mod world;
