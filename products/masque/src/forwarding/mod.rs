//! Forwarded mode of QUIC-aware proxying (draft-ietf-masque-quic-proxy, the working group's text of
//! August 2025): packets with a short header pass between client and proxy beside their connection,
//! neither encrypted again nor held back by its congestion control.
//!
//! Client and proxy agree on a [`Transform`] in HTTP fields ([`field`]), and in capsules
//! ([`CidCapsule`]) on virtual connection IDs, by which each finds out whose packet it has
//! ([`PrefixMap`]).

mod capsule;
pub mod field;
mod packet;
mod prefix_map;
mod queue;
mod transform;

pub use capsule::{CidCapsule, MOST_CID_CAPSULE};
pub use packet::{is_short, source_id};
pub use prefix_map::PrefixMap;
pub use queue::ForwardQueue;
pub use transform::{Transform, TransformKind, Transforms};

/// A connection ID.
pub type Cid = bytes::Bytes;

/// The longest connection ID of QUIC version 1, which client and proxy speak with each other
/// (RFC 9000, section 17.2).
pub const LONGEST_CID: usize = 20;

/// The shortest virtual connection ID: one that is shorter may be that of the tunnel's own packets,
/// too.
pub const SHORTEST_VIRTUAL_ID: usize = 8;
/// Connection IDs of a flow that are registered at a time, of both ends.
pub const MOST_IDS: usize = 16;
/// Registrations that a client may send before the proxy allows more (section
/// "`MAX_CONNECTION_IDS`").
pub const FIRST_ALLOWED: u64 = 2;
