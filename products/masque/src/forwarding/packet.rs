//! The parts of a QUIC packet that no version changes (RFC 8999).

use bytes::{Buf, Bytes, BytesMut};

use super::{Cid, LONGEST_CID, Transform};

/// Versions 1 and 2 (RFC 9000, RFC 9369): of their packets each has other bytes behind its
/// connection ID, as [`Transform::Scramble`] needs.
const VERSIONS: [[u8; 4]; 2] = [[0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]];

/// The bit of a long header.
const LONG: u8 = 0x80;
/// First byte and version of a long header.
const BEFORE_IDS: usize = 5;

/// Whether a packet has a short header.
pub fn is_short(packet: &[u8]) -> bool {
    packet.first().is_some_and(|it| it & LONG == 0)
}

/// The connection ID that the sender of a packet with a long header has chosen for itself; `None`:
/// it is no such packet of a known version.
pub fn source_id(mut packet: &[u8]) -> Option<&[u8]> {
    let version = packet.get(1..BEFORE_IDS)?;
    if is_short(packet) || !VERSIONS.iter().any(|it| it == version) {
        return None;
    }
    packet.advance(BEFORE_IDS);
    next_id(&mut packet)?;
    next_id(&mut packet)
}

fn next_id<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::from(bytes.try_get_u8().ok()?);
    if length > LONGEST_CID {
        return None;
    }
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

#[cfg(test)]
mod tests {
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
}
