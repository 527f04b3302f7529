//! What a proxy is to be like.

pub mod error;
pub mod options;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_noq_options::{RememberedPaths, Report};
use noq_proto::{ConnectionIdGenerator, IdleTimeout, TransportConfig, VarInt};

use crate::config::error::PepError;
use crate::limits::quota::{Most, Seats};

/// What a proxy is to be like.
pub struct Config {
    /// When the client's handshake is completed.
    pub mode: Mode,
    /// Whether to step aside where a proxy is of no use; `None`: never.
    pub auto: Option<Auto>,
    /// Where connections go.
    pub next_hop: NextHop,
    /// The client side's transport.
    pub client: Hop,
    /// The server side's transport.
    pub server: Hop,
    /// The client side's TLS: the certificate that clients are shown. Its application protocols are replaced by what the client offers.
    pub client_tls: Arc<rustls::ServerConfig>,
    /// The server side's TLS: whom the proxy trusts. Its application protocols are replaced by what the client offers.
    pub server_tls: Arc<rustls::ClientConfig>,
    /// What a connection may use.
    pub limits: Limits,
    /// What is kept ready in [`Mode::Warm`].
    pub warm: Warm,
    /// Connections of clients are counted here, over all proxies that share it.
    pub seats: Arc<Seats>,
    /// Makes the connection IDs of the client side; `None`: noq's own.
    pub connection_ids: Option<ConnectionIds>,
    /// All datagrams of a side go to and come from one address each, also those of flows that are forwarded untouched: they are told from
    /// those of connections by connection IDs. Then the proxy makes those of the client side itself.
    pub one_socket: bool,
}

/// What a stream may hold: less than what its pieces are put into order in can.
pub const LARGEST_BUFFER: usize = 1 << 28;

/// Streams that a peer may open before it is known what the other side allows, bidirectional and unidirectional. Should that be less, what it
/// sends on those that then have to wait is kept beside all else: so they are few, though enough for the control streams of HTTP/3 (RFC 9114,
/// section 6.2) and what a browser asks for at first.
pub(crate) const FIRST_FLIGHT: [u32; 2] = [16, 3];

/// Makes makers of connection IDs.
pub type ConnectionIds = Arc<dyn Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync>;

impl Config {
    /// Refuses what no proxy can be.
    pub(crate) fn check(&self) -> Result<(), PepError> {
        let wrong = |what: &str| Err(PepError::Config(what.into()));
        if let NextHop::ByName(names) = &self.next_hop
            && names.is_empty()
        {
            return wrong("no server name is allowed: name at least one, with its address");
        }
        if self.auto.is_some() && matches!(self.next_hop, NextHop::ByName(_)) {
            return wrong(
                "stepping aside needs one next hop for all: whose datagrams are forwarded untouched can ask for another name unseen",
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

    /// Where a client goes that asks for this name; `None`: nowhere.
    pub(crate) fn next_hop(&self, name: Option<&str>) -> Option<SocketAddr> {
        match &self.next_hop {
            NextHop::Fixed(address) => Some(*address),
            NextHop::ByName(names) => names.get(name?).copied(),
        }
    }
}

/// When the client's handshake is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// At once, beside the next hop's.
    #[default]
    Parallel,
    /// When the next hop's is complete, with what that chose.
    Sequential,
    /// At once over a connection to the next hop that is ready; without one as [`Mode::Sequential`].
    Warm,
}

/// When to forward datagrams untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Auto {
    /// A hop towards or from which the smallest round-trip time is known to be below this needs no proxy.
    pub threshold: Duration,
    /// The hop in question is the one of the client side, as at a gateway; else that of the server side.
    pub of_client_side: bool,
}

/// Where connections go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextHop {
    /// All to this address.
    Fixed(SocketAddr),
    /// By the server name that the client asks for; others are refused.
    ByName(BTreeMap<String, SocketAddr>),
}

/// The transport of one side.
pub struct Hop {
    /// noq's own configuration, apart from what [`Limits`] say.
    pub transport: TransportConfig,
    /// What its peer may send before anything of it is read.
    pub window: Window,
    /// What is remembered of paths.
    pub peers: RememberedPaths,
    /// What congestion control has to say of the path that was begun last.
    pub report: Option<Report>,
    /// The QUIC version: of the server side the one to connect with, of the client side the only one to accept; `None`: what noq has.
    pub version: Option<u32>,
}

/// Flow control of one side: what its peer may send before anything of it is read (RFC 9000, section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// What may wait according to [`Limits`].
    Buffers,
    /// So many bytes of a stream, and of all together: `transport` says so.
    Bytes(u64),
    /// noq's own: all streams together are not limited.
    Library,
}

/// Flow control credit, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Credit {
    pub connection: u64,
    pub stream: u64,
}

impl Credit {
    /// That of the connection while so many streams may have to wait. The library announces new credit when it comes to an eighth of the
    /// window, which is not to be more than what those leave of it.
    pub fn with(self, waiting: u64) -> u64 {
        let one = self.stream.saturating_mul(8).div_ceil(7);
        self.connection.saturating_add(waiting.saturating_mul(one))
    }
}

impl Hop {
    /// What its peer may send; `None`: all streams together are not limited.
    pub(crate) fn credit(&self, limits: &Limits) -> Option<Credit> {
        match self.window {
            Window::Buffers => Some(Credit {
                connection: limits.connection_buffer as u64,
                stream: limits.stream_buffer as u64,
            }),
            Window::Bytes(bytes) => Some(Credit {
                connection: bytes,
                stream: bytes,
            }),
            Window::Library => None,
        }
    }

    /// noq's configuration, with the limits.
    pub(crate) fn transport(&self, limits: &Limits) -> Result<Arc<TransportConfig>, PepError> {
        let mut transport = self.transport.clone();
        let integer = |bytes: u64| VarInt::from_u64(bytes).unwrap_or(VarInt::MAX);
        if let (Window::Buffers, Some(credit)) = (self.window, self.credit(limits)) {
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

/// What the proxy and its connections may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections of clients at once.
    pub connections: usize,
    /// Connections of one client address at once.
    pub connections_per_client: usize,
    /// Streams of one kind that a peer may have open at once, if the other side allows as many.
    pub streams: u32,
    /// Bytes of one stream and direction that are taken out of one side and wait for the other.
    pub stream_buffer: usize,
    /// The same of all streams of a connection together.
    pub connection_buffer: usize,
    /// How long the handshakes of a connection may take, both sides.
    pub handshake: Duration,
    /// How long either side may be silent.
    pub idle: Duration,
    /// How long a peer may leave a gap open in a stream whose buffer is full.
    pub gap: Duration,
    /// What one side sent before it closed is delivered to the other; it is given up when that has acknowledged nothing for so long.
    pub linger: Duration,
}

impl Limits {
    pub(crate) fn most(&self) -> Most {
        Most {
            total: self.connections,
            of_client: self.connections_per_client,
        }
    }
}

/// What is kept ready in [`Mode::Warm`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warm {
    /// Connections per server name and application protocol.
    pub connections: usize,
    /// A pair of these that nobody has asked for for so long is no longer kept ready.
    pub expiry: Duration,
    /// What is kept ready from the start, server name and application protocol: others are as soon as a handshake for them has been completed.
    pub ahead: Vec<(String, Vec<u8>)>,
}
