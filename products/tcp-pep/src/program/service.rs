//! Starts the workers, and does what signals ask for.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bentpipe_linux_tcp::congestion_control;
use bentpipe_netlink::Route;
use bentpipe_service::command_line::Arguments;
use bentpipe_service::log::Log;
use bentpipe_service::metrics::{self, Metric, MetricsPage, WORKER_TIMEOUT};
use bentpipe_service::quota::{ConnectionLimits, ConnectionQuota};
use bentpipe_service::settings::HostPort;
use bentpipe_service::supervisor::{self, Supervisor, allow_many_files, failed, worker_count};
use bentpipe_service::{Failure, SettingsError};
use bentpipe_units::Span;
use rustix::net::getsockname;
use tracing::{error, info, warn};

use super::settings::{MOST_WORKERS, Pacing, Settings, SideSettings};
use super::{read, rights};
use crate::config::{Accept, Config, Destination, PoolConfig, Side, Times};
use crate::interception::Interception;
use crate::relay::{ClientSources, Inbox, Listener, Message, Relay};
use crate::sockets::{self, Listening, Sharing};
use crate::statistics::Statistics;

/// The service: all that runs.
struct Service {
    arguments: Arguments,
    settings: Settings,
    quota: Arc<ConnectionQuota>,
    log: Log,
    inboxes: Arc<Vec<Arc<Inbox>>>,
}

/// Rules of routing that are there as long as this is.
struct Rules {
    interception: Interception,
    before: Vec<Route>,
}

impl Drop for Rules {
    fn drop(&mut self) {
        if let Err(error) = self.interception.remove(std::mem::take(&mut self.before)) {
            let so = "--remove-rules removes what is left";
            warn!(why = %error, so, "rules");
        }
    }
}

/// Serves until signals end it.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let settings = read(&arguments)?;
    rights::check(&settings)?;
    let log = Log::install(crate::LOGGED, settings.log);
    allow_many_files();
    let mut supervisor = Supervisor::new()?;
    let most = if settings.accept == Accept::Late {
        1
    } else {
        MOST_WORKERS
    };
    let workers = worker_count(settings.workers, most);
    let inboxes: Result<Vec<_>, _> = (0..workers).map(|_| Inbox::new().map(Arc::new)).collect();
    let mut service = Service {
        arguments,
        settings,
        quota: Arc::default(),
        log,
        inboxes: Arc::new(inboxes.map_err(failed("making an eventfd"))?),
    };
    let config = service.config()?;
    let client_sources = service.client_sources(&config)?;
    let listeners = client_sources[0].listeners.iter();
    let listen_at: Vec<_> = listeners.filter_map(|it| name_of(&it.socket)).collect();
    for (number, (inbox, client_sources)) in service.inboxes.iter().zip(client_sources).enumerate()
    {
        let relay = Relay::new(number, client_sources, config.clone(), inbox.clone());
        let relay = relay.map_err(|error| Failure::Failed(error.to_string()))?;
        supervisor.start(move || relay.run().map(drop).map_err(|error| error.to_string()))?;
    }
    let metrics = service.start_metrics(&supervisor)?;
    // Last, for from then on it is the way of all these connections.
    let _rules = service.intercept()?;
    service.announce(&listen_at, metrics);
    supervisor.serve(&mut service)
}

impl Service {
    /// The configuration of one relay.
    fn config(&self) -> Result<Config, Failure> {
        let (settings, limits) = (&self.settings, &self.settings.limits);
        let next_hop = resolve("next-hop", settings.next_hop.as_ref())?;
        let gateway = resolve("pool.gateway", settings.pool.gateway.as_ref())?;
        let pool = gateway.map(|gateway| PoolConfig {
            gateway,
            from: None,
            connections: usize_of(settings.pool.connections.into()),
        });
        Ok(Config {
            client_side: side(&settings.client_side)?,
            server_side: side(&settings.server_side)?,
            is_transparent: settings.intercept.is_some(),
            accept: settings.accept,
            ports: settings
                .intercept
                .as_ref()
                .map_or_else(Vec::new, |it| it.ports.clone()),
            pool,
            terminals: Some(settings.pool.terminals.clone()),
            destination: next_hop.map_or(Destination::Wanted, Destination::Fixed),
            buffer: usize_of(limits.buffer.bytes()),
            memory: usize_of(limits.memory.bytes()) / self.inboxes.len(),
            limits: ConnectionLimits {
                total: usize_of(limits.connections.into()),
                of_client: usize_of(limits.connections_per_client.into()),
            },
            quota: self.quota.clone(),
            times: Times {
                idle: Some(duration(settings.times.idle)),
                handshake: Some(duration(settings.times.handshake)),
            },
        })
    }

