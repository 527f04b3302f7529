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
}

impl Pool {
    /// Connections that are ready.
    pub fn count(&self) -> usize {
        self.shelves.values().map(|shelf| shelf.ready.len()).sum()
    }

    /// All that is kept.
    pub fn entries(&self) -> usize {
        self.keys.len() + self.timers.len()
    }

    /// Somebody has asked for this: it is kept ready from now on. Says which connections have to go for that.
    pub fn ask(&mut self, now: Instant, key: &Key, warm: &Warm) -> Vec<usize> {
        let mut superfluous = Vec::new();
        if !self.shelves.contains_key(key) && self.shelves.len() >= MOST_KEYS {
            let oldest = self.shelves.iter().min_by_key(|(_, shelf)| shelf.asked);
            let oldest = oldest.map(|(key, _)| key.clone());
            superfluous = oldest.map_or_else(Vec::new, |key| self.remove(&key));
        }
        let shelf = self.shelves.entry(key.clone()).or_insert_with(|| Shelf {
            ready: VecDeque::new(),
            coming: BTreeSet::new(),
            asked: now,
            pause: FIRST_PAUSE,
            retry: None,
            timer: now,
        });
        shelf.asked = now;
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
            let ready = self.shelves.get_mut(&key).map(|shelf| &mut shelf.ready);
            if let Some(handle) = ready.and_then(VecDeque::pop_front) {
                self.keys.remove(&handle);
                return Some((handle, key));
            }
        }
        None
    }

    /// How many connections are to be begun.
    pub fn missing(&self, now: Instant, key: &Key, warm: &Warm) -> usize {
        let Some(shelf) = self.shelves.get(key) else {
            return 0;
        };
        if shelf.retry.is_some_and(|time| time > now) {
            return 0;
        }
        let there = shelf.ready.len() + shelf.coming.len();
        warm.connections.saturating_sub(there)
    }

    /// One was begun.
    pub fn begin(&mut self, key: &Key, handle: usize) {
        if let Some(shelf) = self.shelves.get_mut(key) {
            shelf.coming.insert(handle);
            self.keys.insert(handle, key.clone());
        }
    }

    /// One is complete.
    pub fn complete(&mut self, handle: usize) {
        if let Some(key) = self.keys.get(&handle)
            && let Some(shelf) = self.shelves.get_mut(key)
            && shelf.coming.remove(&handle)
        {
            shelf.ready.push_back(handle);
            shelf.pause = FIRST_PAUSE;
        }
    }

    /// One has ended, or could not be begun (`None`).
    pub fn lose(&mut self, now: Instant, key: Option<&Key>, handle: Option<usize>, warm: &Warm) {
        let of_handle = handle.and_then(|handle| self.keys.remove(&handle));
        let Some(key) = of_handle.as_ref().or(key) else {
            return;
        };
        let Some(shelf) = self.shelves.get_mut(key) else {
            return;
        };
        if let Some(handle) = handle {
            shelf.ready.retain(|it| *it != handle);
            shelf.coming.remove(&handle);
        }
        shelf.retry = Some(now + shelf.pause);
        shelf.pause = (2 * shelf.pause).min(LONGEST_PAUSE);
        let key = key.clone();
        self.keep_time(&key, warm);
    }

    fn keep_time(&mut self, key: &Key, warm: &Warm) {
        let Some(shelf) = self.shelves.get_mut(key) else {
            return;
        };
        self.timers.remove(&(shelf.timer, key.clone()));
        let expiry = shelf.asked + warm.expiry;
        shelf.timer = shelf.retry.map_or(expiry, |retry| retry.min(expiry));
        self.timers.insert((shelf.timer, key.clone()));
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// The next key whose time has come, and which connections have to go because nobody has asked for it for long.
    pub fn handle_timeout(&mut self, now: Instant, warm: &Warm) -> Option<(Key, Vec<usize>)> {
        let (time, key) = self.timers.first()?;
        if *time > now {
            return None;
        }
        let key = key.clone();
        let shelf = self.shelves.get_mut(&key)?;
        if shelf.asked + warm.expiry <= now {
            let superfluous = self.remove(&key);
            return Some((key, superfluous));
        }
        shelf.retry = None;
        self.keep_time(&key, warm);
        Some((key, Vec::new()))
    }

    /// Keeps nothing ready any more. Says which connections have to go.
    pub fn clear(&mut self) -> Vec<usize> {
        let keys: Vec<_> = self.shelves.keys().cloned().collect();
        keys.iter().flat_map(|key| self.remove(key)).collect()
    }

    fn remove(&mut self, key: &Key) -> Vec<usize> {
        let Some(shelf) = self.shelves.remove(key) else {
            return Vec::new();
        };
        self.timers.remove(&(shelf.timer, key.clone()));
        let handles: Vec<_> = shelf.ready.into_iter().chain(shelf.coming).collect();
        for handle in &handles {
            self.keys.remove(handle);
        }
        handles
    }
}
