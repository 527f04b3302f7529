//! A certificate that is made for this run, and trusted.

use std::error::Error;
use std::sync::Arc;

use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{ClientConfig, ServerConfig};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::version::TLS13;

pub fn both() -> Result<(ServerConfig, ClientConfig), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(ring::default_provider());

    let server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())?;

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone())?;
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();

    let server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server)?));
    let client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client)?));
    Ok((server, client))
}
