//! A proxy's settings with all files read.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_connections::steering::{MOST_WORKERS, SteeredIds};
use bentpipe_connections::tls::{self, ServerTls};
use bentpipe_endpoint::{Clock, Role};
use bentpipe_masque::{Assigned, IpSettings, Pool, ProxySettings, Route};
use bentpipe_noq_options::RememberedPaths;
use bentpipe_service::SettingsError;
use bentpipe_service::quota::{ConnectionLimits, ConnectionQuota};
use bentpipe_service::supervisor::worker_count;
use bentpipe_units::Size;
use rustls::ServerConfig;

use super::file::ProxyFile;
use super::inbox::Configuration;
use crate::program::allow::Rule;
use crate::program::{routes, tunnel};

/// A shorter token could be guessed.
const SHORTEST_TOKEN: usize = 16;
/// The least that a link of IPv6 carries.
const LEAST_OF_IPV6: usize = 1280;

/// The settings, and what their files hold.
pub struct ResolvedProxy {
    pub file: ProxyFile,
    /// All workers', and kept when the settings change.
    pub quota: Arc<ConnectionQuota>,
    /// The paths to clients that all workers remember; kept when the settings change.
    pub paths: RememberedPaths,
    /// The addresses for clients of IP packets; kept when the settings change.
    pub pool: Option<Arc<Pool>>,
    tls: ServerConfig,
    tokens: Vec<String>,
    rules: Arc<[Rule]>,
    routes: Vec<Route>,
}

impl ResolvedProxy {
    /// Reads the files that the settings name.
    pub fn new(file: ProxyFile) -> Result<Self, SettingsError> {
        let ca = file.clients.ca.as_deref();
        let tls = ServerTls {
            certificates: &file.certificate,
            client_ca: ca.map(|path| ("clients.ca", path)),
            early_data: false,
        };
        let tokens = file.clients.tokens.as_deref().map(tokens).transpose()?;
        let has_pool = !file.ip.pool.is_empty();
        let routes = has_pool.then(|| routes::advertised(&file.targets.allow));
        let pool = has_pool.then(|| Pool::new(&file.ip.pool));
        let pool = pool.transpose().map_err(|error| {
            SettingsError::new("ip.pool", error, "bentpipe masque proxy --check says more")
        })?;
        let resolved = Self {
            routes: routes.transpose()?.unwrap_or_default(),
            pool: pool.map(Arc::new),
            tls: tls::server(tls)?,
            tokens: tokens.unwrap_or_default(),
            quota: Arc::default(),
            paths: RememberedPaths::default(),
            rules: file.targets.allow.clone().into(),
            file,
        };
        // Options are checked where they are used.
        let checked = resolved.configuration(0, 1, &Clock::start_now())?;
        resolved.check_sizes(checked.proxy.tunnel.largest_packet)?;
        Ok(resolved)
    }

    /// IPv6 needs tunnels that carry its least packet (RFC 8200, section 5).
    fn check_sizes(&self, largest_packet: usize) -> Result<(), SettingsError> {
        let has_v6 = self.file.ip.pool.iter().any(|it| it.address().is_ipv6());
        if has_v6 && largest_packet < LEAST_OF_IPV6 {
            let what = format!("packets of {largest_packet} bytes, and addresses of IPv6");
            let hint = "IPv6 needs packets of 1280 bytes: set tunnel.mtu to 1320 or more, or take \
                        the prefixes of IPv6 out of ip.pool";
            return Err(SettingsError::new("tunnel.mtu", what, hint));
        }
        Ok(())
    }

    /// Threads to serve with.
    pub fn workers(&self) -> usize {
        worker_count(self.file.workers, MOST_WORKERS)
    }

    /// The configuration of one worker.
    pub fn configuration(
        &self,
        worker: usize,
        workers: usize,
        clock: &Clock,
    ) -> Result<Configuration, SettingsError> {
        let (limits, times) = (&self.file.limits, &self.file.times);
        let (options, peers) = (&self.file.tunnel, self.paths.for_another_thread());
        let mut tunnel = tunnel::settings(options, limits.queue, Role::Server, clock, peers)?;
        tunnel.carriage.held = bytes(limits.stream_buffer);
        let proxy = ProxySettings {
            ip: self.pool.as_ref().map(|pool| {
                IpSettings::Assigned(Assigned {
                    pool: pool.clone(),
                    thread: worker,
                    most_of_client: usize_of(limits.ip_requests_per_client),
                    routes: self.routes.clone(),
                })
            }),
            tunnel,
            tls: self.tls.clone(),
            tokens: self.tokens.clone(),
            connections: ConnectionLimits {
                total: usize_of(limits.connections),
                of_client: usize_of(limits.connections_per_client),
            },
            quota: self.quota.clone(),
            requests: limits.requests,
            idle: Some(Duration::from_nanos(times.idle.as_nanos())),
            connection_ids: Some(SteeredIds::factory(worker, workers)),
        };
        let rules = self.rules.clone();
        Ok(Configuration { proxy, rules })
    }
}

/// The tokens of a file: one a line, without those that begin with `#`.
fn tokens(file: &Path) -> Result<Vec<String>, SettingsError> {
    let problem = |what: String, hint: &str| {
        let what = format!("{}: {what}", file.display());
        SettingsError::new("clients.tokens", what, hint)
    };
    let text = fs::read_to_string(file).map_err(|error| {
        let hint = "name a file with a token on each line, as `openssl rand -hex 32` prints one";
        problem(error.to_string(), hint)
    })?;
    let lines = text.lines().map(str::trim).enumerate();
    let mut tokens = Vec::new();
    for (number, line) in lines.filter(|(_, it)| !it.is_empty() && !it.starts_with('#')) {
        let is_one = line.bytes().all(|it| it.is_ascii_graphic());
        if !is_one || line.len() < SHORTEST_TOKEN {
            let what = format!("line {}: no token of 16 characters or more", number + 1);
            let hint = "write a token on each line, as `openssl rand -hex 32` prints one";
            return Err(problem(what, hint));
        }
        tokens.push(line.to_owned());
    }
    if tokens.is_empty() {
        let hint = "write a token on each line, as `openssl rand -hex 32` prints one";
        return Err(problem("no token in it".to_owned(), hint));
    }
    Ok(tokens)
}

fn bytes(size: Size) -> usize {
    usize::try_from(size.bytes()).expect("the setting's range ensures it")
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number).expect("machines of 32 bits at least")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, SettingsError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        fs::write(&file, text).unwrap();
        tokens(&file)
    }

    #[test]
    fn tokens_are_read_strictly() {
        let (one, other) = ("0123456789abcdef", "another-token-of-ours");
        let text = format!("# of the first\n{one}\n\n  {other}\n");
        assert_eq!(read(&text).unwrap(), [one, other]);
        for (text, words) in [
            ("", "no token in it"),
            ("# none\n", "no token in it"),
            ("short\n", "line 1"),
            (
                "0123456789abcdef\nwith a blank in it, which no header can carry\n",
                "line 2",
            ),
        ] {
            let said = read(text).unwrap_err();
            assert!(
                said.what.contains(words) && !said.hint.is_empty(),
                "{said:?}"
            );
        }
        let missing = tokens(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(missing.place, "clients.tokens");
    }
}
