//! Capsules (RFC 9297, section 3): what a stream carries of a request for UDP, of which only those
//! of type DATAGRAM mean anything here.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use noq_proto::VarInt;
use noq_proto::coding::{Decodable, Encodable};
use thiserror::Error;

/// The largest UDP payload (RFC 9298, section 5).
pub const MOST_UDP_PAYLOAD: usize = 65_527;

/// The type of a capsule that carries an HTTP datagram.
const DATAGRAM: u64 = 0;
/// The context of UDP payloads (RFC 9298, section 4).
const UDP_PAYLOAD: u64 = 0;
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
    /// A UDP payload is longer than one can be.
    #[error("a UDP payload of {0} bytes, where {MOST_UDP_PAYLOAD} can be")]
    TooLong(u64),
}

/// The payload of a datagram behind its context; `None`: it is of a context that nobody registered,
/// or none at all (RFC 9298, section 4).
#[must_use]
pub fn udp_payload(mut datagram: Bytes) -> Option<Bytes> {
    (integer(&mut datagram)? == UDP_PAYLOAD).then_some(datagram)
}

/// Appends a capsule with a UDP payload.
pub fn put_datagram(buffer: &mut BytesMut, payload: &[u8]) {
    buffer.put_slice(&CAPSULE_TYPE);
    put_integer(buffer, CONTEXT.len() + payload.len());
    buffer.put_slice(&CONTEXT);
    buffer.put_slice(payload);
}

/// A reader of one stream's capsules. It keeps one datagram at most; other capsules it skips, of
/// whatever length they are.
#[derive(Debug, Default)]
pub struct CapsuleReader {
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
    /// This many bytes of something else.
    Skipped(u64),
}

impl CapsuleReader {
    /// Reads on; `take` gets UDP payloads.
    pub fn read(
        &mut self,
        mut bytes: impl Buf,
        mut take: impl FnMut(Bytes),
    ) -> Result<(), CapsuleError> {
        loop {
            match self.state {
                State::Header => {
                    let Some((kind, length)) = self.header(&mut bytes) else {
                        return Ok(());
                    };
                    self.state = of(kind, length)?;
                }
                State::Datagram(length) => {
                    let missing = length - self.kept.len();
                    let there = missing.min(bytes.remaining());
                    self.kept.put((&mut bytes).take(there));
                    if there < missing {
                        return Ok(());
                    }
                    self.state = State::Header;
                    if let Some(payload) = udp_payload(self.kept.split().freeze()) {
                        if payload.len() > MOST_UDP_PAYLOAD {
                            return Err(CapsuleError::TooLong(payload.len() as u64));
                        }
                        take(payload);
                    }
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

/// The part of a capsule that is to come.
fn of(kind: u64, length: u64) -> Result<State, CapsuleError> {
    if kind != DATAGRAM {
        return Ok(State::Skipped(length));
    }
    // The context may be written in as many bytes as an integer takes at most.
    match usize::try_from(length) {
        Ok(length) if length <= MOST_UDP_PAYLOAD + MOST_INTEGER => Ok(State::Datagram(length)),
        _ => Err(CapsuleError::TooLong(length)),
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
