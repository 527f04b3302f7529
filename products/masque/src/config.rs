//! The settings that a client and a proxy are made with.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_connections::WallClock;
use bentpipe_connections::steering::ConnectionIds;
use bentpipe_endpoint::{Clock, EndpointError, Transmit};
use bentpipe_service::quota::{ConnectionLimits, ConnectionQuota};
use h3::ext::Protocol;
use http::Uri;
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    ClientConfig, EndpointConfig, IdleTimeout, RandomConnectionIdGenerator, ServerConfig,
    TransportConfig,
};

use crate::ip::{Access, Pool, Prefix, Route};
use crate::settings::Settings;
use crate::target::{IpTemplate, Target, TargetError, Template};

/// `H3_NO_ERROR` (RFC 9114, section 8.1).
pub const NO_ERROR: u64 = 0x100;

/// A connection without packets for so long is over.
const IDLE: Duration = Duration::from_secs(30);
/// A client says so often that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Streams that a peer of HTTP/3 needs for itself: control, QPACK's two, and some to spare
/// (RFC 9114, section 6.2).
const ONE_WAY_STREAMS: u32 = 8;

/// A client's settings.
#[derive(Debug)]
pub struct ClientSettings {
    /// The settings of the tunnel.
    pub tunnel: Settings,
    /// Where the proxy is.
    pub proxy: SocketAddr,
    /// The name that its certificate has.
    pub proxy_name: String,
    /// The purpose of its requests.
    pub wanted: Purpose,
    /// The token that shows the proxy that it may.
    pub token: Option<String>,
    /// Whom it trusts.
    pub tls: rustls::ClientConfig,
}

/// The purpose of a client's requests.
#[derive(Debug, Clone)]
pub enum Purpose {
    /// To send UDP payloads to a target.
    Udp {
        /// How its requests are written.
        template: Template,
        /// The target.
        target: Target,
    },
    /// To send IP packets of those behind it to wherever the proxy carries them.
    Ip {
        /// How its requests are written.
        template: IpTemplate,
        /// The addresses of those behind it. `None`: those that the proxy assigns to this host; the
        /// client then asks at once, and again when a request has ended.
        clients: Option<Vec<Prefix>>,
    },
}

/// The IP packets that a proxy carries.
#[derive(Debug, Clone)]
pub enum IpSettings {
    /// Those of clients that all have the same addresses.
    Shared(Access),
    /// Those of clients each of which gets addresses of its own.
    Assigned(Assigned),
}

/// The settings of a proxy that assigns addresses.
#[derive(Debug, Clone)]
pub struct Assigned {
    /// The addresses for clients; all threads share them.
    pub pool: Arc<Pool>,
    /// The number of this thread.
    pub thread: usize,
    /// Requests of a client address at a time, each of which has addresses.
    pub most_of_client: usize,
    /// Where packets of clients may go.
    pub routes: Vec<Route>,
}

impl Purpose {
    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Self::Udp { .. } => Protocol::CONNECT_UDP,
            Self::Ip { .. } => Protocol::CONNECT_IP,
        }
    }

    /// The URI of requests.
    pub(crate) fn uri(&self) -> Result<Uri, EndpointError> {
        match self {
            Self::Udp { template, target } => {
                let uri: Result<_, TargetError> = template.expand(target);
                uri.map_err(EndpointError::failed)
            }
            Self::Ip { template, .. } => Ok(template.expand()),
        }
    }
}

/// A proxy's settings.
pub struct ProxySettings {
    /// The settings of the tunnels.
    pub tunnel: Settings,
    /// The IP packets that it carries; `None`: it carries UDP alone.
    pub ip: Option<IpSettings>,
    /// The certificate that clients are shown.
    pub tls: rustls::ServerConfig,
    /// Tokens, one of which a client must show; none: all may.
    pub tokens: Vec<String>,
    /// Connections at a time.
    pub connections: ConnectionLimits,
    /// The count of these, over all proxies that share it.
    pub quota: Arc<ConnectionQuota>,
    /// Requests at a time, of a connection.
    pub requests: u32,
    /// The time after which a request without datagrams is ended; `None`: never.
    pub idle: Option<Duration>,
    /// The maker of connection IDs; `None`: noq's own.
    pub connection_ids: Option<ConnectionIds>,
}

impl Settings {
    /// noq's configuration; `requests`: what a client may have at a time.
    fn transport(&self, requests: u32) -> TransportConfig {
        let mut transport = self.transport.clone();
        let idle = IdleTimeout::try_from(IDLE).expect("half a minute is a time of QUIC");
        transport
            .max_idle_timeout(Some(idle))
            .max_concurrent_bidi_streams(requests.into())
            .max_concurrent_uni_streams(ONE_WAY_STREAMS.into());
        transport
    }

    /// Without congestion control there must be no ECN (RFC 9298, section 6).
    pub(crate) fn mark(&self, transmit: &mut Transmit) {
        if !self.nested {
            transmit.ecn = 0;
        }
    }
}

impl ClientSettings {
    /// Refuses what no request of this kind can do.
    pub(crate) fn check(&self) -> Result<(), EndpointError> {
        let is_ip = matches!(self.wanted, Purpose::Ip { .. });
        match self.tunnel.forward {
            Some(kind) if is_ip => {
                let problem = "only UDP payloads of QUIC can be forwarded, no IP packets";
                Err(EndpointError::option("forward", kind.option(), problem))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn connecting(&self) -> Result<ClientConfig, EndpointError> {
        let mut tls = self.tls.clone();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let tls = QuicClientConfig::try_from(tls).map_err(EndpointError::tls)?;
        let mut config = ClientConfig::new(Arc::new(tls));
        let mut transport = self.tunnel.transport(0);
        transport.keep_alive_interval(Some(KEEP_ALIVE));
        config.transport_config(Arc::new(transport));
        Ok(config)
    }
}

impl ProxySettings {
    /// The maker of connection IDs. The library's own have 3 random bytes: that of a Retry is now
    /// and then a connection's already (`docs/upstream/noq-retry.md`).
    pub(crate) fn ids(&self) -> ConnectionIds {
        let random = || Box::new(RandomConnectionIdGenerator::default()) as _;
        self.connection_ids
            .clone()
            .unwrap_or_else(|| Arc::new(random))
    }

    pub(crate) fn endpoint(&self) -> EndpointConfig {
        let mut config = EndpointConfig::default();
        config.cid_generator(self.ids());
        config
    }

    pub(crate) fn accepting(&self, clock: &Clock) -> Result<ServerConfig, EndpointError> {
        let mut tls = self.tls.clone();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let tls = QuicServerConfig::try_from(tls).map_err(EndpointError::tls)?;
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config
            .transport_config(Arc::new(self.tunnel.transport(self.requests)))
            .time_source(Arc::new(WallClock(clock.clone())))
            .max_incoming(self.connections.total);
        Ok(config)
    }
}
