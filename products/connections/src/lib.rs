//! noq's endpoint with its connections, for programs that have many: neither socket nor clock.
//!
//! It promises that nothing looks at all connections, and that a handle is a connection's until
//! that has drained. It does not know what a connection is for.

mod endpoint;
mod wall_clock;

pub use endpoint::{ConnectionEntry, DatagramOwner, SideEndpoint};
pub use wall_clock::WallClock;
