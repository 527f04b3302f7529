//! When the data sender had used up its flow-control credit.
//!
//! Source: RFC 9000 section 4.1. Credit is what the receiver's transport parameters allow, and
//! `MAX_DATA` and `MAX_STREAM_DATA` frames that reached the sender. A sender counts as blocked from
//! the packet that left too little credit for another full one until more credit arrives, and only
//! while data never sent before are still to come.
//!
//! Departure: where the transport parameters are not in the capture, then until the first of these
//! frames arrives, the sender counts as blocked only in a pause ([`super::pauses`]) that ends the
//! moment the frame arrives: its window was not full, and credit is what it had waited for. For TCP
//! nothing is known.

use std::collections::HashMap;

use crate::connection::{Frame, Nanos, Packet};
use bentpipe_wire::quic::InitialCredit;

use super::pauses::Pause;
use super::span::Span;
use super::transfer::Transfer;

/// A sender that waited for credit goes on within this time of its arrival: what a stack takes to
/// wake and to pace.
const RESUMES_WITHIN: Nanos = 5_000_000;

/// The times without credit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Blocked {
    /// In order, without overlap.
    pub spans: Vec<Span>,
    /// The most bytes in flight when the credit had just been used up: the window that flow control
    /// allowed.
    pub window: u64,
    /// The limit that was reached first.
    pub limit: Option<Limit>,
    /// `STREAM_DATA_BLOCKED` and `DATA_BLOCKED` frames sent.
    pub frames: u64,
    /// True if the initial credit is known, or any was seen to arrive.
    pub credit_seen: bool,
}

impl Blocked {
    /// The part of a span in which the sender was without credit.
    pub(super) fn within(&self, of: Span) -> Nanos {
        let first = self.spans.partition_point(|it| it.until <= of.from);
        let near = self.spans[first..]
            .iter()
            .take_while(|it| it.from < of.until);
        near.map(|it| it.overlap(of)).sum()
    }
}

/// A limit of flow control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Stream,
    Connection,
    /// The limit of transport parameters that were not seen; it may have been either.
    Initial,
}

impl Limit {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stream => "the stream's credit",
            Self::Connection => "the connection's credit",
            Self::Initial => "the initial credit",
        }
    }
}

/// The sender's credit, followed packet by packet.
struct CreditTracker<'a> {
    transfer: &'a Transfer<'a>,
    /// The most stream data that one of its packets had.
    full: u64,
    streams: HashMap<u64, CreditAccount>,
    connection: CreditAccount,
    /// The limits in the receiver's transport parameters.
    initial: Option<InitialCredit>,
    /// The time from which on it is without credit, and the stream on which it was.
    since: Option<(Nanos, u64)>,
    blocked: Blocked,
}

/// Bytes sent against a flow control limit.
#[derive(Debug, Clone, Copy, Default)]
struct CreditAccount {
    /// The end of what was sent; of a connection, the sum of the streams' ends.
    end: u64,
    limit: Option<u64>,
}

impl CreditAccount {
    fn up_to(limit: Option<u64>) -> Self {
        Self { end: 0, limit }
    }

    /// Whether another `full` bytes would not fit.
    fn is_used_up(self, full: u64) -> bool {
        self.limit
            .is_some_and(|limit| self.end.saturating_add(full) > limit)
    }

    fn raise(&mut self, limit: u64) {
        self.limit = self.limit.max(Some(limit));
    }
}

