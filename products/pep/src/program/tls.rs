//! TLS of both sides, from files.
//!
//! Validity is held against the system's clock, which may be set while the program runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bentpipe_endpoint::{AnyCertificate, LogFile};
use bentpipe_service::SettingsError;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::settings::{Certificate, NextHop, Settings};

/// Sessions that clients may resume.
const SESSIONS: usize = 16_384;

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
        Ok(Self {
            client_side: Arc::new(server(settings)?),
            server_side: Arc::new(client(&settings.next_hop)?),
            made: settings.certificate.is_empty(),
        })
    }
}

/// The certificates that clients are shown, by the server name that they ask for.
#[derive(Debug)]
struct ByName {
    named: BTreeMap<String, Arc<CertifiedKey>>,
    /// For all other names, and for clients that name none.
    other: Option<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        let named = name.and_then(|name| self.named.get(&name));
        named.or(self.other.as_ref()).cloned()
    }
}

fn server(settings: &Settings) -> Result<ServerConfig, SettingsError> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has TLS 1.3");
    let builder = match &settings.clients.ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let roots = Arc::new(roots("clients.ca", file)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
            let verifier = verifier.build().map_err(|error| {
                problem(
                    "clients.ca",
                    file,
                    error,
                    "name the certificate of an authority",
                )
            })?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(by_name(&settings.certificate)?));
    config.session_storage = rustls::server::ServerSessionMemoryCache::new(SESSIONS);
    if settings.clients.early_data {
        // QUIC allows no other value than this and 0 (RFC 9001, section 4.6.1).
        config.max_early_data_size = u32::MAX;
    }
    Ok(config)
}

fn by_name(certificates: &[Certificate]) -> Result<ByName, SettingsError> {
    let mut all = ByName {
        named: BTreeMap::new(),
        other: None,
    };
    for certificate in certificates {
        let pair = Arc::new(certified(certificate)?);
        for name in &certificate.names {
            all.named.insert(name.to_ascii_lowercase(), pair.clone());
        }
        if certificate.names.is_empty() {
            all.other = Some(pair);
        }
    }
    if certificates.is_empty() {
        all.other = Some(Arc::new(self_signed()));
    }
    Ok(all)
}

fn certified(files: &Certificate) -> Result<CertifiedKey, SettingsError> {
    let chain = certificates("certificate.chain", &files.chain)?;
    let key = private_key("certificate.key", &files.key)?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(|error| {
        let hint =
            "chain and key must belong together: the first certificate of the file is the key's";
        problem("certificate.key", &files.key, error, hint)
    })
}

/// For this run of the program alone.
fn self_signed() -> CertifiedKey {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
        .expect("a certificate of this form can be made");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let chain = vec![made.cert.der().clone()];
    CertifiedKey::from_der(chain, key.into(), &provider()).expect("they belong together")
}

fn client(next: &NextHop) -> Result<ClientConfig, SettingsError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has TLS 1.3");
    let builder = match &next.ca {
        Some(file) => builder.with_root_certificates(roots("next-hop.ca", file)?),
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate::default())),
    };
    let mut config = match (&next.certificate, &next.key) {
        (Some(chain), Some(key)) => {
            let pair = (
                certificates("next-hop.certificate", chain)?,
                private_key("next-hop.key", key)?,
            );
            builder
                .with_client_auth_cert(pair.0, pair.1)
                .map_err(|error| {
                    let hint = "chain and key must belong together";
                    problem("next-hop.key", key, error, hint)
                })?
        }
        _ => builder.with_no_client_auth(),
    };
    if let Some(file) = &next.keylog {
        let log = LogFile::append(file).map_err(|error| {
            problem(
                "next-hop.keylog",
                file,
                error,
                "name a file that can be written",
            )
        })?;
        config.key_log = Arc::new(log);
    }
    Ok(config)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn roots(key: &str, file: &Path) -> Result<RootCertStore, SettingsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(key, file)? {
        roots.add(certificate).map_err(|error| {
            problem(
                key,
                file,
                error,
                "name certificates of authorities in PEM form",
            )
        })?;
    }
    Ok(roots)
}

fn certificates(key: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let hint = "name a file with certificates in PEM form";
    let chain: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| problem(key, file, error, hint))?;
    if chain.is_empty() {
        return Err(problem(key, file, "no certificate in it", hint));
    }
    Ok(chain)
}

fn private_key(key: &str, file: &Path) -> Result<PrivateKeyDer<'static>, SettingsError> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| {
        problem(
            key,
            file,
            error,
            "name a file with a private key in PEM form",
        )
    })
}

fn problem(key: &str, file: &Path, what: impl std::fmt::Display, hint: &str) -> SettingsError {
    SettingsError::new(key, format!("{}: {what}", file.display()), hint)
}