    /// The addresses to listen at, and whether connections of a pool come there.
    fn places(&self) -> Vec<(SocketAddr, bool)> {
        let mut places = self.settings.listen.clone();
        if let Some(intercept) = interception(&self.settings) {
            for ip in intercept.versions {
                let ports = intercept.ports.iter();
                places.extend(ports.map(|port| SocketAddr::new(ip, *port)));
            }
        }
        let pool = self.settings.pool.listen.iter();
        let places = places.into_iter().map(|place| (place, false));
        places.chain(pool.map(|place| (*place, true))).collect()
    }

    /// Each worker's sources of new clients.
    fn client_sources(&self, config: &Config) -> Result<Vec<ClientSources>, Failure> {
        let mut all = Vec::new();
        for _ in self.inboxes.iter() {
            let gates = interception(&self.settings).map_or(Ok(Vec::new()), |it| it.gates());
            all.push(ClientSources {
                listeners: Vec::new(),
                gates: gates.map_err(failed("waiting for SYNs"))?,
            });
        }
        for (place, is_of_pool) in self.places() {
            let listen = |place, sharing| {
                let listening = Listening {
                    is_transparent: config.is_transparent && !is_of_pool,
                    accept: config.accept,
                    sharing,
                };
                sockets::listen(place, &config.client_side, listening)
                    .map_err(|error| cannot_listen(place, &error))
            };
            // Another program of the same user could share the address unnoticed.
            drop(listen(place, Sharing::Alone)?);
            let mut place = place;
            for client_sources in &mut all {
                let socket = listen(place, Sharing::Shared)?;
                place = name_of(&socket).unwrap_or(place); // a port of 0 is the same for all
                client_sources
                    .listeners
                    .push(Listener { socket, is_of_pool });
            }
        }
        Ok(all)
    }

    fn start_metrics(&self, supervisor: &Supervisor) -> Result<Option<SocketAddr>, Failure> {
        let inboxes = self.inboxes.clone();
        let page = MetricsPage {
            prefix: "bentpipe_tcp_pep_",
            count: Box::new(move || count(&inboxes)),
            workers: self.inboxes.len(),
            lost_lines: self.log.lost(),
            draining: supervisor.draining.clone(),
        };
        metrics::serve_metrics(&self.settings.metrics, page)
    }

    fn intercept(&self) -> Result<Option<Rules>, Failure> {
        let Some(interception) = interception(&self.settings) else {
            return Ok(None);
        };
        let problem = |error| {
            let hint = "it takes CAP_NET_ADMIN, and a kernel with CONFIG_IP_MULTIPLE_TABLES and \
                        CONFIG_IPV6_MULTIPLE_TABLES";
            SettingsError::new(
                "the system",
                format!("intercept: rules of routing: {error}"),
                hint,
            )
        };
        let before = interception.install().map_err(problem)?;
        Ok(Some(Rules {
            interception,
            before,
        }))
    }

    fn announce(&self, places: &[SocketAddr], metrics: Option<SocketAddr>) {
        let listen: Vec<_> = places.iter().map(ToString::to_string).collect();
        let (workers, settings) = (self.inboxes.len(), &self.settings);
        let next_hop = settings.next_hop.as_ref().map(ToString::to_string);
        let between = settings.intercept.as_ref();
        let between = between.map(|it| format!("{} and {}", it.clients, it.servers));
        let metrics = metrics.map(|it| it.to_string());
        info!(?listen, next_hop, between, workers, metrics, "started");
    }

    fn tell(&self, message: impl Fn() -> Message) {
        for inbox in self.inboxes.iter() {
            inbox.send(message());
        }
    }
}

