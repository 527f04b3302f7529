//! Starts the workers, and does what signals ask for.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bentpipe_connections::listening;
use bentpipe_endpoint::Clock;
use bentpipe_pep::Proxy;
use bentpipe_service::Failure;
use bentpipe_service::command_line::Arguments;
use bentpipe_service::log::Log;
use bentpipe_service::metrics::{MetricsPage, serve_metrics};
use bentpipe_service::settings::SettingsFile as _;
use bentpipe_service::supervisor::{self, Supervisor, allow_many_files, failed};
use bentpipe_units::Span;
use tracing::{error, info, warn};

use super::resolved::ResolvedSettings;
use super::settings::Settings;
use super::worker::{BypassOwners, Inbox, Message, Shared, Worker};
use super::{LOGGED, metrics};

/// The option of the QUIC version of a side.
const VERSION: &str = "version";

/// The service: all that runs.
struct Service {
    arguments: Arguments,
    resolved: ResolvedSettings,
    log: Log,
    shared: Arc<Shared>,
    clocks: Vec<Clock>,
}

/// Serves until signals end it.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let settings = Settings::load(arguments.file.as_deref(), &arguments.overrides)?;
    let resolved = ResolvedSettings::new(settings)?;
    let log = Log::install(LOGGED, resolved.settings.log);
    allow_many_files();
    let mut supervisor = Supervisor::new()?;
    let mut service = Service::start(arguments, resolved, log, &mut supervisor)?;
    supervisor.serve(&mut service)
}

impl Service {
    fn start(
        arguments: Arguments,
        resolved: ResolvedSettings,
        log: Log,
        supervisor: &mut Supervisor,
    ) -> Result<Self, Failure> {
        let workers = resolved.workers();
        let (places, listening) = listening::listen(&resolved.settings.listen, workers)?;
        let inboxes: Result<_, _> = (0..workers).map(|_| Inbox::new()).collect();
        let shared = Arc::new(Shared {
            inboxes: inboxes.map_err(failed("making an eventfd"))?,
            bypass_owners: BypassOwners::default(),
            busy: workers.into(),
        });
        let mut service = Self {
            arguments,
            resolved,
            log,
            shared,
            clocks: Vec::new(),
        };
        for (number, sockets) in listening.into_iter().enumerate() {
            service.start_worker(number, sockets, supervisor)?;
        }
        let metrics = service.start_metrics(supervisor)?;
        service.announce(&places, metrics);
        Ok(service)
    }

    fn start_worker(
        &mut self,
        number: usize,
        sockets: Vec<UdpSocket>,
        supervisor: &mut Supervisor,
    ) -> Result<(), Failure> {
        let clock = Clock::start_now();
        let config = self
            .resolved
            .config(number, self.shared.inboxes.len(), &clock)?;
        let proxy = Proxy::new(config, clock.clone())
            .map_err(|error| Failure::Failed(error.to_string()))?;
        let worker = Worker::new(number, proxy, clock.clone(), sockets, self.shared.clone())
            .map_err(|error| super::failed(&error))?;
        supervisor.start(move || worker.run().map(drop).map_err(|error| error.to_string()))?;
        self.clocks.push(clock);
        Ok(())
    }

    fn start_metrics(&self, supervisor: &Supervisor) -> Result<Option<SocketAddr>, Failure> {
        let shared = self.shared.clone();
        let page = MetricsPage {
            prefix: "bentpipe_pep_",
            count: Box::new(move || metrics::count(&shared)),
            workers: self.shared.inboxes.len(),
            lost_lines: self.log.lost(),
            draining: supervisor.draining.clone(),
        };
        serve_metrics(&self.resolved.settings.metrics, page)
    }

    fn announce(&self, places: &[SocketAddr], metrics: Option<SocketAddr>) {
        if self.resolved.tls.made {
            let why = "made for this run: no client will trust it; name one with [[certificate]], \
                       or --cert and --key";
            warn!(why, "certificate");
        }
        if !self.resolved.settings.next_hop.verify.0 {
            let why = "its certificate is not verified: anybody on the way can be it";
            warn!(why, "next-hop");
        }
        let listen: Vec<_> = places.iter().map(ToString::to_string).collect();
        let next_hop = self.resolved.destination();
        let workers = self.shared.inboxes.len();
        if let Some(metrics) = metrics {
            info!(?listen, next_hop, workers, %metrics, "started");
        } else {
            info!(?listen, next_hop, workers, "started");
        }
    }

    fn tell(&self, message: impl Fn() -> Message) {
        for inbox in &self.shared.inboxes {
            inbox.send(message());
        }
    }
}

impl supervisor::Service for Service {
    /// Reads settings and certificates again, for connections to come. If anything is wrong with
    /// them, all stays as it is.
    fn reload(&mut self) {
        let loaded = Settings::load(self.arguments.file.as_deref(), &self.arguments.overrides)
            .and_then(|mut settings| {
                let kept = keep(&self.resolved.settings, &mut settings);
                let mut resolved = ResolvedSettings::new(settings)?;
                resolved.quota = self.resolved.quota.clone();
                resolved.paths.clone_from(&self.resolved.paths);
                let workers = self.clocks.len();
                let numbered = self.clocks.iter().enumerate();
                let configs: Result<Vec<_>, _> = numbered
                    .map(|(number, clock)| resolved.config(number, workers, clock))
                    .collect();
                Ok((kept, resolved, configs?))
            });
        let (kept, resolved, configs) = match loaded {
            Ok(loaded) => loaded,
            Err(problem) => {
                error!(why = %problem, hint = problem.hint, "reload-failed");
                return;
            }
        };
        self.log.set(resolved.settings.log);
        let next_hop = resolved.destination();
        if kept.is_empty() {
            info!(next_hop, "reloaded");
        } else {
            info!(next_hop, not_before_a_restart = ?kept, "reloaded");
        }
        for (inbox, config) in self.shared.inboxes.iter().zip(configs) {
            inbox.send(Message::Reconfigure(Box::new(config)));
        }
        self.resolved = resolved;
    }

    fn grace(&self) -> Span {
        self.resolved.settings.times.drain
    }

    fn drain(&mut self, grace: Span) {
        let grace = Duration::from_nanos(grace.as_nanos());
        self.tell(|| Message::Drain(grace));
    }

    fn end(&mut self) {
        self.tell(|| Message::End);
    }
}

/// Takes from `old` what holds from the next start on only; the keys of what has changed among
/// that.
fn keep(old: &Settings, new: &mut Settings) -> Vec<&'static str> {
    let version = |settings: &Settings| settings.client_side.get(VERSION).cloned();
    let changed = [
        ("listen", old.listen != new.listen),
        ("workers", old.workers != new.workers),
        ("metrics.listen", old.metrics != new.metrics),
        ("client-side.version", version(old) != version(new)),
    ];
    new.listen.clone_from(&old.listen);
    new.workers = old.workers;
    new.metrics.clone_from(&old.metrics);
    new.client_side.remove(VERSION);
    let version = version(old).map(|version| (VERSION.to_owned(), version));
    new.client_side.extend(version);
    changed
        .into_iter()
        .filter_map(|(key, is_changed)| is_changed.then_some(key))
        .collect()
}
