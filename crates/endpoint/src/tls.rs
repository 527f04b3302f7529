//! TLS by rustls and ring, with the trial's time and certificates.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::clock::Clock;
use crate::error::EndpointError;
use crate::log_file::LogFile;
use crate::setup::Setup;

/// The part of a setup that TLS needs.
#[derive(Debug, Clone, Copy)]
pub struct Tls<'a> {
    /// The folder with `ca.pem`, `cert.pem` and `priv.key`.
    pub certs: &'a Path,
    /// The time.
    pub clock: &'a Clock,
    /// The application protocol.
    pub alpn: &'a str,
    /// The file for secrets.
    pub keylog: Option<&'a LogFile>,
}

impl Tls<'_> {
    /// A client's TLS: trusts `ca.pem`, speaks the trial's application protocol.
    pub fn client(self) -> Result<ClientConfig, EndpointError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.certs.join("ca.pem"))? {
            roots.add(certificate).map_err(EndpointError::tls)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_details(provider, Arc::new(self.clock.clone()))
            .with_protocol_versions(&[&TLS13])
            .map_err(EndpointError::tls)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![self.alpn.as_bytes().to_vec()];
        if let Some(keylog) = self.keylog {
            config.key_log = Arc::new(keylog.clone());
        }
        Ok(config)
    }

    /// A server's TLS: shows `cert.pem`, speaks the trial's application protocol.
    pub fn server(self) -> Result<ServerConfig, EndpointError> {
        let chain = certificates(&self.certs.join("cert.pem"))?;
        let path = self.certs.join("priv.key");
        let key = PrivateKeyDer::from_pem_file(&path).map_err(|error| pem_error(&path, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_details(provider, Arc::new(self.clock.clone()))
            .with_protocol_versions(&[&TLS13])
            .map_err(EndpointError::tls)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(EndpointError::tls)?;
        config.alpn_protocols = vec![self.alpn.as_bytes().to_vec()];
        // QUIC allows no other value than this and 0 (RFC 9001, section 4.6.1).
        config.max_early_data_size = u32::MAX;
        if let Some(keylog) = self.keylog {
            config.key_log = Arc::new(keylog.clone());
        }
        Ok(config)
    }
}

impl Setup {
    fn tls(&self) -> Tls<'_> {
        Tls {
            certs: &self.certs,
            clock: &self.clock,
            alpn: &self.alpn,
            keylog: self.keylog.as_ref(),
        }
    }

    /// [`Tls::client`].
    pub fn client_tls(&self) -> Result<ClientConfig, EndpointError> {
        self.tls().client()
    }

    /// [`Tls::server`].
    pub fn server_tls(&self) -> Result<ServerConfig, EndpointError> {
        self.tls().server()
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, EndpointError> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| pem_error(path, &error))
}

fn pem_error(path: &Path, error: &rustls::pki_types::pem::Error) -> EndpointError {
    EndpointError::Tls(format!("{}: {error}", path.display()))
}
