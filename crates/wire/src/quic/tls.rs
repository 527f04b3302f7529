//! The parts of the TLS handshake that decoding needs.
//!
//! Source: RFC 8446 sections 4, 4.1.2, 4.1.3, 4.2 and 4.3.1; RFC 9001 section 8.2 (transport
//! parameters); RFC 8879 (compressed certificates).

use crate::cursor::Cursor;

use super::TransportParameters;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const ENCRYPTED_EXTENSIONS: u8 = 8;
const CERTIFICATE: u8 = 11;
const FINISHED: u8 = 20;
const COMPRESSED_CERTIFICATE: u8 = 25;
/// The random by which a `ServerHello` is a `HelloRetryRequest`, RFC 8446 section 4.1.3.
const HELLO_RETRY_REQUEST: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
/// The extension `pre_shared_key`.
const PRE_SHARED_KEY: u16 = 41;
/// The extension `early_data`.
const EARLY_DATA: u16 = 42;
/// The extension `quic_transport_parameters`.
const TRANSPORT_PARAMETERS: u16 = 0x39;
/// Its number in the drafts up to 32, draft-ietf-quic-tls-32 section 8.2.
const DRAFT_TRANSPORT_PARAMETERS: u16 = 0xffa5;

/// The random of a `ClientHello` at the front of a CRYPTO stream; a key log knows connections by
/// it.
pub(crate) fn client_random(stream: &[u8]) -> Option<[u8; 32]> {
    hello(stream, CLIENT_HELLO)?.array()
}

/// The cipher suite of a `ServerHello`, or `HelloRetryRequest`, at the front of a CRYPTO stream.
/// Both name the same.
pub(crate) fn cipher_suite(stream: &[u8]) -> Option<u16> {
    let mut cursor = hello(stream, SERVER_HELLO)?;
    cursor.array::<32>()?; // random
    let session_id = cursor.u8()?;
    cursor.take(usize::from(session_id))?;
    cursor.u16()
}

/// The transport parameters in a `ClientHello` that is there as a whole.
pub(super) fn client_parameters(stream: &[u8]) -> Option<TransportParameters> {
    let extensions = client_extensions(stream)?;
    let value = extension(extensions, TRANSPORT_PARAMETERS)
        .or_else(|| extension(extensions, DRAFT_TRANSPORT_PARAMETERS));
    TransportParameters::parse(value?)
}

/// The extensions of a `ClientHello`, if all of it is there.
pub(super) fn client_extensions(stream: &[u8]) -> Option<Cursor<'_>> {
    let mut cursor = Cursor::new(message(stream, CLIENT_HELLO)?);
    cursor.take(2 + 32)?; // legacy version, random
    let session_id = cursor.u8()?;
    cursor.take(usize::from(session_id))?;
    let cipher_suites = cursor.u16()?;
    cursor.take(usize::from(cipher_suites))?;
    let compressions = cursor.u8()?;
    cursor.take(usize::from(compressions))?;
    Some(cursor)
}

/// The transport parameters in `EncryptedExtensions` that are there as a whole, at the front of a
/// CRYPTO stream.
pub(super) fn server_parameters(stream: &[u8]) -> Option<TransportParameters> {
    let body = Cursor::new(message(stream, ENCRYPTED_EXTENSIONS)?);
    let value = extension(body, TRANSPORT_PARAMETERS)
        .or_else(|| extension(body, DRAFT_TRANSPORT_PARAMETERS));
    TransportParameters::parse(value?)
}

/// Whether the server accepts early data, by `EncryptedExtensions` at the front of its CRYPTO
/// stream.
pub(crate) fn accepts_early_data(stream: &[u8]) -> Option<bool> {
    let body = Cursor::new(message(stream, ENCRYPTED_EXTENSIONS)?);
    Some(extension(body, EARLY_DATA).is_some())
}

/// Whether the server took a ticket that the client offered, by its `ServerHello`; a
/// `HelloRetryRequest` before it says nothing of that.
pub(crate) fn takes_ticket(stream: &[u8]) -> Option<bool> {
    let hellos = messages(stream).filter(|(found, _)| *found == SERVER_HELLO);
    let mut bodies = hellos.map(|(_, body)| body);
    let body = bodies.find(|body| body.get(2..34) != Some(&HELLO_RETRY_REQUEST))?;
    let mut cursor = Cursor::new(body);
    cursor.take(2 + 32)?; // legacy version, random
    let session_id = cursor.u8()?;
    cursor.take(usize::from(session_id) + 2 + 1)?; // and cipher suite, compression
    Some(extension(cursor, PRE_SHARED_KEY).is_some())
}

