//! Connections to next hops that are complete before anybody asks for them.
//!
//! What somebody has asked for, by server name and application protocol, is kept ready from then on, until nobody has for long.
//! A proxy that does so holds a connection to each next hop that is a proxy itself, and that one, in this mode, connects on before it answers: so
//! that the whole chain is ready.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::config::Warm;

/// What a connection is good for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub next_hop: SocketAddr,
    /// The server name, as the client says it.
    pub name: Option<String>,
    pub protocol: Vec<u8>,
}

/// More are not kept ready at once: the one that was not asked for for longest goes.
const MOST_KEYS: usize = 64;
/// When a connection has failed, the next attempt comes after this, then after twice as long, and so on.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Connections of one key.
struct Shelf {
    ready: VecDeque<usize>,
    /// Those whose handshakes are under way.
    coming: BTreeSet<usize>,
    asked: Instant,
    pause: Duration,
    /// Nothing is tried before.
    retry: Option<Instant>,
    timer: Instant,
}

/// All of them.
#[derive(Default)]
pub struct Pool {
    shelves: BTreeMap<Key, Shelf>,
    keys: BTreeMap<usize, Key>,
    timers: BTreeSet<(Instant, Key)>,
    /// When those that are ready are to show that they are alive.
    pings: Option<Instant>,
}

impl Pool {
    /// Those that are to send PING now, and then again after `interval`.
    pub fn due_for_ping(&mut self, now: Instant, interval: Duration) -> Vec<usize> {
        if self.pings.is_none_or(|time| time > now) {
            return Vec::new();
        }
        let ready = self.shelves.values().flat_map(|kept| &kept.ready);
        let ready: Vec<_> = ready.copied().collect();
        self.pings = (!ready.is_empty()).then(|| now + interval);
        ready
    }

    /// Connections that are ready.
    pub fn count(&self) -> usize {
        self.shelves.values().map(|kept| kept.ready.len()).sum()
    }

    /// All that is kept.
    pub fn entries(&self) -> usize {
        self.keys.len() + self.timers.len()
    }

    /// Somebody has asked for this: it is kept ready from now on. Says which connections have to go for that.
    pub fn ask(&mut self, now: Instant, key: &Key, warm: &Warm) -> Vec<usize> {
        let mut superfluous = Vec::new();
        if !self.shelves.contains_key(key) && self.shelves.len() >= MOST_KEYS {
            let oldest = self.shelves.iter().min_by_key(|(_, kept)| kept.asked);
            let oldest = oldest.map(|(key, _)| key.clone());
            superfluous = oldest.map_or_else(Vec::new, |key| self.remove(&key));
        }
        let kept = self.shelves.entry(key.clone()).or_insert_with(|| Shelf {
            ready: VecDeque::new(),
            coming: BTreeSet::new(),
            asked: now,
            pause: FIRST_PAUSE,
            retry: None,
            timer: now,
        });
        kept.asked = now;
        self.keep_time(key, warm);
        superfluous
    }

    /// A connection that is ready for one of these protocols, the first if possible, and which that is.
    pub fn take(&mut self, wanted: &Key, protocols: &[Vec<u8>]) -> Option<(usize, Key)> {
        for protocol in protocols {
            let key = Key {
                protocol: protocol.clone(),
                ..wanted.clone()
            };
            if let Some(kept) = self.shelves.get_mut(&key)
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
    pub fn missing(&self, now: Instant, key: &Key, warm: &Warm) -> usize {
        let Some(kept) = self.shelves.get(key) else {
            return 0;
        };
        if kept.retry.is_some_and(|time| time > now) {
            return 0;
        }
        let there = kept.ready.len() + kept.coming.len();
        warm.connections.saturating_sub(there)
    }

    /// One was begun.
    pub fn begin(&mut self, key: &Key, handle: usize) {
        if let Some(kept) = self.shelves.get_mut(key) {
            kept.coming.insert(handle);
            self.keys.insert(handle, key.clone());
        }
    }

    /// One is complete. It is kept alive by PING after each `interval`.
    pub fn complete(&mut self, now: Instant, handle: usize, interval: Duration) {
        self.pings.get_or_insert(now + interval);
        if let Some(key) = self.keys.get(&handle)
            && let Some(kept) = self.shelves.get_mut(key)
            && kept.coming.remove(&handle)
        {
            kept.ready.push_back(handle);
        }
    }

    /// One has ended, or could not be begun (`None`).
    pub fn lose(&mut self, now: Instant, key: Option<&Key>, handle: Option<usize>, warm: &Warm) {
        let of_handle = handle.and_then(|handle| self.keys.remove(&handle));
        let Some(key) = of_handle.as_ref().or(key) else {
            return;
        };
        let Some(kept) = self.shelves.get_mut(key) else {
            return;
        };
        if let Some(handle) = handle {
            kept.ready.retain(|it| *it != handle);
            kept.coming.remove(&handle);
        }
        kept.retry = Some(now + kept.pause);
        kept.pause = (2 * kept.pause).min(LONGEST_PAUSE);
        let key = key.clone();
        self.keep_time(&key, warm);
    }

    fn keep_time(&mut self, key: &Key, warm: &Warm) {
        let Some(kept) = self.shelves.get_mut(key) else {
            return;
        };
        self.timers.remove(&(kept.timer, key.clone()));
        let expiry = kept.asked + warm.expiry;
        kept.timer = kept.retry.map_or(expiry, |retry| retry.min(expiry));
        self.timers.insert((kept.timer, key.clone()));
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        let first = self.timers.first().map(|(time, _)| *time);
        first.into_iter().chain(self.pings).min()
    }

    /// The next key whose time has come, and which connections have to go because nobody has asked for it for long.
    pub fn handle_timeout(&mut self, now: Instant, warm: &Warm) -> Option<(Key, Vec<usize>)> {
        let (time, key) = self.timers.first()?;
        if *time > now {
            return None;
        }
        let key = key.clone();
        let kept = self.shelves.get_mut(&key)?;
        if kept.asked + warm.expiry <= now {
            let superfluous = self.remove(&key);
            return Some((key, superfluous));
        }
        kept.retry = None;
        self.keep_time(&key, warm);
        Some((key, Vec::new()))
    }

    /// Keeps nothing ready any more. Says which connections have to go.
    pub fn clear(&mut self) -> Vec<usize> {
        let keys: Vec<_> = self.shelves.keys().cloned().collect();
        keys.iter().flat_map(|key| self.remove(key)).collect()
    }

    fn remove(&mut self, key: &Key) -> Vec<usize> {
        let Some(kept) = self.shelves.remove(key) else {
            return Vec::new();
        };
        self.timers.remove(&(kept.timer, key.clone()));
        let handles: Vec<_> = kept.ready.into_iter().chain(kept.coming).collect();
        for handle in &handles {
            self.keys.remove(handle);
        }
        handles
    }
}
