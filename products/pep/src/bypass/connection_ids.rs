//! The connection IDs that stand in the clear in a datagram (RFC 8999, section 5).

use noq_proto::HashedConnectionIdGenerator;

use crate::handshake::Reader;

/// Bytes of the connection IDs that the proxy makes.
const OWN_LENGTH: usize = 8;
/// The bit of a first byte that says that the header is a long one.
const LONG_HEADER: u8 = 0x80;

/// The maker of connection IDs that can be told from those of others by whoever knows the key.
pub fn own_connection_ids(key: u64) -> HashedConnectionIdGenerator {
    HashedConnectionIdGenerator::from_key(key)
}

/// Whether a datagram begins with a long header.
pub fn is_long_header(datagram: &[u8]) -> bool {
    datagram
        .first()
        .is_some_and(|first| first & LONG_HEADER != 0)
}

/// The connection ID that a short header goes to, if it is one of the proxy's making.
pub fn short_header_id(datagram: &[u8]) -> Option<&[u8]> {
    datagram.get(1..=OWN_LENGTH)
}

/// The connection IDs that a long header goes to and comes from; `None`: it is none.
pub fn long_header_ids(datagram: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader(datagram);
    if reader.byte()? & LONG_HEADER == 0 {
        return None;
    }
    reader.take(4)?;
    let mut id = || {
        let length = usize::from(reader.byte()?);
        reader.take(length)
    };
    Some((id()?, id()?))
}
