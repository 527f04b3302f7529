//! Clients whose `ClientHello` is not complete: it is spread over several datagrams.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use bentpipe_endpoint::Received;
use noq_proto::Incoming;

use crate::handshake::client_hello::{Hello, NoHello};
use crate::handshake::initial::{Collector, Start};
use crate::limits::quota::Seat;

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

impl First {
    fn start(&self) -> Start<'_> {
        Start::of(&self.payload).expect("it starts with an Initial packet")
    }
}

/// A client, and what has come of it.
pub struct Client {
    pub incoming: Incoming,
    pub seat: Seat,
    pub datagrams: Vec<First>,
}

/// One that is waited for.
struct Waiting {
    client: Client,
    collector: Collector,
    until: Instant,
}

/// What the first datagram of a client says.
pub enum Beginning {
    /// All that it asks for.
    Complete(Hello),
    /// A part of that.
    Short(Collector),
}

impl Beginning {
    /// `None`: it is of no client of QUIC. `collector`: of the packet's keys.
    pub fn of(mut collector: Collector, datagram: &First) -> Option<Self> {
        collector.add(&datagram.payload);
        match collector.hello() {
            Ok(hello) => Some(Self::Complete(hello)),
            // A packet that cannot be decrypted promises nothing.
            Err(NoHello::Short) if !collector.is_empty() => Some(Self::Short(collector)),
            Err(_) => None,
        }
    }
}

/// What has come of a client.
pub enum Arrival {
    /// All that it asks for is known.
    Complete(Client, Hello),
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

    /// Waits until `until` for the rest of what a client asks for, of whom `collector` has the first datagram.
    pub fn wait(&mut self, client: Client, collector: Collector, until: Instant) {
        let id = client.datagrams[0].start().destination.to_vec();
        let key = (client.incoming.remote_address(), id);
        self.timers.insert((until, key.clone()));
        let waiting = Waiting {
            client,
            collector,
            until,
        };
        self.waiting.insert(key, waiting);
    }

    /// Looks into a further datagram; `None`: it is of nobody who is waited for, or more have to come.
    pub fn go_on(&mut self, remote: SocketAddr, datagram: &First) -> Option<Arrival> {
        if self.waiting.is_empty() {
            return None;
        }
        let key = (remote, datagram.start().destination.to_vec());
        let waiting = self.waiting.get_mut(&key)?;
        if !waiting.collector.add(&datagram.payload) {
            return None;
        }
        waiting.client.datagrams.push(datagram.clone());
        let hello = waiting.collector.hello();
        if hello == Err(NoHello::Short) {
            return None;
        }
        let client = self.remove(&key)?;
        Some(match hello {
            Ok(hello) => Arrival::Complete(client, hello),
            Err(_) => Arrival::Wrong(client.incoming),
        })
    }

    fn remove(&mut self, key: &Key) -> Option<Client> {
        let Waiting { client, until, .. } = self.waiting.remove(key)?;
        self.timers.remove(&(until, key.clone()));
        Some(client)
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
        self.remove(&key).map(|client| client.incoming)
    }

    /// Nobody is waited for any more.
    pub fn take_all(&mut self) -> Vec<Incoming> {
        self.timers.clear();
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_values().map(|it| it.client.incoming).collect()
    }
}
