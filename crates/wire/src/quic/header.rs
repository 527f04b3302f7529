//! Packet headers, as far as they can be read before header protection is removed.
//!
//! Source: RFC 9000 section 17.2 (long headers), RFC 8999 (what holds for any version), RFC 9369
//! section 3.2 (the types of version 2).

use crate::cursor::Cursor;

use super::ConnectionId;
use super::version::Version;

/// The packet types of RFC 9000 section 17.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketType {
    /// Offers the versions that a server speaks; not protected.
    VersionNegotiation,
    /// The first packets of each end.
    Initial,
    /// Application data before the handshake.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// Asks the client to prove its address; not encrypted.
    Retry,
    /// The packet type after the handshake: the one with a short header.
    OneRtt,
}

impl PacketType {
    /// Its name in RFC 9000.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::VersionNegotiation => "Version Negotiation",
            Self::Initial => "Initial",
            Self::ZeroRtt => "0-RTT",
            Self::Handshake => "Handshake",
            Self::Retry => "Retry",
            Self::OneRtt => "1-RTT",
        }
    }

    /// The packet number space that it is counted in, if it has a number.
    #[must_use]
    pub fn space(self) -> Option<Space> {
        match self {
            Self::VersionNegotiation | Self::Retry => None,
            Self::Initial => Some(Space::Initial),
            Self::Handshake => Some(Space::Handshake),
            Self::ZeroRtt | Self::OneRtt => Some(Space::Application),
        }
    }
}

/// The packet number spaces of RFC 9000 section 12.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// The space of Initial packets.
    Initial,
    /// The space of Handshake packets.
    Handshake,
    /// The space of 0-RTT and 1-RTT packets.
    Application,
}

impl Space {
    /// "initial", "handshake" or "application".
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Handshake => "handshake",
            Self::Application => "application",
        }
    }
}

/// A packet with a long header, at the front of what is left of a datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct LongHeader {
    pub(super) kind: PacketType,
    /// None for Version Negotiation.
    pub(super) version: Option<Version>,
    pub(super) destination: ConnectionId,
    pub(super) source: ConnectionId,
    /// The offset of the protected packet number.
    pub(super) number_offset: usize,
    /// Bytes of the packet, the header included.
    pub(super) length: usize,
}

/// The reason why a long header could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderError {
    UnknownVersion(u32),
    /// The packet ends early, or a length in it leads beyond the datagram.
    Damaged,
}

impl LongHeader {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let mut cursor = Cursor::new(bytes);
        let (Some(first), Some(version)) = (cursor.u8(), cursor.u32()) else {
            return Err(HeaderError::Damaged);
        };
        let kind = if version == 0 {
            PacketType::VersionNegotiation
        } else {
            let version = Version::of(version).ok_or(HeaderError::UnknownVersion(version))?;
            packet_type(version, first)
        };
        Self::behind_version(kind, Version::of(version), bytes.len(), cursor)
            .ok_or(HeaderError::Damaged)
    }

    fn behind_version(
        kind: PacketType,
        version: Option<Version>,
        datagram: usize,
        mut cursor: Cursor<'_>,
    ) -> Option<Self> {
        let count = usize::from(cursor.u8()?);
        let destination = ConnectionId::new(cursor.take(count)?)?;
        let count = usize::from(cursor.u8()?);
        let source = ConnectionId::new(cursor.take(count)?)?;
        if kind == PacketType::Initial {
            cursor.counted()?; // token
        }
        // Version Negotiation and Retry take up all of the datagram.
        let (number_offset, length) = if kind.space().is_some() {
            let protected = usize::try_from(cursor.varint()?).ok()?;
            let number_offset = datagram - cursor.rest().len();
            cursor.take(protected)?;
            (number_offset, number_offset + protected)
        } else {
            (datagram, datagram)
        };
        Some(Self {
            kind,
            version,
            destination,
            source,
            number_offset,
            length,
        })
    }
}

/// The version and the type in a long header, if it is a version that can be decoded. Its first
/// bytes tell, also where the rest is missing.
pub(super) fn long_form(bytes: &[u8]) -> Option<(u32, PacketType)> {
    let (head, _) = bytes.split_first_chunk::<5>()?;
    let number = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let version = Version::of(number).filter(|_| head[0] & 0x80 != 0)?;
    Some((number, packet_type(version, head[0])))
}

fn packet_type(version: Version, first: u8) -> PacketType {
    use PacketType::{Handshake, Initial, Retry, ZeroRtt};
    let types = match version {
        Version::V1 | Version::Draft(_) => [Initial, ZeroRtt, Handshake, Retry],
        Version::V2 => [Retry, Initial, ZeroRtt, Handshake],
    };
    types[usize::from(first >> 4 & 3)]
}
