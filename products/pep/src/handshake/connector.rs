//! Connections of both sides, begun with the TLS that each of them needs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_endpoint::Clock;
use bentpipe_noq_options::RememberedPaths;
use noq_proto::{ClientConfig, ConnectionError, EndpointConfig, Incoming};

use super::crypto::Crypto;
use crate::config::{Config, PepError};
use crate::connections::{BothEndpoints, Side, SideEndpoint};

/// Begins a connection of an endpoint, for use at once or later.
type Start = fn(
    &mut SideEndpoint,
    Instant,
    ClientConfig,
    (SocketAddr, &str),
    &RememberedPaths,
) -> Result<usize, String>;

/// The maker of connections, and the endpoints that they are of.
pub struct Connector {
    /// The configuration of connections to come.
    pub config: Arc<Config>,
    /// TLS of both sides.
    pub crypto: Crypto,
    /// The connections.
    pub endpoints: BothEndpoints,
}

impl Connector {
    /// No connection yet; the endpoints get these configurations, of the client side and of the
    /// server side.
    pub fn new(
        config: Arc<Config>,
        crypto: Crypto,
        [accepting, connecting]: [EndpointConfig; 2],
    ) -> Self {
        let server = crypto.accepting().clone();
        Self {
            config,
            crypto,
            endpoints: BothEndpoints::new((accepting, server), connecting),
        }
    }

    /// Connections to come are like this.
    pub fn reconfigure(&mut self, config: Arc<Config>, clock: &Clock) -> Result<(), PepError> {
        self.crypto.renew(&config, clock)?;
        self.config = config;
        Ok(())
    }

    /// Begins a connection to a next hop, to speak one of the protocols; `None`: it is not
    /// possible.
    pub fn connect(
        &mut self,
        now: Instant,
        next_hop: SocketAddr,
        name: Option<&str>,
        protocols: &[Vec<u8>],
    ) -> Option<usize> {
        self.start(now, next_hop, name, protocols, SideEndpoint::connect)
    }

    /// As [`Self::connect`], for a connection that is kept ready.
    pub fn prepare(
        &mut self,
        now: Instant,
        next_hop: SocketAddr,
        name: Option<&str>,
        protocols: &[Vec<u8>],
    ) -> Option<usize> {
        self.start(now, next_hop, name, protocols, SideEndpoint::prepare)
    }

    fn start(
        &mut self,
        now: Instant,
        next_hop: SocketAddr,
        name: Option<&str>,
        protocols: &[Vec<u8>],
        start: Start,
    ) -> Option<usize> {
        // The library takes an address for a name; then the certificate must be of that.
        let address = next_hop.ip().to_string();
        let connecting = self.crypto.to_connect(&self.config, protocols);
        let to = (next_hop, name.unwrap_or(&address));
        let endpoint = self.endpoints.of(Side::Server);
        let handle = start(endpoint, now, connecting, to, &self.config.server.peers).ok()?;
        endpoint.allow_no_streams(handle);
        Some(handle)
    }

    /// Accepts a client, to speak one of the protocols; says why that is not possible.
    pub fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming,
        protocols: &[Vec<u8>],
        peers: &RememberedPaths,
    ) -> Result<usize, ConnectionError> {
        let accepting = self.crypto.to_accept(protocols);
        let endpoint = self.endpoints.of(Side::Client);
        let handle = endpoint.accept(now, incoming, accepting, peers)?;
        endpoint.allow_no_streams(handle);
        Ok(handle)
    }
}
