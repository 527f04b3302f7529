//! The option of MPTCP (RFC 8684 section 3), version 1.

use ring::digest::{SHA256, digest};

use crate::cursor::Cursor;

/// Subtypes of the option, as far as they are read (RFC 8684 section 8.2).
const CAPABLE: u8 = 0;
const JOIN: u8 = 1;
const DATA: u8 = 2;
/// Flags of the data sequence signal (section 3.3).
const DATA_FIN: u8 = 0x10;
const LONG_SEQUENCE: u8 = 0x08;
const HAS_MAPPING: u8 = 0x04;
const LONG_ACK: u8 = 0x02;
const HAS_ACK: u8 = 0x01;

/// The content of the option of MPTCP in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multipath {
    /// `MP_CAPABLE`: the first subflow of a connection is set up.
    Capable {
        /// The keys of the segment's sender and of its receiver, as far as they are there.
        keys: [Option<u64>; 2],
        /// Bytes of payload of the connection's first data.
        length: Option<u16>,
    },
    /// `MP_JOIN`: a further one is set up; a client's SYN names the connection.
    Join {
        /// The token of the end that it was sent to.
        token: Option<u32>,
    },
    /// `DSS`: where the payload belongs in the connection's data.
    Data {
        /// The place of payload; none: there is no payload, or an earlier segment had it.
        mapping: Option<DataMapping>,
        /// Whether the sender has no more data.
        fin: bool,
    },
}

/// The place of a part of a subflow's stream in the data of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataMapping {
    /// The number of the first byte of data; of 4 octets the low bits.
    pub data: u64,
    /// Whether all its 8 octets are there.
    pub is_long: bool,
    /// The number of that byte in the subflow, 1 for the first behind the SYN.
    pub subflow: u32,
    /// Bytes, with the `DATA_FIN`.
    pub length: u16,
}

/// The names that a key gives: the token of the connection at the end whose key it is, and the
/// number before that of the end's first byte of data (section 3.1, SHA-256).
#[must_use]
pub fn key_names(key: u64) -> (u32, u64) {
    let hash = digest(&SHA256, &key.to_be_bytes());
    let hash = hash.as_ref();
    let token = hash.first_chunk().copied().map(u32::from_be_bytes);
    let first = hash.last_chunk().copied().map(u64::from_be_bytes);
    token.zip(first).expect("SHA-256 has 32 octets")
}

/// Reads the content of the option; none if it is of another subtype, or damaged.
pub(super) fn read(content: &[u8]) -> Option<Multipath> {
    let mut cursor = Cursor::new(content);
    let [subtype, flags] = cursor.array()?;
    match subtype >> 4 {
        CAPABLE => Some(Multipath::Capable {
            keys: [long(&mut cursor), long(&mut cursor)],
            length: cursor.u16(),
        }),
        JOIN => Some(Multipath::Join {
            // A SYN has a token and a nonce; what follows has other lengths.
            token: (content.len() == 10).then(|| cursor.u32()).flatten(),
        }),
        DATA => data(&mut cursor, flags),
        _ => None,
    }
}

fn long(cursor: &mut Cursor<'_>) -> Option<u64> {
    if cursor.rest().len() < 8 {
        return None;
    }
    cursor.array().map(u64::from_be_bytes)
}

fn data(cursor: &mut Cursor<'_>, flags: u8) -> Option<Multipath> {
    if flags & HAS_ACK != 0 {
        cursor.take(if flags & LONG_ACK != 0 { 8 } else { 4 })?;
    }
    let is_long = flags & LONG_SEQUENCE != 0;
    let mapping = if flags & HAS_MAPPING == 0 {
        None
    } else {
        Some(DataMapping {
            data: if is_long {
                long(cursor)?
            } else {
                u64::from(cursor.u32()?)
            },
            is_long,
            subflow: cursor.u32()?,
            length: cursor.u16()?,
        })
    };
    Some(Multipath::Data {
        mapping,
        fin: flags & DATA_FIN != 0,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_names_token_and_data_by_its_hash() {
        // As `printf '\\x08\\x07\\x06\\x05\\x04\\x03\\x02\\x01' | sha256sum` says.
        let (token, first) = key_names(0x0807_0605_0403_0201);
        assert_eq!(token, 0x380b_9808);
        assert_eq!(first, 0xf744_2cdf_890e_6287);
    }

    #[test]
    fn a_mapping_is_read_behind_an_acknowledgment() {
        let mut content = vec![0x20, 0x0f];
        content.extend(7_u64.to_be_bytes());
        content.extend(0x0102_0304_0506_0708_u64.to_be_bytes());
        content.extend(9_u32.to_be_bytes());
        content.extend(1000_u16.to_be_bytes());
        let mapping = DataMapping {
            data: 0x0102_0304_0506_0708,
            is_long: true,
            subflow: 9,
            length: 1000,
        };
        let expected = Multipath::Data {
            mapping: Some(mapping),
            fin: false,
        };
        assert_eq!(read(&content), Some(expected));
        for length in 0..content.len() {
            assert_eq!(read(&content[..length]), None, "{length}");
        }
    }

    #[test]
    fn a_syn_that_joins_names_the_connection() {
        let mut content = vec![0x10, 0x01];
        content.extend(0xdead_beef_u32.to_be_bytes());
        content.extend([0; 4]);
        let token = Some(0xdead_beef);
        assert_eq!(read(&content), Some(Multipath::Join { token }));
        content.extend([0; 4]); // the answer: a hash and a nonce
        assert_eq!(read(&content), Some(Multipath::Join { token: None }));
    }

    #[test]
    fn keys_are_those_that_are_there() {
        let mut content = vec![0x01, 0x81];
        let of = |content: &[u8]| match read(content) {
            Some(Multipath::Capable { keys, length }) => (keys, length),
            other => panic!("{other:?}"),
        };
        assert_eq!(of(&content), ([None, None], None));
        content.extend(5_u64.to_be_bytes());
        assert_eq!(of(&content), ([Some(5), None], None));
        content.extend(6_u64.to_be_bytes());
        content.extend(20_u16.to_be_bytes());
        assert_eq!(of(&content), ([Some(5), Some(6)], Some(20)));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = read(&bytes);
        }
    }
}
