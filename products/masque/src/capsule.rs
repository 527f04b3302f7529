//! Capsules (RFC 9297, section 3): what a stream carries of a request, of which those of type
//! DATAGRAM mean something here, of a request for IP those about addresses, and of one for QUIC
//! those about connection IDs.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use noq_proto::VarInt;
use noq_proto::coding::{Decodable, Encodable};
use thiserror::Error;

use crate::forwarding::{CidCapsule, MOST_CID_CAPSULE};
use crate::ip::{Addressing, Malformed};

/// The largest UDP payload (RFC 9298, section 5).
pub const MOST_UDP_PAYLOAD: usize = 65_527;
/// The largest IP packet: one of IPv6, whose header does not count.
pub const MOST_PACKET: usize = 65_575;
/// The longest capsule about addresses: some hundred of them.
pub const MOST_ADDRESSING: usize = 4096;

/// The type of a capsule that carries an HTTP datagram.
const DATAGRAM: u64 = 0;
/// The context of UDP payloads (RFC 9298, section 4) and of IP packets (RFC 9484, section 5).
const PAYLOAD: u64 = 0;
/// That type, and that context, as they are sent.
const CAPSULE_TYPE: [u8; 1] = [0];
pub const CONTEXT: [u8; 1] = [0];
/// The largest variable-length integer, in bytes.
const MOST_INTEGER: usize = 8;

/// The reason for which a stream's capsules cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CapsuleError {
    /// The stream ended within a capsule.
    #[error("the stream ends within a capsule")]
    Truncated,
    /// A payload, or what is said of addresses, is longer than it can be.
    #[error("{0} bytes, where {1} can be")]
    TooLong(u64, usize),
    /// A capsule about addresses is wrong.
    #[error("addresses: {0}")]
    Malformed(#[from] Malformed),
    /// A capsule about connection IDs is wrong.
    #[error("malformed capsule about connection IDs, of type {0:#x}")]
    MalformedIds(u64),
    /// More is asked for than answers find room.
    #[error("addresses or connection IDs are asked for too often")]
    TooMuch,
}

/// The protocol that a request is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Content {
    /// UDP payloads (RFC 9298).
    #[default]
    Udp,
    /// UDP payloads, of which packets of QUIC may be forwarded.
    Quic,
    /// IP packets (RFC 9484).
    Ip,
}

impl Content {
    fn most(self) -> usize {
        match self {
            Self::Udp | Self::Quic => MOST_UDP_PAYLOAD,
            Self::Ip => MOST_PACKET,
        }
    }
}

/// A capsule that means something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capsule {
    /// The payload of an HTTP datagram.
    Payload(Bytes),
    /// Something about addresses.
    Addressing(Addressing),
    /// Something about connection IDs.
    Cid(CidCapsule),
}

/// The payload of a datagram behind its context; `None`: it is of a context that nobody registered,
/// or none at all (RFC 9298, section 4).
#[must_use]
pub fn payload(mut datagram: Bytes) -> Option<Bytes> {
    (integer(&mut datagram)? == PAYLOAD).then_some(datagram)
}

/// Appends a capsule with a payload.
pub fn put_datagram(buffer: &mut BytesMut, payload: &[u8]) {
    buffer.put_slice(&CAPSULE_TYPE);
    put_integer(buffer, CONTEXT.len() + payload.len());
    buffer.put_slice(&CONTEXT);
    buffer.put_slice(payload);
}

/// A reader of one stream's capsules. It keeps one of those that mean something at most; others it
/// skips, of whatever length they are.
#[derive(Debug, Default)]
pub struct CapsuleReader {
    content: Content,
    state: State,
    /// The bytes of the part that is being read.
    kept: BytesMut,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// Type and length.
    #[default]
    Header,
    /// This many bytes of a datagram, its context first.
    Datagram(usize),
    /// This many bytes of a capsule of this type, about addresses.
    Addressing(u64, usize),
    /// This many bytes of a capsule of this type, about connection IDs.
    Cid(u64, usize),
    /// This many bytes of something else.
    Skipped(u64),
}

