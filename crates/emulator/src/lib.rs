//! Real time: real programs, real sockets and this machine's kernel behind the links of a scenario.
//!
//! A [`Topology`] is four hosts, each in separate network namespaces:
//!
//! ```text
//! client ──access── terminal ──satellite── gateway ──ground── server
//! ```
//!
//! A segment that the scenario gives runs through the emulator, which has a device towards each of
//! its two hosts ([`SegmentPorts`]) in a separate namespace; a transparent one is a plain pair of
//! devices. Programs are started on a [`Host`].

mod bench;
mod capture;
mod error;
mod hosts;
mod links;
mod packet_socket;
mod timing;
mod tunnel;

pub use bench::{Bench, Delay, Discipline, Gigabit, RateKept, bench, timer};
pub use bentpipe_link::HostName;
pub use capture::HopPacket;
pub use error::EmulatorError;
pub use hosts::device::SegmentPorts;
pub use hosts::host::Host;
pub use hosts::namespace::Namespace;
pub use hosts::process_namespace::{INSIDE, exit_code, prepare_inside, run_inside};
pub use hosts::topology::Topology;
pub use links::emulated_link::Frame;
pub use links::fidelity::{Fidelity, LinkReleaseError, ReleaseError, most_late};
pub use links::forwarder::{Forwarder, Options, Report, Running};
pub use links::segment_counters::SegmentCounters;
pub use timing::idle_prevention::IdlePrevention;
pub use tunnel::capture::{CaptureReport, TunnelCapture};
pub use tunnel::{TUNNEL, TunnelPlan};
