//! Real time: real programs, real sockets and this machine's kernel behind the links of a scenario.
//!
//! A [`Topology`] is four hosts, each in network namespaces of its own:
//!
//! ```text
//! client ──access── terminal ──satellite── gateway ──ground── server
//! ```
//!
//! A segment that the scenario gives runs through the emulator, which has a device towards each of its two hosts
//! ([`SegmentPorts`]) in a namespace of its own; a transparent one is a plain pair of devices. Programs are started on a
//! [`Host`].

mod addresses;
mod enclosure;
mod error;
mod host;
mod namespace;
mod netlink;
mod offload;
mod topology;

pub use enclosure::{INSIDE, arrive, exit_code, run_inside};
pub use error::EmulatorError;
pub use host::{Host, HostName};
pub use namespace::Namespace;
pub use topology::{SegmentPorts, Topology};
