//! Settings of a network namespace.

use std::env;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use bentpipe_endpoint::EndpointError;

const SETTINGS: &str = "/proc/sys/net";
/// Set by who made the network namespace for this trial (`endpoints/contract/socket-mode.md`).
const OWN_NAMESPACE: &str = "BENTPIPE_OWN_NAMESPACE";
/// Bytes that [`NamespaceSettings::window`] takes.
pub const WINDOWS: RangeInclusive<u64> = 131_072..=1 << 30;

const DEFAULTS: [(&str, &str); 19] = [
    // These two are no defaults: thousands of connections may come at once, and none shall be asked
    // to send its SYN again.
    ("core/somaxconn", "65535"),
    ("ipv4/tcp_max_syn_backlog", "65535"),
    ("ipv4/tcp_rmem", "4096 131072 33554432"),
    ("ipv4/tcp_wmem", "4096 16384 4194304"),
    ("ipv4/tcp_moderate_rcvbuf", "1"),
    ("ipv4/tcp_window_scaling", "1"),
    ("ipv4/tcp_sack", "1"),
    ("ipv4/tcp_dsack", "1"),
    ("ipv4/tcp_timestamps", "1"),
    ("ipv4/tcp_ecn", "2"),
    ("ipv4/tcp_fastopen", "1"),
    ("ipv4/tcp_recovery", "1"),
    ("ipv4/tcp_early_retrans", "3"),
    ("ipv4/tcp_slow_start_after_idle", "1"),
    ("ipv4/tcp_no_metrics_save", "0"),
    ("ipv4/tcp_mtu_probing", "0"),
    ("ipv4/tcp_pacing_ss_ratio", "200"),
    ("ipv4/tcp_pacing_ca_ratio", "120"),
    ("ipv4/tcp_syn_retries", "6"),
];

/// The settings of a network namespace: defaults, and then changes.
#[derive(Debug)]
pub struct NamespaceSettings {
    is_own: bool,
    changes: Vec<(&'static str, String)>,
    initial_window: Option<u32>,
}

impl NamespaceSettings {
    /// The settings that Linux documents, if the environment says that the namespace is the trial's
    /// own; else none.
    #[must_use]
    pub fn new() -> Self {
        Self {
            is_own: env::var_os(OWN_NAMESPACE).is_some_and(|it| it == "1"),
            changes: Vec::new(),
            initial_window: None,
        }
    }

    /// Changes one. It is not supported where the namespace is not the trial's own.
    pub fn change(&mut self, name: &'static str, value: String) -> Result<(), EndpointError> {
        self.check(name)?;
        self.changes.push((name, value));
        Ok(())
    }

    /// Changes the largest buffers of a sender and of a receiver, in bytes.
    pub fn window(&mut self, sender: u64, receiver: u64) -> Result<(), EndpointError> {
        self.change("ipv4/tcp_rmem", format!("4096 131072 {receiver}"))?;
        self.change("ipv4/tcp_wmem", format!("4096 16384 {sender}"))
    }

    /// Lets SYNs carry data (RFC 7413): of clients, and to all sockets that listen. No cookies are
    /// asked for, as if clients had been here before.
    pub fn fast_open(&mut self) -> Result<(), EndpointError> {
        let (client, server, without_cookie, take_without_cookie, all) = (1, 2, 4, 0x200, 0x400);
        let bits = client | server | without_cookie | take_without_cookie | all;
        self.change("ipv4/tcp_fastopen", bits.to_string())
    }

    /// Whether it may be changed at all.
    pub fn check(&self, what: &str) -> Result<(), EndpointError> {
        if self.is_own {
            return Ok(());
        }
        let what = format!("{what} outside of a network namespace of the trial's own");
        Err(EndpointError::Unsupported(what))
    }

    /// Lets all connections begin with a window of `packets` packets.
    pub fn initial_window(&mut self, packets: u32) -> Result<(), EndpointError> {
        self.check("iw")?;
        self.initial_window = Some(packets);
        Ok(())
    }

    /// Writes them, if the namespace is the trial's own.
    pub fn apply(&self) -> Result<(), EndpointError> {
        if !self.is_own {
            return Ok(());
        }
        let defaults = DEFAULTS.iter().copied();
        let changes = self
            .changes
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        for (name, value) in defaults.chain(changes) {
            set(name, value)?;
        }
        let Some(packets) = self.initial_window else {
            return Ok(());
        };
        bentpipe_netlink::Netlink::open()
            .and_then(|mut netlink| netlink.set_initial_window(None, packets))
            .map(drop)
            .map_err(EndpointError::io("setting the initial window of routes"))
    }
}

impl Default for NamespaceSettings {
    fn default() -> Self {
        Self::new()
    }
}

/// A kernel that does not have a setting has nothing to set.
fn set(name: &str, value: &str) -> Result<(), EndpointError> {
    let path = Path::new(SETTINGS).join(name);
    if !path.exists() {
        return Ok(());
    }
    fs::write(&path, value).map_err(EndpointError::file(path))
}
