//! Classic pcap, with times in micro- or nanoseconds, written in either byte order.
//!
//! Source: draft-ietf-opsawg-pcap, sections 4 (file header) and 5 (packet record).

use super::{ByteOrder, CaptureError, CapturedPacket, Clock, Interface, Item, Part};

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// The largest packet that libpcap accepts.
const LARGEST: usize = 262_144;

/// The packets of a file.
#[derive(Debug)]
pub(super) struct Records<'a> {
    pub(super) part: Part<'a>,
    order: ByteOrder,
}

impl<'a> Records<'a> {
    pub(super) fn new(part: Part<'a>) -> Result<(Self, Interface), CaptureError> {
        let file = part.bytes;
        let magic = file.first_chunk().ok_or(CaptureError::NotACapture)?;
        let (order, clock) = match u32::from_be_bytes(*magic) {
            0xa1b2_c3d4 => (ByteOrder::Big, Clock::MICROSECONDS),
            0xd4c3_b2a1 => (ByteOrder::Little, Clock::MICROSECONDS),
            0xa1b2_3c4d => (ByteOrder::Big, Clock::NANOSECONDS),
            0x4d3c_b2a1 => (ByteOrder::Little, Clock::NANOSECONDS),
            _ => return Err(CaptureError::NotACapture),
        };
        if file.len() < FILE_HEADER {
            return Err(CaptureError::CutShort {
                offset: 0,
                what: "the file header",
            });
        }
        let interface = Interface {
            name: None,
            // The upper half says whether packets end with a frame check sequence, which does not
            // matter here.
            link_type: order.u32(file, 20).to_be_bytes()[2..]
                .try_into()
                .map(u16::from_be_bytes)
                .expect("two bytes"),
            clock,
        };
        let at = FILE_HEADER;
        let part = Part { at, ..part };
        Ok((Self { part, order }, interface))
    }

    pub(super) fn resume(self, bytes: &[u8]) -> Records<'_> {
        Records {
            part: self.part.followed_by(bytes),
            order: self.order,
        }
    }

    pub(super) fn next_item(
        &mut self,
        interface: &Interface,
    ) -> Result<Option<Item<'a>>, CaptureError> {
        let record = self.part.rest();
        let offset = self.part.position();
        let cut_short = CaptureError::CutShort {
            offset,
            what: "a packet record",
        };
        if record.is_empty() {
            return Ok(None);
        }
        if record.len() < RECORD_HEADER {
            return Err(cut_short);
        }
        let length = self.order.length(record, 8);
        if length > LARGEST {
            return Err(CaptureError::Garbage {
                offset,
                what: "a packet record that claims more than 256 KiB",
            });
        }
        let Some(bytes) = record.get(RECORD_HEADER..RECORD_HEADER + length) else {
            return Err(cut_short);
        };
        self.part.at += RECORD_HEADER + length;
        let seconds = u64::from(self.order.u32(record, 0));
        let fraction = u64::from(self.order.u32(record, 4));
        let unit = if interface.clock == Clock::NANOSECONDS {
            1
        } else {
            1000
        };
        Ok(Some(Item::Packet(CapturedPacket {
            interface: 0,
            time: Some(seconds * 1_000_000_000 + fraction * unit),
            link_type: interface.link_type,
            bytes,
            comment: None,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;

    /// A file with one packet at 2.000000005 s or 2.000005 s, in the order of the magic number.
    fn file(magic: u32, big: bool) -> Vec<u8> {
        let words = [magic, 0x0002_0004, 0, 0, 65535, 0x1000_0065, 2, 5, 3, 40];
        let mut file: Vec<u8> = words
            .iter()
            .flat_map(|word| {
                if big {
                    word.to_be_bytes()
                } else {
                    word.to_le_bytes()
                }
            })
            .collect();
        file.extend_from_slice(b"abc");
        file
    }

    #[test]
    fn both_resolutions_in_both_byte_orders() {
        for big in [true, false] {
            for (magic, time) in [(0xa1b2_c3d4, 2_000_005_000), (0xa1b2_3c4d, 2_000_000_005)] {
                let file = file(magic, big);
                let items: Vec<_> = Reader::new(&file).unwrap().collect();
                let packet = CapturedPacket {
                    interface: 0,
                    time: Some(time),
                    link_type: 101,
                    bytes: b"abc",
                    comment: None,
                };
                assert_eq!(items, [Ok(Item::Packet(packet))]);
            }
        }
    }

    #[test]
    fn a_file_cut_anywhere_says_where() {
        let file = file(0xa1b2_c3d4, false);
        for length in FILE_HEADER + 1..file.len() {
            let mut reader = Reader::new(&file[..length]).unwrap();
            let error = reader.next().unwrap().unwrap_err();
            assert!(matches!(error, CaptureError::CutShort { offset: 24, .. }));
            assert!(reader.next().is_none());
        }
        assert!(Reader::new(&file[..10]).is_err());
        assert!(Reader::new(&file[..24]).unwrap().next().is_none());
    }
}
