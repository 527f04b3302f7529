//! The kernel's TCP as options ask for it.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use bentpipe_endpoint::{EndpointError, Options, Role};
use bentpipe_linux_tcp::{
    Mptcp, NamespaceSettings, SocketKind, UNBOUNDED, WINDOWS, congestion_control,
};
use rustix::net::{bind, connect};

use crate::multipath;

const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// The variant of the kernel's TCP that options ask for.
pub struct Kernel {
    sockets: SocketKind,
    settings: NamespaceSettings,
    mptcp: Option<Mptcp>,
    is_tls: bool,
    record: Option<usize>,
}

/// Bytes of the head of a TLS record (RFC 8446, section 5.1).
const RECORD_HEAD: usize = 5;
/// Bytes that the largest TLS record holds (RFC 8446, section 5.1).
const MOST_RECORD: usize = 1 << 14;
/// Bytes of the smallest that can be asked for: its head is a small part of it then.
const LEAST_RECORD: usize = 512;

impl Kernel {
    /// Takes the options of a client or a server.
    pub fn take(options: &mut Options, role: Role) -> Result<Self, EndpointError> {
        let congestion = congestion_control(options.take("cc").as_deref().unwrap_or("cubic"))?;
        let mut settings = NamespaceSettings::new();
        if let Some(window) = options.take_number("window", WINDOWS)? {
            settings.window(window, window)?;
        }
        settings.receive_buffer(options)?;
        if let Some(packets) = options.take_number("iw", 1..=1000)? {
            settings.initial_window(packets)?;
        }
        for (option, setting) in [
            ("sack", "ipv4/tcp_sack"),
            ("timestamps", "ipv4/tcp_timestamps"),
            ("ecn", "ipv4/tcp_ecn"),
        ] {
            if let Some(is_on) = options.take_switch(option)? {
                settings.change(setting, u8::from(is_on).to_string())?;
            }
        }
        let fast_open = options.take_switch("fastopen")? == Some(true);
        if fast_open {
            settings.fast_open()?;
        }
        let mptcp = multipath::take(options, role, &mut settings)?;
        let pacing = pacing(options, &congestion)?;
        if pacing.is_some() && mptcp.is_some() {
            let problem = "with mptcp=on the kernel takes no pacing rate; leave one out";
            return Err(EndpointError::option("pacing", "on", problem));
        }
        Ok(Self {
            sockets: SocketKind {
                pacing,
                congestion,
                transparent: false,
                nonblocking: false,
                fast_open,
                multipath: mptcp.is_some(),
            },
            settings,
            mptcp,
            is_tls: options.take_switch("tls")? != Some(false),
            record: options.take_number("record", LEAST_RECORD..=MOST_RECORD)?,
        })
    }

    /// Whether TLS is spoken.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Bytes of the largest TLS record, head included, as rustls counts; none: as it has them, 16
    /// KiB.
    pub fn record(&self) -> Option<usize> {
        self.record.map(|it| it + RECORD_HEAD)
    }

    /// Sets up the network namespace, if it is the trial's own.
    pub fn apply(&self) -> Result<(), EndpointError> {
        self.settings.apply()?;
        match &self.mptcp {
            // Elsewhere connections have one subflow.
            Some(mptcp) if self.settings.is_own() => mptcp.apply(),
            _ => Ok(()),
        }
    }

    /// Its sockets, with calls that do not block.
    pub fn nonblocking(&self) -> SocketKind {
        SocketKind {
            nonblocking: true,
            ..self.sockets.clone()
        }
    }

    /// A connection to `remote`.
    pub fn connect(&self, remote: SocketAddr) -> Result<TcpStream, EndpointError> {
        let socket = self.sockets.make(remote)?;
        if let Some(first) = self.first_address() {
            let local = SocketAddr::new(first, 0);
            bind(&socket, &local).map_err(|error| EndpointError::Io {
                what: "taking the address on the first path",
                source: error.into(),
            })?;
        }
        connect(&socket, &remote).map_err(|error| EndpointError::Io {
            what: "connecting",
            source: error.into(),
        })?;
        Ok(TcpStream::from(socket))
    }

    /// The client's address on the first path, where there are several.
    fn first_address(&self) -> Option<IpAddr> {
        let paths = self.mptcp.as_ref().map(|it| &it.paths)?;
        paths.first().map(|it| it.address)
    }

    /// A listener for connections to `local`.
    pub fn listen(&self, local: SocketAddr) -> Result<TcpListener, EndpointError> {
        self.sockets.listen(local).map(TcpListener::from)
    }
}

/// The bound of pacing.
fn pacing(options: &mut Options, congestion: &str) -> Result<Option<u64>, EndpointError> {
    match options.take_switch("pacing")? {
        Some(false) if congestion == "bbr" => {
            let problem = "bbr paces, and has no way not to";
            Err(EndpointError::option("pacing", "off", problem))
        }
        Some(true) => Ok(Some(UNBOUNDED)),
        _ => Ok(None),
    }
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
