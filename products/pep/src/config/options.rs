//! A configuration from the options of a trial or a command line, such as `iw=100 access.cc=cubic
//! mode=warm`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_endpoint::{Clock, EndpointError, LogFolder, Options, Role, Surroundings};
use bentpipe_noq_options::{RememberedPaths, apply, log_to, with_own_sender};
use noq_proto::TransportConfig;

use super::{
    BypassRule, Config, HandshakeMode, LARGEST_BUFFER, NextHop, PepError, PoolConfig, SideConfig,
};
use crate::limits::{Limits, ReceiveWindow};

/// The place of a proxy on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the user's end of the satellite's hop, which is on its server side.
    Terminal,
    /// At the other end: the satellite's hop is on its client side.
    Gateway,
}

/// The parts of a configuration that are no options.
pub struct ConfigContext {
    /// Where the proxy stands.
    pub place: Place,
    /// Where connections go.
    pub next_hop: NextHop,
    /// The certificate that clients are shown.
    pub client_tls: Arc<rustls::ServerConfig>,
    /// Whom the proxy trusts.
    pub server_tls: Arc<rustls::ClientConfig>,
    /// Limits of a connection's resources, where the options do not say otherwise.
    pub limits: Limits,
    /// The folder for a qlog per connection and side.
    pub qlog: Option<LogFolder>,
    /// Whether it runs in real time, over sockets; else in virtual time.
    pub real_time: bool,
    /// The time.
    pub clock: Clock,
    /// The memory of the paths of the client side and of the server side.
    pub paths: [RememberedPaths; 2],
}

/// The round-trip time below which a hop is no geostationary satellite's: that takes 500 ms or
/// more, one through the air or a low orbit less than this.
const THRESHOLD: Duration = Duration::from_millis(200);

impl Config {
    /// The configuration that all `options` come to; refuses what it does not know.
    ///
    /// Options of a hop are of the side that faces the satellite; with `access.` (terminal) or
    /// `ground.` (gateway) before them, of the other. Without `cc` and `ss` the former has
    /// `cc=bentpipe`, and the latter the library's default.
    pub fn from_options(
        options: BTreeMap<String, String>,
        context: ConfigContext,
    ) -> Result<Self, PepError> {
        let mut options = Options::new(options);
        let mode = mode(&mut options)?;
        let bypass = bypass(&mut options, context.place)?;
        let mut limits = context.limits.clone();
        if let Some(bytes) = options.take_number("buffer", 1..=LARGEST_BUFFER)? {
            limits.stream_buffer = bytes;
            limits.connection_buffer = 2 * limits.stream_buffer;
        }
        let [client, server] = by_side(options.into_map(), context.place);
        Ok(Self {
            mode,
            bypass,
            client: side(client, Role::Server, &context, &context.paths[0])?,
            server: side(server, Role::Client, &context, &context.paths[1])?,
            next_hop: context.next_hop,
            client_tls: context.client_tls,
            server_tls: context.server_tls,
            limits,
            pool: PoolConfig::default(),
            quota: Arc::default(),
            connection_ids: None,
            one_socket: false,
        })
    }
}

/// The options of one side, and what their names began with.
struct SideOptions {
    options: BTreeMap<String, String>,
    prefix: &'static str,
}

/// The options of the client side and of the server side.
fn by_side(options: BTreeMap<String, String>, place: Place) -> [SideOptions; 2] {
    let prefix = match place {
        Place::Terminal => "access.",
        Place::Gateway => "ground.",
    };
    let (others, satellite): (BTreeMap<_, _>, BTreeMap<_, _>) = options
        .into_iter()
        .partition(|(name, _)| name.starts_with(prefix));
    let strip = |(name, value): (String, String)| (name[prefix.len()..].to_owned(), value);
    let others = SideOptions {
        options: others.into_iter().map(strip).collect(),
        prefix,
    };
    let satellite = SideOptions {
        options: with_own_sender(satellite),
        prefix: "",
    };
    match place {
        Place::Terminal => [others, satellite],
        Place::Gateway => [satellite, others],
    }
}

