//! One connection between client and proxy: the datagrams of its requests.

use std::collections::{BTreeMap, VecDeque};

use bytes::{BufMut, Bytes, BytesMut};
use h3::error::Code;
use h3::quic::StreamId;
use noq_proto::coding::{Decodable, Encodable};
use noq_proto::{Connection, SendDatagramError, VarInt};

use crate::capsule::{CONTEXT, payload};
use crate::channel::Shared;
use crate::counts::Statistics;
use crate::session::Session;

/// Datagrams of a connection that are kept until the request that they are of has come; the latest.
const MOST_EARLY: usize = 64;

/// The ways in which payloads are carried.
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
    /// Bytes of a connection's streams that may wait behind a gap, or until they are taken; more
    /// ends the connection.
    pub held: usize,
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
            session: Session::new(carriage.held),
            channels: BTreeMap::new(),
            carriage,
            early: VecDeque::new(),
        }
    }

    /// Sends a payload of a request whose stream is open.
    pub fn send(
        &mut self,
        connection: &mut Connection,
        channel: &Shared,
        payload: &[u8],
        counts: &mut Statistics,
    ) {
        let mut channel = channel.borrow_mut();
        let Some(stream) = channel.stream.filter(|_| !channel.has_ended()) else {
            counts.unknown_datagrams_total += 1;
            return;
        };
        let takes_datagrams = connection.datagrams().max_size().is_some();
        if self.carriage.carry == Carry::Streams || !takes_datagrams {
            let waiting = channel.waiting() + self.session.transport().unsent(stream);
            if waiting + payload.len() > self.carriage.queue {
                counts.queue_full_datagrams_total += 1;
                return;
            }
            channel.push(payload);
            drop(channel);
            self.session.pump(connection);
            let queued = (waiting + payload.len()) as u64;
            counts.most_queued_bytes = counts.most_queued_bytes.max(queued);
            counts.sent_capsules_total += 1;
            counts.sent_bytes_total += payload.len() as u64;
            return;
        }
        match connection.datagrams().send(encode(stream, payload), false) {
            Ok(()) => {
                counts.sent_datagrams_total += 1;
                counts.sent_bytes_total += payload.len() as u64;
                let space = connection.datagrams().send_buffer_space();
                let queued = self.carriage.queue.saturating_sub(space) as u64;
                counts.most_queued_bytes = counts.most_queued_bytes.max(queued);
            }
            Err(SendDatagramError::TooLarge) => counts.too_large_datagrams_total += 1,
            Err(_) => counts.queue_full_datagrams_total += 1,
        }
    }

    /// The largest payload of a request that one datagram carries to the peer; `None`: any, in
    /// capsules, or it is not known yet.
    pub fn largest_payload(
        &self,
        connection: &mut Connection,
        stream: Option<StreamId>,
    ) -> Option<usize> {
        if self.carriage.carry == Carry::Streams {
            return None;
        }
        let most = connection.datagrams().max_size()?;
        Some(most.saturating_sub(encode(stream?, &[]).len()))
    }

    /// Takes the datagrams that have come; says that the peer breaks HTTP/3 by one of them.
    pub fn receive(
        &mut self,
        connection: &mut Connection,
        counts: &mut Statistics,
        mut take: impl FnMut(u64, Bytes),
    ) -> Result<(), Code> {
        while let Some(datagram) = connection.datagrams().recv() {
            let (stream, datagram) = decode(datagram).ok_or(Code::H3_DATAGRAM_ERROR)?;
            let Some(payload) = payload(datagram) else {
                counts.unknown_datagrams_total += 1;
                continue;
            };
            if self.channels.contains_key(&stream) {
                counts.received_datagrams_total += 1;
                counts.received_bytes_total += payload.len() as u64;
                take(stream, payload);
            } else {
                self.early.push_back((stream, payload));
                // The oldest: its request may be over.
                if self.early.len() > MOST_EARLY {
                    self.early.pop_front();
                    counts.unknown_datagrams_total += 1;
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
        counts: &mut Statistics,
        mut take: impl FnMut(Bytes),
    ) {
        self.channels.insert(stream, channel);
        for (of, payload) in std::mem::take(&mut self.early) {
            if of == stream {
                counts.received_datagrams_total += 1;
                counts.received_bytes_total += payload.len() as u64;
                take(payload);
            } else {
                self.early.push_back((of, payload));
            }
        }
    }
}

/// A payload as an HTTP datagram (RFC 9297, section 2.1; RFC 9298, section 5; RFC 9484, section 6).
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
