//! One connection between client and proxy: the datagrams of its requests.

use std::collections::{BTreeMap, VecDeque};

use bentpipe_endpoint::contract::Statistics;
use bytes::{BufMut, Bytes, BytesMut};
use h3::error::Code;
use h3::quic::StreamId;
use noq_proto::coding::{Decodable, Encodable};
use noq_proto::{Connection, SendDatagramError, VarInt};

use crate::capsule::{CONTEXT, udp_payload};
use crate::channel::Shared;
use crate::session::Session;

/// Datagrams of a connection that are kept until the request that they are of has come; the latest.
const MOST_EARLY: usize = 64;

/// The ways in which UDP payloads are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carry {
    /// In DATAGRAM frames of QUIC (RFC 9221).
    Datagrams,
    /// In capsules on the request's stream (RFC 9297, section 3.5).
    Streams,
}

/// The way in which payloads are carried, and the room for those that wait.
#[derive(Debug, Clone, Copy)]
pub struct Carriage {
    /// How, if the peer can take datagrams; else in capsules.
    pub carry: Carry,
    /// Bytes of datagrams, or of a request's capsules, that may wait for congestion control. What
    /// comes when it is full is dropped.
    pub queue: usize,
}

/// The counts of all connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests for UDP that were sent, or that came.
    pub requests: u64,
    /// Those that were answered with another status than 200.
    pub refused_requests: u64,
    /// Those that ended with an error.
    pub failed_requests: u64,
    /// Connections between client and proxy.
    pub connections: u64,
    /// UDP payloads that were sent into the tunnel as datagrams.
    pub sent_datagrams: u64,
    /// Those that were sent in capsules.
    pub sent_capsules: u64,
    /// The bytes of both.
    pub sent_bytes: u64,
    /// UDP payloads that came out of the tunnel as datagrams.
    pub received_datagrams: u64,
    /// Those that came in capsules.
    pub received_capsules: u64,
    /// The bytes of both.
    pub received_bytes: u64,
    /// UDP payloads that do not fit into the tunnel's packets, and were dropped.
    pub too_large_datagrams: u64,
    /// Those that were dropped since too much waited already.
    pub queue_full_datagrams: u64,
    /// Those of no request, or of a context that nobody registered.
    pub unknown_datagrams: u64,
    /// The most bytes that waited to be sent.
    pub most_queued_bytes: usize,
    /// Packets between client and proxy.
    pub tunnel: TunnelCounts,
}

/// The packets of connections between client and proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TunnelCounts {
    /// UDP datagrams that were sent.
    pub sent_packets: u64,
    /// Their payloads' bytes.
    pub sent_bytes: u64,
    /// Packets that were taken for lost.
    pub lost_packets: u64,
    /// Their bytes: with `carry=streams` they were sent again.
    pub lost_bytes: u64,
    /// How often congestion control was told of loss or of a mark.
    pub congestion_events: u64,
}

impl Counts {
    /// All of them, by name.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut said = Statistics::default();
        for (name, value) in [
            ("requests_total", self.requests),
            ("refused_requests_total", self.refused_requests),
            ("failed_requests_total", self.failed_requests),
            ("connections_total", self.connections),
            ("sent_datagrams", self.sent_datagrams),
            ("sent_capsules", self.sent_capsules),
            ("sent_bytes", self.sent_bytes),
            ("received_datagrams", self.received_datagrams),
            ("received_capsules", self.received_capsules),
            ("received_bytes", self.received_bytes),
            ("too_large_datagrams", self.too_large_datagrams),
            ("queue_full_datagrams", self.queue_full_datagrams),
            ("unknown_datagrams", self.unknown_datagrams),
            ("most_queued_bytes", self.most_queued_bytes as u64),
            ("tunnel_packets", self.tunnel.sent_packets),
            ("tunnel_bytes", self.tunnel.sent_bytes),
            ("lost_tunnel_packets", self.tunnel.lost_packets),
            ("lost_tunnel_bytes", self.tunnel.lost_bytes),
            ("congestion_events", self.tunnel.congestion_events),
        ] {
            said.say(name, value);
        }
        said
    }
}

impl TunnelCounts {
    /// Adds what a connection came to.
    pub fn add(&mut self, connection: &mut Connection) {
        let stats = connection.stats();
        self.sent_packets += stats.udp_tx.datagrams;
        self.sent_bytes += stats.udp_tx.bytes;
        self.lost_packets += stats.lost_packets;
        self.lost_bytes += stats.lost_bytes;
        if let Some(path) = connection.path_stats(noq_proto::PathId::ZERO) {
            self.congestion_events += path.congestion_events;
        }
    }
}