impl supervisor::Service for Service {
    /// Reads settings again, for connections to come. If anything is wrong with them, all stays as
    /// it is.
    fn reload(&mut self) {
        let mut settings = match read(&self.arguments) {
            Ok(settings) => settings,
            Err(problem) => {
                error!(why = %problem, hint = problem.hint, "reload-failed");
                return;
            }
        };
        let kept = keep(&self.settings, &mut settings);
        let old = std::mem::replace(&mut self.settings, settings);
        let config = match self.config() {
            Ok(config) => config,
            Err(problem) => {
                self.settings = old;
                error!(why = ?problem, "reload-failed");
                return;
            }
        };
        self.log.set(self.settings.log);
        if kept.is_empty() {
            info!("reloaded");
        } else {
            info!(not_before_a_restart = ?kept, "reloaded");
        }
        self.tell(|| Message::Reconfigure(Box::new(config.clone())));
    }

    fn grace(&self) -> Span {
        self.settings.times.drain
    }

    fn drain(&mut self, grace: Span) {
        self.tell(|| Message::Drain(duration(grace)));
    }

    fn end(&mut self) {
        self.tell(|| Message::End);
    }
}

/// The interception, if there is one.
pub fn interception(settings: &Settings) -> Option<Interception> {
    let intercept = settings.intercept.as_ref()?;
    let [ipv4, ipv6] = Interception::VERSIONS;
    let mut versions = vec![ipv4];
    versions.extend(rights::has_ipv6().then_some(ipv6));
    Some(Interception {
        devices: [intercept.clients.clone(), intercept.servers.clone()],
        ports: intercept.ports.clone(),
        versions,
        is_late: settings.accept == Accept::Late,
        initial_windows: [settings.client_side.iw, settings.server_side.iw],
    })
}

/// Takes from `old` what holds from the next start on only; the keys of what has changed among
/// that.
fn keep(old: &Settings, new: &mut Settings) -> Vec<&'static str> {
    let changed = [
        ("listen", old.listen != new.listen),
        ("workers", old.workers != new.workers),
        ("accept", old.accept != new.accept),
        ("pool", old.pool != new.pool),
        ("intercept", old.intercept != new.intercept),
        ("client-side.iw", old.client_side.iw != new.client_side.iw),
        ("server-side.iw", old.server_side.iw != new.server_side.iw),
        ("metrics.listen", old.metrics != new.metrics),
    ];
    new.listen.clone_from(&old.listen);
    new.workers = old.workers;
    new.accept = old.accept;
    new.pool.clone_from(&old.pool);
    new.intercept.clone_from(&old.intercept);
    new.client_side.iw = old.client_side.iw;
    new.server_side.iw = old.server_side.iw;
    new.metrics.clone_from(&old.metrics);
    changed
        .into_iter()
        .filter_map(|(key, is_changed)| is_changed.then_some(key))
        .collect()
}

/// Asks all workers; the sums.
fn count(inboxes: &[Arc<Inbox>]) -> Option<Vec<(Metric, u64)>> {
    let ask = |inbox: &Arc<Inbox>| {
        let (answer, wait) = sync_channel(1);
        inbox.send(Message::Count(answer));
        wait
    };
    let waits: Vec<_> = inboxes.iter().map(ask).collect();
    let mut sum = Statistics::default();
    for wait in waits {
        sum += &wait.recv_timeout(WORKER_TIMEOUT).ok()?;
    }
    Some(sum.entries().collect())
}

fn resolve(key: &str, place: Option<&HostPort>) -> Result<Option<SocketAddr>, SettingsError> {
    let resolve = |place: &HostPort| {
        place.resolve().map_err(|error| {
            let hint = "write an address, or a name that the system can resolve";
            SettingsError::new(key, format!("{place}: {error}"), hint)
        })
    };
    place.map(resolve).transpose()
}

fn side(settings: &SideSettings) -> Result<Side, Failure> {
    Ok(Side {
        congestion: congestion_control(&settings.cc)
            .map_err(|error| Failure::Failed(error.to_string()))?,
        initial_window: settings.iw,
        rate: settings.rate.map(bentpipe_units::Rate::bps),
        is_paced: settings.pacing == Pacing::On,
    })
}

fn cannot_listen(place: SocketAddr, error: &dyn std::fmt::Display) -> Failure {
    let hint = "name an address of this machine and a TCP port that is free and allowed; \
                interception listens at the servers' ports, where no other program may";
    SettingsError::new("listen", format!("{place}: {error}"), hint).into()
}

fn name_of(socket: &OwnedFd) -> Option<SocketAddr> {
    getsockname(socket).ok()?.try_into().ok()
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

fn usize_of(number: u64) -> usize {
    usize::try_from(number).expect("the setting's range ensures it")
}
