//! The CRYPTO frames of a client's Initial packets (RFC 9000, sections 17.2.2 and 19.6), before the
//! library is asked to accept the connection.
//!
//! Anybody can read these: their keys are made from the connection ID that the client chose (RFC
//! 9001, section 5.2). A `ClientHello` may be spread over several datagrams, in pieces of any
//! order; the library shows no more than the first packet.

use std::collections::BTreeMap;

use bytes::BytesMut;
use noq_proto::crypto::{Keys, ServerConfig};
use noq_proto::{ConnectionId, PathId};

use super::client_hello::{ClientHello, ClientHelloError};
use super::reader::Reader;

/// The most bytes in CRYPTO frames before the handshake has begun: the library's own limit of
/// buffering.
const LARGEST: u64 = 16 << 10;
/// Datagrams that a `ClientHello` may be spread over.
const MOST_DATAGRAMS: usize = 32;
/// Bytes of a connection ID (RFC 9000, sections 17.2 and 5.1).
const LONGEST_ID: usize = 20;

/// The header of a datagram's first packet, if that is an Initial packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitialHeader<'a> {
    /// The QUIC version.
    pub version: u32,
    /// The connection ID that it goes to.
    pub destination: &'a [u8],
}

impl<'a> InitialHeader<'a> {
    /// The header of a datagram; `None`: it starts with another packet, or with none.
    pub fn of(datagram: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(datagram);
        let first = reader.byte()?;
        // Long header, type Initial; the bit between may be greased (RFC 9287).
        if first & 0b1011_0000 != 0b1000_0000 {
            return None;
        }
        let version = u32::from_be_bytes(*reader.take(4)?.first_chunk()?);
        let length = usize::from(reader.byte()?);
        let destination = reader.take(length).filter(|_| length <= LONGEST_ID)?;
        Some(Self {
            version,
            destination,
        })
    }
}

/// The stream of handshake messages that a client's CRYPTO frames make (RFC 9000, section 19.6).
pub struct CryptoStream {
    keys: Keys,
    /// By their offsets; they may overlap.
    pieces: BTreeMap<u64, Vec<u8>>,
    datagrams: usize,
}

impl CryptoStream {
    /// For the packets of a client that chose this connection ID; `None`: the version is unknown.
    pub fn new(crypto: &dyn ServerConfig, header: InitialHeader<'_>) -> Option<Self> {
        let id = ConnectionId::new(header.destination);
        Some(Self {
            keys: crypto.initial_keys(header.version, id).ok()?,
            pieces: BTreeMap::new(),
            datagrams: 0,
        })
    }

    /// Adds what the Initial packets of a datagram bring; `false`: there were too many. What is no
    /// such packet is none of ours.
    pub fn add(&mut self, datagram: &[u8]) -> bool {
        self.datagrams += 1;
        if self.datagrams > MOST_DATAGRAMS {
            return false;
        }
        let mut rest = datagram;
        while InitialHeader::of(rest).is_some() {
            let Some((packet, number_at)) = packet(rest) else {
                break;
            };
            rest = &rest[packet.len()..];
            if let Some(frames) = self.open(packet, number_at) {
                self.add_frames(&mut Reader(&frames));
            }
        }
        true
    }

    /// Removes the protection of a packet (RFC 9001, section 5).
    fn open(&self, packet: &[u8], number_at: usize) -> Option<BytesMut> {
        let header = &self.keys.header.remote;
        let mut packet = BytesMut::from(packet);
        if packet.len() < number_at + 4 + header.sample_size() {
            return None;
        }
        header.decrypt(number_at, &mut packet);
        let length = usize::from(packet[0] & 3) + 1;
        let digits = packet[number_at..number_at + length].iter();
        // A client's first packets have numbers that are not shortened.
        let number = digits.fold(0, |all, byte| all << 8 | u64::from(*byte));
        let mut payload = packet.split_off(number_at + length);
        let key = &self.keys.packet.remote;
        key.decrypt(PathId::ZERO, number, &packet, &mut payload)
            .ok()?;
        Some(payload)
    }

    /// Takes the CRYPTO frames among those that a client may send here: PADDING, PING, ACK, CRYPTO,
    /// and `CONNECTION_CLOSE`, after which nothing counts.
    fn add_frames(&mut self, frames: &mut Reader<'_>) -> Option<()> {
        loop {
            match frames.integer()? {
                0x00 | 0x01 => {}
                kind @ (0x02 | 0x03) => skip_ack(frames, kind == 0x03)?,
                0x06 => {
                    let offset = frames.integer()?;
                    let length = usize::try_from(frames.integer()?).ok()?;
                    let data = frames.take(length)?;
                    self.insert(offset, data);
                }
                _ => return None,
            }
        }
    }

    /// Keeps the longest piece at each offset, as far as there may be any.
    fn insert(&mut self, offset: u64, data: &[u8]) {
        if offset + data.len() as u64 > LARGEST {
            return;
        }
        let piece = self.pieces.entry(offset).or_default();
        if piece.len() < data.len() {
            *piece = data.to_vec();
        }
    }

    /// The `ClientHello`, if all of it has come.
    pub fn hello(&self) -> Result<ClientHello, ClientHelloError> {
        let mut bytes = Vec::new();
        for (offset, piece) in &self.pieces {
            let offset = usize::try_from(*offset).map_err(|_| ClientHelloError::Invalid)?;
            if offset > bytes.len() {
                break;
            }
            let known = bytes.len() - offset;
            bytes.extend_from_slice(piece.get(known..).unwrap_or_default());
        }
        ClientHello::parse(&bytes)
    }

    /// Whether any packet could be read.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// The first packet, and where its number is (RFC 9000, section 17.2.2).
fn packet(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let mut reader = Reader(bytes);
    reader.take(5)?;
    for _ in ["destination", "source"] {
        let length = usize::from(reader.byte()?);
        reader.take(length)?;
    }
    let token = usize::try_from(reader.integer()?).ok()?;
    reader.take(token)?;
    let length = usize::try_from(reader.integer()?).ok()?;
    let number_at = bytes.len() - reader.0.len();
    reader.take(length)?;
    let end = bytes.len() - reader.0.len();
    Some((&bytes[..end], number_at))
}

/// Skips the rest of an ACK frame (RFC 9000, section 19.3).
fn skip_ack(frames: &mut Reader<'_>, with_ecn: bool) -> Option<()> {
    frames.integer()?;
    frames.integer()?;
    let ranges = frames.integer()?;
    frames.integer()?;
    for _ in 0..ranges {
        frames.integer()?;
        frames.integer()?;
    }
    for _ in 0..if with_ecn { 3 } else { 0 } {
        frames.integer()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_is_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let long = [&[0xc0, 0, 0, 0, 1, 8], &bytes[..]].concat();
            for datagram in [&bytes, &long] {
                let _ = InitialHeader::of(datagram);
                let _ = packet(datagram);
            }
            let _ = skip_ack(&mut Reader(&bytes), true);
        }
    }

    #[test]
    fn integers_are_of_one_to_eight_bytes() {
        // RFC 9000, appendix A.1.
        let cases: [(&[u8], u64); 4] = [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, number) in cases {
            assert_eq!(Reader(bytes).integer(), Some(number));
            assert_eq!(Reader(&bytes[..bytes.len() - 1]).integer(), None);
        }
    }
}