/// Whether a server sends a Certificate, by its CRYPTO stream of Handshake packets. None if its
/// Finished, before which it would have to stand, is not there either.
pub(crate) fn sends_certificate(stream: &[u8]) -> Option<bool> {
    messages(stream).find_map(|(found, _)| match found {
        CERTIFICATE | COMPRESSED_CERTIFICATE => Some(true),
        FINISHED => Some(false),
        _ => None,
    })
}

/// The types of the messages that are there as a whole.
pub(crate) fn message_types(stream: &[u8]) -> impl Iterator<Item = u8> {
    messages(stream).map(|(found, _)| found)
}

/// The part of a hello message of this type behind its version field; its end may still be to come.
fn hello(stream: &[u8], message_type: u8) -> Option<Cursor<'_>> {
    let mut cursor = Cursor::new(stream);
    let found = cursor.u8()?;
    cursor.take(3 + 2)?; // length, legacy version
    (found == message_type).then_some(cursor)
}

/// The body of a handshake message of this type, if it is the first.
fn message(stream: &[u8], message_type: u8) -> Option<&[u8]> {
    let (found, body) = messages(stream).next()?;
    (found == message_type).then_some(body)
}

/// The types and bodies of the messages that are there as a whole.
fn messages(stream: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut cursor = Cursor::new(stream);
    std::iter::from_fn(move || {
        let [found, high, middle, low] = cursor.array()?;
        let length = u32::from_be_bytes([0, high, middle, low]);
        let body = cursor.take(usize::try_from(length).ok()?)?;
        Some((found, body))
    })
}

/// The value of an extension of this number.
pub(super) fn extension(mut cursor: Cursor<'_>, wanted: u16) -> Option<&[u8]> {
    let length = cursor.u16()?;
    let mut extensions = Cursor::new(cursor.take(usize::from(length))?);
    loop {
        let number = extensions.u16()?;
        let length = extensions.u16()?;
        let value = extensions.take(usize::from(length))?;
        if number == wanted {
            return Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_server() {
        for [high, low] in [TRANSPORT_PARAMETERS, DRAFT_TRANSPORT_PARAMETERS].map(u16::to_be_bytes)
        {
            let extensions = [0, 16, 0, 0, high, low, 0, 3, 0x0a, 1, 4];
            let message = [&[8, 0, 0, 13, 0, 11][..], &extensions].concat();
            let found = server_parameters(&message).unwrap();
            assert_eq!(found.ack_delay_exponent, 4);
            for length in 0..message.len() {
                assert_eq!(server_parameters(&message[..length]), None);
            }
            assert_eq!(client_parameters(&message), None);
        }
    }

    /// A `ServerHello` with this random and these extensions.
    fn server_hello(random: [u8; 32], extensions: &[u8]) -> Vec<u8> {
        let length = u8::try_from(extensions.len()).unwrap();
        let body = [
            &[3, 3][..],
            &random,
            &[0, 0x13, 0x01, 0, 0, length],
            extensions,
        ]
        .concat();
        [&[2, 0, 0, u8::try_from(body.len()).unwrap()][..], &body].concat()
    }

    #[test]
    fn a_ticket_is_taken_by_the_server_hello_alone() {
        let versions = [0, 43, 0, 2, 3, 4];
        let with_key = [&versions[..], &[0, 41, 0, 2, 0, 0]].concat();
        let (full, resumed) = (
            server_hello([7; 32], &versions),
            server_hello([7; 32], &with_key),
        );
        assert_eq!(takes_ticket(&full), Some(false));
        assert_eq!(takes_ticket(&resumed), Some(true));
        assert_eq!(takes_ticket(&resumed[..resumed.len() - 1]), None);
        let retry = server_hello(HELLO_RETRY_REQUEST, &versions);
        assert_eq!(takes_ticket(&retry), None);
        assert_eq!(takes_ticket(&[retry, resumed].concat()), Some(true));
    }

    #[test]
    fn the_rest_of_the_handshake_tells_of_certificate_and_early_data() {
        let extensions = [8, 0, 0, 6, 0, 4, 0, 42, 0, 0];
        let without = [8, 0, 0, 2, 0, 0];
        assert_eq!(accepts_early_data(&extensions), Some(true));
        assert_eq!(accepts_early_data(&without), Some(false));
        assert_eq!(accepts_early_data(&without[..5]), None);
        assert_eq!(sends_certificate(&extensions), None);
        let ended_by = |message: &[u8]| sends_certificate(&[&without[..], message].concat());
        assert_eq!(ended_by(&[20, 0, 0, 1, 9]), Some(false));
        assert_eq!(ended_by(&[11, 0, 0, 1, 9, 20, 0, 0, 1, 9]), Some(true));
        assert_eq!(ended_by(&[25, 0, 0, 1, 9]), Some(true));
        assert_eq!(ended_by(&[11, 0, 0, 2, 9]), None);
    }
}
