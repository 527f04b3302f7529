//! A client and a proxy, a path between them, and peers that break rules: without a socket.

mod hostile;
mod raw;
mod regular;
mod world;
