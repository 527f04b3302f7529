//! The input and output of a guest: files in a folder that both sides see.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

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
/// The file of the page that a client is to load.
pub const PAGE: &str = "page.json";
/// The file of the live stream that a client is to play.
pub const LIVE: &str = "live.json";
/// The file of what a client says of its requests.
pub const BYE: &str = "bye.json";
/// The folder that the program stores in.
pub const DOWNLOADS: &str = "downloads";
/// The folder for its qlog.
pub const QLOG: &str = "qlog";
/// The file for its TLS secrets.
pub const KEYLOG: &str = "keys";
/// The files of what a command prints: standard output and standard error.
pub const PRINTED: [&str; 2] = ["stdout", "stderr"];

/// The part that a guest's program plays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// The client, which begins.
    Client,
    /// The server, which is waited for before time zero.
    Server,
    /// A proxy, which is waited for, too. It stands between a client and a server, and reads its
    /// HELLO from standard input.
    Proxy {
        /// Its HELLO.
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
    /// Places in the guest, each with the folder of the host that is there. So a program's own path
    /// and those in its environment are the same wherever its files are: what is in its memory, and
    /// with some stacks their packets, depends on how long these are.
    pub folders: BTreeMap<PathBuf, PathBuf>,
    /// The guest's address; a proxy's, which has none, is that of the server.
    pub local: IpAddr,
    /// The guest's addresses on further paths.
    pub further: Vec<IpAddr>,
    /// The wall-clock time of time zero.
    pub epoch_unix_s: u64,
    /// The surroundings of a command; none for a program that keeps the contract.
    pub surroundings: Option<Surroundings>,
}

impl Task {
    /// The program's path on the host.
    pub fn program(&self) -> PathBuf {
        let named = Path::new(&self.command[0]);
        let outside = |(place, folder): (&PathBuf, &PathBuf)| {
            let rest = named.strip_prefix(place).ok()?;
            Some(folder.join(rest))
        };
        let found = self.folders.iter().find_map(outside);
        found.unwrap_or_else(|| named.to_owned())
    }
}

/// The surroundings of a command, a program that knows nothing of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The name of its host.
    pub host: String,
    /// The contents of `/etc/hosts`.
    pub hosts: String,
    /// Its working directory, in which it may write.
    pub folder: PathBuf,
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

/// A guest's report of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandReport {
    /// Its exit code, as shells say it: that of a signal is above 128.
    pub code: i32,
    /// When it ended, in nanoseconds since time zero; none if it has not lived then.
    pub ended_ns: Option<u64>,
    /// Why it could not be started, or is of no use.
    pub problem: Option<String>,
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
