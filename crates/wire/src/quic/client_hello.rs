//! The fields of a `ClientHello` that are readable on the path.
//!
//! Source: RFC 8446 section 4.1.2 (the message), RFC 6066 section 3 (`server_name`), RFC 7301
//! section 3.1 (`application_layer_protocol_negotiation`). Over QUIC it lies in Initial packets,
//! whose keys anybody can make (RFC 9001 section 5.2). With Encrypted Client Hello it names the
//! server in front, not the one that is meant.

use crate::cursor::Cursor;

use super::tls;

/// The extensions `server_name` and `application_layer_protocol_negotiation`.
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
/// The only type of a name in `server_name`.
const HOST_NAME: u8 = 0;

/// The names that a client says in the clear when it opens a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The server that it wants (SNI). None: not seen, or it named none.
    pub server_name: Option<String>,
    /// The application protocols that it offers (ALPN), the best first, without those that are
    /// there for nothing but to keep servers tolerant (GREASE, RFC 8701).
    pub alpn: Vec<String>,
}

impl ClientHello {
    /// Reads a CRYPTO stream, or the handshake messages of a TLS stream. None if the message is not
    /// there as a whole.
    pub(crate) fn read(stream: &[u8]) -> Option<Self> {
        let extensions = tls::client_extensions(stream)?;
        let server_name = tls::extension(extensions, SERVER_NAME);
        let alpn = tls::extension(extensions, ALPN);
        Some(Self {
            server_name: server_name.and_then(host_name),
            alpn: alpn.map(protocols).unwrap_or_default(),
        })
    }

    /// The message as one place saw it, completed by what another did.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self == Self::default() { other } else { self }
    }
}

/// The first host name of a list.
fn host_name(extension: &[u8]) -> Option<String> {
    let mut cursor = Cursor::new(extension);
    let length = cursor.u16()?;
    let mut names = Cursor::new(cursor.take(usize::from(length))?);
    loop {
        let kind = names.u8()?;
        let length = names.u16()?;
        let name = names.take(usize::from(length))?;
        if kind == HOST_NAME {
            return Some(printable(name));
        }
    }
}

/// The protocols of a list, as far as it can be read.
fn protocols(extension: &[u8]) -> Vec<String> {
    let mut cursor = Cursor::new(extension);
    let list = cursor.u16().and_then(|it| cursor.take(usize::from(it)));
    let mut list = Cursor::new(list.unwrap_or_default());
    let names = std::iter::from_fn(|| {
        let length = list.u8()?;
        list.take(usize::from(length))
    });
    names
        .filter(|name| !is_grease(name))
        .map(printable)
        .collect()
}

/// RFC 8701 section 2: two equal bytes of the form 0x?A.
fn is_grease(name: &[u8]) -> bool {
    matches!(name, [one, other] if one == other && one & 0x0f == 0x0a)
}

/// Names are ASCII; in place of other bytes stands what a URL would have.
fn printable(name: &[u8]) -> String {
    let shown = name.iter().map(|byte| match byte {
        b' '..=b'~' => char::from(*byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `ClientHello` with these extensions.
    fn hello(extensions: &[u8]) -> Vec<u8> {
        let length = u16::try_from(extensions.len()).unwrap();
        let body = [
            &[3, 3][..],
            &[7; 32],
            &[0, 0, 2, 0x13, 0x01, 1, 0],
            &length.to_be_bytes(),
            extensions,
        ]
        .concat();
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[1][..], &length[1..], &body].concat()
    }

    #[test]
    fn names_are_read_and_grease_is_not() {
        let name = b"\x00\x00\x00\x0c\x00\x0a\x00\x00\x07example";
        let alpn = b"\x00\x10\x00\x0d\x00\x0b\x02\x8a\x8a\x02h3\x04hq-1";
        let message = hello(&[&name[..], alpn].concat());
        let expected = ClientHello {
            server_name: Some("example".to_owned()),
            alpn: vec!["h3".to_owned(), "hq-1".to_owned()],
        };
        assert_eq!(ClientHello::read(&message), Some(expected));
        for length in 0..message.len() {
            assert_eq!(ClientHello::read(&message[..length]), None);
        }
    }

    #[test]
    fn a_hello_without_names_is_one_too() {
        let versions = [0, 43, 0, 3, 2, 3, 4];
        assert_eq!(
            ClientHello::read(&hello(&versions)),
            Some(ClientHello::default())
        );
        let damaged = [0, 0, 0, 3, 0, 9, 0, 0, 16, 0, 3, 0, 9, 5];
        assert_eq!(
            ClientHello::read(&hello(&damaged)),
            Some(ClientHello::default())
        );
    }

    #[test]
    fn bytes_that_nobody_can_see_are_escaped() {
        assert_eq!(printable(b"a\x1b[2J\xff~"), "a%1B[2J%FF~");
    }
}
