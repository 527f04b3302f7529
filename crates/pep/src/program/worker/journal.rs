//! What the log says of the proxy's events.

use std::collections::BTreeMap;
use std::time::Duration;

use bentpipe_pep::{Event, Number, Refusal, Why};

use crate::program::log::{Line, Log};

/// Keeps what a later line repeats.
pub struct Journal {
    worker: usize,
    log: Log,
    /// When connections were opened.
    opened: BTreeMap<Number, Duration>,
}

impl Journal {
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
                name,
                next_hop,
            } => {
                self.opened.insert(*number, now);
                self.about(self.log.info("opened"), *number)
                    .say("client", client)
                    .with("name", name.clone())
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
                why,
                to_server,
                to_client,
            } => {
                let since = self.opened.remove(number);
                let lived = now.saturating_sub(since.unwrap_or(now));
                let line = self.about(self.log.info("closed"), *number);
                because(line, why)
                    .with("seconds", lived.as_secs_f64())
                    .with("to_server", *to_server)
                    .with("to_client", *to_client);
            }
            Event::Refused { client, why } => {
                let line = self.log.warning("refused").say("client", client);
                refused(line, why);
            }
            Event::Aside {
                flow,
                client,
                next_hop,
            } => {
                let line = self.log.info("aside").with("flow", self.key(*flow));
                line.say("client", client).say("next_hop", next_hop);
            }
            Event::AsideClosed { flow } => {
                self.log.info("aside-closed").with("flow", self.key(*flow));
            }
        }
    }

    /// Connections and flows are counted by each worker.
    fn key(&self, number: u64) -> String {
        format!("{}-{number}", self.worker)
    }

    fn about<'a>(&self, line: Line<'a>, number: Number) -> Line<'a> {
        line.with("connection", self.key(number.0))
    }
}

fn because<'a>(line: Line<'a>, why: &Why) -> Line<'a> {
    match why {
        Why::ByClient(code) => line.with("by", "client").with("code", *code),
        Why::ByServer(code) => line.with("by", "server").with("code", *code),
        Why::ByProxy(code, words) => line
            .with("by", "proxy")
            .with("code", *code)
            .with("why", words.clone()),
    }
}

fn refused<'a>(line: Line<'a>, why: &Refusal) -> Line<'a> {
    match why {
        Refusal::Connections => line.with("why", "limits.connections"),
        Refusal::ConnectionsOfClient => line.with("why", "limits.connections-per-client"),
        Refusal::Name(name) => line.with("why", "server name").with("name", name.clone()),
        Refusal::Hello => line.with("why", "no ClientHello"),
        Refusal::Draining => line.with("why", "shutting down"),
    }
}

/// With three digits after the point.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
