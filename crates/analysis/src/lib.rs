//! The analysis of connections from the packets on the wire.
//!
//! [`Captured::read`] takes capture files and joins what their places saw to connections; a
//! [`connection::Recorder`] does the same for who has the datagrams himself. Of a
//! [`connection::Connection`] there are a ledger of its packets ([`LedgerEntry`]), how it was
//! established ([`Establishment`]), its [`Metrics`], and its [`findings`]. An [`AnalysisFile`]
//! brings them together in the form of `analysis.json`. What was lost on the way, over all
//! connections, is fitted by [`losses`].

mod analysis_file;
mod captures;
pub mod connection;
mod decoding_gap;
pub mod durations;
mod establishment;
pub mod findings;
mod intervals;
mod ledger;
mod link_events;
mod link_facts;
pub mod losses;
mod marks;
pub mod metrics;
mod optional;
pub mod passive;
pub mod tcp;
mod windows;

pub use analysis_file::{AnalysisFile, ConnectionAnalysis, SideInformation, Undecoded};
pub use captures::{CaptureFile, Captured};
pub use decoding_gap::DecodingGap;
pub use establishment::Establishment;
pub use ledger::LedgerEntry;
pub use link_events::{CapacityRequest, Interruption, InterruptionKind, LinkDirection, LinkEvents};
pub use link_facts::LinkFacts;
pub use metrics::Metrics;
pub use optional::Optional;
pub use passive::Passive;
pub use windows::{CongestionWindow, CongestionWindows};
