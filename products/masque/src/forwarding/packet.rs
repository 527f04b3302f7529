//! The parts of a QUIC packet that no version changes (RFC 8999), and forwarded packets that wait.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use bentpipe_endpoint::Transmit;
use bytes::{Buf, Bytes, BytesMut};

use super::{Cid, Transform};

/// The bit of a long header.
const LONG: u8 = 0x80;
/// First byte and version of a long header.
const BEFORE_IDS: usize = 5;

/// Whether a packet has a short header.
pub fn is_short(packet: &[u8]) -> bool {
    packet.first().is_some_and(|it| it & LONG == 0)
}

/// The connection ID that the sender of a packet with a long header has chosen for itself; `None`:
/// it is no such packet, or one of version negotiation, whose sender has none.
pub fn source_id(mut packet: &[u8]) -> Option<&[u8]> {
    if packet.len() < BEFORE_IDS || is_short(packet) || packet[1..BEFORE_IDS] == [0; 4] {
        return None;
    }
    packet.advance(BEFORE_IDS);
    next_id(&mut packet)?;
    next_id(&mut packet)
}

fn next_id<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::from(bytes.try_get_u8().ok()?);
    let (id, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(id)
}

/// A packet with another connection ID in place of its own of `id` bytes.
fn with_id(packet: &[u8], id: usize, other: &[u8]) -> BytesMut {
    let mut changed = BytesMut::with_capacity(packet.len() - id + other.len());
    changed.extend_from_slice(&packet[..1]);
    changed.extend_from_slice(other);
    changed.extend_from_slice(&packet[1 + id..]);
    changed
}

impl Transform {
    /// The packet that is sent for one with a connection ID of `id` bytes; `None`: it is too short,
    /// and has to go through the tunnel.
    pub fn to_virtual(&self, packet: &[u8], id: usize, other: &[u8]) -> Option<Bytes> {
        if !self.takes(packet, id) {
            return None;
        }
        let mut changed = with_id(packet, id, other);
        self.encode(&mut changed, other.len());
        Some(changed.freeze())
    }

    /// The packet that was sent as one with a virtual connection ID of `id` bytes; `None`: it is
    /// too short to be one.
    pub fn to_real(&self, packet: &[u8], id: usize, other: &Cid) -> Option<Bytes> {
        if !self.takes(packet, id) {
            return None;
        }
        let mut changed = BytesMut::from(packet);
        self.decode(&mut changed, id);
        Some(with_id(&changed, id, other).freeze())
    }
}

/// A forwarded packet that waits for its socket.
pub struct Outgoing {
    /// Where it goes, and from which of this host's addresses.
    pub path: Transmit,
    pub packet: Bytes,
}

/// The forwarded packets that wait for their socket.
#[derive(Default)]
pub struct Outgoings {
    waiting: VecDeque<Outgoing>,
    bytes: usize,
}

impl Outgoings {
    /// Adds one, unless `most` bytes wait.
    pub fn push(&mut self, outgoing: Outgoing, most: usize) -> bool {
        let has_room = self.bytes + outgoing.packet.len() <= most;
        if has_room {
            self.bytes += outgoing.packet.len();
            self.waiting.push_back(outgoing);
        }
        has_room
    }

    /// The next ones that may leave together: to one place, of one size but for the last.
    pub fn poll(&mut self, most: NonZeroUsize, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let first = self.waiting.front()?;
        let (path, size) = (first.path, first.packet.len());
        let mut count = 0;
        while count < most.get()
            && let Some(next) = self.waiting.pop_front_if(|it| {
                it.path == path && it.packet.len() <= size && buffer.len() == count * size
            })
        {
            self.bytes -= next.packet.len();
            buffer.extend_from_slice(&next.packet);
            count += 1;
        }
        Some(Transmit {
            segment_size: (count > 1).then_some(size),
            ..path
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn the_source_connection_id_of_a_long_header() {
        let initial = [0xc3, 0, 0, 0, 1, 2, 8, 9, 3, 1, 2, 3, 0];
        assert_eq!(source_id(&initial), Some(&[1, 2, 3][..]));
        let without = [0xc3, 0, 0, 0, 1, 1, 8, 0];
        assert_eq!(source_id(&without), Some(&[][..]));
        let negotiation = [0x80, 0, 0, 0, 0, 1, 8, 1, 7];
        for other in [
            &[0x43, 1, 2, 3, 4, 5, 6, 7, 8][..],
            &negotiation,
            &[],
            &[0xc0],
        ] {
            assert_eq!(source_id(other), None, "{other:?}");
        }
        for cut in 0..initial.len() - 1 {
            assert_eq!(source_id(&initial[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn packets_of_one_size_leave_together_and_a_full_queue_takes_no_more() {
        let place = |port| Transmit::to(SocketAddr::from(([192, 0, 2, 1], port)), None);
        let mut queue = Outgoings::default();
        for (port, size) in [(1, 5), (1, 5), (1, 3), (1, 5), (2, 5), (2, 6)] {
            let packet = Bytes::from(vec![0; size]);
            let path = place(port);
            assert!(queue.push(Outgoing { path, packet }, 30));
        }
        let packet = Bytes::from_static(&[0; 2]);
        let path = place(1);
        assert!(!queue.push(Outgoing { path, packet }, 30));
        let mut taken = Vec::new();
        let mut buffer = Vec::new();
        while let Some(transmit) = queue.poll(NonZeroUsize::new(9).unwrap(), &mut buffer) {
            taken.push((buffer.len(), transmit.segment_size));
            buffer.clear();
        }
        assert_eq!(taken, [(13, Some(5)), (5, None), (5, None), (6, None)],);
    }
}
