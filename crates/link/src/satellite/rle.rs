//! Packets in bursts: Return Link Encapsulation (ETSI TS 103 179; EN 301 545-2, section 7).
//!
//! Chosen here: a compressed protocol type of 1 byte, no labels, for the assignment says whose a
//! burst is, and a sequence number of 1 byte behind the last part of a packet that is divided, in
//! place of a checksum. What a burst has left is padding. Deviation: a packet of any size may be
//! divided, where the field for its length ends at 4095 bytes.

use super::backlog::Encapsulation;

/// Bytes of the protocol type.
const PROTOCOL_TYPE: u64 = 1;
/// Bytes before a packet that is not divided: flags and length, protocol type.
const WHOLE: u64 = 2 + PROTOCOL_TYPE;
/// Bytes before the first part of a packet: flags and length, the whole length, protocol type.
const FIRST: u64 = 2 + 2 + PROTOCOL_TYPE;
/// Bytes before a later part: flags and length.
const LATER: u64 = 2;
/// Bytes of the sequence number behind the last part.
const NUMBER: u64 = 1;
/// The most that a burst loses to the division of a packet, or to padding.
const LOST: u64 = FIRST;

/// A packet that is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rle {
    /// Bytes that are still to be sent, after a beginning with the sequence number.
    left: u64,
    has_begun: bool,
}

impl Encapsulation for Rle {
    fn new(ip_bytes: u32) -> Self {
        Self {
            left: ip_bytes.into(),
            has_begun: false,
        }
    }

    fn fill(&mut self, room: u64) -> u64 {
        let header = match self.has_begun {
            false if self.left + WHOLE <= room => WHOLE,
            false => FIRST,
            true => LATER,
        };
        // A part of no bytes would tell nothing.
        if room <= header {
            return 0;
        }
        if header == FIRST {
            (self.left, self.has_begun) = (self.left + NUMBER, true);
        }
        let taken = self.left.min(room - header);
        self.left -= taken;
        header + taken
    }

    fn left(&self) -> u64 {
        self.left
    }
}

/// The bytes of bursts that suffice for `packets` packets with `bytes` bytes altogether, however
/// they are divided: those of whole bursts with that payload.
pub(crate) fn burst_bytes(bytes: u64, packets: u64, payload: u64) -> u64 {
    let bursts = (bytes + WHOLE * packets).div_ceil(payload - LOST);
    bursts * payload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_fits_has_one_header() {
        let mut packet = Rle::new(100);
        assert_eq!(packet.fill(103), 103);
        assert_eq!(packet.left(), 0);
    }

    #[test]
    fn a_packet_that_does_not_fit_is_divided() {
        let mut packet = Rle::new(1500);
        // 5 bytes before 594 of the packet, 2 before 597; the other 309 and the number are left.
        assert_eq!([packet.fill(599), packet.fill(599)], [599, 599]);
        assert_eq!(packet.fill(599), 2 + 309 + 1);
        assert_eq!(packet.left(), 0);
    }

    #[test]
    fn too_little_room_is_left_as_padding() {
        let mut packet = Rle::new(100);
        assert_eq!(packet.fill(5), 0);
        assert_eq!(packet.fill(6), 6);
        assert_eq!((packet.left(), packet.fill(2)), (100, 0));
    }

    #[test]
    fn the_bursts_that_are_asked_for_suffice() {
        for (size, payload) in [(40, 38), (1500, 123), (1500, 599), (594, 599), (597, 599)] {
            let mut bursts = burst_bytes(10 * u64::from(size), 10, payload) / payload;
            let mut room = 0;
            for _ in 0..10 {
                let mut packet = Rle::new(size);
                while packet.left() > 0 {
                    let used = packet.fill(room);
                    room -= used;
                    if packet.left() > 0 {
                        (bursts, room) = (bursts - 1, payload);
                    }
                }
            }
        }
    }
}
