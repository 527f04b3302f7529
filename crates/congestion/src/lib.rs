//! Congestion control for QUIC whose slow start is chosen apart from its congestion avoidance.
//!
//! A [`Controller`] is made of a [`SlowStart`] and an [`Avoidance`]. Both are told what happens to packets, look at the
//! [`Path`], and answer with what the congestion window is to be; neither has a clock, a timer or a socket. The controller does what is
//! the same for all of them: it keeps the [ledger](Ledger) of packets in flight, takes samples of RTT and delivery rate, knows
//! when a recovery period begins and ends (RFC 9002, section 7.3.2), starts slow start again after persistent congestion, and takes a
//! reduction back if its losses were spurious.
//!
//! A file per algorithm lies under `slow_start/` and `avoidance/`. It opens with its source and with where it departs
//! from it. [`Recipe`] names them all. The shape, slow start as a part of its own, is that of the WPI report on SEARCH in QUIC (2024,
//! section 4.1).
//!
//! Sizes are bytes of UDP payload, rates bytes per second, and times nanoseconds ([`bentpipe_units`]).

mod acks;
pub mod avoidance;
mod controller;
mod ledger;
mod note;
mod observer;
mod pacing;
mod path;
mod recipe;
mod saved;
pub mod slow_start;

#[cfg(feature = "noq")]
pub mod noq;

pub use acks::{Acked, Acks, Congestion, Lost, RateSample};
pub use avoidance::{Avoidance, Reduction};
pub use controller::{Controller, Resumption, Settings};
pub use ledger::Ledger;
pub use note::{Note, Value, Watch, Watcher};
pub use pacing::Pacing;
pub use path::{Path, Rtt};
pub use recipe::{Recipe, UnknownName};
pub use saved::{LIFETIME, SavedError, SavedPath, SavedPaths};
pub use slow_start::{Exit, Jump, Response, Resume, SlowStart, Step};