fn mode(options: &mut Options) -> Result<HandshakeMode, EndpointError> {
    let modes = [
        ("parallel", HandshakeMode::Parallel),
        ("sequential", HandshakeMode::Sequential),
        ("warm", HandshakeMode::Warm),
    ];
    let mode = options.take_word("mode", &modes)?;
    Ok(mode.unwrap_or(HandshakeMode::Parallel))
}

fn bypass(options: &mut Options, place: Place) -> Result<Option<BypassRule>, EndpointError> {
    let is_on = options.take_switch("auto")? == Some(true);
    Ok(is_on.then_some(BypassRule {
        threshold: THRESHOLD,
        of_client_side: place == Place::Gateway,
    }))
}

/// The transport of a side; `role` is what the proxy is there.
fn side(
    SideOptions { options, prefix }: SideOptions,
    role: Role,
    context: &ConfigContext,
    paths: &RememberedPaths,
) -> Result<SideConfig, PepError> {
    let around = Surroundings {
        role,
        real_time: context.real_time,
        qlog: context.qlog.clone(),
        clock: context.clock.clone(),
    };
    let named = |error: EndpointError| match error {
        EndpointError::Unsupported(what) => {
            let what = what.replacen("option ", &format!("option {prefix}"), 1);
            PepError::Option(EndpointError::Unsupported(what))
        }
        other => PepError::Option(other),
    };
    let window = match options.get("window").map(String::as_str) {
        None => ReceiveWindow::Buffers,
        // A value that is no number is refused below.
        Some(text) => text
            .parse()
            .map_or(ReceiveWindow::Library, ReceiveWindow::Bytes),
    };
    let mut options = Options::new(options);
    let mut transport = TransportConfig::default();
    let report = apply(&mut transport, &around, &mut options, paths).map_err(named)?;
    let version = version(&mut options).map_err(named)?;
    options.finish().map_err(named)?;
    if let Some(folder) = &context.qlog {
        let start = context.clock.instant(Duration::ZERO);
        log_to(folder, start, &mut transport);
    }
    Ok(SideConfig {
        transport,
        window,
        peers: paths.clone(),
        report,
        version,
    })
}

/// The QUIC version, among those that the library has.
fn version(options: &mut Options) -> Result<Option<u32>, EndpointError> {
    let Some(text) = options.take("version") else {
        return Ok(None);
    };
    let draft = text.strip_prefix("draft-").and_then(|it| it.parse().ok());
    match (text.as_str(), draft) {
        ("1", _) => Ok(Some(1)),
        (_, Some(number @ 29..=34)) => Ok(Some(0xff00_0000 | number)),
        _ => {
            let problem = "write 1, or draft-29 to draft-34";
            Err(EndpointError::option("version", &text, problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of both sides, as a text.
    fn sides(words: &str, place: Place) -> String {
        let options = Options::parse(words).unwrap().into_map();
        let [client, server] = by_side(options, place);
        format!("{:?} {:?}", client.options, server.options)
    }

    #[test]
    fn the_satellite_has_the_own_sender_unless_cc_or_ss_is_given() {
        let own = r#"{"cc": "bentpipe"}"#;
        assert_eq!(sides("", Place::Terminal), format!("{{}} {own}"));
        assert_eq!(sides("", Place::Gateway), format!("{own} {{}}"));
        let with_window = sides("iw=20 access.iw=5", Place::Terminal);
        let expected = r#"{"iw": "5"} {"cc": "bentpipe", "iw": "20"}"#;
        assert_eq!(with_window, expected);
        for given in ["cc=cubic", "ss=trains"] {
            let (name, value) = given.split_once('=').unwrap();
            let expected = format!("{{{name:?}: {value:?}}} {{}}");
            assert_eq!(sides(given, Place::Gateway), expected);
        }
        let other = sides("ground.cc=bbr3", Place::Gateway);
        assert_eq!(other, format!(r#"{own} {{"cc": "bbr3"}}"#));
    }
}
