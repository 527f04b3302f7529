//! The lines of the log about the proxy's events.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bentpipe_pep::{ClosedBy, ConnectionNumber, Event, Refusal};
use tracing::{info, warn};

/// The writer of lines about a proxy's events; it keeps what a later line repeats.
pub struct EventLog {
    worker: usize,
    /// When connections were opened.
    opened: BTreeMap<ConnectionNumber, Duration>,
}

/// The number of a connection or a flow, which each worker counts.
struct Key {
    worker: usize,
    number: u64,
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.worker, self.number)
    }
}

impl EventLog {
    /// For the proxy of a worker.
    pub fn new(worker: usize) -> Self {
        Self {
            worker,
            opened: BTreeMap::new(),
        }
    }

    /// Writes a line about an event.
    pub fn write(&mut self, now: Duration, event: &Event) {
        match event {
            Event::Opened {
                number,
                client,
                server_name,
                next_hop,
            } => {
                self.opened.insert(*number, now);
                let (connection, name) = (self.key(number.0), server_name.as_deref());
                info!(%connection, %client, name, %next_hop, "opened");
            }
            Event::Established { number, protocol } => {
                let since = self.opened.get(number);
                let taken = now.saturating_sub(since.copied().unwrap_or(now));
                let connection = self.key(number.0);
                let protocol = &*String::from_utf8_lossy(protocol);
                info!(%connection, protocol, handshake_ms = millis(taken), "established");
            }
            Event::Closed {
                number,
                by,
                to_server,
                to_client,
            } => {
                let since = self.opened.remove(number);
                let seconds = now.saturating_sub(since.unwrap_or(now)).as_secs_f64();
                let connection = self.key(number.0);
                let (by, code, why) = match by {
                    ClosedBy::Client(code) => ("client", code, None),
                    ClosedBy::Server(code) => ("server", code, None),
                    ClosedBy::Proxy { code, reason } => ("proxy", code, Some(reason.as_str())),
                };
                if let Some(why) = why {
                    info!(%connection, by, code, why, seconds, to_server, to_client, "closed");
                } else {
                    info!(%connection, by, code, seconds, to_server, to_client, "closed");
                }
            }
            Event::Refused { client, why } => {
                let words = match why {
                    Refusal::Connections => "limits.connections",
                    Refusal::ConnectionsOfClient => "limits.connections-per-client",
                    Refusal::ServerName(name) => {
                        let name = name.as_deref();
                        return warn!(%client, why = "server name", name, "refused");
                    }
                    Refusal::ClientHello => "no ClientHello",
                    Refusal::Draining => "shutting down",
                };
                warn!(%client, why = words, "refused");
            }
            Event::BypassOpened {
                flow,
                client,
                next_hop,
            } => {
                info!(flow = %self.key(*flow), %client, %next_hop, "aside");
            }
            Event::BypassClosed { flow } => {
                info!(flow = %self.key(*flow), "aside-closed");
            }
        }
    }

    fn key(&self, number: u64) -> Key {
        Key {
            worker: self.worker,
            number,
        }
    }
}

/// With three digits after the point.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
