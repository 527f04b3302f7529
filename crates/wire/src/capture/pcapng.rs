//! pcapng: sections, interfaces, packets and TLS secrets. Blocks of other types are passed over.
//!
//! Source: draft-ietf-opsawg-pcapng sections 3.1 (blocks), 3.5 (options) and 4. A byte order holds
//! for one section, and so do interface numbers; here the interfaces of all sections are counted
//! on.

use super::{ByteOrder, CaptureError, CapturedPacket, Clock, Interface, Item, Part};

/// Reads the same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 0x0a;
/// "TLSK": NSS key log lines.
const TLS_KEY_LOG: u32 = 0x544c_534b;
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
/// Type and two lengths.
const FRAMING: usize = 12;

/// The blocks of a file.
#[derive(Debug)]
pub(super) struct Blocks<'a> {
    pub(super) part: Part<'a>,
    order: ByteOrder,
    /// Index of the first interface of this section.
    section: usize,
}

struct Block<'a> {
    offset: usize,
    kind: u32,
    body: &'a [u8],
}

impl<'a> Blocks<'a> {
    pub(super) fn new(part: Part<'a>) -> Self {
        Self {
            part,
            order: ByteOrder::Little,
            section: 0,
        }
    }

    pub(super) fn resume(self, bytes: &[u8]) -> Blocks<'_> {
        Blocks {
            part: self.part.followed_by(bytes),
            order: self.order,
            section: self.section,
        }
    }

    pub(super) fn next_item(
        &mut self,
        interfaces: &mut Vec<Interface>,
    ) -> Result<Option<Item<'a>>, CaptureError> {
        while let Some(block) = self.next_block()? {
            let item = match block.kind {
                SECTION_HEADER => {
                    self.section = interfaces.len();
                    None
                }
                INTERFACE_DESCRIPTION => {
                    interfaces.push(self.interface(&block)?);
                    None
                }
                DECRYPTION_SECRETS => self.secrets(&block)?.map(Item::TlsSecrets),
                ENHANCED_PACKET | OBSOLETE_PACKET | SIMPLE_PACKET => {
                    Some(Item::Packet(self.packet(&block, interfaces)?))
                }
                _ => None,
            };
            if item.is_some() {
                return Ok(item);
            }
        }
        Ok(None)
    }

    fn next_block(&mut self) -> Result<Option<Block<'a>>, CaptureError> {
        let offset = self.part.position();
        let rest = self.part.rest();
        let what = "a block";
        let cut_short = || CaptureError::CutShort { offset, what };
        let garbage = |what| CaptureError::Garbage { offset, what };
        if rest.is_empty() {
            return Ok(None);
        }
        if rest.len() < FRAMING {
            return Err(cut_short());
        }
        if rest.starts_with(&SECTION_HEADER.to_be_bytes()) {
            self.order = match ByteOrder::Little.u32(rest, 8) {
                BYTE_ORDER_MAGIC => ByteOrder::Little,
                magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => ByteOrder::Big,
                _ => return Err(garbage("a section of no known byte order")),
            };
        }
        let length = self.order.length(rest, 4);
        if length < FRAMING || !length.is_multiple_of(4) {
            return Err(garbage("a block whose length cannot be"));
        }
        let block = rest.get(..length).ok_or_else(cut_short)?;
        if self.order.length(block, length - 4) != length {
            return Err(garbage("a block whose two lengths differ"));
        }
        self.part.at += length;
        Ok(Some(Block {
            offset,
            kind: self.order.u32(block, 0),
            body: &block[8..length - 4],
        }))
    }

    fn interface(&self, block: &Block<'_>) -> Result<Interface, CaptureError> {
        let link_type = block.body.get(..8).ok_or_else(|| block.too_short())?;
        let mut interface = Interface {
            name: None,
            link_type: self.order.u16(link_type, 0),
            clock: Clock::MICROSECONDS,
        };
        let mut options = &block.body[8..];
        while let Some((code, value)) = self.next_option(&mut options, block)? {
            match (code, value) {
                (2, name) => interface.name = Some(String::from_utf8_lossy(name).into_owned()),
                (9, [resolution]) => interface.clock.ticks_per_second = ticks(*resolution),
                (14, offset) if offset.len() == 8 => {
                    interface.clock.offset_seconds = self.seconds(offset);
                }
                _ => {}
            }
        }
        Ok(interface)
    }

    /// Takes the code and the value of an option off the front of `options`. None at their end.
    fn next_option<'o>(
        &self,
        options: &mut &'o [u8],
        block: &Block<'_>,
    ) -> Result<Option<(u16, &'o [u8])>, CaptureError> {
        if options.len() < 4 {
            return Ok(None);
        }
        let (code, length) = (self.order.u16(options, 0), self.order.u16(options, 2));
        let length = usize::from(length);
        let value = options.get(4..4 + length);
        let value = value.ok_or_else(|| block.too_short())?;
        let behind = 4 + length.next_multiple_of(4);
        *options = options.get(behind..).unwrap_or_default();
        Ok((code != END_OF_OPTIONS).then_some((code, value)))
    }

    /// The first comment among the options of a packet.
    fn comment(
        &self,
        mut options: &'a [u8],
        block: &Block<'a>,
    ) -> Result<Option<&'a [u8]>, CaptureError> {
        while let Some((code, value)) = self.next_option(&mut options, block)? {
            if code == COMMENT {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// `if_tsoffset`: seconds to add to every time of the interface.
    fn seconds(&self, option: &[u8]) -> i64 {
        let (first, second) = (self.order.u32(option, 0), self.order.u32(option, 4));
        let (high, low) = match self.order {
            ByteOrder::Big => (first, second),
            ByteOrder::Little => (second, first),
        };
        (u64::from(high) << 32 | u64::from(low)).cast_signed()
    }

    fn secrets(&self, block: &Block<'a>) -> Result<Option<&'a [u8]>, CaptureError> {
        let body = block.body;
        if body.len() < 8 {
            return Err(block.too_short());
        }
        let secrets = body[8..].get(..self.order.length(body, 4));
        let secrets = secrets.ok_or_else(|| block.too_short())?;
        Ok((self.order.u32(body, 0) == TLS_KEY_LOG).then_some(secrets))
    }

    fn packet(
        &self,
        block: &Block<'a>,
        interfaces: &[Interface],
    ) -> Result<CapturedPacket<'a>, CaptureError> {
        let body = block.body;
        let head = if block.kind == SIMPLE_PACKET { 4 } else { 20 };
        if body.len() < head {
            return Err(block.too_short());
        }
        let number = match block.kind {
            ENHANCED_PACKET => self.order.length(body, 0),
            OBSOLETE_PACKET => usize::from(self.order.u16(body, 0)),
            _ => 0, // section 4.4: a Simple Packet Block belongs to the first interface
        };
        let index = self.section.saturating_add(number);
        let interface = interfaces.get(index).ok_or(CaptureError::Garbage {
            offset: block.offset,
            what: "a packet of an interface that is not described",
        })?;
        let (length, time) = if block.kind == SIMPLE_PACKET {
            (self.order.length(body, 0).min(body.len() - head), None)
        } else {
            let ticks =
                u64::from(self.order.u32(body, 4)) << 32 | u64::from(self.order.u32(body, 8));
            (
                self.order.length(body, 12),
                interface.clock.nanoseconds(ticks),
            )
        };
        let contents = &body[head..];
        let bytes = contents.get(..length).ok_or_else(|| block.too_short())?;
        let comment = match contents.get(length.next_multiple_of(4)..) {
            Some(options) if block.kind != SIMPLE_PACKET => self.comment(options, block)?,
            _ => None,
        };
        Ok(CapturedPacket {
            interface: index,
            time,
            link_type: interface.link_type,
            bytes,
            comment,
        })
    }
}

impl Block<'_> {
    fn too_short(&self) -> CaptureError {
        CaptureError::Garbage {
            offset: self.offset,
            what: "a block with less in it than it says",
        }
    }
}

