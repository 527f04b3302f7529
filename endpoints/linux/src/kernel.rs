//! The kernel's TCP as options ask for it.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};

use bentpipe_endpoint::{EndpointError, Options};
use bentpipe_linux_tcp::{NamespaceSettings, SocketKind, WINDOWS, congestion_control};
use rustix::net::connect;

const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// The variant of the kernel's TCP that options ask for.
pub struct Kernel {
    sockets: SocketKind,
    settings: NamespaceSettings,
}

impl Kernel {
    /// Takes the options.
    pub fn take(options: &mut Options) -> Result<Self, EndpointError> {
        let congestion = congestion_control(options.take("cc").as_deref().unwrap_or("cubic"))?;
        let mut settings = NamespaceSettings::new();
        if let Some(window) = options.take_number("window", WINDOWS)? {
            settings.window(window, window)?;
        }
        if let Some(packets) = options.take_number("iw", 1..=1000)? {
            settings.initial_window(u32::try_from(packets).expect("it is small"))?;
        }
        for (option, setting) in [
            ("sack", "ipv4/tcp_sack"),
            ("timestamps", "ipv4/tcp_timestamps"),
            ("ecn", "ipv4/tcp_ecn"),
        ] {
            let value = match options.take(option).as_deref() {
                None => continue,
                Some("on") => "1",
                Some("off") => "0",
                Some(other) => {
                    let what = format!("option {option} = {other:?}: write on or off");
                    return Err(EndpointError::Unsupported(what));
                }
            };
            settings.change(setting, value.to_owned())?;
        }
        Ok(Self {
            sockets: SocketKind {
                congestion,
                transparent: false,
                nonblocking: false,
            },
            settings,
        })
    }

    /// Sets up the network namespace, if it is the trial's own.
    pub fn apply(&self) -> Result<(), EndpointError> {
        self.settings.apply()
    }

    /// A connection to `remote`.
    pub fn connect(&self, remote: SocketAddr) -> Result<TcpStream, EndpointError> {
        let socket = self.sockets.make(remote)?;
        connect(&socket, &remote).map_err(|error| EndpointError::Io {
            what: "connecting",
            source: error.into(),
        })?;
        Ok(TcpStream::from(socket))
    }

    /// What accepts connections to `local`.
    pub fn listen(&self, local: SocketAddr) -> Result<TcpListener, EndpointError> {
        self.sockets.listen(local).map(TcpListener::from)
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
