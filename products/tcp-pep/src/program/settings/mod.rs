//! The configuration of the program: one TOML file, flags that change what it says, or flags alone.
//!
//! [`Settings`] is what may be written; every key has a default but where clients come from.

mod check;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use bentpipe_service::settings::{HostPort, LogSettings, MetricsSettings, Problem, SettingsFile};
use bentpipe_units::{Rate, Size, Span};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

pub use check::MOST_WORKERS;

use crate::config::Accept;

/// The settings: everything that a configuration file may say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Where clients connect to, without interception.
    pub listen: Vec<SocketAddr>,
    /// Where all these connections go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_hop: Option<HostPort>,
    /// Threads; 0: as many as the machine has cores for the program.
    pub workers: usize,
    pub accept: Accept,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intercept: Option<Intercept>,
    pub client_side: SideSettings,
    pub server_side: SideSettings,
    pub pool: Pool,
    pub limits: Limits,
    pub times: Times,
    pub metrics: MetricsSettings,
    pub log: LogSettings,
}

/// The connections that are intercepted on their way between two devices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Intercept {
    /// The device by which clients come.
    pub clients: String,
    /// The device by which servers are reached.
    pub servers: String,
    /// The ports of servers.
    pub ports: Vec<u16>,
}

/// The pool of connections between a terminal and its gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pool {
    /// The address at which a terminal's gateway accepts connections of the pool; absent: there is
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<HostPort>,
    /// Connections that are kept ready, of each worker.
    pub connections: u32,
    /// The addresses at which a gateway accepts them.
    pub listen: Vec<SocketAddr>,
    /// From whom.
    pub terminals: Vec<IpAddr>,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            gateway: None,
            connections: 8,
            listen: Vec::new(),
            terminals: Vec::new(),
        }
    }
}

/// The settings of a side: what its connections are like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SideSettings {
    /// The name of the congestion control.
    pub cc: String,
    /// The initial window in packets; absent: the kernel's.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number_or_text"
    )]
    pub iw: Option<u32>,
    /// The most that one connection sends; absent: what its window allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Whether a window is spread over the round trip.
    pub pacing: Pacing,
}

/// A choice: the kernel spreads a window over the round trip, or sends it at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// Spread over the round trip.
    On,
    /// At once, unless `rate` or the congestion control paces.
    #[default]
    Off,
}

/// The limits of all connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Connections of clients at once, over all workers.
    pub connections: u32,
    /// Connections of one client address.
    pub connections_per_client: u32,
    /// The most bytes buffered of one connection and direction.
    pub buffer: Size,
    /// The most bytes buffered of all of them, over all workers.
    pub memory: Size,
}

/// The times after which something is given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Times {
    /// A pair of connections in which nothing moves for so long is reset.
    pub idle: Span,
    /// A connection to the next hop takes so long at most to stand.
    pub handshake: Span,
    /// After SIGTERM: how long connections may go on.
    pub drain: Span,
}

impl SettingsFile for Settings {
    const EXAMPLE: &'static str = "examples/tcp-pep.toml";
    const CHECK: &'static str = "bentpipe tcp-pep --check";

    fn check(&self) -> Result<(), Problem> {
        self.check_all()
    }

    fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        std::iter::empty()
    }
}

impl Default for SideSettings {
    fn default() -> Self {
        Self {
            cc: "cubic".to_owned(),
            iw: None,
            rate: None,
            pacing: Pacing::Off,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_client: 1_000,
            buffer: Size::from_bytes(crate::options::BUFFER_BYTES),
            memory: Size::from_bytes(1 << 30),
        }
    }
}

impl Default for Times {
    fn default() -> Self {
        Self {
            idle: Span::from_secs(3600),
            handshake: Span::from_secs(30),
            drain: Span::from_secs(30),
        }
    }
}

/// A flag has only texts.
fn number_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u32),
        Text(String),
    }
    let hint = "write a number of packets such as 100";
    match Written::deserialize(deserializer).map_err(|_| D::Error::custom(hint))? {
        Written::Number(number) => Ok(Some(number)),
        Written::Text(text) => text
            .parse()
            .map(Some)
            .map_err(|_| D::Error::custom(format!("{text:?}: {hint}"))),
    }
}
