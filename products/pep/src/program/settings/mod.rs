//! The configuration of the program: one TOML file, flags that change what it says, or flags alone.
//!
//! [`Settings`] is what may be written; every key has a default but the next hop. It is read
//! strictly: an unknown key, a value that makes no sense or two that contradict each other are
//! errors that name the file, the key, the value and what to write instead. Relative paths of a
//! file are relative to its folder.

mod check;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use bentpipe_connections::tls::Certificate;
use bentpipe_service::settings::{
    HostPort, LogSettings, MetricsSettings, Options, Problem, SettingsFile,
};
use bentpipe_units::{Size, Span};
use serde::{Deserialize, Serialize};

pub use values::{Auto, AutoHop, Mode};

/// The settings: everything that a configuration file may say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Where clients, or the proxy before, connect to.
    pub listen: Vec<SocketAddr>,
    /// Threads, each with a separate socket; 0: as many as the machine has cores for the program.
    pub workers: usize,
    pub mode: Mode,
    pub auto: Auto,
    pub auto_hop: AutoHop,
    pub next_hop: NextHop,
    pub certificate: Vec<Certificate>,
    pub clients: Clients,
    /// The options of one side, in the words of the noq endpoint's variants
    /// (`endpoints/noq/README.md`).
    pub client_side: Options,
    pub server_side: Options,
    pub limits: Limits,
    pub times: Times,
    pub metrics: MetricsSettings,
    pub log: LogSettings,
}

/// The server, or the next proxy before it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NextHop {
    /// For all connections, whatever server name they ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<HostPort>,
    /// By server name; other names are refused.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allow: BTreeMap<String, HostPort>,
    /// The authority that signs its certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// `false`: any certificate will do, and so will anybody on the way.
    pub verify: Verify,
    /// The certificate of the proxy where the next hop asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// The key log of the connections to it, for decrypting captures in a laboratory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keylog: Option<PathBuf>,
}

/// The verification of the next hop's certificates: on, unless somebody says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verify(pub bool);

impl Default for Verify {
    fn default() -> Self {
        Self(true)
    }
}

/// The clients that may come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Clients {
    /// Only clients that show a certificate which this signs; absent: anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Takes data in 0-RTT packets. Whoever records these can send them again, and the server, to
    /// which they come over a connection of the proxy's, cannot tell: for applications that bear
    /// it.
    pub early_data: bool,
}

/// The limits of all connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Connections of clients at once, over all workers, with flows that are forwarded untouched.
    pub connections: u32,
    /// Connections of one client address at once.
    pub connections_per_client: u32,
    /// Streams that a client, or a server, may have open at once on a connection, of each kind, if
    /// the other side allows as many.
    pub streams: u32,
    /// The most bytes buffered of one stream and direction.
    pub stream_buffer: Size,
    /// The most bytes buffered of one connection and direction.
    pub connection_buffer: Size,
    /// Connections kept ready in mode `warm`, per server name and protocol, and worker.
    pub warm: u32,
}

/// The times after which something is given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Times {
    /// The idle timeout of a connection, and of a flow that is forwarded untouched.
    pub idle: Span,
    /// A handshake takes so long at most, of either side.
    pub handshake: Span,
    /// How long a peer may leave a gap open in a stream whose buffer is full.
    pub gap: Span,
    /// When one side has closed: how long what it sent may take to reach the other.
    pub linger: Span,
    /// After SIGTERM: how long connections may go on.
    pub drain: Span,
}

impl SettingsFile for Settings {
    const EXAMPLE: &'static str = "examples/pep.toml";
    const CHECK: &'static str = "bentpipe pep --check";

    fn check(&self) -> Result<(), Problem> {
        self.check_all()
    }

    fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let next = &mut self.next_hop;
        let single = [
            &mut next.ca,
            &mut next.certificate,
            &mut next.key,
            &mut next.keylog,
            &mut self.clients.ca,
        ];
        let pairs = self.certificate.iter_mut();
        let pairs = pairs.flat_map(|it| [&mut it.chain, &mut it.key]);
        single.into_iter().flatten().chain(pairs)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 4433))],
            workers: 0,
            mode: Mode::default(),
            auto: Auto::default(),
            auto_hop: AutoHop::default(),
            next_hop: NextHop::default(),
            certificate: Vec::new(),
            clients: Clients::default(),
            client_side: Options::new(),
            server_side: Options::new(),
            limits: Limits::default(),
            times: Times::default(),
            metrics: MetricsSettings::default(),
            log: LogSettings::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_client: 1_000,
            streams: 1_000,
            stream_buffer: Size::from_bytes(32 << 20),
            connection_buffer: Size::from_bytes(64 << 20),
            warm: 1,
        }
    }
}

impl Default for Times {
    fn default() -> Self {
        Self {
            idle: Span::from_secs(60),
            handshake: Span::from_secs(10),
            gap: Span::from_secs(30),
            linger: Span::from_secs(5),
            drain: Span::from_secs(30),
        }
    }
}
