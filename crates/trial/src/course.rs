//! The course that a trial took on its testbed.

use bentpipe_link::Counters;
use bentpipe_units::Time;

use crate::packet_log::PacketLog;

/// When a flow was there.
#[derive(Debug, Clone, Copy)]
pub struct Lifetime {
    /// When the client sent its first packet.
    pub first_sent: Option<Time>,
    /// Until when it has lived.
    pub end: Time,
}

/// What a testbed saw of a trial. All times count from its start.
#[derive(Debug)]
pub struct Course {
    /// Of each flow of the job.
    pub flows: Vec<Lifetime>,
    /// Every packet of every flow.
    pub log: PacketLog,
    /// What became of the packets towards the clients.
    pub forward: Counters,
    /// What became of the packets towards the servers.
    pub back: Counters,
    /// When the last flow had ended.
    pub end: Time,
    /// Epochs of virtual time; 0 in real time.
    pub epochs: u64,
}
