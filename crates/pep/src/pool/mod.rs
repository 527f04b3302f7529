//! Keeping connections to next hops ready.

pub mod ready;

use std::net::SocketAddr;
use std::time::Instant;

use noq_proto::Event as Happened;

use crate::config::Mode;
use crate::pool::ready::Key;
use crate::proxy::Proxy;
use crate::proxy::event::Number;
use crate::relay::close::Code;
use crate::relay::pair::Facing;

/// What is ready sends so many PINGs in an idle time: one may be lost, and each hop hands them on a little later.
const PINGS: u32 = 4;

impl Proxy {
    /// What is wanted from the start is asked for.
    pub(crate) fn warm_up(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_pool_stale) {
            self.cool_down(now);
        }
        if self.config.mode != Mode::Warm || std::mem::replace(&mut self.is_warmed_up, true) {
            return;
        }
        let config = self.config.clone();
        for (name, protocol) in &config.warm.ahead {
            if let Some(next_hop) = config.next_hop(Some(name)) {
                let key = Key {
                    next_hop,
                    name: Some(name.clone()),
                    protocol: protocol.clone(),
                };
                self.ask(now, &key);
            }
        }
    }

    /// Gives the pair a connection to the next hop that is ready; whether there was one.
    pub(crate) fn take_ready(
        &mut self,
        now: Instant,
        number: Number,
        next_hop: SocketAddr,
    ) -> bool {
        let Some(pair) = self.pairs.get(&number) else {
            return false;
        };
        let wanted = Key {
            next_hop,
            name: pair.hello.name.clone(),
            protocol: Vec::new(),
        };
        let protocols = pair.hello.protocols.clone();
        let Some((handle, key)) = self.pool.take(&wanted, &protocols) else {
            self.statistics.warm_misses_total += 1;
            return false;
        };
        self.statistics.warm_hits_total += 1;
        self.join(now, number, Facing::Server, handle);
        self.accept_waiting(now, number, Some(key.protocol.clone()));
        self.fill(now, &key);
        true
    }

    /// A client that is there wants this: from now on it is kept ready.
    pub(crate) fn ask(&mut self, now: Instant, key: &Key) {
        let warm = self.config.warm.clone();
        for handle in self.pool.ask(now, key, &warm) {
            self.drop_ready(now, handle);
        }
        self.fill(now, key);
    }

    /// Begins as many connections as are missing.
    fn fill(&mut self, now: Instant, key: &Key) {
        let config = self.config.clone();
        // Who may not be connected to any more is not.
        if self.is_draining || config.next_hop(key.name.as_deref()) != Some(key.next_hop) {
            return;
        }
        for _ in 0..self.pool.missing(now, key, &config.warm) {
            let protocols = std::slice::from_ref(&key.protocol);
            let connecting = self.crypto.to_connect(&config, protocols);
            let address = key.next_hop.ip().to_string();
            let name = key.name.as_deref().unwrap_or(&address);
            let side = self.side(Facing::Server);
            let to = (key.next_hop, name);
            match side.connect(now, connecting, to, &config.server.peers) {
                Ok(handle) => {
                    self.pool.begin(key, handle);
                    self.settle(now, Facing::Server, handle);
                }
                Err(_) => return self.pool.lose(now, Some(key), None, &config.warm),
            }
        }
    }

    /// A connection that is nobody's has something to say.
    pub(crate) fn handle_ready(&mut self, now: Instant, handle: usize, event: &Happened) {
        match event {
            Happened::Connected => {
                let interval = self.config.limits.idle / PINGS;
                self.pool.complete(now, handle, interval);
                self.learn_rtt(now, Facing::Server, handle);
            }
            Happened::ConnectionLost { .. } => {
                let warm = self.config.warm.clone();
                self.pool.lose(now, None, Some(handle), &warm);
            }
            _ => {}
        }
    }

    /// Handles what of the pool is due.
    pub(crate) fn handle_pool(&mut self, now: Instant) {
        let interval = self.config.limits.idle / PINGS;
        for handle in self.pool.due_for_ping(now, interval) {
            if let Some(member) = self.side(Facing::Server).get(handle) {
                member.connection.ping();
                self.settle(now, Facing::Server, handle);
            }
        }
        let warm = self.config.warm.clone();
        while let Some((key, superfluous)) = self.pool.handle_timeout(now, &warm) {
            for handle in superfluous {
                self.drop_ready(now, handle);
            }
            self.fill(now, &key);
        }
    }

    /// Keeps nothing ready any more.
    pub(crate) fn cool_down(&mut self, now: Instant) {
        for handle in self.pool.clear() {
            self.drop_ready(now, handle);
        }
    }

    fn drop_ready(&mut self, now: Instant, handle: usize) {
        let code = Code::ShuttingDown;
        let side = self.side(Facing::Server);
        side.close(now, handle, code.value(), code.reason().as_bytes());
        self.settle(now, Facing::Server, handle);
    }
}
