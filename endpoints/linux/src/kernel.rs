//! What of the kernel's TCP is set: per socket where that can be, else for the network namespace.
//!
//! A trial has namespaces of its own. There settings that results depend on get the values that Linux
//! documents as its defaults (`Documentation/networking/ip-sysctl.rst`, 6.16 and newer), whatever the
//! machine has, and then those that options ask for. Elsewhere nothing is touched, and options
//! that would need it are refused.

use std::env;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use bentpipe_endpoint::{EndpointError, Options};
use rustix::fd::OwnedFd;
use rustix::net::sockopt::{set_socket_reuseaddr, set_tcp_congestion, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with};

const SETTINGS: &str = "/proc/sys/net";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
/// What only a guest's kernel has.
pub const GUEST: &str = "/sys/module/ttnet";
/// Set by who made the network namespace for this trial (contract, section 3).
const OWN_NAMESPACE: &str = "BENTPIPE_OWN_NAMESPACE";
/// Connections that wait to be accepted, with those whose handshake is under way. The kernel takes no
/// more than `somaxconn`.
const BACKLOG: i32 = 65_535;

const DEFAULTS: [(&str, &str); 18] = [
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
    ("ipv4/tcp_recovery", "1"),
    ("ipv4/tcp_early_retrans", "3"),
    ("ipv4/tcp_slow_start_after_idle", "1"),
    ("ipv4/tcp_no_metrics_save", "0"),
    ("ipv4/tcp_mtu_probing", "0"),
    ("ipv4/tcp_pacing_ss_ratio", "200"),
    ("ipv4/tcp_pacing_ca_ratio", "120"),
    ("ipv4/tcp_syn_retries", "6"),
];

/// The variant of the kernel's TCP that options ask for.
pub struct Kernel {
    congestion: String,
    /// Of the namespace, in the order in which they are written.
    settings: Vec<(&'static str, String)>,
}

impl Kernel {
    /// Takes the options.
    pub fn take(options: &mut Options) -> Result<Self, EndpointError> {
        let congestion = congestion(options.take("cc").as_deref().unwrap_or("cubic"))?;
        let mut changes = Vec::new();
        if let Some(window) = options.take_number("window", 131_072..=1 << 30)? {
            changes.push(("ipv4/tcp_rmem", format!("4096 131072 {window}")));
            changes.push(("ipv4/tcp_wmem", format!("4096 16384 {window}")));
        }
        for (option, setting, [on, off]) in [
            ("sack", "ipv4/tcp_sack", ["1", "0"]),
            ("timestamps", "ipv4/tcp_timestamps", ["1", "0"]),
            ("ecn", "ipv4/tcp_ecn", ["1", "0"]),
        ] {
            match options.take(option).as_deref() {
                None => {}
                Some("on") => changes.push((setting, on.to_owned())),
                Some("off") => changes.push((setting, off.to_owned())),
                Some(other) => {
                    let what = format!("option {option} = {other:?}: write on or off");
                    return Err(EndpointError::Unsupported(what));
                }
            }
        }
        let is_own = env::var_os(OWN_NAMESPACE).is_some_and(|it| it == "1");
        if let (false, Some((name, _))) = (is_own, changes.first()) {
            let what = format!("{name} outside of a network namespace of the trial's own");
            return Err(EndpointError::Unsupported(what));
        }
        let defaults = DEFAULTS.map(|(name, value)| (name, value.to_owned()));
        let settings = defaults.into_iter().chain(changes);
        Ok(Self {
            congestion,
            settings: settings.filter(|_| is_own).collect(),
        })
    }

    /// Sets up the network namespace, if it is the trial's own.
    pub fn apply(&self) -> Result<(), EndpointError> {
        let mut settings = self.settings.iter();
        settings.try_for_each(|(name, value)| set(name, value))
    }

    /// A connection to `remote`.
    pub fn connect(&self, remote: SocketAddr) -> Result<TcpStream, EndpointError> {
        let socket = self.socket(remote)?;
        connect(&socket, &remote).map_err(failed("connecting"))?;
        let stream = TcpStream::from(socket);
        stream
            .set_nodelay(true)
            .map_err(EndpointError::io("connecting"))?;
        Ok(stream)
    }

    /// What accepts connections to `local`.
    pub fn listen(&self, local: SocketAddr) -> Result<TcpListener, EndpointError> {
        let socket = self.socket(local)?;
        set_socket_reuseaddr(&socket, true).map_err(failed("listening"))?;
        set_tcp_nodelay(&socket, true).map_err(failed("listening"))?;
        bind(&socket, &local).map_err(failed("listening"))?;
        listen(&socket, BACKLOG).map_err(failed("listening"))?;
        Ok(TcpListener::from(socket))
    }

    fn socket(&self, address: SocketAddr) -> Result<OwnedFd, EndpointError> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(failed("making a socket"))?;
        set_tcp_congestion(&socket, &self.congestion)
            .map_err(failed("choosing the congestion control"))?;
        Ok(socket)
    }
}

fn failed(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> EndpointError {
    move |error| EndpointError::Io {
        what,
        source: error.into(),
    }
}

/// The kernel's name of a congestion control. Where it is missing, the error names those that are
/// there.
fn congestion(name: &str) -> Result<String, EndpointError> {
    let wanted = if name == "newreno" { "reno" } else { name };
    let available = fs::read_to_string(AVAILABLE).map_err(EndpointError::file(AVAILABLE))?;
    if available.split_whitespace().any(|it| it == wanted) {
        return Ok(wanted.to_owned());
    }
    let there = available
        .trim()
        .replace("reno", "newreno")
        .replace(' ', ", ");
    let hint = if Path::new(GUEST).exists() {
        "guest/kernel.config names those of guests".to_owned()
    } else {
        format!("sudo modprobe tcp_{wanted} loads one more")
    };
    Err(EndpointError::Unsupported(format!(
        "option cc = {name:?}: this kernel has {there} (hint: {hint})"
    )))
}

/// A kernel that does not have a setting has nothing to set.
fn set(name: &str, value: &str) -> Result<(), EndpointError> {
    let path = Path::new(SETTINGS).join(name);
    if !path.exists() {
        return Ok(());
    }
    fs::write(&path, value).map_err(EndpointError::file(path))
}

/// The version of the kernel, and of what does TLS.
pub fn version() -> String {
    let release = fs::read_to_string(RELEASE).unwrap_or_default();
    format!(
        "Linux {}, rustls {}",
        release.trim(),
        env!("RUSTLS_VERSION")
    )
}
