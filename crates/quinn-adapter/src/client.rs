//! How a client starts a connection, be it one that resumes.

use std::sync::Arc;

use bentpipe_endpoint::{EndpointError, Resume, Tickets};
use proto::crypto::rustls::QuicClientConfig;
use proto::{TokenMemoryCache, TokenStore, TransportConfig};
use rustls::client::Resumption;

/// The configuration of a client, and the tickets and tokens that its connections have brought.
pub struct Client {
    tls: rustls::ClientConfig,
    /// Session tickets of earlier connections.
    pub tickets: Tickets,
    transport: Arc<TransportConfig>,
    /// Address validation tokens (RFC 9000, section 8.1.3), which the library keeps for as long as
    /// its configuration lives.
    tokens: Arc<dyn TokenStore>,
}

impl Client {
    /// A client without tickets.
    #[must_use]
    pub fn new(mut tls: rustls::ClientConfig, transport: Arc<TransportConfig>) -> Self {
        let tickets = Tickets::default();
        tls.resumption = Resumption::store(Arc::new(tickets.clone()));
        Self {
            tls,
            tickets,
            transport,
            tokens: Arc::new(TokenMemoryCache::default()),
        }
    }

    /// The configuration of the next connection.
    ///
    /// A connection that resumes nothing comes first, when there is no ticket yet.
    pub fn config(&self, resume: Resume) -> Result<proto::ClientConfig, EndpointError> {
        let mut tls = self.tls.clone();
        tls.enable_early_data = resume == Resume::EarlyData;
        let tls = QuicClientConfig::try_from(tls).map_err(EndpointError::tls)?;
        let mut config = proto::ClientConfig::new(Arc::new(tls));
        config
            .transport_config(self.transport.clone())
            .token_store(self.tokens.clone());
        Ok(config)
    }
}