/// The times in which the sender was without credit.
pub(super) fn of(transfer: &Transfer<'_>, pauses: &[Pause]) -> Blocked {
    let packets = &transfer.view.connection.packets;
    let side = transfer.sender as usize;
    let mut order: Vec<(Nanos, usize)> = (0..packets.len())
        .filter(|at| !packets[*at].copy)
        .filter_map(|at| Some((packets[at].seen[side]?, at)))
        .collect();
    order.sort_unstable();
    let stream_bytes = transfer
        .data
        .iter()
        .map(|at| transfer.view.ledger[*at].stream_bytes);
    let initial = transfer.view.connection.initial_credit[transfer.sender.other() as usize];
    let mut tracker = CreditTracker {
        transfer,
        full: u64::from(stream_bytes.max().unwrap_or(0)),
        streams: HashMap::new(),
        connection: CreditAccount::up_to(initial.map(|it| it.initial_max_data)),
        initial,
        since: None,
        blocked: Blocked {
            credit_seen: initial.is_some(),
            ..Blocked::default()
        },
    };
    for (now, at) in order {
        if packets[at].sender == transfer.sender {
            tracker.sent(now, at);
        } else {
            tracker.received(now, &packets[at], pauses);
        }
    }
    if let Some((from, _)) = tracker.since
        && !transfer.is_whole
    {
        let until = transfer.sending.until;
        tracker.blocked.spans.push(Span { from, until });
    }
    tracker.blocked
}

impl CreditTracker<'_> {
    fn stream(&mut self, id: u64) -> &mut CreditAccount {
        let receiver = self.transfer.sender.other();
        let limit = self.initial.map(|it| it.on_stream(receiver, id));
        let account = self.streams.entry(id);
        account.or_insert_with(|| CreditAccount::up_to(limit))
    }

    fn sent(&mut self, now: Nanos, at: usize) {
        let (packet, entry) = self.transfer.packet(at);
        for frame in self.transfer.view.connection.frames(packet) {
            match frame {
                Frame::Stream {
                    id, offset, length, ..
                } => {
                    let account = self.stream(*id);
                    let end = account.end.max(offset.saturating_add(u64::from(*length)));
                    let new = end - account.end;
                    account.end = end;
                    self.connection.end = self.connection.end.saturating_add(new);
                    self.look(now, *id, entry.in_flight.count().unwrap_or(0));
                }
                Frame::DataBlocked(_) | Frame::StreamDataBlocked { .. } => self.blocked.frames += 1,
                _ => {}
            }
        }
    }

    /// Takes note if no credit is left after data on stream `id`.
    fn look(&mut self, now: Nanos, id: u64, in_flight: u64) {
        let limit = match self.used_up(id) {
            Some(limit) if self.since.is_none() && self.transfer.has_more(now) => limit,
            _ => return,
        };
        self.since = Some((now, id));
        self.blocked.limit.get_or_insert(limit);
        self.blocked.window = self.blocked.window.max(in_flight);
    }

    fn used_up(&self, id: u64) -> Option<Limit> {
        if self.streams.get(&id)?.is_used_up(self.full) {
            return Some(Limit::Stream);
        }
        self.connection
            .is_used_up(self.full)
            .then_some(Limit::Connection)
    }

    fn received(&mut self, now: Nanos, packet: &Packet, pauses: &[Pause]) {
        for frame in self.transfer.view.connection.frames(packet) {
            let (account, limit) = match frame {
                Frame::MaxData(maximum) => (&mut self.connection, *maximum),
                Frame::MaxStreamData { id, maximum } => (self.stream(*id), *maximum),
                _ => continue,
            };
            let is_first = account.limit.is_none();
            account.raise(limit);
            self.blocked.credit_seen = true;
            match self.since {
                Some((from, id)) if self.used_up(id).is_none() => {
                    self.since = None;
                    self.blocked.spans.push(Span { from, until: now });
                }
                None if is_first => self.first_credit(now, pauses),
                _ => {}
            }
        }
    }

    /// The first credit of its kind ends a pause that began before any was known.
    fn first_credit(&mut self, now: Nanos, pauses: &[Pause]) {
        let is_awaited = |pause: &&Pause| (now..=now + RESUMES_WITHIN).contains(&pause.span.until);
        let Some(pause) = pauses.iter().find(is_awaited) else {
            return;
        };
        let known = self
            .blocked
            .spans
            .last()
            .map_or(pause.span.from, |it| it.until);
        let span = Span {
            from: pause.span.from.max(known),
            until: now,
        };
        if span.length() > 0 {
            self.blocked.spans.push(span);
            self.blocked.limit.get_or_insert(Limit::Initial);
            self.blocked.window = self.blocked.window.max(pause.window);
        }
    }
}
