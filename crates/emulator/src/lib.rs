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
mod awake;
mod bench;
mod capture;
mod clock;
mod device;
mod enclosure;
mod engine;
mod error;
mod fidelity;
mod forward;
mod histogram;
mod host;
mod lane;
mod lane_positions;
mod namespace;
mod offload;
mod option;
mod port;
mod priority;
mod ring;
mod segment_counters;
mod tap;
mod topology;
mod tun;
mod tunnel;
mod wake;

pub use awake::Awake;
pub use bench::{Bench, Delay, Gigabit, RateKept, bench, timer};
pub use bentpipe_link::HostName;
pub use capture::HopPacket;
pub use enclosure::{INSIDE, arrive, exit_code, run_inside};
pub use error::EmulatorError;
pub use fidelity::{Fidelity, LaneError, ReleaseError, most_late};
pub use forward::{Forwarder, Options, Report, Running};
pub use host::Host;
pub use lane::Frame;
pub use namespace::Namespace;
pub use segment_counters::SegmentCounters;
pub use tap::{Tap, TapReport};
pub use topology::{SegmentPorts, Topology};
pub use tunnel::{TUNNEL, TunnelPlan};
