//! The configuration of a proxy: one TOML file, flags that change what it says, or flags alone.
//!
//! [`ProxyFile`] is what may be written; every key has a default but who may come.

use std::net::SocketAddr;
use std::path::PathBuf;

use bentpipe_connections::steering::MOST_WORKERS;
use bentpipe_connections::tls::Certificate;
use bentpipe_masque::{AddressSet, Pool, Prefix};
use bentpipe_service::settings::{
    LogSettings, MetricsSettings, Options, Problem, SettingsFile, time, within, wrong,
};
use bentpipe_units::{Size, Span};
use serde::{Deserialize, Serialize};

use crate::program::allow::Rule;
use crate::program::{device, tunnel};

/// The settings: everything that a configuration file may say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProxyFile {
    /// Where clients connect to.
    pub listen: Vec<SocketAddr>,
    /// Threads, each with a separate socket; 0: as many as the machine has cores for the program.
    pub workers: usize,
    pub certificate: Vec<Certificate>,
    pub clients: Clients,
    pub targets: Targets,
    pub ip: Ip,
    /// The options of the tunnel: its congestion control, in the words of the noq endpoint's
    /// variants, and how datagrams are carried.
    pub tunnel: Options,
    pub limits: Limits,
    pub times: Times,
    pub metrics: MetricsSettings,
    pub log: LogSettings,
}

/// The clients that may come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Clients {
    /// Only clients that show a certificate which this signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Only clients that show one of the tokens of this file, one a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<PathBuf>,
    /// Everybody who reaches the proxy may use it.
    pub anybody: bool,
}

/// The targets that clients may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Targets {
    pub allow: Vec<Rule>,
}

/// The IP packets that the proxy carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ip {
    /// The addresses for clients, of which each gets its own; none: it carries UDP alone.
    pub pool: Vec<Prefix>,
    /// The TUN device by which packets leave and come.
    pub device: String,
}

/// The limits of all connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Connections of clients at once, over all workers.
    pub connections: u32,
    /// Connections of one client address at once.
    pub connections_per_client: u32,
    /// Requests of a connection at once, each with a socket.
    pub requests: u32,
    /// Requests for IP of one client address at once, each with addresses of the pool.
    pub ip_requests_per_client: u32,
    /// Bytes of a connection's datagrams, or of a request's capsules, that wait for congestion
    /// control.
    pub queue: Size,
    /// Bytes of a connection's streams that wait behind a gap, or to be taken.
    pub stream_buffer: Size,
}

/// The times after which something is given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Times {
    /// A request without datagrams for so long is ended.
    pub idle: Span,
    /// After SIGTERM: how long requests may go on.
    pub drain: Span,
}

impl SettingsFile for ProxyFile {
    const EXAMPLE: &'static str = "examples/masque.toml";
    const CHECK: &'static str = "bentpipe masque proxy --check";

    fn check(&self) -> Result<(), Problem> {
        self.check_clients()
            .and_then(|()| self.check_targets())
            .and_then(|()| self.check_ip())
            .and_then(|()| self.check_ranges())
    }

    fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let single = [&mut self.clients.ca, &mut self.clients.tokens];
        let pairs = self.certificate.iter_mut();
        let pairs = pairs.flat_map(|it| [&mut it.chain, &mut it.key]);
        single.into_iter().flatten().chain(pairs)
    }
}

impl ProxyFile {
    fn check_clients(&self) -> Result<(), Problem> {
        let clients = &self.clients;
        let is_asked = clients.ca.is_some() || clients.tokens.is_some();
        if !is_asked && !clients.anybody {
            let hint = "name a file of tokens with clients.tokens (--tokens), or an authority \
                        with clients.ca (--client-ca); clients.anybody = true (--anybody) opens \
                        the proxy to everybody who reaches it";
            return wrong("clients: it is not said who may come", hint);
        }
        if is_asked && clients.anybody {
            let hint = "leave out clients.anybody, or clients.tokens and clients.ca";
            return wrong(
                "clients.anybody = true, but clients are asked who they are",
                hint,
            );
        }
        Ok(())
    }

    fn check_targets(&self) -> Result<(), Problem> {
        if self.targets.allow.is_empty() {
            let hint = "write what clients may reach, as in allow = [\"public:443\"] (--allow)";
            return wrong("targets.allow = []: there is no target", hint);
        }
        if self.listen.is_empty() {
            let hint = "write where clients connect to, as in listen = [\"[::]:443\"]";
            return wrong("listen = []: there is no address", hint);
        }
        Ok(())
    }

    fn check_ip(&self) -> Result<(), Problem> {
        device::check_name("ip.device", &self.ip.device)?;
        if let Err(error) = Pool::new(&self.ip.pool) {
            let hint = "write networks that are yours, as in pool = [\"10.9.0.0/24\", \
                        \"fd00:9::/64\"] (--ip-pool); the first address of each is the proxy's";
            return wrong(format!("ip.pool: {error}"), hint);
        }
        let unroutable = AddressSet::unroutable();
        let of_no_network = |it: &&Prefix| {
            let common = AddressSet::of(&[**it]).common(&unroutable);
            !common.is_empty()
        };
        if let Some(prefix) = self.ip.pool.iter().find(of_no_network) {
            let what = format!(
                "ip.pool: {prefix} has loopback, link-local, multicast or reserved addresses, \
                 which no client takes"
            );
            let hint = "write networks that are yours, as in pool = [\"10.9.0.0/24\", \
                        \"fd00:9::/64\"] (--ip-pool)";
            return wrong(what, hint);
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), Problem> {
        let limits = &self.limits;
        within("workers", self.workers as u64, 0..=MOST_WORKERS as u64)?;
        for (key, value) in [
            ("limits.connections", limits.connections),
            (
                "limits.connections-per-client",
                limits.connections_per_client,
            ),
            (
                "limits.ip-requests-per-client",
                limits.ip_requests_per_client,
            ),
        ] {
            within(key, value.into(), 1..=1_000_000)?;
        }
        within("limits.requests", limits.requests.into(), 1..=65_535)?;
        let sizes = [
            ("limits.queue", limits.queue),
            ("limits.stream-buffer", limits.stream_buffer),
        ];
        tunnel::check(&self.tunnel, &sizes)?;
        time("times.idle", self.times.idle)?;
        time("times.drain", self.times.drain)
    }
}

impl Default for ProxyFile {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 4433))],
            workers: 0,
            certificate: Vec::new(),
            clients: Clients::default(),
            targets: Targets::default(),
            ip: Ip::default(),
            tunnel: Options::new(),
            limits: Limits::default(),
            times: Times::default(),
            metrics: MetricsSettings::default(),
            log: LogSettings::default(),
        }
    }
}

impl Default for Targets {
    fn default() -> Self {
        let rule = "public:*".parse().expect("it is one");
        Self { allow: vec![rule] }
    }
}

impl Default for Ip {
    fn default() -> Self {
        Self {
            pool: Vec::new(),
            device: "masque0".to_owned(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1000,
            connections_per_client: 100,
            requests: 100,
            ip_requests_per_client: 10,
            queue: Size::from_bytes(1 << 20),
            stream_buffer: Size::from_bytes(8 << 20),
        }
    }
}

impl Default for Times {
    fn default() -> Self {
        Self {
            idle: Span::from_secs(120),
            drain: Span::from_secs(30),
        }
    }
}
