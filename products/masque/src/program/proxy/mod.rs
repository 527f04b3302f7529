//! `bentpipe masque proxy`: starts the workers, and does what signals ask for.

mod file;
mod inbox;
mod metrics;
mod own;
mod resolved;
mod resolver;
#[cfg(test)]
mod tests;
mod worker;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bentpipe_connections::listening;
use bentpipe_endpoint::Clock;
use bentpipe_masque::Prefix;
use bentpipe_netlink::Netlink;
use bentpipe_service::command_line::Arguments;
use bentpipe_service::log::Log;
use bentpipe_service::metrics::{MetricsPage, serve_metrics};
use bentpipe_service::settings::SettingsFile as _;
use bentpipe_service::supervisor::{self, Supervisor, allow_many_files, failed};
use bentpipe_service::{Failure, SettingsError};
use bentpipe_units::Span;
use tracing::{error, info, warn};

use super::{LOGGED, device};
use crate::tun::TunFile;
use file::ProxyFile;
use inbox::{Inbox, Message};
use own::OwnAddresses;
use resolved::ResolvedProxy;
use resolver::Resolver;
use worker::{Shared, Worker};

/// The service: all that runs.
struct Service {
    arguments: Arguments,
    resolved: ResolvedProxy,
    log: Log,
    shared: Arc<Shared>,
    clocks: Vec<Clock>,
}

/// The settings as they are understood.
pub fn check(arguments: &Arguments) -> Result<String, SettingsError> {
    Ok(load(arguments)?.file.to_toml())
}

/// Serves until signals end it.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let resolved = load(&arguments)?;
    let log = Log::install(LOGGED, resolved.file.log);
    allow_many_files();
    let mut supervisor = Supervisor::new()?;
    let mut service = Service::start(arguments, resolved, log, &mut supervisor)?;
    supervisor.serve(&mut service)
}

fn load(arguments: &Arguments) -> Result<ResolvedProxy, SettingsError> {
    let file = ProxyFile::load(arguments.file.as_deref(), &arguments.overrides)?;
    ResolvedProxy::new(file)
}

impl Service {
    fn start(
        arguments: Arguments,
        resolved: ResolvedProxy,
        log: Log,
        supervisor: &mut Supervisor,
    ) -> Result<Self, Failure> {
        let workers = resolved.workers();
        let (places, listening) = listening::listen(&resolved.file.listen, workers)?;
        let devices = open_device(&resolved, workers)?;
        let inboxes: Result<Vec<_>, _> = (0..workers).map(|_| Inbox::new()).collect();
        let inboxes: Arc<[Inbox]> = inboxes.map_err(failed("making an eventfd"))?.into();
        let shared = Arc::new(Shared {
            resolver: Resolver::start(&inboxes)?,
            inboxes,
            busy: workers.into(),
            pool: resolved.pool.clone(),
            own: OwnAddresses::watch()?,
        });
        let mut service = Self {
            arguments,
            resolved,
            log,
            shared,
            clocks: Vec::new(),
        };
        let devices = devices
            .into_iter()
            .map(Some)
            .chain(std::iter::repeat_with(|| None));
        for (number, sockets) in listening.into_iter().zip(devices).enumerate() {
            service.start_worker(number, sockets, supervisor)?;
        }
        let metrics = service.start_metrics(supervisor)?;
        service.announce(&places, metrics);
        Ok(service)
    }

    fn start_worker(
        &mut self,
        number: usize,
        (sockets, device): (Vec<UdpSocket>, Option<TunFile>),
        supervisor: &mut Supervisor,
    ) -> Result<(), Failure> {
        let clock = Clock::start_now();
        let workers = self.shared.inboxes.len();
        let configuration = self.resolved.configuration(number, workers, &clock)?;
        let (own, shared) = (clock.clone(), self.shared.clone());
        supervisor.start(move || {
            // What belongs to a connection never leaves its thread.
            let worker = Worker::new(number, configuration, own, (sockets, device), shared);
            worker
                .and_then(Worker::run)
                .map_err(|error| error.to_string())
        })?;
        self.clocks.push(clock);
        Ok(())
    }

    fn start_metrics(&self, supervisor: &Supervisor) -> Result<Option<SocketAddr>, Failure> {
        let (inboxes, pool) = (self.shared.inboxes.clone(), self.shared.pool.clone());
        let page = MetricsPage {
            prefix: "bentpipe_masque_",
            count: Box::new(move || metrics::count(&inboxes, pool.as_deref())),
            workers: self.shared.inboxes.len(),
            lost_lines: self.log.lost(),
            draining: supervisor.draining.clone(),
        };
        serve_metrics(&self.resolved.file.metrics, page)
    }

