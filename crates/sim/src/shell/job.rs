//! The job of `bentpipe-sim shell`, as JSON.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bentpipe_endpoint::contract::{CONTRACT, Hello, hq_interop};
use bentpipe_link::{HostName, Scenario};
use bentpipe_trial::{EPOCH_UNIX_S, Network, Role, Seed, address};
use bentpipe_wire::IpVersion;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::programs::seed_of;

/// The job of a shell: two commands, and what lies between them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellJob {
    /// The path, resolved.
    pub scenario: Scenario,
    /// The version of IP that both guests have.
    #[serde(deserialize_with = "ip_version")]
    pub ip: IpVersion,
    /// 64 bits in hexadecimal.
    pub seed: Seed,
    /// The program `bentpipe-guest`.
    pub guest: PathBuf,
    /// The kernel of guests.
    pub kernel: PathBuf,
    /// Memory of a guest, in MiB.
    pub memory_mib: u32,
    /// The folder in which both commands run, and may write.
    pub folder: PathBuf,
    /// The command line of the server, for a shell.
    pub server: String,
    /// The client's program and its arguments.
    pub command: Vec<String>,
    /// Leave a trace in this file.
    pub trace: Option<PathBuf>,
    /// Wall time after which a guest that computes is given up.
    pub silence_s: u64,
}

fn ip_version<'de, D: Deserializer<'de>>(value: D) -> Result<IpVersion, D::Error> {
    u8::deserialize(value)?.try_into().map_err(D::Error::custom)
}

impl ShellJob {
    /// Wall time that a guest may be silent.
    pub fn silence(&self) -> Duration {
        Duration::from_secs(self.silence_s)
    }

    /// The command that starts a guest.
    pub fn guest_of(&self, host: HostName) -> Vec<String> {
        let text = |path: &PathBuf| path.display().to_string();
        let memory = self.memory_mib.to_string();
        let own = match host {
            HostName::Client => self.command.clone(),
            _ => ["/bin/sh", "-c", &self.server].map(str::to_owned).to_vec(),
        };
        let words = [text(&self.guest), text(&self.kernel)];
        let options = ["--memory", &memory, "--folder", &text(&self.folder), "--"];
        let options = options.map(str::to_owned);
        words.into_iter().chain(options).chain(own).collect()
    }

    /// The addresses of the client and of the server. Their ports are of no meaning.
    pub fn ends(&self) -> [SocketAddr; 2] {
        let at = |network, port| SocketAddr::new(address(self.ip, network, 1), port);
        [at(Network::Access, 50_000), at(Network::Ground, 443)]
    }

    /// The HELLO of a guest.
    pub fn hello(&self, role: Role) -> Hello {
        let [client, server] = self.ends();
        let (local, remote) = match role {
            Role::Client => (client, server),
            Role::Server => (server, client),
        };
        Hello {
            contract: CONTRACT,
            role: role.name().to_owned(),
            testcase: String::new(),
            requests: Vec::new(),
            options: std::collections::BTreeMap::new(),
            seed: format!("{:016x}", seed_of(self.seed.0, 0, role.name())),
            epoch_unix_s: EPOCH_UNIX_S,
            local: local.to_string(),
            remote: remote.to_string(),
            www: None,
            downloads: None,
            certs: PathBuf::new(),
            keylog: None,
            qlog: None,
            alpn: hq_interop(),
            page: Vec::new(),
            live: None,
            frames: None,
            shared_memory: None,
            paths: Vec::new(),
        }
    }
}
