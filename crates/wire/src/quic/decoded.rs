//! The output of an observer: decoded packets, and what could not be decoded.

use crate::datagram::Datagram;

use super::header::{HeaderError, PacketType, long_form};
use super::version::{google_version, known_name};
use super::{End, Frames, TransportParameters};

/// A packet that was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The number of its connection among those of this observer, counted from 0 as they began.
    /// None for a packet that cannot be authenticated (Retry, Version Negotiation) and belongs to
    /// none that is known.
    pub connection: Option<usize>,
    /// Its sender.
    pub sender: End,
    /// Its type.
    pub kind: PacketType,
    /// Its number; Retry and Version Negotiation have none.
    pub number: Option<u64>,
    /// The path whose packet number space that is (draft-ietf-quic-multipath-20); 0 where the
    /// connection has one.
    pub path_id: u32,
    /// Bytes, header and authentication tag included.
    pub size: usize,
    /// The first byte as it is on the wire. Some of its bits are protected, but not the spin bit.
    pub first_byte: u8,
    /// Tells it from all others, wherever it is seen.
    pub identity: Identity,
    /// Its frames, decrypted.
    pub payload: &'a [u8],
    /// The transport parameters of its sender, if its handshake was seen; see
    /// [`TransportParameters::ack_delay_us`].
    pub parameters: Option<&'a TransportParameters>,
    /// If it had to wait until it could be decoded: which datagram of this observer it came in,
    /// counted from 0.
    pub waited_since: Option<u64>,
}

/// The last 16 bytes of a packet as it is on the wire. Of a protected packet they are the
/// authentication tag, which no other packet shares, so the same bytes at two places are the same
/// packet, whether it can be decrypted or not.
pub type Identity = [u8; 16];

pub(super) fn identity(bytes: &[u8]) -> Identity {
    // Less than a tag is no packet; padded with zeros, it is told apart by what there is.
    bytes.last_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; 16];
        padded[..bytes.len()].copy_from_slice(bytes);
        padded
    })
}

impl<'a> Packet<'a> {
    /// Its frames, one after the other.
    #[must_use]
    pub fn frames(&self) -> Frames<'a> {
        Frames::new(self.payload)
    }
}

/// A part of a datagram that could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undecoded {
    /// Bytes from here to the end of the packet or datagram.
    pub size: usize,
    /// The first byte, as that of a [`Packet`].
    pub first_byte: u8,
    /// Its connection and sender, and what kind of packet it is, where that could be told.
    pub known: Option<(usize, End, PacketType)>,
    /// Tells it from all others, wherever it is seen.
    pub identity: Identity,
    /// If it waited until that was sure: which datagram of this observer it came in, counted from
    /// 0.
    pub waited_since: Option<u64>,
    /// The version and the type in a long header, if it is a version that can be decoded.
    pub long: Option<(u32, PacketType)>,
    /// The reason why it could not.
    pub reason: Reason,
}

impl Undecoded {
    pub(super) fn new(
        bytes: &[u8],
        known: Option<(usize, End, PacketType)>,
        reason: Reason,
    ) -> Self {
        Self {
            size: bytes.len(),
            first_byte: bytes[0],
            known,
            identity: identity(bytes),
            waited_since: None,
            long: long_form(bytes),
            reason,
        }
    }
}

/// The reason why a packet could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reason {
    /// Neither a connection that is known nor the beginning of one.
    #[error("not QUIC, or of a connection whose beginning was not seen")]
    NoConnection,
    /// A version of QUIC other than 1, 2 and drafts 29 to 34, or no QUIC at all.
    #[error("{}", not_decoded(*.0))]
    Version(u32),
    /// The capture holds only a part of it.
    #[error("cut short by the capture's limit on packet size")]
    CutShort,
    /// The packet does not have the layout of one.
    #[error("a damaged packet header")]
    Header,
    /// Nothing is known of the client's random, by which a key log names the connection.
    #[error("its ClientHello was not seen before it")]
    NoClientHello,
    /// The key log does not have its connection.
    #[error("no secret for {} packets in the key log", .0.name())]
    NoSecret(PacketType),
    /// A Retry packet that is not an answer to the client's Initial packet, RFC 9001 section 5.8.
    #[error("a Retry packet whose integrity tag does not fit")]
    RetryIntegrity,
    /// A cipher suite that is not implemented here.
    #[error("cipher suite {0:#06x} is not known")]
    CipherSuite(u16),
    /// Decryption failed: damaged, forged, or of keys that the key log does not lead to.
    #[error("not authentic with the keys that are known")]
    NotAuthentic,
}

impl Reason {
    /// Whether it may be different when the `ClientHello` has been seen.
    pub(super) fn can_change(self) -> bool {
        matches!(self, Self::NoConnection | Self::NoClientHello)
    }

    /// The reason for a packet with a short header that belongs to no connection, or with the
    /// header of gQUIC.
    pub(super) fn of_unknown(bytes: &[u8]) -> Self {
        google_version(bytes).map_or(Self::NoConnection, Self::Version)
    }

    pub(super) fn of(error: HeaderError, datagram: &Datagram<'_>) -> Self {
        match error {
            HeaderError::UnknownVersion(version) => Self::Version(version),
            HeaderError::Damaged if datagram.payload.len() < datagram.length => Self::CutShort,
            HeaderError::Damaged => Self::Header,
        }
    }
}

fn not_decoded(version: u32) -> String {
    match known_name(version) {
        Some(name) => format!("QUIC version {name} is not decoded"),
        None => format!("QUIC version {version:#010x} is not known, if it is QUIC"),
    }
}

/// The outcome of decoding a packet, as [`super::Observer::datagram`] gives it.
pub type Decoded<'a> = Result<Packet<'a>, Undecoded>;
