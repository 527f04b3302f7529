//! IP packets in a tunnel (RFC 9484): which may pass, and what client and proxy tell each other of
//! that.
//!
//! The model is that of section 8.1: the proxy assigns the client addresses and says where it leads
//! to. Addresses that a client assigns, and its routes (section 8.2), are read and not followed.
//!
//! The ends of a trial have one client whose addresses are known, and tell senders only that a
//! packet is too big (section 7.2.1), as if by the packet's destination. A proxy with a [`Pool`]
//! assigns each client addresses of its own, and it and its clients tell of other errors, too.
//!
//! Deviations: there is no search for the path's MTU. SYNs of TCP are changed, so that segments
//! fit. A client that takes whatever address it is assigned is the host that has it, and no router:
//! it does not decrement hop limits.

mod addressing;
mod errors;
mod mss;
mod network;
mod packet;
mod pool;
mod scope;
mod set;
mod sides;

pub use addressing::{Addressing, Malformed, Numbered};
pub use errors::{ErrorCounts, Problem, Throttle, icmp_error};
pub use mss::clamp;
pub use network::{Prefix, Route};
pub use packet::{Header, PacketError, Service, decrement_hop_limit, destination};
pub use pool::{Lease, Pool};
pub use scope::{Scope, ScopeError};
pub use set::AddressSet;
pub use sides::{Access, Network, Refused, Sides, Towards, is_of_link};
