//! The JSON of HELLO, READY and BYE (`endpoints/CONTRACT.md`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::statistics::Statistics;
use crate::error::EndpointError;
use crate::frames::FrameStream;
use crate::page::{LiveStream, Resource};

/// The version of the contract that this module speaks.
pub const CONTRACT: u32 = 1;

/// HTTP/0.9 over QUIC.
pub const HQ_INTEROP: &str = "hq-interop";
/// HTTP/3 (RFC 9114).
pub const H3: &str = "h3";

/// The memory that a coordinator shares with a program, if the program wants it: its first half is
/// for the bodies of messages to the program, its second half for those from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedMemory {
    /// The descriptor of it that the program was born with.
    pub fd: i32,
    /// Its size in bytes, an even number.
    pub bytes: usize,
}

/// The first message of the coordinator, HELLO.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the contract.
    pub contract: u32,
    /// `client` or `server`; a program exits with 127 if it can't be that.
    pub role: String,
    /// The name of the test case; a program exits with 127 if it does not know it.
    pub testcase: String,
    /// A client's URLs; empty for a server, but in `frames`.
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
    /// The application protocol; absent: `hq-interop`.
    #[serde(default = "hq_interop", skip_serializing_if = "is_hq_interop")]
    pub alpn: String,
    /// In `page`, for a client: for each of its requests, when it is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub page: Vec<Resource>,
    /// In `live`, for a client: what its requests are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveStream>,
    /// In `frames`: what its requests are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FrameStream>,
    /// The memory for bodies of messages; `None`: all go through the pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory: Option<SharedMemory>,
    /// The paths between client and server, where there are several; by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<HelloPath>,
}

/// One of several paths, with the addresses of both ends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloPath {
    /// The name in the scenario.
    pub name: String,
    /// The program's own address and port.
    pub local: String,
    /// The other side's address and port.
    pub remote: String,
}

/// The application protocol of a trial that names none.
#[must_use]
pub fn hq_interop() -> String {
    HQ_INTEROP.to_owned()
}

fn is_hq_interop(alpn: &str) -> bool {
    alpn == HQ_INTEROP
}

/// A program's answer to HELLO.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The stack's name.
    pub stack: String,
    /// The library and its version.
    pub version: String,
    /// The driver, in words: how the program batches arrivals and polls its stack.
    pub driver: String,
    /// The first time at which it wants to run, in nanoseconds; `None`: when something arrives.
    pub next_wake: Option<u64>,
    /// Whether it has mapped the memory that HELLO offers: bodies may be there from now on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_memory: bool,
    /// Whether it knows the paths that HELLO lists: its datagrams say which of them they take.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paths: bool,
}

/// The last message of a program, BYE.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bye {
    /// The time at which the handshake was complete, in nanoseconds (RFC 9001, section 4.1.1).
    pub handshake_ns: Option<u64>,
    /// A client's requests, in their order.
    pub requests: Vec<RequestReport>,
    /// The reason why the connection ended early.
    pub error: Option<String>,
    /// The statistics that the program reports of itself; absent: none.
    #[serde(default, skip_serializing_if = "Statistics::is_empty")]
    pub statistics: Statistics,
}

impl Bye {
    /// With every time counted from another zero, which is `shift` earlier.
    #[must_use]
    pub fn later(mut self, shift: Duration) -> Self {
        self.map_times(|time| Duration::from_nanos(time).checked_add(shift));
        self
    }

    /// With every time counted from another zero, which is `shift` later; 0 for what was before.
    #[must_use]
    pub fn earlier(mut self, shift: Duration) -> Self {
        self.map_times(|time| Some(Duration::from_nanos(time).saturating_sub(shift)));
        self
    }

    fn map_times(&mut self, map: impl Fn(u64) -> Option<Duration>) {
        let requests = self.requests.iter_mut();
        let of_requests = requests.flat_map(|it| {
            [
                &mut it.asked_ns,
                &mut it.first_byte_ns,
                &mut it.last_byte_ns,
            ]
        });
        for time in of_requests.chain([&mut self.handshake_ns]) {
            let nanos = time.and_then(&map).map(|it| it.as_nanos());
            *time = nanos.and_then(|it| u64::try_from(it).ok());
        }
    }

    /// Leaves it in a file, as JSON: what `REPORT` asks for in socket mode.
    pub fn write(&self, file: &Path) -> Result<(), EndpointError> {
        fs::write(file, serde_json::to_vec(self)?).map_err(EndpointError::file(file))
    }

    /// Reads such a file.
    pub fn read(file: &Path) -> Result<Self, EndpointError> {
        let text = fs::read(file).map_err(EndpointError::file(file))?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// The first message to a proxy: in virtual time the JSON of HELLO, in socket mode its standard
/// input (`endpoints/contract/middleboxes.md`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyHello {
    /// The version of the contract.
    pub contract: u32,
    /// `proxy`.
    pub role: String,
    /// `terminal` or `gateway`.
    pub place: String,
    /// Names and values; a proxy exits with 127 if it does not know one.
    pub options: BTreeMap<String, String>,
    /// 64 bits in hexadecimal, from which all randomness comes in virtual time.
    pub seed: String,
    /// The wall-clock time of time 0, in seconds since 1970; of no meaning in socket mode.
    pub epoch_unix_s: u64,
    /// The source address of datagrams on the client side, which in virtual time do not carry it;
    /// `None` in socket mode.
    pub previous_hop: Option<String>,
    /// The address on which it accepts connections.
    pub listen: String,
    /// The address from which it opens connections.
    pub local: String,
    /// The address to which it opens connections: the next proxy, or the server.
    pub next_hop: String,
    /// The ends of its tunnel, of a proxy that encapsulates IP packets; `None`: of any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<TunnelEnds>,
    /// The server name that clients will ask for.
    pub server_name: String,
    /// The application protocols that clients will offer.
    pub alpn: Vec<String>,
    /// The folder with `ca.pem`, `cert.pem` and `priv.key`.
    pub certs: PathBuf,
    /// The file for the TLS secrets of the connections that it opens, in NSS key log format.
    pub keylog: Option<PathBuf>,
    /// The folder for qlog files.
    pub qlog: Option<PathBuf>,
    /// The memory for bodies of messages in virtual time; `None`: all go through the pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory: Option<SharedMemory>,
}

/// The addresses between which packets are inside others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelEnds {
    /// That of this end.
    pub local: String,
    /// That of the other end.
    pub remote: String,
}

/// The last message of a proxy: in virtual time the JSON of BYE, in socket mode its last line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyBye {
    /// Its version; in virtual time READY has said it already.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The error that occurred, if one did that matters.
    pub error: Option<String>,
    /// The statistics that it reports of itself; absent: none.
    #[serde(default, skip_serializing_if = "Statistics::is_empty")]
    pub statistics: Statistics,
}

/// The outcome of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestReport {
    /// The path, with its leading slash.
    pub path: String,
    /// In `page` and `live` when it was asked for, in `frames` when it was made, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_ns: Option<u64>,
    /// Bytes of the reply received so far.
    pub bytes: u64,
    /// The time at which the first of them came, in nanoseconds.
    pub first_byte_ns: Option<u64>,
    /// The time at which the last of them came, in nanoseconds.
    pub last_byte_ns: Option<u64>,
}
