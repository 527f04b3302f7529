//! Certificates: the server makes one for itself unless it is given one; the client verifies it if
//! it is told by what.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bentpipe_endpoint::{AnyCertificate, Clock, EndpointError, LogFile};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
};

use crate::protocol::ALPN;

/// A certificate and its key, in files.
#[derive(Debug, Clone)]
pub struct Identity<'a> {
    pub certificate: &'a Path,
    pub key: &'a Path,
}

/// The verifier of certificates, which notes whether one was shown: in a session that was resumed,
/// none is.
#[derive(Debug)]
pub struct Verifier {
    inner: Arc<dyn ServerCertVerifier>,
    provider: Arc<CryptoProvider>,
    shown: AtomicBool,
}

impl Verifier {
    /// Verifies by the authorities in a file; without one any certificate will do.
    pub fn new(authority: Option<&Path>) -> Result<Self, EndpointError> {
        let provider = Arc::new(ring::default_provider());
        let inner: Arc<dyn ServerCertVerifier> = match authority {
            None => Arc::new(AnyCertificate::default()),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(EndpointError::tls)?;
                }
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                    .build()
                    .map_err(|error| EndpointError::Tls(format!("{}: {error}", path.display())))?
            }
        };
        Ok(Self {
            inner,
            provider,
            shown: AtomicBool::new(false),
        })
    }

    /// Whether a certificate was shown since this was asked last.
    pub fn was_shown(&self) -> bool {
        self.shown.swap(false, Ordering::Relaxed)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.shown.store(true, Ordering::Relaxed);
        self.inner
            .verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// A client's; `options` is the protocol that carries them.
pub fn client(
    verifier: Arc<Verifier>,
    options: Vec<u8>,
    clock: &Clock,
    keylog: Option<&LogFile>,
) -> Result<ClientConfig, EndpointError> {
    let provider = verifier.provider.clone();
    let mut config = ClientConfig::builder_with_details(provider, Arc::new(clock.clone()))
        .with_protocol_versions(&[&TLS13])
        .map_err(EndpointError::tls)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec(), options];
    if let Some(keylog) = keylog {
        config.key_log = Arc::new(keylog.clone());
    }
    Ok(config)
}

/// A server's.
pub fn server(
    identity: Option<Identity<'_>>,
    clock: &Clock,
    keylog: Option<&LogFile>,
) -> Result<ServerConfig, EndpointError> {
    let (chain, key) = match identity {
        Some(identity) => read(&identity)?,
        None => self_signed()?,
    };
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_details(provider, Arc::new(clock.clone()))
        .with_protocol_versions(&[&TLS13])
        .map_err(EndpointError::tls)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(EndpointError::tls)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // QUIC allows no other value than this and 0 (RFC 9001, section 4.6.1).
    config.max_early_data_size = u32::MAX;
    if let Some(keylog) = keylog {
        config.key_log = Arc::new(keylog.clone());
    }
    Ok(config)
}

type Chain = Vec<CertificateDer<'static>>;

fn read(identity: &Identity<'_>) -> Result<(Chain, PrivateKeyDer<'static>), EndpointError> {
    let chain = certificates(identity.certificate)?;
    let key = PrivateKeyDer::from_pem_file(identity.key)
        .map_err(|error| EndpointError::Tls(format!("{}: {error}", identity.key.display())))?;
    Ok((chain, key))
}

/// For this run of the program alone.
fn self_signed() -> Result<(Chain, PrivateKeyDer<'static>), EndpointError> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
        .map_err(EndpointError::tls)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.der().clone()], key.into()))
}

fn certificates(path: &Path) -> Result<Chain, EndpointError> {
    let wrong = |error| EndpointError::Tls(format!("{}: {error}", path.display()));
    let chain: Chain = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(wrong)?;
    if chain.is_empty() {
        let what = format!("{}: no certificate in PEM form", path.display());
        return Err(EndpointError::Tls(what));
    }
    Ok(chain)
}
