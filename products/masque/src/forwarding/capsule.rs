//! Capsules about connection IDs (draft-ietf-masque-quic-proxy, "Connection ID Capsules").

use bytes::{Buf, BufMut, Bytes, BytesMut};
use noq_proto::VarInt;
use noq_proto::coding::{Decodable, Encodable};

use super::Cid;

/// The longest of these capsules that is read: two connection IDs of 255 bytes, a token, and their
/// lengths.
pub const MOST_CID_CAPSULE: usize = 600;
/// The longest connection ID of any version of QUIC (RFC 8999, section 5.3).
const LONGEST: usize = 255;

/// The types of the draft's text of August 2025; those of the final text will be others.
const REGISTER_CLIENT: u64 = 0xff_e600;
const REGISTER_TARGET: u64 = 0xff_e601;
const ACK_CLIENT: u64 = 0xff_e602;
const ACK_CLIENT_VIRTUAL: u64 = 0xff_e603;
const ACK_TARGET: u64 = 0xff_e604;
const CLOSE_CLIENT: u64 = 0xff_e605;
const CLOSE_TARGET: u64 = 0xff_e606;
const MAX_CONNECTION_IDS: u64 = 0xff_e607;

/// A capsule about connection IDs. Tokens of stateless resets are read and not kept: a reset has no
/// connection ID that was registered, and passes through the tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CidCapsule {
    /// A client's: `REGISTER_CLIENT_CID`.
    RegisterClient(Cid),
    /// A client's: `REGISTER_TARGET_CID`.
    RegisterTarget(Cid),
    /// A proxy's: `ACK_CLIENT_CID`, with the virtual one.
    AckClient(Cid, Cid),
    /// A client's: `ACK_CLIENT_VCID`, with the virtual one.
    AckClientVirtual(Cid, Cid),
    /// A proxy's: `ACK_TARGET_CID`, with the virtual one.
    AckTarget(Cid, Cid),
    /// Of either: `CLOSE_CLIENT_CID`.
    CloseClient(Cid),
    /// Of either: `CLOSE_TARGET_CID`.
    CloseTarget(Cid),
    /// A proxy's: `MAX_CONNECTION_IDS`, the largest number of a registration, from 0.
    MaxConnectionIds(u64),
}

impl CidCapsule {
    /// Whether capsules of this type are about connection IDs.
    #[must_use]
    pub fn is_type(kind: u64) -> bool {
        (REGISTER_CLIENT..=MAX_CONNECTION_IDS).contains(&kind)
    }

    /// The capsule of this type with this value; `None`: it is malformed.
    pub fn read(kind: u64, mut value: Bytes) -> Option<Self> {
        let capsule = match kind {
            REGISTER_CLIENT => Self::RegisterClient(rest(&mut value)?),
            REGISTER_TARGET => {
                let id = id(&mut value)?;
                skip_token(&mut value)?;
                Self::RegisterTarget(id)
            }
            ACK_CLIENT => Self::AckClient(id(&mut value)?, id(&mut value)?),
            ACK_CLIENT_VIRTUAL | ACK_TARGET => {
                let (real, other) = (id(&mut value)?, id(&mut value)?);
                skip_token(&mut value)?;
                match kind {
                    ACK_TARGET => Self::AckTarget(real, other),
                    _ => Self::AckClientVirtual(real, other),
                }
            }
            CLOSE_CLIENT => Self::CloseClient(rest(&mut value)?),
            CLOSE_TARGET => Self::CloseTarget(rest(&mut value)?),
            MAX_CONNECTION_IDS => Self::MaxConnectionIds(integer(&mut value)?),
            _ => return None,
        };
        value.is_empty().then_some(capsule)
    }

    /// Appends the capsule.
    pub fn put(&self, buffer: &mut BytesMut) {
        let mut value = BytesMut::new();
        let kind = match self {
            Self::RegisterClient(id) => put_rest(&mut value, REGISTER_CLIENT, id),
            Self::RegisterTarget(id) => put_ids(&mut value, REGISTER_TARGET, &[id, &NO_TOKEN]),
            Self::AckClient(id, other) => put_ids(&mut value, ACK_CLIENT, &[id, other]),
            Self::AckClientVirtual(id, other) => {
                put_ids(&mut value, ACK_CLIENT_VIRTUAL, &[id, other, &NO_TOKEN])
            }
            Self::AckTarget(id, other) => put_ids(&mut value, ACK_TARGET, &[id, other, &NO_TOKEN]),
            Self::CloseClient(id) => put_rest(&mut value, CLOSE_CLIENT, id),
            Self::CloseTarget(id) => put_rest(&mut value, CLOSE_TARGET, id),
            Self::MaxConnectionIds(most) => {
                put_integer(&mut value, *most);
                MAX_CONNECTION_IDS
            }
        };
        put_integer(buffer, kind);
        put_integer(buffer, value.len() as u64);
        buffer.put_slice(&value);
    }
}

