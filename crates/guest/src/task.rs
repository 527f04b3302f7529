//! What goes into a guest and what comes out: files in a folder that both sides see.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use bentpipe_endpoint::EndpointError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The file of the task.
pub const TASK: &str = "task.json";
/// The file of the version that the program gives itself.
pub const VERSION: &str = "version";
/// The file of the last line that the program printed, if it was waited for.
pub const LAST_LINE: &str = "last-line";
/// The file of the report.
pub const REPORT: &str = "report.json";
/// The folder that the program stores in.
pub const DOWNLOADS: &str = "downloads";
/// The folder for its qlog.
pub const QLOG: &str = "qlog";
/// The file for its TLS secrets.
pub const KEYLOG: &str = "keys";

/// The part that a guest's program plays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// It begins.
    Client,
    /// It is waited for before time zero.
    Server,
    /// So is it. It stands between a client and a server, and is told more on its standard input.
    Proxy {
        /// What it is told.
        hello: String,
        /// The client's address, to which its first device leads.
        client: IpAddr,
    },
}

/// A guest's task: the program that it is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its part.
    pub part: Part,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// All its environment.
    pub environment: BTreeMap<String, String>,
    /// The guest's address; a proxy's, which has none, is that of the server.
    pub local: IpAddr,
    /// The wall-clock time of time zero.
    pub epoch_unix_s: u64,
}

/// A guest's report: how its program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// When it ended, in nanoseconds since time zero; none if that was before.
    pub ended_ns: Option<u64>,
}

/// Writes a value as JSON.
pub fn write(path: &Path, value: &impl Serialize) -> Result<(), EndpointError> {
    fs::write(path, serde_json::to_vec(value)?).map_err(EndpointError::file(path))
}

/// Reads a value; none if there is no such file.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, EndpointError> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read(path).map_err(EndpointError::file(path))?;
    Ok(Some(serde_json::from_slice(&text)?))
}
