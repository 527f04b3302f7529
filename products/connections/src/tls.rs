//! TLS of servers and clients, from files that settings name.
//!
//! Validity is held against the system's clock, which may be set while the program runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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

use serde::{Deserialize, Serialize};

/// Sessions that clients may resume.
const SESSIONS: usize = 16_384;

/// A certificate that a program shows to its clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Certificate {
    /// For these server names; empty: for all that no other certificate is for.
    #[serde(default)]
    pub names: Vec<String>,
    /// The chain in PEM form, the program's own certificate first.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The TLS of a server, as settings have it.
#[derive(Debug, Clone, Copy)]
pub struct ServerTls<'a> {
    /// Where there is none, one is made that no client trusts.
    pub certificates: &'a [Certificate],
    /// Key and value: the authority of clients that may come; `None`: anybody.
    pub client_ca: Option<(&'static str, &'a Path)>,
    /// Whether data in 0-RTT packets is taken.
    pub early_data: bool,
}

/// The TLS of a client, as the table of its server has it.
#[derive(Debug, Clone, Copy)]
pub struct ClientTls<'a> {
    /// The name of that table, for errors.
    pub table: &'static str,
    /// The authority of the server's certificate; `None`: any certificate will do.
    pub ca: Option<&'a Path>,
    /// The certificate that it shows if it is asked for one, and its key.
    pub certificate: Option<(&'a Path, &'a Path)>,
    /// The file for secrets.
    pub keylog: Option<&'a Path>,
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

/// Reads the files of a server.
pub fn server(settings: ServerTls<'_>) -> Result<ServerConfig, SettingsError> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has TLS 1.3");
    let builder = match settings.client_ca {
        None => builder.with_no_client_auth(),
        Some((key, file)) => {
            let roots = Arc::new(roots(key, file)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
            let verifier = verifier.build().map_err(|error| {
                problem(key, file, error, "name the certificate of an authority")
            })?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(by_name(settings.certificates)?));
    config.session_storage = rustls::server::ServerSessionMemoryCache::new(SESSIONS);
    if settings.early_data {
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

/// Reads the files of a client.
pub fn client(settings: ClientTls<'_>) -> Result<ClientConfig, SettingsError> {
    let key = |name: &str| format!("{}.{name}", settings.table);
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has TLS 1.3");
    let builder = match settings.ca {
        Some(file) => builder.with_root_certificates(roots(&key("ca"), file)?),
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate::default())),
    };
    let mut config = match settings.certificate {
        Some((chain, file)) => {
            let chain = certificates(&key("certificate"), chain)?;
            let private = private_key(&key("key"), file)?;
            builder
                .with_client_auth_cert(chain, private)
                .map_err(|error| {
                    let hint = "chain and key must belong together";
                    problem(&key("key"), file, error, hint)
                })?
        }
        None => builder.with_no_client_auth(),
    };
    if let Some(file) = settings.keylog {
        let log = LogFile::append(file).map_err(|error| {
            let hint = "name a file that can be written";
            problem(&key("keylog"), file, error, hint)
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
