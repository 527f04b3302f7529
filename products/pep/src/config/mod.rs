//! The configuration of a proxy, as its driver gives it.
//!
//! Promises: a [`Config`] that passed its check can be run. Knows the library's transport
//! configuration and TLS; must not know files, command lines or clients.

mod error;
mod options;

pub use error::PepError;
pub use options::{ConfigContext, Place};

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_connections::steering::ConnectionIds;
use bentpipe_noq_options::{RememberedPaths, Report};
use noq_proto::{IdleTimeout, TransportConfig, VarInt};

use bentpipe_service::quota::ConnectionQuota;

use crate::limits::{FIRST_FLIGHT, FlowCredit, Limits, ReceiveWindow};

/// The largest buffer of a stream, in bytes: less than what its pieces are put into order in can
/// hold.
pub(crate) const LARGEST_BUFFER: usize = 1 << 28;

/// The configuration of a proxy.
pub struct Config {
    /// When the client's handshake is completed.
    pub mode: HandshakeMode,
    /// When flows are forwarded untouched; `None`: never.
    pub bypass: Option<BypassRule>,
    /// Where connections go.
    pub next_hop: NextHop,
    /// The transport of the client side.
    pub client: SideConfig,
    /// The transport of the server side.
    pub server: SideConfig,
    /// The TLS of the client side: the certificate that clients are shown.
    ///
    /// Its application protocols are replaced by what the client offers.
    pub client_tls: Arc<rustls::ServerConfig>,
    /// The TLS of the server side: whom the proxy trusts.
    ///
    /// Its application protocols are replaced by what the client offers.
    pub server_tls: Arc<rustls::ClientConfig>,
    /// Limits of connections' resources.
    pub limits: Limits,
    /// The pool of connections for [`HandshakeMode::Warm`].
    pub pool: PoolConfig,
    /// The count of clients' connections, over all proxies that share it.
    pub quota: Arc<ConnectionQuota>,
    /// The maker of the client side's connection IDs; `None`: noq's own.
    pub connection_ids: Option<ConnectionIds>,
    /// Whether all datagrams of a side go to and come from one address each, also those of flows
    /// that are forwarded untouched: they are told from those of connections by connection IDs.
    /// Then the proxy makes those of the client side itself.
    pub one_socket: bool,
}

impl Config {
    /// Refuses what no proxy can be.
    pub(crate) fn check(&self) -> Result<(), PepError> {
        let wrong = |what: &str| Err(PepError::Config(what.into()));
        if let NextHop::ByName(names) = &self.next_hop
            && names.is_empty()
        {
            return wrong("no server name is allowed: name at least one, with its address");
        }
        if self.bypass.is_some() && matches!(self.next_hop, NextHop::ByName(_)) {
            return wrong(
                "stepping aside needs one next hop for all: whose datagrams are forwarded \
                 untouched can ask for another name unseen",
            );
        }
        let limits = &self.limits;
        if limits.stream_buffer > LARGEST_BUFFER {
            return wrong("a stream may wait in 256 MiB at most");
        }
        if limits.connections == 0 || limits.connections_per_client == 0 || limits.streams == 0 {
            return wrong("a limit of 0 connections or streams lets nothing through");
        }
        Ok(())
    }

    /// The address where a client goes that asks for this name; `None`: nowhere.
    pub(crate) fn next_hop(&self, name: Option<&str>) -> Option<SocketAddr> {
        match &self.next_hop {
            NextHop::Fixed(address) => Some(*address),
            NextHop::ByName(names) => names.get(name?).copied(),
        }
    }
}

/// The order of the handshakes: when the client's is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HandshakeMode {
    /// At once, beside the next hop's.
    #[default]
    Parallel,
    /// When the next hop's is complete, with what that chose.
    Sequential,
    /// At once over a connection to the next hop that is ready; without one as
    /// [`HandshakeMode::Sequential`].
    Warm,
}

/// The rule by which flows are forwarded untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BypassRule {
    /// The round-trip time below which a hop needs no proxy: the smallest that is known counts
    /// (`min_rtt` of RFC 9002).
    pub threshold: Duration,
    /// Whether the hop in question is the one of the client side, as at a gateway; else that of the
    /// server side.
    pub of_client_side: bool,
}

/// The next hops: where connections go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextHop {
    /// All to this address.
    Fixed(SocketAddr),
    /// By the server name that the client asks for; others are refused.
    ByName(BTreeMap<String, SocketAddr>),
}

/// The transport of one side.
pub struct SideConfig {
    /// noq's own configuration, apart from what [`Limits`] say.
    pub transport: TransportConfig,
    /// The flow control window that its peers are given.
    pub window: ReceiveWindow,
    /// The paths that are remembered.
    pub peers: RememberedPaths,
    /// The congestion controller's report on the latest path.
    pub report: Option<Report>,
    /// The QUIC version: of the server side the one to connect with, of the client side the only
    /// one to accept; `None`: what noq has.
    pub version: Option<u32>,
}

impl SideConfig {
    /// noq's configuration, with the limits.
    pub(crate) fn transport(&self, limits: &Limits) -> Result<Arc<TransportConfig>, PepError> {
        let mut transport = self.transport.clone();
        let integer = |bytes: u64| VarInt::from_u64(bytes).unwrap_or(VarInt::MAX);
        let credit = FlowCredit::of(self.window, limits);
        if let (ReceiveWindow::Buffers, Some(credit)) = (self.window, credit) {
            transport
                .stream_receive_window(integer(credit.stream))
                .receive_window(integer(credit.connection));
        }
        let idle = IdleTimeout::try_from(limits.idle);
        let idle =
            idle.map_err(|_| PepError::Config("the idle time is too long for QUIC".into()))?;
        transport
            .send_window(limits.connection_buffer as u64)
            .max_idle_timeout(Some(idle))
            .max_concurrent_bidi_streams(limits.streams.min(FIRST_FLIGHT[0]).into())
            .max_concurrent_uni_streams(limits.streams.min(FIRST_FLIGHT[1]).into());
        Ok(Arc::new(transport))
    }
}

/// The connections that are kept ready in [`HandshakeMode::Warm`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// Connections per server name and application protocol.
    pub connections: usize,
    /// The time after which a pair of these that nobody has asked for is no longer kept ready.
    pub expiry: Duration,
    /// The server names and application protocols that are kept ready from the start: others are as
    /// soon as a handshake for them has been completed.
    pub from_start: Vec<(String, Vec<u8>)>,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            connections: 1,
            expiry: Duration::from_mins(10),
            from_start: Vec::new(),
        }
    }
}
