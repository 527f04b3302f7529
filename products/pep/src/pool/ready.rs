//! The connections that are ready, by what they are good for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::config::PoolConfig;

/// The use that a connection is kept ready for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolKey {
    /// Where it goes.
    pub next_hop: SocketAddr,
    /// The server name, as the client says it.
    pub server_name: Option<String>,
    /// The application protocol.
    pub protocol: Vec<u8>,
}

/// The uses that are kept ready at once: the one that was not asked for for longest goes.
const MOST_KEYS: usize = 64;
/// When a connection has failed, the next attempt comes after this, then after twice as long, and
/// so on.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// At most after this.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The connections of one use.
struct PooledConnections {
    ready: VecDeque<usize>,
    /// Connections whose handshakes are under way.
    handshaking: BTreeSet<usize>,
    requested: Instant,
    pause: Duration,
    /// Nothing is tried before.
    retry: Option<Instant>,
    timer: Instant,
}

/// The connections that are ready or about to be.
#[derive(Default)]
pub struct ReadyConnections {
    by_key: BTreeMap<PoolKey, PooledConnections>,
    keys: BTreeMap<usize, PoolKey>,
    timers: BTreeSet<(Instant, PoolKey)>,
    /// When those that are ready are to show that they are alive.
    pings: Option<Instant>,
}

impl ReadyConnections {
    /// Connections that are to send PING now, and then again after `interval`.
    pub fn due_for_ping(&mut self, now: Instant, interval: Duration) -> Vec<usize> {
        if self.pings.is_none_or(|time| time > now) {
            return Vec::new();
        }
        let ready = self.by_key.values().flat_map(|kept| &kept.ready);
        let ready: Vec<_> = ready.copied().collect();
        self.pings = (!ready.is_empty()).then(|| now + interval);
        ready
    }

    /// Connections that are ready.
    pub fn count(&self) -> usize {
        self.by_key.values().map(|kept| kept.ready.len()).sum()
    }

    /// All that is kept.
    pub fn entries(&self) -> usize {
        self.keys.len() + self.timers.len()
    }

    /// Somebody has asked for this: it is kept ready from now on. Says which connections have to go
    /// for that.
    pub fn request(&mut self, now: Instant, key: &PoolKey, config: &PoolConfig) -> Vec<usize> {
        let mut superfluous = Vec::new();
        if !self.by_key.contains_key(key) && self.by_key.len() >= MOST_KEYS {
            let oldest = self.by_key.iter().min_by_key(|(_, kept)| kept.requested);
            let oldest = oldest.map(|(key, _)| key.clone());
            superfluous = oldest.map_or_else(Vec::new, |key| self.remove(&key));
        }
        let kept = self
            .by_key
            .entry(key.clone())
            .or_insert_with(|| PooledConnections {
                ready: VecDeque::new(),
                handshaking: BTreeSet::new(),
                requested: now,
                pause: FIRST_PAUSE,
                retry: None,
                timer: now,
            });
        kept.requested = now;
        self.keep_time(key, config);
        superfluous
    }

    /// A connection that is ready for one of these protocols, the first if possible, and which that
    /// is.
    pub fn take(&mut self, wanted: &PoolKey, protocols: &[Vec<u8>]) -> Option<(usize, PoolKey)> {
        for protocol in protocols {
            let key = PoolKey {
                protocol: protocol.clone(),
                ..wanted.clone()
            };
            if let Some(kept) = self.by_key.get_mut(&key)
                && let Some(handle) = kept.ready.pop_front()
            {
                kept.pause = FIRST_PAUSE;
                self.keys.remove(&handle);
                return Some((handle, key));
            }
        }
        None
    }

    /// How many connections are to be begun.
    pub fn missing(&self, now: Instant, key: &PoolKey, config: &PoolConfig) -> usize {
        let Some(kept) = self.by_key.get(key) else {
            return 0;
        };
        if kept.retry.is_some_and(|time| time > now) {
            return 0;
        }
        let there = kept.ready.len() + kept.handshaking.len();
        config.connections.saturating_sub(there)
    }

    /// One was begun.
    pub fn begin(&mut self, key: &PoolKey, handle: usize) {
        if let Some(kept) = self.by_key.get_mut(key) {
            kept.handshaking.insert(handle);
            self.keys.insert(handle, key.clone());
        }
    }

    /// One is complete. It is kept alive by PING after each `interval`.
    pub fn complete(&mut self, now: Instant, handle: usize, interval: Duration) {
        self.pings.get_or_insert(now + interval);
        if let Some(key) = self.keys.get(&handle)
            && let Some(kept) = self.by_key.get_mut(key)
            && kept.handshaking.remove(&handle)
        {
            kept.ready.push_back(handle);
        }
    }

    /// One has ended, or could not be begun (`None`).
    pub fn lose(
        &mut self,
        now: Instant,
        key: Option<&PoolKey>,
        handle: Option<usize>,
        config: &PoolConfig,
    ) {
        let of_handle = handle.and_then(|handle| self.keys.remove(&handle));
        let Some(key) = of_handle.as_ref().or(key) else {
            return;
        };
        let Some(kept) = self.by_key.get_mut(key) else {
            return;
        };
        if let Some(handle) = handle {
            kept.ready.retain(|it| *it != handle);
            kept.handshaking.remove(&handle);
        }
        kept.retry = Some(now + kept.pause);
        kept.pause = (2 * kept.pause).min(LONGEST_PAUSE);
        let key = key.clone();
        self.keep_time(&key, config);
    }

    fn keep_time(&mut self, key: &PoolKey, config: &PoolConfig) {
        let Some(kept) = self.by_key.get_mut(key) else {
            return;
        };
        self.timers.remove(&(kept.timer, key.clone()));
        let expiry = kept.requested + config.expiry;
        kept.timer = kept.retry.map_or(expiry, |retry| retry.min(expiry));
        self.timers.insert((kept.timer, key.clone()));
    }

    /// When a key's time comes, or connections are to show that they are alive.
    pub fn next_timeout(&self) -> Option<Instant> {
        let first = self.timers.first().map(|(time, _)| *time);
        first.into_iter().chain(self.pings).min()
    }

    /// The next key whose time has come, and which connections have to go because nobody has asked
    /// for it for long.
    pub fn handle_timeout(
        &mut self,
        now: Instant,
        config: &PoolConfig,
    ) -> Option<(PoolKey, Vec<usize>)> {
        let (time, key) = self.timers.first()?;
        if *time > now {
            return None;
        }
        let key = key.clone();
        let kept = self.by_key.get_mut(&key)?;
        if kept.requested + config.expiry <= now {
            let superfluous = self.remove(&key);
            return Some((key, superfluous));
        }
        kept.retry = None;
        self.keep_time(&key, config);
        Some((key, Vec::new()))
    }

    /// Keeps nothing ready any more. Says which connections have to go.
    pub fn clear(&mut self) -> Vec<usize> {
        let keys: Vec<_> = self.by_key.keys().cloned().collect();
        keys.iter().flat_map(|key| self.remove(key)).collect()
    }

    fn remove(&mut self, key: &PoolKey) -> Vec<usize> {
        let Some(kept) = self.by_key.remove(key) else {
            return Vec::new();
        };
        self.timers.remove(&(kept.timer, key.clone()));
        let handles: Vec<_> = kept.ready.into_iter().chain(kept.handshaking).collect();
        for handle in &handles {
            self.keys.remove(handle);
        }
        handles
    }
}
