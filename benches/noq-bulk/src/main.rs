//! A bulk transfer with the crate `noq` as it comes: one stream, its own sockets and runtime, its defaults.
//!
//! `noq-bulk server` prints its port, serves one client and ends; `noq-bulk client PORT BYTES` sends, and prints how many seconds passed from
//! the open stream until all was acknowledged. Both use one thread, as `bentpipe perf` does.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::PrivatePkcs8KeyDer;

type Outcome<T> = Result<T, Box<dyn Error>>;

const ALPN: &[u8] = b"bulk";
const CHUNK: usize = 1 << 20;

fn main() -> Outcome<()> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match words[..] {
        ["server"] => runtime.block_on(server()),
        ["client", port, bytes] => runtime.block_on(client(port.parse()?, bytes.parse()?)),
        _ => Err("usage: noq-bulk server | client PORT BYTES".into()),
    }
}

async fn server() -> Outcome<()> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let config = noq::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let endpoint = noq::Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    println!("{}", endpoint.local_addr()?.port());
    let connection = endpoint.accept().await.ok_or("no connection")?.await?;
    let mut stream = connection.accept_uni().await?;
    while stream.read_chunk(CHUNK).await?.is_some() {}
    connection.closed().await;
    Ok(())
}

async fn client(port: u16, bytes: usize) -> Outcome<()> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust::Anybody(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let config = noq::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let endpoint = noq::Endpoint::client("127.0.0.1:0".parse()?)?;
    let remote = (std::net::Ipv4Addr::LOCALHOST, port).into();
    let connection = endpoint.connect_with(config, remote, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let block = Bytes::from(vec![0; CHUNK]);
    let begun = Instant::now();
    let mut left = bytes;
    while left > 0 {
        let piece = block.slice(..left.min(CHUNK));
        left -= piece.len();
        stream.write_chunk(piece).await?;
    }
    stream.finish()?;
    stream.stopped().await?;
    println!("{}", begun.elapsed().as_secs_f64());
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

/// It is this program at the other side.
mod trust {
    use std::sync::Arc;

    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};

    #[derive(Debug)]
    pub struct Anybody(pub Arc<CryptoProvider>);

    impl ServerCertVerifier for Anybody {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.0.signature_verification_algorithms;
            verify_tls12_signature(message, certificate, signed, algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.0.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signed, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}
