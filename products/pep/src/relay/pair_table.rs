//! The pairs by number, with what is counted and timed of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use super::pair::ConnectionPair;
use crate::events::{ConnectionNumber, Statistics};

/// The pairs that there are.
#[derive(Default)]
pub struct PairTable {
    pairs: BTreeMap<ConnectionNumber, ConnectionPair>,
    /// When they want to be called.
    timers: BTreeSet<(Instant, ConnectionNumber)>,
    /// Pairs whose handshakes are under way.
    handshaking: usize,
    /// From where their clients come.
    client_addresses: BTreeMap<SocketAddr, usize>,
}

impl PairTable {
    /// Adds a pair, whose handshakes begin.
    pub fn insert(&mut self, number: ConnectionNumber, pair: ConnectionPair) {
        *self.client_addresses.entry(pair.client).or_default() += 1;
        self.handshaking += 1;
        self.pairs.insert(number, pair);
    }

    /// Takes a pair out of all books.
    pub fn remove(&mut self, number: ConnectionNumber) -> Option<ConnectionPair> {
        let pair = self.pairs.remove(&number)?;
        if let Some(time) = pair.timer {
            self.timers.remove(&(time, number));
        }
        if !pair.is_established {
            self.handshaking -= 1;
        }
        let count = self.client_addresses.entry(pair.client).or_default();
        *count -= 1;
        if *count == 0 {
            self.client_addresses.remove(&pair.client);
        }
        Some(pair)
    }

    /// A pair, if it is there.
    pub fn get(&self, number: ConnectionNumber) -> Option<&ConnectionPair> {
        self.pairs.get(&number)
    }

    /// A pair, if it is there.
    pub fn get_mut(&mut self, number: ConnectionNumber) -> Option<&mut ConnectionPair> {
        self.pairs.get_mut(&number)
    }

    /// A pair that is there.
    pub fn expect(&mut self, number: ConnectionNumber) -> &mut ConnectionPair {
        self.pairs.get_mut(&number).expect("a pair that is there")
    }

    /// Both handshakes of a pair are complete.
    pub fn note_established(&mut self, number: ConnectionNumber) {
        if let Some(pair) = self.pairs.get_mut(&number) {
            pair.is_established = true;
            self.handshaking -= 1;
        }
    }

    /// Notes when a pair wants to be called.
    pub fn keep_time(&mut self, number: ConnectionNumber) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let time = pair.next_timeout();
        if time == pair.timer {
            return;
        }
        if let Some(before) = pair.timer {
            self.timers.remove(&(before, number));
        }
        self.timers.extend(time.map(|time| (time, number)));
        pair.timer = time;
    }

    /// When the next pair wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// The next pair whose time has come.
    pub fn pop_due(&mut self, now: Instant) -> Option<ConnectionNumber> {
        let (time, number) = *self.timers.first()?;
        if time > now {
            return None;
        }
        self.timers.pop_first();
        if let Some(pair) = self.pairs.get_mut(&number) {
            pair.timer = None;
        }
        Some(number)
    }

    /// All pairs may go on until then.
    pub fn end_by(&mut self, until: Instant) {
        let numbers: Vec<_> = self.pairs.keys().copied().collect();
        for number in numbers {
            self.expect(number).until = Some(until);
            self.keep_time(number);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Pairs whose handshakes are under way.
    pub fn handshaking(&self) -> usize {
        self.handshaking
    }

    /// Pairs whose clients have this address.
    pub fn count_from(&self, client: SocketAddr) -> usize {
        self.client_addresses.get(&client).copied().unwrap_or(0)
    }

    /// Adds what they have carried and hold. Looks at all of them.
    pub fn add_to(&self, statistics: &mut Statistics) {
        for pair in self.pairs.values() {
            pair.add_to(statistics);
        }
        statistics.connections = self.len() as u64;
    }

    /// Timers and addresses: for the proof that nothing is left behind.
    pub fn entries(&self) -> usize {
        self.timers.len() + self.client_addresses.len()
    }
}