impl CapsuleReader {
    /// One that has read nothing of a request's stream.
    #[must_use]
    pub fn of(content: Content) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// Reads on; `take` gets capsules that mean something, and may refuse one.
    pub fn read(
        &mut self,
        mut bytes: impl Buf,
        mut take: impl FnMut(Capsule) -> Result<(), CapsuleError>,
    ) -> Result<(), CapsuleError> {
        loop {
            match self.state {
                State::Header => {
                    let Some((kind, length)) = self.header(&mut bytes) else {
                        return Ok(());
                    };
                    self.state = self.content.part(kind, length)?;
                }
                State::Datagram(length) => {
                    let Some(value) = self.value(length, &mut bytes) else {
                        return Ok(());
                    };
                    if let Some(payload) = payload(value) {
                        let most = self.content.most();
                        if payload.len() > most {
                            return Err(CapsuleError::TooLong(payload.len() as u64, most));
                        }
                        take(Capsule::Payload(payload))?;
                    }
                }
                State::Addressing(kind, length) => {
                    let Some(value) = self.value(length, &mut bytes) else {
                        return Ok(());
                    };
                    take(Capsule::Addressing(Addressing::read(kind, value)?))?;
                }
                State::Cid(kind, length) => {
                    let Some(value) = self.value(length, &mut bytes) else {
                        return Ok(());
                    };
                    let read = CidCapsule::read(kind, value);
                    take(Capsule::Cid(read.ok_or(CapsuleError::MalformedIds(kind))?))?;
                }
                State::Skipped(length) => {
                    let there = bytes
                        .remaining()
                        .min(usize::try_from(length).unwrap_or(usize::MAX));
                    bytes.advance(there);
                    let left = length - there as u64;
                    if left > 0 {
                        self.state = State::Skipped(left);
                        return Ok(());
                    }
                    self.state = State::Header;
                }
            }
        }
    }

    /// The stream has ended.
    pub fn finish(&self) -> Result<(), CapsuleError> {
        match self.state {
            State::Header if self.kept.is_empty() => Ok(()),
            _ => Err(CapsuleError::Truncated),
        }
    }

    /// A capsule's value of this length, once it is there.
    fn value(&mut self, length: usize, bytes: &mut impl Buf) -> Option<Bytes> {
        let missing = length - self.kept.len();
        let there = missing.min(bytes.remaining());
        self.kept.put(bytes.take(there));
        if there < missing {
            return None;
        }
        self.state = State::Header;
        Some(self.kept.split().freeze())
    }

    /// Type and length, once they are there.
    fn header(&mut self, bytes: &mut impl Buf) -> Option<(u64, u64)> {
        loop {
            let mut both = &self.kept[..];
            if let (Some(kind), Some(length)) = (integer(&mut both), integer(&mut both)) {
                self.kept.clear();
                return Some((kind, length));
            }
            debug_assert!(self.kept.len() < 2 * MOST_INTEGER);
            if !bytes.has_remaining() {
                return None;
            }
            self.kept.put_u8(bytes.get_u8());
        }
    }
}

impl Content {
    /// The part of a capsule that is to come.
    fn part(self, kind: u64, length: u64) -> Result<State, CapsuleError> {
        let (most, state): (_, fn(u64, usize) -> State) = match (kind, self) {
            // The context may be written in as many bytes as an integer takes at most.
            (DATAGRAM, _) => (self.most() + MOST_INTEGER, |_, it| State::Datagram(it)),
            (_, Self::Ip) if Addressing::is_type(kind) => (MOST_ADDRESSING, State::Addressing),
            (_, Self::Quic) if CidCapsule::is_type(kind) => (MOST_CID_CAPSULE, State::Cid),
            _ => return Ok(State::Skipped(length)),
        };
        match usize::try_from(length) {
            Ok(length) if length <= most => Ok(state(kind, length)),
            _ => Err(CapsuleError::TooLong(length, most)),
        }
    }
}

/// A variable-length integer (RFC 9000, section 16); `None`: it is not there wholly.
fn integer(bytes: &mut impl Buf) -> Option<u64> {
    VarInt::decode(bytes).ok().map(VarInt::into_inner)
}

fn put_integer(buffer: &mut BytesMut, value: usize) {
    let value = u32::try_from(value).expect("a datagram's length is an integer of QUIC");
    VarInt::from_u32(value).encode(buffer);
}

#[cfg(test)]
mod tests;
