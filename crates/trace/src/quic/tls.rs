//! What of the TLS handshake decoding needs.
//!
//! Source: RFC 8446 sections 4, 4.1.2, 4.1.3, 4.2 and 4.3.1; RFC 9001 section 8.2 (transport parameters).

use crate::cursor::Cursor;

use super::TransportParameters;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const ENCRYPTED_EXTENSIONS: u8 = 8;
/// The extension `quic_transport_parameters`.
const TRANSPORT_PARAMETERS: u16 = 0x39;

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

/// The transport parameters in a `ClientHello` that is there as a whole.
pub(super) fn client_parameters(stream: &[u8]) -> Option<TransportParameters> {
    let mut cursor = Cursor::new(message(stream, CLIENT_HELLO)?);
    cursor.take(2 + 32)?; // legacy version, random
    let session_id = cursor.u8()?;
    cursor.take(usize::from(session_id))?;
    let cipher_suites = cursor.u16()?;
    cursor.take(usize::from(cipher_suites))?;
    let compressions = cursor.u8()?;
    cursor.take(usize::from(compressions))?;
    parameters(cursor)
}

/// The transport parameters in `EncryptedExtensions` that are there as a whole, at the front of a CRYPTO stream.
pub(super) fn server_parameters(stream: &[u8]) -> Option<TransportParameters> {
    parameters(Cursor::new(message(stream, ENCRYPTED_EXTENSIONS)?))
}

/// What follows the version field of a hello message of this type, of which the end may still be to come.
fn hello(stream: &[u8], message_type: u8) -> Option<Cursor<'_>> {
    let mut cursor = Cursor::new(stream);
    let found = cursor.u8()?;
    cursor.take(3 + 2)?; // length, legacy version
    (found == message_type).then_some(cursor)
}

/// The body of a handshake message of this type.
fn message(stream: &[u8], message_type: u8) -> Option<&[u8]> {
    let mut cursor = Cursor::new(stream);
    let [found, high, middle, low] = cursor.array()?;
    let length = u32::from_be_bytes([0, high, middle, low]);
    let body = cursor.take(usize::try_from(length).ok()?)?;
    (found == message_type).then_some(body)
}

/// Looks for the transport parameters among extensions.
fn parameters(mut cursor: Cursor<'_>) -> Option<TransportParameters> {
    let length = cursor.u16()?;
    let mut extensions = Cursor::new(cursor.take(usize::from(length))?);
    loop {
        let number = extensions.u16()?;
        let length = extensions.u16()?;
        let value = extensions.take(usize::from(length))?;
        if number == TRANSPORT_PARAMETERS {
            return TransportParameters::parse(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_server() {
        let extensions = [0, 16, 0, 0, 0x00, 0x39, 0, 3, 0x0a, 1, 4];
        let message = [&[8, 0, 0, 13, 0, 11][..], &extensions].concat();
        let found = server_parameters(&message).unwrap();
        assert_eq!(found.ack_delay_exponent, 4);
        for length in 0..message.len() {
            assert_eq!(server_parameters(&message[..length]), None);
        }
        assert_eq!(client_parameters(&message), None);
    }
}
