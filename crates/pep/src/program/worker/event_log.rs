//! The lines of the log about the proxy's events.

use std::collections::BTreeMap;
use std::time::Duration;

use bentpipe_pep::{ClosedBy, ConnectionNumber, Event, Refusal};

use crate::program::log::{Line, Log};

/// The writer of lines about a proxy's events; it keeps what a later line repeats.
pub struct EventLog {
    worker: usize,
    log: Log,
    /// When connections were opened.
    opened: BTreeMap<ConnectionNumber, Duration>,
}

impl EventLog {
    pub fn new(worker: usize, log: Log) -> Self {
        Self {
            worker,
            log,
            opened: BTreeMap::new(),
        }
    }

    pub fn write(&mut self, now: Duration, event: &Event) {
        match event {
            Event::Opened {
                number,
                client,
                server_name,
                next_hop,
            } => {
                self.opened.insert(*number, now);
                self.about(self.log.info("opened"), *number)
                    .say("client", client)
                    .with("name", server_name.clone())
                    .say("next_hop", next_hop);
            }
            Event::Established { number, protocol } => {
                let since = self.opened.get(number);
                let taken = now.saturating_sub(since.copied().unwrap_or(now));
                self.about(self.log.info("established"), *number)
                    .with("protocol", String::from_utf8_lossy(protocol))
                    .with("handshake_ms", millis(taken));
            }
            Event::Closed {
                number,
                by,
                to_server,
                to_client,
            } => {
                let since = self.opened.remove(number);
                let lived = now.saturating_sub(since.unwrap_or(now));
                let line = self.about(self.log.info("closed"), *number);
                closed_by(line, by)
                    .with("seconds", lived.as_secs_f64())
                    .with("to_server", *to_server)
                    .with("to_client", *to_client);
            }
            Event::Refused { client, why } => {
                let line = self.log.warning("refused").say("client", client);
                refused(line, why);
            }
            Event::BypassOpened {
                flow,
                client,
                next_hop,
            } => {
                let line = self.log.info("aside").with("flow", self.key(*flow));
                line.say("client", client).say("next_hop", next_hop);
            }
            Event::BypassClosed { flow } => {
                self.log.info("aside-closed").with("flow", self.key(*flow));
            }
        }
    }

    /// Connections and flows are counted by each worker.
    fn key(&self, number: u64) -> String {
        format!("{}-{number}", self.worker)
    }

    fn about<'a>(&self, line: Line<'a>, number: ConnectionNumber) -> Line<'a> {
        line.with("connection", self.key(number.0))
    }
}

fn closed_by<'a>(line: Line<'a>, by: &ClosedBy) -> Line<'a> {
    match by {
        ClosedBy::Client(code) => line.with("by", "client").with("code", *code),
        ClosedBy::Server(code) => line.with("by", "server").with("code", *code),
        ClosedBy::Proxy { code, reason } => line
            .with("by", "proxy")
            .with("code", *code)
            .with("why", reason.clone()),
    }
}

fn refused<'a>(line: Line<'a>, why: &Refusal) -> Line<'a> {
    match why {
        Refusal::Connections => line.with("why", "limits.connections"),
        Refusal::ConnectionsOfClient => line.with("why", "limits.connections-per-client"),
        Refusal::ServerName(name) => line.with("why", "server name").with("name", name.clone()),
        Refusal::ClientHello => line.with("why", "no ClientHello"),
        Refusal::Draining => line.with("why", "shutting down"),
    }
}

/// With three digits after the point.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
