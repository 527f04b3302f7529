//! The JSON of HELLO, READY and BYE (contract, section 4).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::statistics::Statistics;

/// The version of the contract that this module speaks.
pub const CONTRACT: u32 = 1;

/// What the coordinator says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the contract.
    pub contract: u32,
    /// `client` or `server`; a program exits with 127 if it can't be that.
    pub role: String,
    /// The name of the test case; a program exits with 127 if it does not know it.
    pub testcase: String,
    /// A client's URLs; empty for a server.
    pub requests: Vec<String>,
    /// Names and values; a program exits with 127 if it does not know one.
    pub options: BTreeMap<String, String>,
    /// 64 bits in hexadecimal, from which all randomness comes.
    pub seed: String,
    /// The wall-clock time of time 0, in seconds since 1970.
    pub epoch_unix_s: u64,
    /// The program's own address and port.
    pub local: String,
    /// The other side's address and port.
    pub remote: String,
    /// The folder that a server serves.
    pub www: Option<PathBuf>,
    /// The folder that a client stores replies in.
    pub downloads: Option<PathBuf>,
    /// The folder with `ca.pem`, `cert.pem` and `priv.key`.
    pub certs: PathBuf,
    /// The file for TLS secrets, in NSS key log format.
    pub keylog: Option<PathBuf>,
    /// The folder for qlog files.
    pub qlog: Option<PathBuf>,
}

/// A program's answer to HELLO.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The stack's name.
    pub stack: String,
    /// The library and its version.
    pub version: String,
    /// How the program batches arrivals and polls its stack.
    pub driver: String,
    /// When it wants to run first, in nanoseconds; `None`: when something arrives.
    pub next_wake: Option<u64>,
}

/// A program's last words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bye {
    /// When the handshake was complete, in nanoseconds (RFC 9001, section 4.1.1).
    pub handshake_ns: Option<u64>,
    /// A client's requests, in their order.
    pub requests: Vec<RequestReport>,
    /// Why the connection ended early.
    pub error: Option<String>,
    /// What else the program says of itself; absent: nothing.
    #[serde(default, skip_serializing_if = "Statistics::is_empty")]
    pub statistics: Statistics,
}

/// What became of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestReport {
    /// The path, with its leading slash.
    pub path: String,
    /// Bytes of the reply received so far.
    pub bytes: u64,
    /// When the first of them came, in nanoseconds.
    pub first_byte_ns: Option<u64>,
    /// When the last of them came, in nanoseconds.
    pub last_byte_ns: Option<u64>,
}