/// No token of a stateless reset: its length is written as that of a connection ID.
static NO_TOKEN: Bytes = Bytes::new();

fn put_rest(value: &mut BytesMut, kind: u64, id: &Cid) -> u64 {
    value.put_slice(id);
    kind
}

/// Connection IDs, or a token, each behind its length.
fn put_ids(value: &mut BytesMut, kind: u64, ids: &[&Bytes]) -> u64 {
    for id in ids {
        put_integer(value, id.len() as u64);
        value.put_slice(id);
    }
    kind
}

fn put_integer(buffer: &mut BytesMut, value: u64) {
    let value = VarInt::from_u64(value).expect("a number of this program's own");
    value.encode(buffer);
}

fn integer(value: &mut Bytes) -> Option<u64> {
    VarInt::decode(value).ok().map(VarInt::into_inner)
}

/// All that is left, as a connection ID.
fn rest(value: &mut Bytes) -> Option<Cid> {
    take(value, value.len())
}

fn id(value: &mut Bytes) -> Option<Cid> {
    let length = integer(value)?;
    take(value, usize::try_from(length).ok()?)
}

fn take(value: &mut Bytes, length: usize) -> Option<Cid> {
    let is_there = length <= LONGEST && length <= value.remaining();
    // A copy: a part of the buffer would keep all of that.
    is_there.then(|| Cid::copy_from_slice(&value.split_to(length)))
}

fn skip_token(value: &mut Bytes) -> Option<()> {
    id(value).map(drop)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Type, length and value of one that was written.
    fn parts(capsule: &CidCapsule) -> (u64, Bytes) {
        let mut buffer = BytesMut::new();
        capsule.put(&mut buffer);
        let mut bytes = buffer.freeze();
        let (kind, length) = (integer(&mut bytes).unwrap(), integer(&mut bytes).unwrap());
        assert_eq!(length, bytes.len() as u64);
        assert!(bytes.len() <= MOST_CID_CAPSULE);
        (kind, bytes)
    }

    #[test]
    fn each_is_read_as_it_was_written_and_not_if_it_is_cut_short() {
        let (one, other) = (Cid::from_static(b"1234"), Cid::from(vec![7; LONGEST]));
        let (of, to) = (|| one.clone(), || other.clone());
        for (capsule, can_be_cut) in [
            (CidCapsule::RegisterClient(of()), true),
            (CidCapsule::RegisterTarget(of()), false),
            (CidCapsule::AckClient(of(), to()), false),
            (CidCapsule::AckClientVirtual(of(), to()), false),
            (CidCapsule::AckTarget(of(), Cid::new()), false),
            (CidCapsule::CloseClient(of()), true),
            (CidCapsule::CloseTarget(of()), true),
            (CidCapsule::MaxConnectionIds(300), false),
        ] {
            let (kind, value) = parts(&capsule);
            assert!(CidCapsule::is_type(kind));
            let cut = CidCapsule::read(kind, value.slice(..value.len() - 1));
            assert_eq!(cut.is_some(), can_be_cut, "{capsule:?}");
            let longer = [&value[..], &[0; 300]].concat();
            assert_eq!(CidCapsule::read(kind, longer.into()), None, "{capsule:?}");
            assert_eq!(CidCapsule::read(kind, value), Some(capsule));
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_written_again(
            kind in REGISTER_CLIENT - 1..=MAX_CONNECTION_IDS + 1,
            value in prop::collection::vec(any::<u8>(), 0..MOST_CID_CAPSULE),
        ) {
            if let Some(capsule) = CidCapsule::read(kind, value.into()) {
                let (kind, value) = parts(&capsule);
                prop_assert_eq!(CidCapsule::read(kind, value), Some(capsule));
            }
        }
    }
}
