//! Clients whose `ClientHello` is not complete: it is spread over several datagrams.
use bentpipe_service::quota::ConnectionPermit;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use bentpipe_endpoint::Received;
use noq_proto::Incoming;

use super::client_hello::{ClientHello, ClientHelloError};
use super::initial::{CryptoStream, InitialHeader};

/// The identity of a client before it is accepted: its address, and the connection ID that it chose
/// for the server.
type ClientKey = (SocketAddr, Vec<u8>);

/// The clients whose `ClientHello` is not complete.
#[derive(Default)]
pub struct IncompleteHellos {
    waiting: BTreeMap<ClientKey, Waiting>,
    timers: BTreeSet<(Instant, ClientKey)>,
}

/// A datagram that starts with an Initial packet, as it came.
#[derive(Debug, Clone)]
pub struct InitialDatagram {
    /// Its ECN field.
    pub ecn: u8,
    /// The UDP payload.
    pub payload: Vec<u8>,
}

impl InitialDatagram {
    fn header(&self) -> InitialHeader<'_> {
        InitialHeader::of(&self.payload).expect("it starts with an Initial packet")
    }
}

/// A client that is not accepted yet, and what has come of it.
pub struct PendingClient {
    /// The library's state of it.
    pub incoming: Incoming,
    /// The permit of a client that has not completed its `ClientHello`: it counts against the
    /// client's own limit, so that others are not kept away.
    pub permit: ConnectionPermit,
    /// All that it has sent.
    pub datagrams: Vec<InitialDatagram>,
}

/// A client that is waited for.
struct Waiting {
    client: PendingClient,
    crypto: CryptoStream,
    until: Instant,
}

/// The `ClientHello` as far as the first datagram of a client has it.
pub enum FirstHello {
    /// All of it.
    Complete(ClientHello),
    /// A part of it.
    Incomplete(CryptoStream),
}

impl FirstHello {
    /// Reads it; `None`: it is of no client of QUIC. `crypto`: with the packet's keys.
    pub fn of(mut crypto: CryptoStream, datagram: &InitialDatagram) -> Option<Self> {
        crypto.add(&datagram.payload);
        match crypto.hello() {
            Ok(hello) => Some(Self::Complete(hello)),
            // A packet that cannot be decrypted promises nothing.
            Err(ClientHelloError::Incomplete) if !crypto.is_empty() => {
                Some(Self::Incomplete(crypto))
            }
            Err(_) => None,
        }
    }
}

/// A client that is no longer waited for.
pub enum ArrivedClient {
    /// All that it asks for is known.
    Complete(PendingClient, ClientHello),
    /// It is no client of QUIC.
    Invalid(Incoming),
}

impl IncompleteHellos {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.waiting.len()
    }

    /// The same as `datagram`, if it starts with an Initial packet.
    pub fn copy(datagram: &Received) -> Option<InitialDatagram> {
        InitialHeader::of(&datagram.payload)?;
        Some(InitialDatagram {
            ecn: datagram.ecn,
            payload: datagram.payload.to_vec(),
        })
    }

    /// Waits until `until` for the rest of what a client asks for, of whom `crypto` has the first
    /// datagram.
    pub fn wait(&mut self, client: PendingClient, crypto: CryptoStream, until: Instant) {
        let id = client.datagrams[0].header().destination.to_vec();
        let key = (client.incoming.remote_address(), id);
        self.timers.insert((until, key.clone()));
        let waiting = Waiting {
            client,
            crypto,
            until,
        };
        self.waiting.insert(key, waiting);
    }

    /// Looks into a further datagram; `None`: it is of nobody who is waited for, or more have to
    /// come.
    pub fn resume(
        &mut self,
        remote: SocketAddr,
        datagram: &InitialDatagram,
    ) -> Option<ArrivedClient> {
        if self.waiting.is_empty() {
            return None;
        }
        let key = (remote, datagram.header().destination.to_vec());
        let waiting = self.waiting.get_mut(&key)?;
        if !waiting.crypto.add(&datagram.payload) {
            return None;
        }
        waiting.client.datagrams.push(datagram.clone());
        let hello = waiting.crypto.hello();
        if hello == Err(ClientHelloError::Incomplete) {
            return None;
        }
        let client = self.remove(&key)?;
        Some(match hello {
            Ok(hello) => ArrivedClient::Complete(client, hello),
            Err(_) => ArrivedClient::Invalid(client.incoming),
        })
    }

    fn remove(&mut self, key: &ClientKey) -> Option<PendingClient> {
        let Waiting { client, until, .. } = self.waiting.remove(key)?;
        self.timers.remove(&(until, key.clone()));
        Some(client)
    }

    /// When [`Self::overdue`] wants to be called.
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

    /// Takes all, when no client is waited for any more.
    pub fn take_all(&mut self) -> Vec<Incoming> {
        self.timers.clear();
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_values().map(|it| it.client.incoming).collect()
    }
}
