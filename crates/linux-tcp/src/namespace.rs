//! Settings of a network namespace.

use std::env;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use bentpipe_endpoint::{EndpointError, Options};

const SETTINGS: &str = "/proc/sys/net";
/// Set by who made the network namespace for this trial (`endpoints/contract/socket-mode.md`).
const OWN_NAMESPACE: &str = "BENTPIPE_OWN_NAMESPACE";
/// Bytes that [`NamespaceSettings::window`] takes.
pub const WINDOWS: RangeInclusive<u64> = 131_072..=1 << 30;
/// Bytes that [`NamespaceSettings::receive_buffer`] takes.
const RECEIVE_BUFFERS: RangeInclusive<u64> = 16_384..=1 << 30;
/// The smallest buffers, and those with which connections begin, in bytes (`tcp_rmem` and
/// `tcp_wmem` of `Documentation/networking/ip-sysctl.rst`).
const LEAST: u64 = 4096;
const FIRST_RECEIVE: u64 = 131_072;
const FIRST_SEND: u64 = 16_384;
/// The largest buffer of a receiver, in bytes.
const MOST_RECEIVE: u64 = 33_554_432;

const DEFAULTS: [(&str, &str); 26] = [
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
    // `Documentation/networking/mptcp-sysctl.rst`; kernels without MPTCP have none of them.
    ("mptcp/enabled", "1"),
    ("mptcp/add_addr_timeout", "120"),
    ("mptcp/allow_join_initial_addr_port", "1"),
    ("mptcp/blackhole_timeout", "3600"),
    ("mptcp/checksum_enabled", "0"),
    ("mptcp/scheduler", "default"),
    ("mptcp/stale_loss_cnt", "4"),
];

/// The settings of a network namespace: defaults, and then changes.
#[derive(Debug)]
pub struct NamespaceSettings {
    is_own: bool,
    changes: Vec<(&'static str, String)>,
    initial_window: Option<u32>,
    /// The largest buffer of a receiver, in bytes.
    most_receive: u64,
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
            most_receive: MOST_RECEIVE,
        }
    }

    /// Whether the namespace is the trial's own.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// Changes one. It is not supported where the namespace is not the trial's own.
    pub fn change(&mut self, name: &'static str, value: String) -> Result<(), EndpointError> {
        self.check(name)?;
        self.changes.push((name, value));
        Ok(())
    }

    /// Changes the largest buffers of a sender and of a receiver, in bytes.
    pub fn window(&mut self, sender: u64, receiver: u64) -> Result<(), EndpointError> {
        self.receive_buffers(FIRST_RECEIVE, receiver)?;
        self.change("ipv4/tcp_wmem", format!("{LEAST} {FIRST_SEND} {sender}"))?;
        self.most_receive = receiver;
        Ok(())
    }

    /// Takes the option `rmem`: changes the buffer with which a receiver begins, in bytes, the
    /// middle value of `tcp_rmem`. Half of it is the first window that a connection offers. What
    /// [`NamespaceSettings::window`] takes comes before, as no buffer is larger than the largest.
    pub fn receive_buffer(&mut self, options: &mut Options) -> Result<(), EndpointError> {
        let Some(bytes) = options.take_number("rmem", RECEIVE_BUFFERS)? else {
            return Ok(());
        };
        let most = self.most_receive;
        if bytes > most {
            let problem =
                format!("write no more than the largest buffer, {most} bytes, which window sets");
            return Err(EndpointError::option("rmem", &bytes.to_string(), &problem));
        }
        self.receive_buffers(bytes, most)
    }

    fn receive_buffers(&mut self, first: u64, most: u64) -> Result<(), EndpointError> {
        self.change("ipv4/tcp_rmem", format!("{LEAST} {first} {most}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(window: Option<u64>, rmem: &str) -> Result<String, String> {
        let mut settings = NamespaceSettings {
            is_own: true,
            ..NamespaceSettings::new()
        };
        let mut options = Options::parse(&format!("rmem={rmem}")).expect("a pair");
        if let Some(window) = window {
            settings.window(window, window).expect("its own namespace");
        }
        let done = settings.receive_buffer(&mut options);
        done.map_err(|error| error.to_string())?;
        let (name, value) = settings.changes.pop().expect("a change");
        assert_eq!(name, "ipv4/tcp_rmem");
        Ok(value)
    }

    #[test]
    fn a_receiver_begins_with_the_buffer_that_is_asked_for() {
        let changed = |window, rmem| changed(window, rmem).expect("a buffer that there can be");
        assert_eq!(changed(None, "1048576"), "4096 1048576 33554432");
        assert_eq!(changed(Some(2_000_000), "2000000"), "4096 2000000 2000000");
    }

    #[test]
    fn no_buffer_begins_larger_than_the_largest() {
        for (window, rmem, says) in [
            (
                None,
                "33554433",
                "no more than the largest buffer, 33554432 bytes",
            ),
            (Some(200_000), "200001", "the largest buffer, 200000 bytes"),
            (None, "16383", "write a whole number from 16384"),
            (None, "large", "write a whole number from 16384"),
        ] {
            let error = changed(window, rmem).expect_err(says);
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_foreign_namespace_is_left_alone() {
        let mut settings = NamespaceSettings {
            is_own: false,
            ..NamespaceSettings::new()
        };
        let mut options = Options::parse("rmem=1048576").expect("a pair");
        let error = settings.receive_buffer(&mut options).expect_err("foreign");
        assert!(error.to_string().contains("outside of"), "{error}");
    }
}
