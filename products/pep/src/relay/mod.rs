//! Clients' connections, each paired with the one that it is carried over: from the first handshake
//! to the last acknowledgement.
//!
//! Promises: streams keep their IDs, their order and their ends on the other side, what is buffered
//! stays within the limits, and no reset becomes a FIN. Knows both endpoints and what a client
//! asked for; must not know sockets, flows that are forwarded untouched, nor connections that are
//! kept ready.

mod close;
mod direction;
mod ends;
mod gap_watch;
mod keep_alive;
mod pair;
mod pair_table;
mod pairs;
mod stream;
mod stream_opener;

pub use close::CloseCode;
pub use pair::{BypassCandidate, NewPair};
pub use pairs::{ConnectedNextHop, Notice, PairedConnections};
