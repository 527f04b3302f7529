//! The settings of Linux's TCP: per socket where that can be, else for the network
//! namespace.
//!
//! A trial has separate namespaces. There settings that results depend on get the values that Linux
//! documents as its defaults (`Documentation/networking/ip-sysctl.rst`, 6.16 and newer), whatever
//! the machine has, and then those that options ask for. Elsewhere nothing is touched, and options
//! that would need it are refused.

mod limits;
mod mptcp;
mod namespace;
mod socket;

pub use limits::raise_descriptors;
pub use mptcp::{LocalPath, Mptcp, Subflows, check_mptcp, mptcp_scheduler};
pub use namespace::{NamespaceSettings, WINDOWS};
pub use socket::{
    Instruction, SocketKind, UNBOUNDED, attach_filter, congestion_control, detach_filter, set_mark,
    set_pacing,
};
