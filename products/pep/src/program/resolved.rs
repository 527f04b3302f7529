//! The settings with all files read and all names resolved.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_connections::steering::{MOST_WORKERS, SteeredIds};
use bentpipe_endpoint::Clock;
use bentpipe_noq_options::RememberedPaths;
use bentpipe_pep::{
    Config, ConfigContext, HandshakeMode, Limits, NextHop, PepError, Place, PoolConfig,
};
use bentpipe_service::SettingsError;
use bentpipe_service::quota::ConnectionQuota;
use bentpipe_service::settings::{HostPort, OptionValue, Options};
use bentpipe_service::supervisor::worker_count;
use bentpipe_units::Span;

use super::settings::{Auto, AutoHop, Mode, Settings};
use super::tls::Tls;

/// A pair of server name and protocol that nobody has asked for for so long is no longer kept
/// ready.
const WARM_EXPIRY: Duration = Duration::from_mins(10);

/// The settings, what their files hold, and the addresses of their names.
#[derive(Debug, Clone)]
pub struct ResolvedSettings {
    pub settings: Settings,
    pub tls: Tls,
    /// All workers', and kept when the settings change.
    pub quota: Arc<ConnectionQuota>,
    /// The memory that all workers have of the paths of both sides, which is kept, too.
    pub paths: [RememberedPaths; 2],
    next_hop: NextHop,
}

impl ResolvedSettings {
    /// Reads the files and asks for the addresses that the settings name.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let plan = Self {
            tls: Tls::load(&settings)?,
            quota: Arc::default(),
            paths: Default::default(),
            next_hop: next_hop(&settings)?,
            settings,
        };
        // Options are checked where they are used.
        plan.config(0, 1, &Clock::start_now())?;
        Ok(plan)
    }

    /// Threads to serve with.
    pub fn workers(&self) -> usize {
        worker_count(self.settings.workers, MOST_WORKERS)
    }

    /// The next hops, in words.
    pub fn destination(&self) -> String {
        match &self.next_hop {
            NextHop::Fixed(address) => address.to_string(),
            NextHop::ByName(names) => {
                let names: Vec<_> = names
                    .iter()
                    .map(|(name, to)| format!("{name}={to}"))
                    .collect();
                names.join(" ")
            }
        }
    }

    /// The configuration of one worker's proxy.
    pub fn config(
        &self,
        worker: usize,
        workers: usize,
        clock: &Clock,
    ) -> Result<Config, SettingsError> {
        let context = ConfigContext {
            place: Sides::of(&self.settings).place,
            next_hop: self.next_hop.clone(),
            client_tls: self.tls.client_side.clone(),
            server_tls: self.tls.server_side.clone(),
            limits: limits(&self.settings),
            qlog: None,
            real_time: true,
            clock: clock.clone(),
            paths: self
                .paths
                .each_ref()
                .map(RememberedPaths::for_another_thread),
        };
        let mut config =
            Config::from_options(self.options(), context).map_err(|error| self.blame(&error))?;
        let settings = &self.settings;
        config.mode = match settings.mode {
            Mode::Parallel => HandshakeMode::Parallel,
            Mode::Sequential => HandshakeMode::Sequential,
            Mode::Warm => HandshakeMode::Warm,
        };
        config.bypass = match settings.auto {
            Auto::Off => None,
            Auto::Below(span) => Some(bentpipe_pep::BypassRule {
                threshold: duration(span),
                of_client_side: settings.auto_hop == AutoHop::ClientSide,
            }),
        };
        config.pool = PoolConfig {
            connections: usize_of(settings.limits.warm),
            expiry: WARM_EXPIRY,
            from_start: Vec::new(),
        };
        config.quota = self.quota.clone();
        config.connection_ids = Some(SteeredIds::factory(worker, workers));
        Ok(config)
    }

    /// Options of both sides, as the library wants them.
    fn options(&self) -> BTreeMap<String, String> {
        let of = |prefix: &'static str, options: &Options| {
            let named = |(name, value): (&String, &OptionValue)| {
                (format!("{prefix}{name}"), value.0.clone())
            };
            options.iter().map(named).collect::<Vec<_>>()
        };
        let sides = Sides::of(&self.settings);
        let (satellite, other) = (of("", sides.satellite.1), of(sides.prefix, sides.other.1));
        satellite.into_iter().chain(other).collect()
    }

    /// Says in whose table the option is.
    fn blame(&self, error: &PepError) -> SettingsError {
        let text = error.to_string();
        let sides = Sides::of(&self.settings);
        let (table, text) = if text.contains(sides.prefix) {
            (sides.other.0, text.replace(sides.prefix, ""))
        } else {
            (sides.satellite.0, text)
        };
        let hint = "endpoints/noq/README.md has the options of a side";
        SettingsError::new(table, text, hint)
    }
}