/// `if_tsresol`: a negative power of ten, or of two where the highest bit is set. Beyond what 128
/// bits hold, the finest.
fn ticks(resolution: u8) -> u128 {
    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(u32::from(resolution & 0x7f))
        .unwrap_or(u128::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;

    /// A block of big-endian words.
    fn block(kind: u32, words: &[u32]) -> Vec<u8> {
        let length = u32::try_from(FRAMING + 4 * words.len()).unwrap();
        [&[kind, length], words, &[length]]
            .concat()
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect()
    }

    fn big_endian_file() -> Vec<u8> {
        let section = block(SECTION_HEADER, &[BYTE_ORDER_MAGIC, 0x0001_0000, !0, !0]);
        // if_tsresol 6, if_tsoffset 1 s
        let options = [0x0009_0001, 0x0600_0000, 0x000e_0008, 0, 1, 0];
        let interface = block(
            INTERFACE_DESCRIPTION,
            &[&[0x0065_0000, 0], &options[..]].concat(),
        );
        let enhanced = block(ENHANCED_PACKET, &[0, 0, 5, 3, 3, 0x6162_6300]);
        let simple = block(SIMPLE_PACKET, &[3, 0x6162_6300]);
        let other = block(0x0bad, &[1, 2, 3]);
        [
            section.clone(),
            interface.clone(),
            other,
            enhanced,
            section,
            interface,
            simple,
        ]
        .concat()
    }

    #[test]
    fn big_endian_sections_count_their_interfaces_on() {
        let file = big_endian_file();
        let mut reader = Reader::new(&file).unwrap();
        let packet = |interface, time, bytes| {
            Some(Ok(Item::Packet(CapturedPacket {
                interface,
                time,
                link_type: 101,
                bytes,
                comment: None,
            })))
        };
        assert_eq!(reader.next(), packet(0, Some(1_000_005_000), b"abc"));
        // A Simple Packet Block gives the length on the wire; how much is padding cannot be told.
        assert_eq!(reader.next(), packet(1, None, b"abc"));
        assert_eq!(reader.next(), None);
        assert_eq!(reader.interfaces().len(), 2);
    }

    #[test]
    fn a_file_cut_anywhere_says_where() {
        let file = big_endian_file();
        for length in 4..file.len() {
            match Reader::new(&file[..length]).unwrap().last() {
                Some(Err(CaptureError::CutShort { offset, .. })) => assert!(offset < length),
                // Cut between two blocks.
                None | Some(Ok(_)) => assert_eq!(length % 4, 0),
                Some(other) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_first_comment_of_a_packet_is_found() {
        let comments = |options: &[u32]| {
            let packet = [&[0, 0, 5, 3, 3, 0x6162_6300], options].concat();
            let file = [big_endian_file(), block(ENHANCED_PACKET, &packet)].concat();
            match Reader::new(&file).unwrap().last().unwrap() {
                Ok(Item::Packet(packet)) => Ok(packet.comment.map(<[u8]>::to_vec)),
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error),
            }
        };
        // epb_flags, then two comments
        let flags = [0x0002_0004, 0];
        let lost = [&flags[..], &[0x0001_0002, 0x6869_0000, 0x0001_0001, 0, 0]].concat();
        assert_eq!(comments(&lost), Ok(Some(b"hi".to_vec())));
        assert_eq!(comments(&lost[..2]), Ok(None));
        assert_eq!(comments(&[0, 0x0001_0001, 0]), Ok(None), "behind the end");
        assert!(comments(&[0x0001_0005, 0]).is_err());
    }

    #[test]
    fn two_lengths_that_differ_are_garbage() {
        let mut file = big_endian_file();
        let end = file.len();
        file[end - 1] ^= 4;
        let error = Reader::new(&file).unwrap().last().unwrap().unwrap_err();
        let offset = end - block(SIMPLE_PACKET, &[3, 0]).len();
        assert!(matches!(error, CaptureError::Garbage { offset: at, .. } if at == offset));
    }
}
