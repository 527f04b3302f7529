//! Worlds to begin with.

use std::collections::BTreeMap;
use std::path::{Path as File, PathBuf};
use std::sync::Arc;

use bentpipe_endpoint::{Clock, seed_entropy_of_thread};
use bentpipe_pep::{Config, ConfigContext, NextHop, Place, Proxy};
use noq_proto::TransportConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::peer::Peer;
use crate::world::{EPOCH, Path, World, listening};

fn certs() -> PathBuf {
    File::new(env!("CARGO_MANIFEST_DIR")).join("../../endpoints/certs")
}

/// Trusts the authority of the trials.
pub fn client_tls(clock: &Clock, protocols: &[&str]) -> ClientConfig {
    client_tls_by(ring::default_provider(), clock, protocols)
}

pub fn client_tls_by(provider: CryptoProvider, clock: &Clock, protocols: &[&str]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(certs().join("ca.pem")).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(provider);
    let mut config = ClientConfig::builder_with_details(provider, Arc::new(clock.clone()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = list(protocols);
    config
}

/// Shows the certificate of the trials.
pub fn server_tls(clock: &Clock, protocols: &[&str]) -> ServerConfig {
    server_tls_by(ring::default_provider(), clock, protocols, certificate())
}

type Certificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

pub fn certificate() -> Certificate {
    let chain = CertificateDer::pem_file_iter(certs().join("cert.pem")).unwrap();
    let chain = chain.collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(certs().join("priv.key")).unwrap();
    (chain, key)
}

pub fn server_tls_by(
    provider: CryptoProvider,
    clock: &Clock,
    protocols: &[&str],
    (chain, key): Certificate,
) -> ServerConfig {
    let provider = Arc::new(provider);
    let mut config = ServerConfig::builder_with_details(provider, Arc::new(clock.clone()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = list(protocols);
    config
}

fn list(protocols: &[&str]) -> Vec<Vec<u8>> {
    let bytes = |protocol: &&str| protocol.as_bytes().to_vec();
    protocols.iter().map(bytes).collect()
}

/// The configuration of proxy `index` of `count`, from its words.
pub fn config(clock: &Clock, index: usize, words: &str) -> Config {
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    let options: BTreeMap<_, _> = words.split_whitespace().map(pair).collect();
    let context = ConfigContext {
        place: if index == 0 {
            Place::Terminal
        } else {
            Place::Gateway
        },
        next_hop: NextHop::Fixed(listening(index + 2)),
        client_tls: Arc::new(server_tls(clock, &[])),
        server_tls: Arc::new(client_tls(clock, &[])),
        limits: bentpipe_pep::Limits::default(),
        qlog: None,
        real_time: false,
        clock: clock.clone(),
        paths: Default::default(),
    };
    Config::from_options(options, context).unwrap()
}

/// The description of a world.
pub struct Plan {
    /// The options of each proxy.
    pub words: Vec<&'static str>,
    pub paths: Vec<Path>,
    pub seed: u64,
    /// The server's.
    pub protocols: Vec<&'static str>,
    pub transport: TransportConfig,
}

impl Plan {
    /// Proxies with these words, over perfect paths of 10 ms each way.
    pub fn of(words: &[&'static str]) -> Self {
        Self {
            words: words.to_vec(),
            paths: vec![Path::of(10); words.len() + 1],
            seed: 1,
            protocols: vec!["test"],
            transport: TransportConfig::default(),
        }
    }

    pub fn build(self) -> World {
        self.build_with(|_, _| {})
    }

    /// Lets `change` have a look at each proxy's configuration.
    pub fn build_with(self, change: impl Fn(usize, &mut Config)) -> World {
        seed_entropy_of_thread(self.seed);
        let clock = Clock::new(EPOCH);
        let tls = server_tls(&clock, &self.protocols);
        let server = Peer::server(&clock, tls, self.transport);
        let client = Peer::client(&clock);
        let proxy = |(index, words): (usize, &&str)| {
            let mut config = config(&clock, index, words);
            change(index, &mut config);
            Proxy::new(config, clock.clone()).unwrap()
        };
        let proxies = self.words.iter().enumerate().map(proxy).collect();
        World::new(clock, client, proxies, server, self.paths, self.seed)
    }
}
