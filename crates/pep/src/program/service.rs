//! Starts the workers, and does what signals ask for.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bentpipe_endpoint::{Clock, EndpointError};
use bentpipe_pep::Proxy;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{error, info, warn};

use super::arguments::Arguments;
use super::log::Log;
use super::metrics::Metrics;
use super::resolved::ResolvedSettings;
use super::settings::{Settings, SettingsError};
use super::worker::{BypassOwners, Inbox, Message, Shared, Worker};
use super::{Failure, http, listening, steering};

/// The option of the QUIC version of a side.
const VERSION: &str = "version";

/// An event that the main thread waits for.
enum ServiceEvent {
    Signal(i32),
    /// A worker has ended, however.
    Ended(usize),
}

/// The service: all that runs.
struct Service {
    arguments: Arguments,
    resolved: ResolvedSettings,
    log: Log,
    shared: Arc<Shared>,
    clocks: Vec<Clock>,
    threads: Vec<Option<JoinHandle<Result<Proxy, EndpointError>>>>,
    draining: Arc<AtomicBool>,
}

/// Serves until signals end it.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let settings = Settings::load(arguments.file.as_deref(), &arguments.overrides)?;
    let resolved = ResolvedSettings::new(settings)?;
    let log = Log::install(resolved.settings.log);
    listening::allow_many();
    let (news, messages) = channel();
    watch_signals(news.clone())?;
    let service = Service::start(arguments, resolved, log, &news)?;
    service.serve(&messages)
}

