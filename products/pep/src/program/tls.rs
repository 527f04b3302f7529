//! TLS of both sides.

use std::sync::Arc;

use bentpipe_connections::tls::{ClientTls, ServerTls, client, server};
use bentpipe_service::SettingsError;
use rustls::{ClientConfig, ServerConfig};

use super::settings::Settings;

/// The TLS of both sides; all workers share it, and with it the sessions that can be resumed.
#[derive(Debug, Clone)]
pub struct Tls {
    pub client_side: Arc<ServerConfig>,
    pub server_side: Arc<ClientConfig>,
    /// The certificate that clients are shown was made for this run.
    pub made: bool,
}

impl Tls {
    /// Reads all files that the settings name.
    pub fn load(settings: &Settings) -> Result<Self, SettingsError> {
        let (clients, next) = (&settings.clients, &settings.next_hop);
        let of_clients = ServerTls {
            certificates: &settings.certificate,
            client_ca: clients.ca.as_deref().map(|file| ("clients.ca", file)),
            early_data: clients.early_data,
        };
        let of_next_hop = ClientTls {
            table: "next-hop",
            ca: next.ca.as_deref(),
            certificate: next.certificate.as_deref().zip(next.key.as_deref()),
            keylog: next.keylog.as_deref(),
        };
        Ok(Self {
            client_side: Arc::new(server(of_clients)?),
            server_side: Arc::new(client(of_next_hop)?),
            made: settings.certificate.is_empty(),
        })
    }
}
