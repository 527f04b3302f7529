//! A trial and its result, whichever testbed it ran in.
//!
//! | room | what is in it |
//! |---|---|
//! | [`job`] | what is asked for |
//! | [`setup`] | what the programs of a flow are given |
//! | [`evidence`] | what the testbed saw, and what programs left |
//! | [`verdict`] | how a flow ended, by its evidence |
//! | [`preparation`] | what a testbed begins a trial with |
//! | [`finished`] | a trial that has run: evidence, examined, with its verdicts |
//! | [`record`] | the measures of a record, made of all that |
//!
//! Each knows those above it alone. A testbed takes a [`Job`] and gets a [`FlowSetup`] for each of
//! its flows. It runs the programs, takes note of every packet in a [`PacketLog`] and of how each
//! flow ended in a [`Verdict`]: a [`FinishedTrial`], of which [`result`] makes the record.
//!
//! Nothing here starts a program, opens a socket or reads a clock, except for the CPU time of the
//! process itself.

mod evidence;
mod finished;
mod job;
mod numbers;
mod preparation;
mod record;
mod schema;
mod setup;
mod verdict;

pub use evidence::{
    DecodedConnection, Drawing, FlowLifetime, HopObservation, HopPackets, HopTrace, IpPacket,
    KnownEvents, LinkObservation, Packet, PacketLog, ProcessExit, ProgramExit, SentMessage,
    TestbedObservation, Transport, TunnelObservation, count_fates, flow_number,
};
pub use finished::{FinishedFlow, FinishedTrial};
pub use job::{
    Carries, EPOCH_UNIX_S, FLOW_LIMIT, FlowJob, Job, PageResource, ProxyJob, Relays, Role, Seed,
    TestCaseFacts, TunnelJob, TunnelTransport, Variant,
};
pub use preparation::flow_setups;
pub use record::{path_facts, result};
pub use schema::{
    Fidelity, FlowResult, HopResult, LinkConditions, LinkCounts, Outcome, ProxyResult, Queueing,
    TrialResult,
};
pub use setup::{FlowSetup, Network, address};
pub use verdict::{FlowEnd, ProofFailure, Verdict};
