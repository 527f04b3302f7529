//! Packets in BBFRAMEs: Generic Stream Encapsulation (ETSI TS 102 606-1, section 4.2), with labels
//! of 6 bytes.

use super::backlog::Encapsulation;

/// Bytes before a packet that is not divided: flags and length, protocol type, label.
const WHOLE: u64 = 2 + 2 + 6;
/// Bytes before the first part of a packet: the same, the fragment's number, the whole length.
const FIRST: u64 = WHOLE + 1 + 2;
/// Bytes before a later part: flags and length, the fragment's number.
const LATER: u64 = 2 + 1;
/// Bytes of the checksum behind the last part. It is not divided.
const CHECKSUM: u64 = 4;
/// The most bytes of a GSE packet: its length is 12 bits, and does not count its first 2 bytes.
const LONGEST: u64 = 4095 + 2;

/// A packet that is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gse {
    /// Bytes that are still to be sent, after a beginning with those of the checksum.
    left: u64,
    has_begun: bool,
}

impl Encapsulation for Gse {
    fn new(ip_bytes: u32) -> Self {
        Self {
            left: ip_bytes.into(),
            has_begun: false,
        }
    }

    fn fill(&mut self, room: u64) -> u64 {
        let mut used = 0;
        while self.left > 0 {
            let taken = self.put(room - used);
            if taken == 0 {
                break;
            }
            used += taken;
        }
        used
    }

    fn left(&self) -> u64 {
        self.left
    }
}

impl Gse {
    /// Puts one GSE packet into the room; returns its bytes.
    fn put(&mut self, room: u64) -> u64 {
        let room = room.min(LONGEST);
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
            (self.left, self.has_begun) = (self.left + CHECKSUM, true);
        }
        let mut taken = self.left.min(room - header);
        if taken < self.left && self.left - taken < CHECKSUM {
            taken = self.left.saturating_sub(CHECKSUM);
        }
        self.left -= taken;
        if taken == 0 { 0 } else { header + taken }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_fits_has_one_header() {
        let mut packet = Gse::new(1500);
        assert_eq!(packet.fill(4000), 1510);
        assert!(packet.left == 0);
    }

    #[test]
    fn a_packet_that_does_not_fit_is_divided_and_has_a_checksum() {
        let mut packet = Gse::new(1500);
        // 13 bytes before 987 of the packet; 513 and the checksum are left.
        assert_eq!(packet.fill(1000), 1000);
        assert!(packet.left() > 0);
        assert_eq!(packet.fill(4000), 3 + 513 + 4);
        assert!(packet.left == 0);
    }

    #[test]
    fn a_checksum_is_not_divided() {
        let mut packet = Gse::new(100);
        assert_eq!(packet.fill(109), 13 + 96);
        // 4 bytes and the checksum are left; of 5 bytes of room 4 are used.
        assert_eq!(packet.fill(8), 7);
        assert_eq!(packet.fill(6), 0);
        assert_eq!(packet.fill(7), 7);
        assert!(packet.left == 0);
    }

    #[test]
    fn no_gse_packet_is_longer_than_its_length_can_say() {
        let mut packet = Gse::new(9000);
        // Two of 4097 bytes, with 4084 and 4094; then 822 and the checksum.
        assert_eq!(packet.fill(20_000), 4097 + 4097 + 3 + 822 + 4);
    }
}
