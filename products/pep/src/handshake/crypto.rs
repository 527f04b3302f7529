//! TLS of both sides, with what each connection needs of it.

use std::sync::Arc;

use bentpipe_connections::WallClock;
use bentpipe_endpoint::Clock;
use noq_proto::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use noq_proto::{
    ClientConfig, Connection, ServerConfig, TokenMemoryCache, TokenStore, TransportConfig,
};

use rustls::client::Resumption;

use super::initial::{CryptoStream, InitialHeader};
use super::session_tickets::SessionTickets;
use crate::config::{Config, PepError};

/// Bytes that an unaccepted client may have the library keep: its `ClientHello`, and some early
/// data.
const INCOMING_BUFFER: u64 = 1 << 18;
/// Bytes of all of them.
const ALL_INCOMING_BUFFERS: u64 = 1 << 26;

/// The TLS of both sides.
pub struct Crypto {
    accepting: ServerConfig,
    /// The server side's transport.
    connecting: Arc<TransportConfig>,
    /// Reads the first packets of clients.
    reading: Arc<QuicServerConfig>,
    client_tls: Arc<rustls::ServerConfig>,
    server_tls: Arc<rustls::ClientConfig>,
    tickets: SessionTickets,
    /// Address validation tokens of next hops (RFC 9000, section 8.1.3).
    tokens: Arc<dyn TokenStore>,
}

impl Crypto {
    /// TLS as it is configured.
    pub fn new(config: &Config, clock: &Clock) -> Result<Self, PepError> {
        let reading = QuicServerConfig::try_from(config.client_tls.clone());
        let reading = Arc::new(reading.map_err(|error| PepError::Tls(error.to_string()))?);
        QuicClientConfig::try_from(config.server_tls.clone())
            .map_err(|error| PepError::Tls(error.to_string()))?;
        let mut accepting = ServerConfig::with_crypto(reading.clone());
        accepting
            .transport_config(config.client.transport(&config.limits)?)
            .time_source(Arc::new(WallClock(clock.clone())))
            .max_incoming(config.limits.connections)
            .incoming_buffer_size(INCOMING_BUFFER)
            .incoming_buffer_size_total(ALL_INCOMING_BUFFERS);
        let connecting = config.server.transport(&config.limits)?;
        let tickets = SessionTickets::default();
        Ok(Self {
            accepting,
            connecting,
            reading,
            client_tls: config.client_tls.clone(),
            server_tls: Self::resuming(config, &tickets),
            tickets,
            tokens: Arc::new(TokenMemoryCache::default()),
        })
    }

    fn resuming(config: &Config, tickets: &SessionTickets) -> Arc<rustls::ClientConfig> {
        let mut tls = rustls::ClientConfig::clone(&config.server_tls);
        tls.resumption = Resumption::store(Arc::new(tickets.clone()));
        // Data that clients do not send early must not become early on the way: early data can be
        // replayed by others (RFC 8470).
        tls.enable_early_data = false;
        Arc::new(tls)
    }

    /// Connections to next hops that were begun with a session ticket.
    pub fn resumed(&self) -> u64 {
        self.tickets.taken()
    }

    /// Changes it for connections to come; what clients were given so far is still good.
    pub fn renew(&mut self, config: &Config, clock: &Clock) -> Result<(), PepError> {
        let new = Self::new(config, clock)?;
        self.accepting.crypto = new.reading.clone();
        self.accepting.transport = new.accepting.transport;
        self.connecting = new.connecting;
        self.reading = new.reading;
        self.client_tls = new.client_tls;
        // Tickets are of those who were trusted before.
        self.server_tls = new.server_tls;
        self.tickets = new.tickets;
        Ok(())
    }

    /// The configuration that the client side's endpoint starts with.
    pub fn accepting(&self) -> &ServerConfig {
        &self.accepting
    }

    /// The reader of a client's Initial packets, of which the datagram is the first; `None`: it is
    /// none, or its version is unknown.
    pub fn initial_stream(&self, datagram: &[u8]) -> Option<CryptoStream> {
        CryptoStream::new(&*self.reading, InitialHeader::of(datagram)?)
    }

    /// The configuration for a client that is to speak one of these protocols, the first that it
    /// can.
    pub fn to_accept(&self, protocols: &[Vec<u8>]) -> ServerConfig {
        let mut tls = rustls::ServerConfig::clone(&self.client_tls);
        tls.alpn_protocols = protocols.to_vec();
        let tls = QuicServerConfig::try_from(tls).expect("it was tried when it came");
        let mut config = self.accepting.clone();
        config.crypto = Arc::new(tls);
        config
    }

    /// The configuration for a next hop that is to speak one of these protocols.
    pub fn to_connect(&self, config: &Config, protocols: &[Vec<u8>]) -> ClientConfig {
        let mut tls = rustls::ClientConfig::clone(&self.server_tls);
        tls.alpn_protocols = protocols.to_vec();
        let tls = QuicClientConfig::try_from(tls).expect("it was tried when it came");
        let mut connecting = ClientConfig::new(Arc::new(tls));
        connecting
            .transport_config(self.connecting.clone())
            .token_store(self.tokens.clone());
        if let Some(version) = config.server.version {
            connecting.version(version);
        }
        connecting
    }
}

/// The application protocol that a handshake came to.
pub fn application_protocol(connection: &Connection) -> Vec<u8> {
    let data = connection.crypto_session().handshake_data();
    let data = data.and_then(|data| data.downcast::<HandshakeData>().ok());
    data.and_then(|data| data.protocol).unwrap_or_default()
}
