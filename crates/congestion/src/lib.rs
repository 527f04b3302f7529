//! Congestion control for QUIC whose slow start is chosen apart from its congestion avoidance.
//!
//! A [`Controller`] is made of a [`SlowStart`] and an [`Avoidance`]. Both are told what happens to
//! packets, look at the [`PathState`], and answer with what the congestion window is to be; neither
//! has a clock, a timer or a socket. The controller does what is the same for all of them: it keeps
//! the [packets in flight](SentPackets), takes samples of RTT and delivery rate, knows when a
//! recovery period begins and ends (RFC 9002, section 7.3.2), starts slow start again after
//! persistent congestion, and takes a reduction back if its losses were spurious.
//!
//! A file per algorithm lies under `slow_start/` and `avoidance/`. It opens with its source and
//! with where it departs from it. [`Algorithms`] names them all. The shape, slow start as a part of
//! its own, is that of the WPI report on SEARCH in QUIC (2024, section 4.1).
//!
//! Sizes are bytes of UDP payload, rates bytes per second, and times nanoseconds
//! ([`bentpipe_units`]).

mod acks;
mod algorithms;
pub mod avoidance;
mod controller;
mod log;
mod observer;
mod pacing;
mod path;
mod saved;
mod sent_packets;
pub mod slow_start;

pub use acks::{AckedPacket, Acks, CongestionEvent, LostPacket, RateSample};
pub use algorithms::{Algorithms, UnknownName};
pub use avoidance::{Avoidance, Reduction};
pub use controller::{Controller, Resumption, Settings};
pub use log::{EventLog, LogEvent, SharedEventLog, Value};
pub use pacing::Pacing;
pub use path::{PathState, Rtt};
pub use saved::{LIFETIME, RememberedPath, SavedError, SavedPath, SavedPaths};
pub use sent_packets::SentPackets;
pub use slow_start::{Exit, Jump, Response, Resume, SlowStart, Step};

/// The code of the README, which has to compile and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
