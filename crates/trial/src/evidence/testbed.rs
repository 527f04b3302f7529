//! A testbed's observation of a trial.

use bentpipe_link::{Counters, RequestWait};
use bentpipe_units::{Span, Time};

use super::ProgramExit;
use super::packet_hash::PacketHash;
use super::packet_log::PacketLog;
use crate::schema::Fidelity;

/// The lifetime of a flow.
#[derive(Debug, Clone, Copy)]
pub struct FlowLifetime {
    /// The time at which the client sent its first packet.
    pub first_sent: Option<Time>,
    /// The end of the flow.
    pub end: Time,
}

/// The packets that a testbed saw on a hop.
#[derive(Debug)]
pub struct HopPackets {
    /// Every packet of every flow.
    pub log: PacketLog,
    /// The fates of the packets towards the clients.
    pub forward: Counters,
    /// The fates of the packets towards the servers.
    pub back: Counters,
}

/// The observation of links on which flows are encapsulated.
#[derive(Debug)]
pub struct LinkObservation {
    /// The fates of the packets of each hop, towards the clients and towards the servers.
    pub counters: Vec<[Counters; 2]>,
    /// The hash over their packets; None: not all of them are of flows.
    pub hash: Option<String>,
}

/// The events of links that a testbed knows.
#[derive(Debug)]
pub enum KnownEvents {
    /// Nothing: the links are real.
    Nothing,
    /// Their interruptions, which follow from scenario and seed, but not their requests.
    Interruptions,
    /// All, with the answered requests of each hop of links, forward and return.
    All(Vec<[Vec<RequestWait>; 2]>),
}

/// The observation of a tunnel. What went through it is the hop of the flows.
#[derive(Debug)]
pub struct TunnelObservation {
    /// From the start of its ends until a packet had gone through and another one back.
    pub setup: Span,
    /// The congestion control of its own connection, of one over TCP; else empty.
    pub congestion_control: String,
    /// The exits of the programs at its ends, the client's first.
    pub exits: [ProgramExit; 2],
}

/// The observation of a trial by its testbed. All times count from its start.
#[derive(Debug)]
pub struct TestbedObservation {
    /// The lifetime of each flow of the job.
    pub flows: Vec<FlowLifetime>,
    /// The packets on each hop of the flows, from the client to the server.
    pub hops: Vec<HopPackets>,
    /// The links, where flows are encapsulated on them; None: their hops are those of the flows.
    pub links: Option<LinkObservation>,
    /// The tunnel that the flows went through, if there was one.
    pub tunnel: Option<TunnelObservation>,
    /// The events of its links, as far as they are known.
    pub events: KnownEvents,
    /// The end of the last flow.
    pub end: Time,
    /// Epochs of virtual time; 0 in real time.
    pub epochs: u64,
    /// The fidelity of the links to the model.
    pub fidelity: Fidelity,
    /// The reasons why the trial is not to be trusted; empty if it is.
    pub unfaithful: Vec<String>,
}

impl TestbedObservation {
    /// The fates of the packets of each hop of links, towards the clients and towards the servers.
    #[must_use]
    pub fn on_links(&self) -> Vec<[Counters; 2]> {
        match &self.links {
            Some(links) => links.counters.clone(),
            None => self.hops.iter().map(|it| [it.forward, it.back]).collect(),
        }
    }

    /// The hash over the packets: of one hop that of its log, of several that over the hashes of
    /// their logs.
    #[must_use]
    pub fn hash(&self) -> String {
        if let Some(of_links) = self.links.as_ref().and_then(|it| it.hash.clone()) {
            return of_links;
        }
        match self.hops.as_slice() {
            [only] => only.log.hash(),
            hops => {
                let mut all = PacketHash::new();
                for hop in hops {
                    all.update(hop.log.hash());
                }
                all.in_words()
            }
        }
    }
}
