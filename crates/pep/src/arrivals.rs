//! Clients whose `ClientHello` is not complete: it is spread over several datagrams.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use bentpipe_endpoint::Received;
use noq_proto::Incoming;

use crate::hello::{Hello, NoHello};
use crate::initial::{Collector, Start};

/// As the client is known before it is accepted: its address, and the connection ID that it chose for the server.
type Key = (SocketAddr, Vec<u8>);

/// Clients that have begun to arrive.
#[derive(Default)]
pub struct Arrivals {
    waiting: BTreeMap<Key, Waiting>,
    timers: BTreeSet<(Instant, Key)>,
}

/// A datagram that starts with an Initial packet, as it came.
#[derive(Debug, Clone)]
pub struct First {
    pub ecn: u8,
    pub payload: Vec<u8>,
}

struct Waiting {
    incoming: Incoming,
    collector: Collector,
    datagrams: Vec<First>,
    until: Instant,
}

/// What has come of a client.
pub enum Arrival {
    /// All that it asks for is known, by these datagrams.
    Complete(Incoming, Hello, Vec<First>),
    /// It is no client of QUIC.
    Wrong(Incoming),
}

impl Arrivals {
    pub fn count(&self) -> usize {
        self.waiting.len()
    }

    /// The same as `datagram`, if it starts with an Initial packet.
    pub fn copy(datagram: &Received) -> Option<First> {
        Start::of(&datagram.payload)?;
        Some(First {
            ecn: datagram.ecn,
            payload: datagram.payload.to_vec(),
        })
    }

    /// Looks into the first datagram of a client; `None`: more have to come until `until`.
    pub fn begin(
        &mut self,
        incoming: Incoming,
        collector: Option<Collector>,
        datagram: First,
        until: Instant,
    ) -> Option<Arrival> {
        let (Some(mut collector), Some(start)) = (collector, Start::of(&datagram.payload)) else {
            return Some(Arrival::Wrong(incoming));
        };
        collector.add(&datagram.payload);
        match collector.hello() {
            Ok(hello) => Some(Arrival::Complete(incoming, hello, vec![datagram])),
            // A packet that cannot be decrypted promises nothing.
            Err(NoHello::Short) if !collector.is_empty() => {
                let key = (incoming.remote_address(), start.destination.to_vec());
                self.timers.insert((until, key.clone()));
                let waiting = Waiting {
                    incoming,
                    collector,
                    datagrams: vec![datagram],
                    until,
                };
                self.waiting.insert(key, waiting);
                None
            }
            Err(_) => Some(Arrival::Wrong(incoming)),
        }
    }

    /// Looks into a further datagram; `None`: it is of nobody who is waited for, or more have to come.
    pub fn go_on(&mut self, remote: SocketAddr, datagram: &First) -> Option<Arrival> {
        if self.waiting.is_empty() {
            return None;
        }
        let key = (remote, Start::of(&datagram.payload)?.destination.to_vec());
        let waiting = self.waiting.get_mut(&key)?;
        if !waiting.collector.add(&datagram.payload) {
            return None;
        }
        waiting.datagrams.push(datagram.clone());
        let hello = waiting.collector.hello();
        if hello == Err(NoHello::Short) {
            return None;
        }
        let (incoming, datagrams) = self.remove(&key)?;
        Some(match hello {
            Ok(hello) => Arrival::Complete(incoming, hello, datagrams),
            Err(_) => Arrival::Wrong(incoming),
        })
    }

    fn remove(&mut self, key: &Key) -> Option<(Incoming, Vec<First>)> {
        let Waiting {
            incoming,
            datagrams,
            until,
            ..
        } = self.waiting.remove(key)?;
        self.timers.remove(&(until, key.clone()));
        Some((incoming, datagrams))
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// The next of those for whom too long was waited.
    pub fn overdue(&mut self, now: Instant) -> Option<Incoming> {
        let (time, key) = self.timers.first()?;
        if *time > now {
            return None;
        }
        let key = key.clone();
        self.remove(&key).map(|(incoming, _)| incoming)
    }

    /// Nobody is waited for any more.
    pub fn take_all(&mut self) -> Vec<Incoming> {
        self.timers.clear();
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_values().map(|it| it.incoming).collect()
    }
}
