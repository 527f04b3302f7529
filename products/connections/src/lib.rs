//! noq's endpoint with its connections, for programs that have many; and what the workers of such a
//! program share: addresses, the connection IDs that lead to each, TLS from files.
//!
//! It promises that nothing looks at all connections, and that a handle is a connection's until
//! that has drained. It does not know what a connection is for. [`SideEndpoint`] has neither socket
//! nor clock.

mod endpoint;
pub mod listening;
pub mod poller;
pub mod steering;
pub mod tls;
mod wall_clock;

pub use endpoint::{ConnectionEntry, DatagramOwner, SideEndpoint};
pub use wall_clock::WallClock;