impl Service {
    fn start(
        arguments: Arguments,
        resolved: ResolvedSettings,
        log: Log,
        news: &Sender<ServiceEvent>,
    ) -> Result<Self, Failure> {
        let workers = resolved.workers();
        let (places, listening) = listen(&resolved, workers)?;
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
            threads: Vec::new(),
            draining: Arc::default(),
        };
        for (number, sockets) in listening.into_iter().enumerate() {
            service.start_worker(number, sockets, news.clone())?;
        }
        let metrics = service.start_metrics()?;
        service.announce(&places, metrics);
        Ok(service)
    }

    fn start_worker(
        &mut self,
        number: usize,
        sockets: Vec<UdpSocket>,
        news: Sender<ServiceEvent>,
    ) -> Result<(), Failure> {
        let clock = Clock::start_now();
        let config = self
            .resolved
            .config(number, self.shared.inboxes.len(), &clock)?;
        let proxy = Proxy::new(config, clock.clone())
            .map_err(|error| Failure::Failed(error.to_string()))?;
        let worker = Worker::new(number, proxy, clock.clone(), sockets, self.shared.clone())?;
        let thread = thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                let _end = EndNotice { number, news };
                worker.run()
            })
            .map_err(failed("starting a thread"))?;
        self.clocks.push(clock);
        self.threads.push(Some(thread));
        Ok(())
    }

    fn start_metrics(&self) -> Result<Option<SocketAddr>, Failure> {
        let Some(place) = self.resolved.settings.metrics.listen else {
            return Ok(None);
        };
        let metrics = Metrics {
            shared: self.shared.clone(),
            lost_lines: self.log.lost(),
            draining: self.draining.clone(),
        };
        let place = http::serve(place, move |path| metrics.answer(path)).map_err(|error| {
            let hint = "name an address of this machine and a TCP port that is free";
            SettingsError::new("metrics.listen", format!("{place}: {error}"), hint)
        })?;
        Ok(Some(place))
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
        let workers = self.threads.len();
        if let Some(metrics) = metrics {
            info!(?listen, next_hop, workers, %metrics, "started");
        } else {
            info!(?listen, next_hop, workers, "started");
        }
    }

    /// Until all workers have ended.
    fn serve(mut self, messages: &Receiver<ServiceEvent>) -> Result<(), Failure> {
        let mut left = self.threads.len();
        let mut result = Ok(());
        while left > 0 {
            match messages.recv().expect("this thread holds a sender") {
                ServiceEvent::Signal(SIGHUP) => self.reload(),
                ServiceEvent::Signal(_) => self.end(),
                ServiceEvent::Ended(number) => {
                    left -= 1;
                    if let Err(why) = self.join(number) {
                        error!(worker = number, why, "worker-failed");
                        result = Err(Failure::Failed(format!("worker {number}: {why}")));
                        // What it had is gone; who supervises this program can start it anew.
                        self.tell(|| Message::End);
                    }
                }
            }
        }
        info!("ended");
        result
    }

    /// Drains; the second time ends at once.
    fn end(&self) {
        if self.draining.swap(true, Ordering::Relaxed) {
            warn!(why = "a second signal", "ending");
            self.tell(|| Message::End);
            return;
        }
        let grace = self.resolved.settings.times.drain;
        info!(at_most = %grace, "draining");
        let grace = Duration::from_nanos(grace.as_nanos());
        self.tell(|| Message::Drain(grace));
    }

    fn tell(&self, message: impl Fn() -> Message) {
        for inbox in &self.shared.inboxes {
            inbox.send(message());
        }
    }

    fn join(&mut self, number: usize) -> Result<(), String> {
        let thread = self.threads[number].take().expect("a worker ends once");
        match thread.join() {
            Ok(result) => result.map(drop).map_err(|error| error.to_string()),
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                Err(text.unwrap_or_else(|| "it panicked".into()))
            }
        }
    }

    /// Reads settings and certificates again, for connections to come. If anything is wrong with
    /// them, all stays as it is.
    fn reload(&mut self) {
        let loaded = Settings::load(self.arguments.file.as_deref(), &self.arguments.overrides)
            .and_then(|mut settings| {
                let kept = keep(&self.resolved.settings, &mut settings);
                let mut resolved = ResolvedSettings::new(settings)?;
                resolved.quota = self.resolved.quota.clone();
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

/// The notice that a worker has ended, given even if it panicked.
struct EndNotice {
    number: usize,
    news: Sender<ServiceEvent>,
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        // Nobody is there to hear it when the program could not start.
        let _ = self.news.send(ServiceEvent::Ended(self.number));
    }
}

fn watch_signals(news: Sender<ServiceEvent>) -> Result<(), Failure> {
    let mut signals =
        Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(failed("handling signals"))?;
    let watch = move || {
        for signal in signals.forever() {
            if news.send(ServiceEvent::Signal(signal)).is_err() {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("signals".into()).spawn(watch);
    thread.map(drop).map_err(failed("starting a thread"))
}

/// The addresses, and each worker's sockets there.
fn listen(
    resolved: &ResolvedSettings,
    workers: usize,
) -> Result<(Vec<SocketAddr>, Vec<Vec<UdpSocket>>), Failure> {
    let has_ipv4 = resolved.settings.listen.iter().any(SocketAddr::is_ipv4);
    let mut places = Vec::new();
    let mut all: Vec<Vec<UdpSocket>> = (0..workers).map(|_| Vec::new()).collect();
    for &place in &resolved.settings.listen {
        let group = listening::group(place, workers, has_ipv4).map_err(|error| {
            let hint = "name an address of this machine and a UDP port that is free and allowed; below 1024 it takes the capability \
                        CAP_NET_BIND_SERVICE";
            SettingsError::new("listen", format!("{place}: {error}"), hint)
        })?;
        if workers > 1
            && let Err(error) = steering::attach(&group[0], workers)
        {
            let so = "workers hand datagrams on to each other, at a cost";
            warn!(why = %error, so, "steering");
        }
        places.push(
            group[0]
                .local_addr()
                .map_err(failed("asking for an address"))?,
        );
        for (worker, socket) in all.iter_mut().zip(group) {
            worker.push(socket);
        }
    }
    Ok((places, all))
}

fn failed(what: &'static str) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| EndpointError::io(what)(error).into()
}
