//! A configuration from the words of a variant, such as `iw=100 access.cc=cubic mode=warm`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_endpoint::{Clock, EndpointError, LogFolder, Options, Role, Surroundings};
use bentpipe_noq_options::{RememberedPaths, apply, log_to};
use noq_proto::TransportConfig;

use crate::config::error::PepError;
use crate::config::{Auto, Config, Hop, LARGEST_BUFFER, Limits, Mode, NextHop, Warm, Window};

/// Where a proxy stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the user's end of the satellite's hop, which is on its server side.
    Terminal,
    /// At the other end: the satellite's hop is on its client side.
    Gateway,
}

/// What a configuration needs beside the words.
pub struct Basis {
    /// Where the proxy stands.
    pub place: Place,
    /// Where connections go.
    pub next_hop: NextHop,
    /// The certificate that clients are shown.
    pub client_tls: Arc<rustls::ServerConfig>,
    /// Whom the proxy trusts.
    pub server_tls: Arc<rustls::ClientConfig>,
    /// What a connection may use, where the words do not say otherwise.
    pub limits: Limits,
    /// For a qlog per connection and side.
    pub qlog: Option<LogFolder>,
    /// Real time and sockets; else virtual time.
    pub real_time: bool,
    /// The time.
    pub clock: Clock,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_client: 1000,
            streams: 1000,
            stream_buffer: BUFFER,
            connection_buffer: 2 * BUFFER,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            gap: Duration::from_secs(30),
            linger: Duration::from_secs(60),
        }
    }
}

impl Default for Warm {
    fn default() -> Self {
        Self {
            connections: 1,
            expiry: Duration::from_secs(600),
            ahead: Vec::new(),
        }
    }
}

/// Of a stream, in bytes: what 250 Mbit/s need over a geostationary satellite, and some more.
const BUFFER: usize = 32 << 20;
/// A geostationary round trip takes 500 ms or more, one through the air or a low orbit less than this.
const THRESHOLD: Duration = Duration::from_millis(200);

/// Takes all `words`; refuses what it does not know.
///
/// Words of a hop are of the side that faces the satellite; with `access.` (terminal) or `ground.` (gateway) before them, of the other.
pub fn from_words(words: BTreeMap<String, String>, basis: Basis) -> Result<Config, PepError> {
    let mut words = Options::new(words);
    let mode = mode(&mut words)?;
    let auto = auto(&mut words, basis.place)?;
    let mut limits = basis.limits.clone();
    if let Some(bytes) = words.take_number("buffer", 1..=LARGEST_BUFFER as u64)? {
        limits.stream_buffer = usize::try_from(bytes).expect("the range of the option ensures it");
        limits.connection_buffer = 2 * limits.stream_buffer;
    }
    let prefix = match basis.place {
        Place::Terminal => "access.",
        Place::Gateway => "ground.",
    };
    let (others, satellites): (BTreeMap<_, _>, BTreeMap<_, _>) = words
        .into_map()
        .into_iter()
        .partition(|(name, _)| name.starts_with(prefix));
    let strip = |(name, value): (String, String)| (name[prefix.len()..].to_owned(), value);
    let others = others.into_iter().map(strip).collect();
    let (to_client, to_server) = match basis.place {
        Place::Terminal => ((others, prefix), (satellites, "")),
        Place::Gateway => ((satellites, ""), (others, prefix)),
    };
    Ok(Config {
        mode,
        auto,
        client: hop(to_client, Role::Server, &basis)?,
        server: hop(to_server, Role::Client, &basis)?,
        next_hop: basis.next_hop,
        client_tls: basis.client_tls,
        server_tls: basis.server_tls,
        limits,
        warm: Warm::default(),
        seats: Arc::default(),
        connection_ids: None,
        one_socket: false,
    })
}

fn mode(words: &mut Options) -> Result<Mode, EndpointError> {
    match words.take("mode").as_deref() {
        None | Some("parallel") => Ok(Mode::Parallel),
        Some("sequential") => Ok(Mode::Sequential),
        Some("warm") => Ok(Mode::Warm),
        Some(other) => Err(EndpointError::Unsupported(format!(
            "option mode = {other:?}: write parallel, sequential or warm"
        ))),
    }
}

fn auto(words: &mut Options, place: Place) -> Result<Option<Auto>, EndpointError> {
    match words.take("auto").as_deref() {
        None | Some("off") => Ok(None),
        Some("on") => Ok(Some(Auto {
            threshold: THRESHOLD,
            of_client_side: place == Place::Gateway,
        })),
        Some(other) => Err(EndpointError::Unsupported(format!(
            "option auto = {other:?}: write on or off"
        ))),
    }
}

/// The transport of a side; `role` is what the proxy is there; its words began with the prefix.
fn hop(
    (words, prefix): (BTreeMap<String, String>, &str),
    role: Role,
    basis: &Basis,
) -> Result<Hop, PepError> {
    let around = Surroundings {
        role,
        real_time: basis.real_time,
        qlog: basis.qlog.clone(),
        clock: basis.clock.clone(),
    };
    let named = |error: EndpointError| match error {
        EndpointError::Unsupported(what) => {
            let what = what.replacen("option ", &format!("option {prefix}"), 1);
            PepError::Option(EndpointError::Unsupported(what))
        }
        other => PepError::Option(other),
    };
    let window = match words.get("window").map(String::as_str) {
        None => Window::Buffers,
        // What is no number is refused below.
        Some(text) => text.parse().map_or(Window::Library, Window::Bytes),
    };
    let mut words = Options::new(words);
    let mut transport = TransportConfig::default();
    let peers = RememberedPaths::default();
    let report = apply(&mut transport, &around, &mut words, &peers).map_err(named)?;
    let version = version(&mut words).map_err(named)?;
    words.finish().map_err(named)?;
    if let Some(folder) = &basis.qlog {
        let start = basis.clock.instant(Duration::ZERO);
        log_to(folder, start, &mut transport);
    }
    Ok(Hop {
        transport,
        window,
        peers,
        report,
        version,
    })
}

/// The versions that the library has.
fn version(words: &mut Options) -> Result<Option<u32>, EndpointError> {
    let Some(text) = words.take("version") else {
        return Ok(None);
    };
    let draft = text.strip_prefix("draft-").and_then(|it| it.parse().ok());
    match (text.as_str(), draft) {
        ("1", _) => Ok(Some(1)),
        (_, Some(number @ 29..=34)) => Ok(Some(0xff00_0000 | number)),
        _ => Err(EndpointError::Unsupported(format!(
            "option version = {text:?}: write 1, or draft-29 to draft-34"
        ))),
    }
}