/// The sides by where the satellite is, which `auto-hop` says, with `auto` or without: each the
/// name of its table, and what is in it.
struct Sides<'a> {
    place: Place,
    satellite: (&'static str, &'a Options),
    other: (&'static str, &'a Options),
    /// The beginning of names of the other's options, as the library wants them.
    prefix: &'static str,
}

impl<'a> Sides<'a> {
    fn of(settings: &'a Settings) -> Self {
        let client = ("client-side", &settings.client_side);
        let server = ("server-side", &settings.server_side);
        match settings.auto_hop {
            AutoHop::ServerSide => Self {
                place: Place::Terminal,
                satellite: server,
                other: client,
                prefix: "access.",
            },
            AutoHop::ClientSide => Self {
                place: Place::Gateway,
                satellite: client,
                other: server,
                prefix: "ground.",
            },
        }
    }
}

fn limits(settings: &Settings) -> Limits {
    let (limits, times) = (&settings.limits, &settings.times);
    Limits {
        connections: usize_of(limits.connections),
        connections_per_client: usize_of(limits.connections_per_client),
        streams: limits.streams,
        stream_buffer: bytes(limits.stream_buffer),
        connection_buffer: bytes(limits.connection_buffer),
        handshake: duration(times.handshake),
        idle: duration(times.idle),
        gap: duration(times.gap),
        linger: duration(times.linger),
    }
}

fn next_hop(settings: &Settings) -> Result<NextHop, SettingsError> {
    let next = &settings.next_hop;
    if let Some(address) = &next.address {
        return Ok(NextHop::Fixed(resolve("next-hop.address", address)?));
    }
    let one = |(name, address): (&String, &HostPort)| -> Result<_, SettingsError> {
        let key = format!("next-hop.allow.{name:?}");
        Ok((name.to_ascii_lowercase(), resolve(&key, address)?))
    };
    let all: Result<BTreeMap<_, _>, _> = next.allow.iter().map(one).collect();
    Ok(NextHop::ByName(all?))
}

fn resolve(key: &str, address: &HostPort) -> Result<SocketAddr, SettingsError> {
    address.resolve().map_err(|error| {
        let hint = "write an address, or a name that the system can resolve";
        SettingsError::new(key, format!("{address}: {error}"), hint)
    })
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

fn bytes(size: bentpipe_units::Size) -> usize {
    usize::try_from(size.bytes()).expect("the setting's range ensures it")
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number).expect("machines of 32 bits at least")
}

#[cfg(test)]
mod tests {
    use bentpipe_service::settings::{SettingsFile as _, Source};

    use super::*;

    fn resolved(text: &str) -> Result<ResolvedSettings, SettingsError> {
        let hop = "[next-hop]\naddress = \"127.0.0.1:1\"\nverify = false\n";
        let text = &format!("{text}\n{hop}");
        let file = std::path::Path::new("pep.toml");
        ResolvedSettings::new(Settings::parse(Some(Source { file, text }), &[])?)
    }

    /// Controllers of noq's own report nothing.
    #[test]
    fn auto_hop_is_the_side_with_the_own_sender() {
        for (text, expected) in [
            ("", [false, true]),
            ("auto-hop = \"client-side\"", [true, false]),
        ] {
            let settings = resolved(text).unwrap();
            let config = settings.config(0, 1, &Clock::start_now()).unwrap();
            let own = [config.client.report, config.server.report].map(|it| it.is_some());
            assert_eq!(own, expected, "{text}");
        }
    }

    #[test]
    fn an_option_is_blamed_in_its_table() {
        for hop in ["client-side", "server-side"] {
            for table in ["client-side", "server-side"] {
                let text = format!("{table}.cc = \"vegas\"\nauto-hop = \"{hop}\"");
                let problem = resolved(&text).unwrap_err();
                assert_eq!(problem.place, table, "satellite: {hop}");
                assert!(problem.what.contains("option cc = \"vegas\""), "{problem}");
            }
        }
    }
}
