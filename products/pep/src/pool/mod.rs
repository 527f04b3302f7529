//! Connections to next hops that are complete before anybody asks for them.
//!
//! What somebody has asked for, by server name and application protocol, is kept ready from then
//! on, until nobody has for long. A proxy that does so holds a connection to each next hop that is
//! a proxy itself, and that one, in this mode, connects on before it answers: so that the whole
//! chain is ready.
//!
//! Promises: nobody gets a connection that another has used, and a next hop that fails is tried
//! ever more rarely. Knows next hops and how to connect to them; must not know clients.

mod ready;

pub use ready::PoolKey;

use std::time::{Duration, Instant};

use noq_proto::Event as ConnectionEvent;

use crate::config::{Config, HandshakeMode};
use crate::connections::Side;
use crate::handshake::Connector;
use crate::relay::CloseCode;
use ready::ReadyConnections;

/// The number of PINGs that a pooled connection sends in an idle time: one may be lost, and each
/// hop relays them a little later.
const PINGS: u32 = 4;

/// The connections that are kept ready.
#[derive(Default)]
pub struct Pool {
    connections: ReadyConnections,
    /// The connections that are wanted from the start were asked for.
    is_begun: bool,
    /// The pooled connections were made with an earlier configuration.
    is_stale: bool,
    /// Nothing new is begun.
    is_closed: bool,
}

impl Pool {
    /// When [`Self::handle_timeout`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.connections.next_timeout()
    }

    /// Whether [`Self::refresh`] wants to be called.
    pub fn wants_refresh(&self, config: &Config) -> bool {
        self.is_stale || config.mode == HandshakeMode::Warm && !self.is_begun
    }

    /// The configuration has changed.
    pub fn renew(&mut self) {
        self.is_stale = true;
        self.is_begun = false;
    }

    /// Drops what is of an earlier configuration, and asks for what is wanted from the start.
    pub fn refresh(&mut self, now: Instant, connector: &mut Connector) {
        if std::mem::take(&mut self.is_stale) {
            self.clear(now, connector);
        }
        let config = connector.config.clone();
        if config.mode != HandshakeMode::Warm || std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        for (name, protocol) in &config.pool.from_start {
            if let Some(next_hop) = config.next_hop(Some(name)) {
                let key = PoolKey {
                    next_hop,
                    server_name: Some(name.clone()),
                    protocol: protocol.clone(),
                };
                self.request(now, &key, connector);
            }
        }
    }

    /// A connection that is ready for one of these protocols, the first if possible, and which that
    /// is.
    pub fn take(&mut self, wanted: &PoolKey, protocols: &[Vec<u8>]) -> Option<(usize, PoolKey)> {
        self.connections.take(wanted, protocols)
    }

    /// Somebody wants this: from now on it is kept ready.
    pub fn request(&mut self, now: Instant, key: &PoolKey, connector: &mut Connector) {
        let superfluous = self.connections.request(now, key, &connector.config.pool);
        close(now, superfluous, connector);
        self.fill(now, key, connector);
    }

    /// Begins as many connections as are missing.
    pub fn fill(&mut self, now: Instant, key: &PoolKey, connector: &mut Connector) {
        let config = connector.config.clone();
        let name = key.server_name.as_deref();
        // Who may not be connected to any more is not.
        if self.is_closed || config.next_hop(name) != Some(key.next_hop) {
            return;
        }
        for _ in 0..self.connections.missing(now, key, &config.pool) {
            let protocols = std::slice::from_ref(&key.protocol);
            match connector.prepare(now, key.next_hop, name, protocols) {
                Some(handle) => {
                    self.connections.begin(key, handle);
                    connector.endpoints.touch(Side::Server, handle);
                }
                None => {
                    return self.connections.lose(now, Some(key), None, &config.pool);
                }
            }
        }
    }

    /// A connection that is nobody's has something to say.
    pub fn handle_event(
        &mut self,
        now: Instant,
        handle: usize,
        event: &ConnectionEvent,
        config: &Config,
    ) {
        match event {
            ConnectionEvent::Connected => {
                self.connections
                    .complete(now, handle, ping_interval(config));
            }
            ConnectionEvent::ConnectionLost { .. } => {
                self.connections.lose(now, None, Some(handle), &config.pool);
            }
            _ => {}
        }
    }

    /// Handles what is due.
    pub fn handle_timeout(&mut self, now: Instant, connector: &mut Connector) {
        let config = connector.config.clone();
        let interval = ping_interval(&config);
        for handle in self.connections.due_for_ping(now, interval) {
            connector.endpoints.ping(Side::Server, handle);
        }
        while let Some((key, superfluous)) = self.connections.handle_timeout(now, &config.pool) {
            close(now, superfluous, connector);
            self.fill(now, &key, connector);
        }
    }

    /// Keeps nothing ready any more, for good.
    pub fn close(&mut self, now: Instant, connector: &mut Connector) {
        self.is_closed = true;
        self.clear(now, connector);
    }

    fn clear(&mut self, now: Instant, connector: &mut Connector) {
        let superfluous = self.connections.clear();
        close(now, superfluous, connector);
    }

    /// Connections that are ready.
    pub fn count(&self) -> usize {
        self.connections.count()
    }

    /// All that is kept.
    pub fn entries(&self) -> usize {
        self.connections.entries()
    }
}

fn close(now: Instant, superfluous: Vec<usize>, connector: &mut Connector) {
    let code = CloseCode::ShuttingDown;
    for handle in superfluous {
        let (value, reason) = (code.value(), code.reason().as_bytes());
        let endpoints = &mut connector.endpoints;
        endpoints.close(now, Side::Server, handle, value, reason);
    }
}

fn ping_interval(config: &Config) -> Duration {
    config.limits.idle / PINGS
}
