//! The two fields of the TLS handshake that decoding needs.
//!
//! Source: RFC 8446 sections 4, 4.1.2 and 4.1.3.

use crate::cursor::Cursor;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// The random of a `ClientHello` at the front of a CRYPTO stream; a key log knows connections by it.
pub(super) fn client_random(stream: &[u8]) -> Option<[u8; 32]> {
    hello(stream, CLIENT_HELLO)?.array()
}

/// The cipher suite of a `ServerHello`, or `HelloRetryRequest`, at the front of a CRYPTO stream. Both name the same.
pub(super) fn cipher_suite(stream: &[u8]) -> Option<u16> {
    let mut cursor = hello(stream, SERVER_HELLO)?;
    cursor.array::<32>()?; // random
    let session_id = cursor.u8()?;
    cursor.take(usize::from(session_id))?;
    cursor.u16()
}

/// What follows the version field of a handshake message of this type.
fn hello(stream: &[u8], message_type: u8) -> Option<Cursor<'_>> {
    let mut cursor = Cursor::new(stream);
    let found = cursor.u8()?;
    cursor.take(3 + 2)?; // length, legacy version
    (found == message_type).then_some(cursor)
}
