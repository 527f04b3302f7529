//! `bentpipe masque client`: a UDP port of this machine that leads to a target by way of a proxy,
//! or a TUN device by which its IP packets go there.

mod file;
mod near;
mod network;
mod resolved;
#[cfg(test)]
mod tests;
mod worker;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use bentpipe_endpoint::{Clock, EndpointError};
use bentpipe_masque::ClientSettings;
use bentpipe_service::command_line::Arguments;
use bentpipe_service::log::Log;
use bentpipe_service::metrics::{Metric, MetricsPage, WORKER_TIMEOUT, counter, serve_metrics};
use bentpipe_service::settings::SettingsFile as _;
use bentpipe_service::supervisor::{self, Supervisor, failed};
use bentpipe_service::{Failure, SettingsError};
use bentpipe_units::Span;
use tracing::{error, info, warn};

use super::{LOGGED, device};
use crate::tun::TunFile;
use file::ClientFile;
use near::Near;
use network::Interface;
use worker::{Inbox, Message, Worker};

/// The program's metrics beside those of its client.
const PROGRAM: [Metric; 5] = [
    counter(
        "unsent_packets_total",
        "IP packets that the TUN device did not take.",
    ),
    counter("icmp_errors_total", "Errors of ICMP that were sent."),
    counter(
        "withheld_icmp_errors_total",
        "Errors of ICMP that were not sent since there had been too many.",
    ),
    counter(
        "unsent_datagrams_total",
        "UDP payloads that no socket took.",
    ),
    counter("socket_errors_total", "Errors of sockets."),
];

/// The service: all that runs.
struct Service {
    arguments: Arguments,
    log: Log,
    inbox: Arc<Inbox>,
}

/// The settings as they are understood.
pub fn check(arguments: &Arguments) -> Result<String, SettingsError> {
    let file = load(arguments)?;
    resolved::settings(&file, &Clock::start_now())?;
    Ok(file.to_toml())
}

fn load(arguments: &Arguments) -> Result<ClientFile, SettingsError> {
    ClientFile::load(arguments.file.as_deref(), &arguments.overrides)
}

/// Serves until signals end it.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let file = load(&arguments)?;
    let clock = Clock::start_now();
    let settings = resolved::settings(&file, &clock)?;
    let log = Log::install(LOGGED, file.log);
    let mut supervisor = Supervisor::new()?;
    let (near, place) = open_near(&file, &settings)?;
    let inbox = Arc::new(Inbox::new().map_err(failed("making an eventfd"))?);
    let proxy = settings.proxy;
    let own = inbox.clone();
    let mut service = Service {
        arguments,
        log,
        inbox,
    };
    let metrics = service.start_metrics(&file, &supervisor)?;
    // Before the worker begins, which with a device asks at once: what it logs comes later.
    announce(&file, place, proxy, metrics)?;
    supervisor.start(move || {
        // What belongs to a connection never leaves its thread.
        let worker = Worker::new(settings, clock, near, own);
        worker
            .and_then(Worker::run)
            .map_err(|error| error.to_string())
    })?;
    supervisor.serve(&mut service)
}

fn said(error: &EndpointError) -> Failure {
    Failure::Failed(error.to_string())
}

/// The side towards those behind the client, and the address of its port if it is one.
fn open_near(
    file: &ClientFile,
    settings: &ClientSettings,
) -> Result<(Near, Option<SocketAddr>), Failure> {
    let Some(name) = &file.tun.name else {
        let port = worker::listen(file.listen).map_err(|error| {
            let hint = "name an address of this machine and a UDP port that is free";
            SettingsError::new("listen", format!("{}: {error}", file.listen), hint)
        })?;
        let place = port.local_address().map_err(|error| said(&error))?;
        return Ok((Near::udp(port), Some(place)));
    };
    let most = settings.tunnel.largest_packet;
    let [device] = <[TunFile; 1]>::try_from(device::open("tun.name", name, most, 1)?)
        .unwrap_or_else(|_| unreachable!("one was asked for"));
    let wanted = file.tun.routes.as_deref();
    let proxy = settings.proxy.ip().to_canonical();
    let interface = Interface::new(name, most, proxy, wanted);
    let interface = interface.map_err(|error| device::problem("tun.name", name, &error))?;
    Ok((Near::tun(device, interface), None))
}

fn announce(
    file: &ClientFile,
    listen: Option<SocketAddr>,
    proxy: SocketAddr,
    metrics: Option<SocketAddr>,
) -> Result<(), SettingsError> {
    if file.proxy.any_certificate {
        let why = "its certificate is not verified: anybody on the way can be it";
        warn!(why, "proxy");
    }
    let metrics = metrics.map(tracing::field::display);
    let Some(listen) = listen else {
        let device = file.tun.name.as_deref();
        info!(device, %proxy, metrics, "started");
        return Ok(());
    };
    let target = resolved::target(file)?;
    let listen = [listen.to_string()];
    info!(?listen, %target, %proxy, metrics, "started");
    Ok(())
}

impl Service {
    fn start_metrics(
        &self,
        file: &ClientFile,
        supervisor: &Supervisor,
    ) -> Result<Option<SocketAddr>, Failure> {
        let inbox = self.inbox.clone();
        let page = MetricsPage {
            prefix: "bentpipe_masque_",
            count: Box::new(move || count(&inbox)),
            workers: 1,
            lost_lines: self.log.lost(),
            draining: supervisor.draining.clone(),
        };
        serve_metrics(&file.metrics, page)
    }
}

fn count(inbox: &Inbox) -> Option<Vec<(Metric, u64)>> {
    let (answer, wait) = sync_channel(1);
    inbox.send(Message::Count(answer));
    let counted = wait.recv_timeout(WORKER_TIMEOUT).ok()?;
    let own = [
        counted.unsent_packets,
        counted.errors.told,
        counted.errors.withheld,
        counted.unsent,
        counted.socket_errors,
    ];
    let entries = counted.statistics.entries();
    Some(entries.chain(PROGRAM.into_iter().zip(own)).collect())
}

impl supervisor::Service for Service {
    /// Sets the log; all else holds from the next start on.
    fn reload(&mut self) {
        match load(&self.arguments) {
            Ok(file) => {
                self.log.set(file.log);
                info!(not_before_a_restart = "all but log", "reloaded");
            }
            Err(problem) => error!(why = %problem, hint = problem.hint, "reload-failed"),
        }
    }

    /// Its flows end with it: a client behind it learns nothing of their end either way.
    fn grace(&self) -> Span {
        Span::ZERO
    }

    fn drain(&mut self, _: Span) {
        self.end();
    }

    fn end(&mut self) {
        self.inbox.send(Message::End);
    }
}
