//! The course that a trial took on its testbed.

use bentpipe_link::Counters;
use bentpipe_units::Time;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::packet_log::{PacketLog, hex};

/// When a flow was there.
#[derive(Debug, Clone, Copy)]
pub struct Lifetime {
    /// When the client sent its first packet.
    pub first_sent: Option<Time>,
    /// Until when it has lived.
    pub end: Time,
}

/// What a testbed saw of a hop.
#[derive(Debug)]
pub struct HopCourse {
    /// Every packet of every flow.
    pub log: PacketLog,
    /// What became of the packets towards the clients.
    pub forward: Counters,
    /// What became of the packets towards the servers.
    pub back: Counters,
}

/// What a testbed saw of a trial. All times count from its start.
#[derive(Debug)]
pub struct Course {
    /// Of each flow of the job.
    pub flows: Vec<Lifetime>,
    /// Of each hop, from the client to the server.
    pub hops: Vec<HopCourse>,
    /// When the last flow had ended.
    pub end: Time,
    /// Epochs of virtual time; 0 in real time.
    pub epochs: u64,
    /// How well the links kept to the model.
    pub fidelity: Fidelity,
}

impl Course {
    /// SHA-256 over the packets: of one hop that of its log, of several that over the hashes of their logs.
    #[must_use]
    pub fn sha256(&self) -> String {
        match self.hops.as_slice() {
            [only] => only.log.sha256(),
            hops => {
                let hashes = hops.iter().map(|hop| hop.log.sha256());
                hex(Sha256::digest(hashes.collect::<String>()))
            }
        }
    }
}

/// How well the links of a testbed in real time kept to the model. Nothing of it is there in virtual time, which keeps to it exactly.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Fidelity {
    /// Why the trial is not to be trusted; empty if it is.
    #[serde(skip)]
    pub reasons: Vec<String>,
    /// By how much packets came out later than the model says: what half of them did not exceed.
    pub release_error_p50_ms: Option<f64>,
    /// What 99 % did not exceed.
    pub release_error_p99_ms: Option<f64>,
    /// What 99.9 % did not exceed.
    pub release_error_p999_ms: Option<f64>,
    /// The largest.
    pub release_error_max_ms: Option<f64>,
    /// What 99.9 % must not exceed if the trial is to be trusted.
    pub release_error_limit_ms: Option<f64>,
    /// Packets that the kernel dropped on the way to the emulator or from it.
    pub kernel_drops: Option<u64>,
    /// The share of the time in which some task of this machine waited for a processor.
    pub cpu_pressure: Option<f64>,
}
