//! Where a transfer begins and ends in a capture, and whether the capture has all of it.
//!
//! A transfer is whole if the end of every stream that carries it was sent (RFC 9000 section 3.1,
//! "Data Sent"), and, where the size of the files is known, no less than that. What was cut short,
//! by a timeout or by the end of the capture, still had data to send at its end: that end must not
//! be taken for the sender's.

use std::collections::HashMap;

use crate::connection::{Connection, Frame, Kind, Nanos, Packet};
use crate::ledger::LedgerEntry;
use bentpipe_wire::quic::{End, PacketType};

use super::span::Span;
use super::view::View;

/// A stream of this number or greater in the lowest bits has one direction (RFC 9000 section 2.1).
/// In HTTP/3 these are of control, and never end.
const UNIDIRECTIONAL: u64 = 0x02;

/// Whether all data were sent.
pub(super) fn is_whole(view: &View<'_>, sender: End, data: &[usize]) -> bool {
    let connection = view.connection;
    let own = view.packets().map(|(packet, _)| packet);
    let own = own.filter(|it| it.sender == sender);
    let mut ended: HashMap<u64, bool> = HashMap::new();
    for frame in own.flat_map(|packet| connection.frames(packet)) {
        if let Frame::Stream { id, fin, .. } = frame {
            *ended.entry(*id).or_default() |= fin;
        }
    }
    if ended.keys().any(|id| id & UNIDIRECTIONAL == 0) {
        ended.retain(|id, _| id & UNIDIRECTIONAL == 0);
    }
    let entries = data.iter().map(|at| &view.ledger[*at]);
    let bytes: u64 = entries.map(new_bytes).sum();
    let is_enough = view.link.size_bytes.is_none_or(|size| bytes >= size);
    is_enough && ended.values().all(|ended| *ended)
}

/// From the first packet with stream data to the last one with data never sent before; of a
/// transfer that is not whole, to the end of the connection or the capture.
pub(super) fn sending(view: &View<'_>, data: &[usize], is_whole: bool) -> Span {
    let time = |at: &usize| view.connection.packets[*at].time();
    let from = data.first().map_or(0, time);
    let is_new = |at: &&usize| new_bytes(&view.ledger[**at]) > 0;
    let until = if is_whole {
        data.iter().rfind(is_new).map_or(from, time)
    } else {
        end(view.connection).max(from)
    };
    Span { from, until }
}

/// From the first of these packets to the last.
pub(super) fn passing(view: &View<'_>, packets: &[usize]) -> Span {
    let time = |at: &usize| view.connection.packets[*at].time();
    let from = packets.first().map_or(0, time);
    let until = packets.last().map_or(from, time);
    Span { from, until }
}

/// Whether the capture began after the connection: no handshake is in it, or not the first bytes of
/// the data.
pub(super) fn began_earlier(view: &View<'_>, data: &[usize]) -> bool {
    let connection = view.connection;
    let frames = |packet: &Packet| connection.frames(packet).iter();
    let opens = |packet: &Packet| match packet.kind {
        Kind::Quic(kind) => kind == PacketType::Initial,
        Kind::Tcp => frames(packet).any(|it| it.name() == "SYN"),
    };
    let is_first = |frame: &Frame| matches!(frame, Frame::Stream { offset: 0, .. });
    let mut data = data.iter().map(|at| &connection.packets[*at]);
    !connection.packets.iter().any(opens) || !data.any(|packet| frames(packet).any(is_first))
}

fn new_bytes(entry: &LedgerEntry) -> u64 {
    u64::from(entry.stream_bytes - entry.retransmitted)
}

/// When an end closed the connection, or the last packet was seen.
fn end(connection: &Connection) -> Nanos {
    let packets = &connection.packets;
    let closes = |packet: &&Packet| {
        let mut frames = connection.frames(packet).iter();
        frames.any(|it| it.name().starts_with("CONNECTION_CLOSE"))
    };
    let close = packets.iter().find(closes).map(Packet::time);
    close.or(packets.last().map(Packet::time)).unwrap_or(0)
}
