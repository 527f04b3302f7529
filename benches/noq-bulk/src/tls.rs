//! Certificates that are made for a run, and taken without question.

use std::sync::Arc;

use bentpipe_endpoint::AnyCertificate;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::version::TLS13;

use crate::Outcome;

const ALPN: &[u8] = b"bulk";

pub fn server() -> Outcome<noq::ServerConfig> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let crypto = QuicServerConfig::try_from(tls)?;
    Ok(noq::ServerConfig::with_crypto(Arc::new(crypto)))
}

pub fn client() -> Outcome<noq::ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        // It is this program at the other side, or a proxy of the same bench.
        .with_custom_certificate_verifier(Arc::new(AnyCertificate::default()))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let crypto = QuicClientConfig::try_from(tls)?;
    Ok(noq::ClientConfig::new(Arc::new(crypto)))
}
