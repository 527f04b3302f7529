//! Where segments lie in the sequence spaces of both senders.

use std::ops::Range;

use super::sequence::{Position, Unwrapper};
use crate::connection::Packet;
use bentpipe_wire::quic::End;
use bentpipe_wire::tcp::Header;

/// A segment in the sequence spaces. Position 0 is that of the SYN, 1 that of the first byte.
#[derive(Debug, Clone, Default)]
pub(super) struct Placement {
    /// Its part of its sender's sequence space; empty if none.
    pub(super) extent: Range<Position>,
    /// In the space of the other end, as all that follows.
    pub(super) acknowledgment: Option<Position>,
    pub(super) sack: Vec<Range<Position>>,
}

/// A sender's sequence space, as far as it is known.
#[derive(Debug, Default)]
struct Space {
    unwrapper: Unwrapper,
    /// Where its SYN was.
    syn: Option<Position>,
    /// The first byte of all that were captured.
    lowest: Option<Position>,
    /// The first ACK to it.
    acknowledged: Option<Position>,
}

impl Space {
    /// Where its SYN was, or would have been if the first byte that was captured, or acknowledged,
    /// is the first of all.
    fn origin(&self) -> Position {
        let before = |first: Position| first - 1;
        let first = self.lowest.or(self.acknowledged);
        self.syn.or(first.map(before)).unwrap_or(0)
    }
}

/// Places the segments of a connection, which are in order of time.
pub(super) fn placements(packets: &[Packet], headers: &[Header]) -> Vec<Placement> {
    let mut spaces = [Space::default(), Space::default()];
    let segments = packets.iter().zip(headers);
    let mut placements: Vec<Placement> = segments
        .map(|(packet, header)| {
            let [own, other] = sorted(&mut spaces, packet.sender);
            absolute(header, own, other)
        })
        .collect();
    for (packet, placement) in packets.iter().zip(&mut placements) {
        let [own, other] = sorted(&mut spaces, packet.sender).map(|it| it.origin());
        let since =
            |range: &Range<Position>, origin: Position| range.start - origin..range.end - origin;
        placement.extent = since(&placement.extent, own);
        placement.acknowledgment = placement.acknowledgment.map(|it| it - other);
        for block in &mut placement.sack {
            *block = since(block, other);
        }
    }
    placements
}

/// The space of `sender`, then that of the other end.
fn sorted(spaces: &mut [Space; 2], sender: End) -> [&mut Space; 2] {
    let [client, server] = spaces;
    match sender {
        End::Client => [client, server],
        End::Server => [server, client],
    }
}

/// Places a segment by the sequence numbers themselves.
fn absolute(header: &Header, own: &mut Space, other: &mut Space) -> Placement {
    let start = if header.rst {
        own.unwrapper.near(header.sequence) // which may be 0, whatever was sent before
    } else {
        let start = own.unwrapper.sent(header.sequence);
        own.lowest = Some(own.lowest.map_or(start, |lowest| lowest.min(start)));
        start
    };
    if header.syn {
        own.syn = Some(start);
    }
    let acknowledgment = header.acknowledgment.map(|number| {
        let position = if header.rst {
            other.unwrapper.near(number)
        } else {
            other.unwrapper.acknowledged(number)
        };
        other.acknowledged.get_or_insert(position);
        position
    });
    let blocks = header.sack.iter().flat_map(|it| it.iter()).flatten();
    let block =
        |(left, right): &(u32, u32)| other.unwrapper.near(*left)..other.unwrapper.near(*right);
    Placement {
        extent: start..start + Position::from(header.extent()),
        acknowledgment,
        sack: blocks.map(block).collect(),
    }
}