    fn announce(&self, places: &[SocketAddr], metrics: Option<SocketAddr>) {
        let file = &self.resolved.file;
        if file.certificate.is_empty() {
            let why = "made for this run: no client will trust it; name one with [[certificate]], \
                       or --cert and --key";
            warn!(why, "certificate");
        }
        if file.clients.anybody {
            warn!(
                why = "clients.anybody: it asks nobody who they are",
                "clients"
            );
        }
        let listen: Vec<_> = places.iter().map(ToString::to_string).collect();
        let targets: Vec<_> = file.targets.allow.iter().map(ToString::to_string).collect();
        let targets = targets.join(" ");
        let workers = self.shared.inboxes.len();
        let metrics = metrics.map(tracing::field::display);
        let pool: Vec<_> = file.ip.pool.iter().map(ToString::to_string).collect();
        let ip_pool = (!pool.is_empty()).then(|| pool.join(" "));
        let device = ip_pool.is_some().then_some(file.ip.device.as_str());
        info!(
            ?listen,
            targets, workers, ip_pool, device, metrics, "started"
        );
        warn_of_forwarding(&file.ip.pool);
    }

    fn tell(&self, message: impl Fn() -> Message) {
        for inbox in self.shared.inboxes.iter() {
            inbox.send(message());
        }
    }
}

/// The TUN device with the proxy's own addresses, and a queue for each worker; none without a pool.
fn open_device(resolved: &ResolvedProxy, workers: usize) -> Result<Vec<TunFile>, Failure> {
    let Some(pool) = &resolved.pool else {
        return Ok(Vec::new());
    };
    let name = resolved.file.ip.device.as_str();
    let most = resolved
        .configuration(0, workers, &Clock::start_now())?
        .proxy
        .tunnel
        .largest_packet;
    let files = device::open("ip.device", name, most, workers)?;
    let problem = |error: io::Error| device::problem("ip.pool", name, &error);
    let mut netlink = Netlink::open().map_err(problem)?;
    for (address, prefix) in pool.own() {
        let prefix = bentpipe_netlink::Prefix {
            address,
            length: prefix.length(),
        };
        netlink.add_address(name, prefix).map_err(problem)?;
    }
    Ok(files)
}

/// Warns if the kernel hands on nothing of what clients send.
fn warn_of_forwarding(pool: &[Prefix]) {
    let switches = [
        (false, "net.ipv4.ip_forward"),
        (true, "net.ipv6.conf.all.forwarding"),
    ];
    for (is_v6, switch) in switches {
        let path = format!("/proc/sys/{}", switch.replace('.', "/"));
        let is_off = std::fs::read_to_string(path).is_ok_and(|it| it.trim() == "0");
        if is_off && pool.iter().any(|it| it.address().is_ipv6() == is_v6) {
            let why = format!("{switch} is 0: packets of clients go no further than this machine");
            warn!(why, "forwarding");
        }
    }
}

impl supervisor::Service for Service {
    /// Reads settings, tokens and certificates again, for connections to come; targets for requests
    /// to come. If anything is wrong with them, all stays as it is.
    fn reload(&mut self) {
        let loaded = ProxyFile::load(self.arguments.file.as_deref(), &self.arguments.overrides)
            .and_then(|mut file| {
                let kept = keep(&self.resolved.file, &mut file);
                let mut resolved = ResolvedProxy::new(file)?;
                resolved.quota = self.resolved.quota.clone();
                resolved.paths = self.resolved.paths.clone();
                resolved.pool.clone_from(&self.resolved.pool);
                let workers = self.clocks.len();
                let numbered = self.clocks.iter().enumerate();
                let all: Result<Vec<_>, _> = numbered
                    .map(|(number, clock)| resolved.configuration(number, workers, clock))
                    .collect();
                Ok((kept, resolved, all?))
            });
        let (kept, resolved, configurations) = match loaded {
            Ok(loaded) => loaded,
            Err(problem) => {
                error!(why = %problem, hint = problem.hint, "reload-failed");
                return;
            }
        };
        self.log.set(resolved.file.log);
        if kept.is_empty() {
            info!("reloaded");
        } else {
            info!(not_before_a_restart = ?kept, "reloaded");
        }
        for (inbox, configuration) in self.shared.inboxes.iter().zip(configurations) {
            inbox.send(Message::Reconfigure(Box::new(configuration)));
        }
        self.resolved = resolved;
    }

    fn grace(&self) -> Span {
        self.resolved.file.times.drain
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
fn keep(old: &ProxyFile, new: &mut ProxyFile) -> Vec<&'static str> {
    let mut changed = vec![
        ("listen", old.listen != new.listen),
        ("workers", old.workers != new.workers),
        ("metrics.listen", old.metrics != new.metrics),
        ("ip", old.ip != new.ip),
    ];
    new.listen.clone_from(&old.listen);
    new.workers = old.workers;
    new.metrics.clone_from(&old.metrics);
    new.ip.clone_from(&old.ip);
    if !old.ip.pool.is_empty() {
        // The device has the largest packet that these come to.
        for (key, name) in [("tunnel.mtu", "mtu"), ("tunnel.carry", "carry")] {
            let before = old.tunnel.get(name);
            changed.push((key, before != new.tunnel.get(name)));
            match before {
                Some(value) => new.tunnel.insert(name.to_owned(), value.clone()),
                None => new.tunnel.remove(name),
            };
        }
    }
    let changed = changed.into_iter();
    changed
        .filter_map(|(key, is_changed)| is_changed.then_some(key))
        .collect()
}
