//! Packets of the tunnel.
//!
//! | type | packet | behind the type, integers in network byte order |
//! |---|---|---|
//! | 1, 17, 33, 49 | source | `esi: u32`, the datagram as it came |
//! | 2 | repair | `repair_key: u16`, `density, count: u16`, `first_esi: u32`, the repair symbol |
//! | 3 | report | `highest: u32`, `received: u32` |
//! | 4 | request | the ESIs that are asked for, each `u32` |
//! | 5 | repair of a block | `row, count, stride: u8`, `first_esi: u32`, the repair symbol |
//!
//! Source and repair carry the FEC payload IDs of RFC 8681 section 4.1.2 and 4.1.3 (in front of the
//! payload, and not behind it); bits 4 and 5 of a source packet's type are the ECN bits of its
//! datagram, since links may mark what carries it. A report says which source packet was the last
//! and how many came. A symbol is a datagram behind its ECN bits and its length, padded with zeros:
//! an ADUI of one symbol (RFC 8681 section 3.2).

use crate::coefficients::Combination;

/// The most source symbols that a repair symbol is of: its count has 12 bits.
pub const MOST_SYMBOLS: usize = 0xfff;
/// Bytes that a source packet adds to its datagram, and a repair packet to the largest.
pub const MOST_OVERHEAD: usize = 9 + SYMBOL_HEADER;
/// `ecn: u8 | length: u16`.
const SYMBOL_HEADER: usize = 3;

const SOURCE: u8 = 1;
/// The bits of its type that are the ECN bits of the datagram.
const ECN: u8 = 0x30;
const REPAIR: u8 = 2;
const REPORT: u8 = 3;
const REQUEST: u8 = 4;
const BLOCK_REPAIR: u8 = 5;

/// A packet of the tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A datagram.
    Source {
        /// Its encoding symbol ID: a number that grows by one.
        esi: u32,
        /// The ECN bits of the datagram, as it was sent.
        ecn: u8,
        /// The datagram.
        payload: &'a [u8],
    },
    /// A linear combination of symbols.
    Repair(Repair<'a>),
    /// A report of the receiver.
    Report(Report),
    /// A request for source packets: their ESIs, four bytes each.
    Request(&'a [[u8; 4]]),
}

/// A repair packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair<'a> {
    /// The combination of source symbols that it is.
    pub combination: Combination,
    /// The first of them.
    pub first_esi: u32,
    /// The repair symbol.
    pub symbol: &'a [u8],
}

/// A report of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The largest ESI that came.
    pub highest: u32,
    /// The number of source packets that came, modulo 2^32.
    pub received: u32,
}

impl<'a> Packet<'a> {
    /// Reads a packet; None: it is none.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        match *kind {
            kind if kind & !ECN == SOURCE => {
                let (esi, payload) = rest.split_first_chunk()?;
                let (esi, ecn) = (u32::from_be_bytes(*esi), (kind & ECN) >> 4);
                Some(Self::Source { esi, ecn, payload })
            }
            REPAIR => {
                let (key, rest) = rest.split_first_chunk()?;
                let (packed, rest) = rest.split_first_chunk()?;
                let (first, symbol) = rest.split_first_chunk()?;
                let packed = u16::from_be_bytes(*packed);
                let combination = Combination::Sliding {
                    key: u16::from_be_bytes(*key),
                    density: (packed >> 12).to_le_bytes()[0],
                    count: packed & 0xfff,
                };
                Some(Self::Repair(Repair {
                    combination,
                    first_esi: u32::from_be_bytes(*first),
                    symbol,
                }))
            }
            BLOCK_REPAIR => {
                let ([row, count, stride], rest) = rest.split_first_chunk()?;
                let (first, symbol) = rest.split_first_chunk()?;
                let combination = Combination::Block {
                    row: *row,
                    count: *count,
                    stride: *stride,
                };
                Some(Self::Repair(Repair {
                    combination,
                    first_esi: u32::from_be_bytes(*first),
                    symbol,
                }))
            }
            REPORT => {
                let (highest, rest) = rest.split_first_chunk()?;
                let (received, []) = rest.split_first_chunk()? else {
                    return None;
                };
                Some(Self::Report(Report {
                    highest: u32::from_be_bytes(*highest),
                    received: u32::from_be_bytes(*received),
                }))
            }
            REQUEST => match rest.as_chunks() {
                (esis, []) => Some(Self::Request(esis)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The packet's bytes.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Source { esi, ecn, payload } => {
                bytes.push(SOURCE | ecn << 4 & ECN);
                bytes.extend_from_slice(&esi.to_be_bytes());
                bytes.extend_from_slice(payload);
            }
            Self::Repair(repair) => {
                match repair.combination {
                    Combination::Sliding {
                        key,
                        density,
                        count,
                    } => {
                        bytes.push(REPAIR);
                        bytes.extend_from_slice(&key.to_be_bytes());
                        let packed = u16::from(density) << 12 | count;
                        bytes.extend_from_slice(&packed.to_be_bytes());
                    }
                    Combination::Block { row, count, stride } => {
                        bytes.extend_from_slice(&[BLOCK_REPAIR, row, count, stride]);
                    }
                }
                bytes.extend_from_slice(&repair.first_esi.to_be_bytes());
                bytes.extend_from_slice(repair.symbol);
            }
            Self::Report(report) => {
                bytes.push(REPORT);
                bytes.extend_from_slice(&report.highest.to_be_bytes());
                bytes.extend_from_slice(&report.received.to_be_bytes());
            }
            Self::Request(esis) => {
                bytes.push(REQUEST);
                bytes.extend_from_slice(esis.as_flattened());
            }
        }
        bytes
    }
}

/// The symbol of a datagram.
///
/// # Panics
/// If it has 64 KiB or more.
#[must_use]
pub fn symbol(ecn: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("a UDP payload has less than 64 KiB");
    let mut symbol = Vec::with_capacity(SYMBOL_HEADER + payload.len());
    symbol.push(ecn);
    symbol.extend_from_slice(&length.to_be_bytes());
    symbol.extend_from_slice(payload);
    symbol
}

/// The datagram of a symbol, and its ECN bits; None: it is none, as may be of a hostile sender.
#[must_use]
pub fn datagram(symbol: &[u8]) -> Option<(u8, &[u8])> {
    let ([ecn, high, low], rest) = symbol.split_first_chunk()?;
    let payload = rest.get(..usize::from(u16::from_be_bytes([*high, *low])))?;
    (*ecn <= 3).then_some((*ecn, payload))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_and_what_is_read_is_written_so(
            kind in 0_u8..64,
            rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let bytes = [&[kind][..], &rest].concat();
            if let Some(packet) = Packet::read(&bytes) {
                prop_assert_eq!(packet.write(), bytes);
            }
            let _ = datagram(&rest);
        }

        #[test]
        fn a_symbol_is_its_datagram(
            ecn in 0_u8..4,
            payload in prop::collection::vec(any::<u8>(), 0..100),
            padding in 0_usize..9,
        ) {
            let mut one = symbol(ecn, &payload);
            one.resize(one.len() + padding, 0);
            prop_assert_eq!(datagram(&one), Some((ecn, &payload[..])));
        }
    }
}
