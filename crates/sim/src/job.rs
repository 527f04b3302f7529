//! The job that a trial is started with, and the result that it ends with; both travel as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use bentpipe_endpoint::contract::Statistics;
use bentpipe_link::Scenario;
use serde::{Deserialize, Serialize};

use crate::testcase::TestCase;

/// The wall-clock time of virtual time zero: 1 January 2000, where Go's bubbles begin.
pub const EPOCH_UNIX_S: u64 = 946_684_800;

/// Which end of the connection a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

impl Role {
    /// The word of the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// Its place in arrays of the client's and the server's.
    pub fn index(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A stack as one side of a trial.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What people call it, options included.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

/// Everything that a trial depends on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub scenario: Scenario,
    pub testcase: TestCase,
    /// Paths below `www`, each with a leading slash.
    pub requests: Vec<String>,
    pub www: PathBuf,
    pub certs: PathBuf,
    /// 64 bits in hexadecimal.
    pub seed: Seed,
    /// Where the trial leaves its files, if it has any; made only then.
    pub folder: PathBuf,
    /// Leave `trace.pcapng` there, with the TLS secrets inside.
    pub trace: bool,
    /// Leave `qlog/client/` and `qlog/server/` there. Writing them costs some stacks half as much again.
    pub qlog: bool,
    /// Wall time after which a silent program is given up.
    #[serde(default = "default_silence_s")]
    pub silence_s: u64,
    pub client: Variant,
    pub server: Variant,
}

fn default_silence_s() -> u64 {
    30
}

impl Job {
    /// The variant that plays `role`.
    pub fn variant(&self, role: Role) -> &Variant {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }
}

/// A 64-bit seed, written as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Seed(pub u64);

impl TryFrom<String> for Seed {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u64::from_str_radix(&text, 16) {
            Ok(value) if digits => Ok(Self(value)),
            _ => Err(format!("{text:?}: a seed is 16 hexadecimal digits")),
        }
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// How a trial ended, in one word. The others of the project's outcomes are no business of virtual time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    #[default]
    Ok,
    Unsupported,
    HandshakeTimeout,
    TransferTimeout,
    MissingFile,
    CorruptFile,
    Crashed,
    NoSecrets,
    Unproven,
}

/// The result of a trial: the measured columns of its record. Times in seconds from the client's first packet, of the second
/// connection where the test case has two.
#[derive(Debug, Serialize)]
pub struct TrialResult {
    pub outcome: Outcome,
    pub detail: String,
    /// "wire" or "client": what the times and rates were taken from. What only the wire tells is null with the latter.
    pub measured_from: &'static str,
    pub handshake_s: Option<f64>,
    pub ttfb_s: Option<f64>,
    pub completion_s: Option<f64>,
    pub transfer_s: Option<f64>,
    pub goodput_bps: Option<f64>,
    pub efficiency: Option<f64>,
    pub limit_s: f64,
    pub share_of_limit: Option<f64>,
    /// Those that completed a handshake; null where none could be made out.
    pub connections: Option<u64>,
    /// Whether the second connection was resumed; null also where there was one connection.
    pub resumed: Option<bool>,
    /// Of the client's stream data in 0-RTT packets of the connection that is measured.
    pub zero_rtt_bytes: Option<u64>,
    pub virtual_s: f64,
    pub wall_s: f64,
    pub cpu_client_s: f64,
    pub cpu_server_s: f64,
    pub cpu_sim_s: f64,
    pub epochs: u64,
    pub forward_packets: u64,
    pub forward_bytes: u64,
    pub forward_queue_drops: u64,
    pub forward_losses: u64,
    pub return_packets: u64,
    pub return_bytes: u64,
    pub return_queue_drops: u64,
    pub return_losses: u64,
    pub retransmitted_share: Option<f64>,
    pub acks_per_data_packet: Option<f64>,
    pub mean_packet_bytes: Option<f64>,
    pub largest_packet_bytes: Option<u32>,
    pub return_rate_bps: Option<f64>,
    pub rtt_min_ms: Option<f64>,
    pub rtt_median_ms: Option<f64>,
    pub rtt_max_ms: Option<f64>,
    pub in_flight_max_bytes: Option<u64>,
    pub findings: Vec<&'static str>,
    pub client_version: String,
    pub server_version: String,
    pub client_driver: String,
    pub server_driver: String,
    pub client_statistics: Statistics,
    pub server_statistics: Statistics,
    pub received_step_s: f64,
    pub received_bytes: Vec<u64>,
    pub packet_log_sha256: Option<String>,
}
