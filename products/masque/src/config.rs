//! The settings that a client and a proxy are made with.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_connections::WallClock;
use bentpipe_endpoint::{Clock, EndpointError, Transmit};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{ClientConfig, IdleTimeout, ServerConfig, TransportConfig};

use crate::settings::Settings;
use crate::target::{Target, Template};

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
    /// How its requests are written.
    pub template: Template,
    /// Where datagrams are to go.
    pub target: Target,
    /// The token that shows the proxy that it may.
    pub token: Option<String>,
    /// Whom it trusts.
    pub tls: rustls::ClientConfig,
}

/// A proxy's settings.
#[derive(Debug)]
pub struct ProxySettings {
    /// The settings of the tunnels.
    pub tunnel: Settings,
    /// The certificate that clients are shown.
    pub tls: rustls::ServerConfig,
    /// Tokens, one of which a client must show; none: all may.
    pub tokens: Vec<String>,
    /// Connections at a time.
    pub connections: usize,
    /// Requests at a time, of a connection.
    pub requests: u32,
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
    pub(crate) fn accepting(&self, clock: &Clock) -> Result<ServerConfig, EndpointError> {
        let mut tls = self.tls.clone();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let tls = QuicServerConfig::try_from(tls).map_err(EndpointError::tls)?;
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config
            .transport_config(Arc::new(self.tunnel.transport(self.requests)))
            .time_source(Arc::new(WallClock(clock.clone())))
            .max_incoming(self.connections);
        Ok(config)
    }
}
