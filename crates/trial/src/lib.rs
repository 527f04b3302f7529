//! What a trial is, and what it came to, whichever testbed it ran in.
//!
//! A testbed takes a [`Job`] and gives each of its flows a [`Play`], which knows the flow's files, secrets and addresses. The testbed runs
//! the programs, takes note of every packet in a [`PacketLog`] and of how each flow ended in a [`Verdict`]. What came of it, a
//! [`Finished`], is looked at here in the same way for all testbeds: the files that arrived, what was on the wire, and the measures of the
//! record (`schemas/record.toml` defines them).
//!
//! Nothing here starts a program, opens a socket or reads a clock, except for the CPU time of the process itself.

mod chain;
mod course;
mod facts;
mod fairness;
mod hop;
mod job;
mod measure;
mod packet_log;
mod play;
mod proof;
mod remains;
mod schema;
mod sight;
mod testcase;
mod times;
mod trace;
mod verdict;
mod verify;
mod wire;
mod www;

pub use chain::Proxy;
pub use course::{Course, HopCourse, Lifetime};
pub use facts::path_facts;
pub use job::{EPOCH_UNIX_S, FLOW_LIMIT, Flow, Job, Role, Seed, Variant};
pub use measure::{Finished, Played, result};
pub use packet_log::{Packet, PacketLog};
pub use play::Play;
pub use remains::{Reaped, Remains};
pub use schema::{Fidelity, FlowResult, HopResult, LinkCounts, Outcome, ProxyResult, TrialResult};
pub use sight::Sight;
pub use testcase::TestCase;
pub use trace::Trace;
pub use verdict::{End, Verdict};
pub use wire::Seen;