/// A connection's requests.
pub struct Tunnel {
    pub session: Session,
    pub channels: BTreeMap<u64, Shared>,
    carriage: Carriage,
    /// Datagrams of no request that is known, and their streams.
    early: VecDeque<(u64, Bytes)>,
}

impl Tunnel {
    /// One that nothing has passed yet.
    pub fn new(carriage: Carriage) -> Self {
        Self {
            session: Session::new(),
            channels: BTreeMap::new(),
            carriage,
            early: VecDeque::new(),
        }
    }

    /// Sends a UDP payload of a request whose stream is open.
    pub fn send(
        &mut self,
        connection: &mut Connection,
        channel: &Shared,
        payload: &[u8],
        counts: &mut Counts,
    ) {
        let mut channel = channel.borrow_mut();
        let Some(stream) = channel.stream.filter(|_| !channel.has_ended()) else {
            counts.unknown_datagrams += 1;
            return;
        };
        let takes_datagrams = connection.datagrams().max_size().is_some();
        if self.carriage.carry == Carry::Streams || !takes_datagrams {
            let waiting = channel.waiting() + self.session.transport().unsent(stream);
            if waiting + payload.len() > self.carriage.queue {
                counts.queue_full_datagrams += 1;
                return;
            }
            channel.push(payload);
            drop(channel);
            self.session.pump(connection);
            counts.most_queued_bytes = counts.most_queued_bytes.max(waiting + payload.len());
            counts.sent_capsules += 1;
            counts.sent_bytes += payload.len() as u64;
            return;
        }
        match connection.datagrams().send(encode(stream, payload), false) {
            Ok(()) => {
                counts.sent_datagrams += 1;
                counts.sent_bytes += payload.len() as u64;
                let space = connection.datagrams().send_buffer_space();
                let queued = self.carriage.queue.saturating_sub(space);
                counts.most_queued_bytes = counts.most_queued_bytes.max(queued);
            }
            Err(SendDatagramError::TooLarge) => counts.too_large_datagrams += 1,
            Err(_) => counts.queue_full_datagrams += 1,
        }
    }

    /// Takes the datagrams that have come; says that the peer breaks HTTP/3 by one of them.
    pub fn receive(
        &mut self,
        connection: &mut Connection,
        counts: &mut Counts,
        mut take: impl FnMut(u64, Bytes),
    ) -> Result<(), Code> {
        while let Some(datagram) = connection.datagrams().recv() {
            let (stream, datagram) = decode(datagram).ok_or(Code::H3_DATAGRAM_ERROR)?;
            let Some(payload) = udp_payload(datagram) else {
                counts.unknown_datagrams += 1;
                continue;
            };
            if self.channels.contains_key(&stream) {
                counts.received_datagrams += 1;
                counts.received_bytes += payload.len() as u64;
                take(stream, payload);
            } else {
                self.early.push_back((stream, payload));
                // The oldest: its request may be over.
                if self.early.len() > MOST_EARLY {
                    self.early.pop_front();
                    counts.unknown_datagrams += 1;
                }
            }
        }
        Ok(())
    }

    /// Adds a request, and hands on the datagrams that came before it.
    pub fn add(
        &mut self,
        stream: u64,
        channel: Shared,
        counts: &mut Counts,
        mut take: impl FnMut(Bytes),
    ) {
        self.channels.insert(stream, channel);
        for (of, payload) in std::mem::take(&mut self.early) {
            if of == stream {
                counts.received_datagrams += 1;
                counts.received_bytes += payload.len() as u64;
                take(payload);
            } else {
                self.early.push_back((of, payload));
            }
        }
    }
}

/// A UDP payload as an HTTP datagram (RFC 9297, section 2.1; RFC 9298, section 5).
fn encode(stream: StreamId, payload: &[u8]) -> Bytes {
    let mut datagram = BytesMut::with_capacity(VarInt::MAX_SIZE + CONTEXT.len() + payload.len());
    let quarter = VarInt::from_u64(stream.into_inner() / 4);
    quarter
        .expect("a quarter of an integer of QUIC is one")
        .encode(&mut datagram);
    datagram.put_slice(&CONTEXT);
    datagram.put_slice(payload);
    datagram.freeze()
}

/// The stream of an HTTP datagram, and what follows; `None`: it is of no stream that can be.
fn decode(mut datagram: Bytes) -> Option<(u64, Bytes)> {
    let quarter = VarInt::decode(&mut datagram).ok()?.into_inner();
    let stream = quarter
        .checked_mul(4)
        .filter(|id| *id <= VarInt::MAX.into_inner())?;
    Some((stream, datagram))
}
