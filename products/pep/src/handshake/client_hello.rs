//! The request of a client: the server name and the application protocols of its TLS `ClientHello`
//! (RFC 8446, section 4.1.2).

use super::reader::Reader;

/// The `ClientHello` of a client, as far as the proxy wants to know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The server name (RFC 6066, section 3).
    pub server_name: Option<String>,
    /// The application protocols, the one it likes best first (RFC 7301).
    pub protocols: Vec<Vec<u8>>,
}

/// The reason why bytes are no `ClientHello`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientHelloError {
    /// It goes on.
    Incomplete,
    /// It is something else.
    Invalid,
}

const CLIENT_HELLO: u8 = 1;
/// Bytes of a message: larger than any that there is.
const LARGEST: usize = 1 << 16;
const SERVER_NAME: u16 = 0;
const PROTOCOLS: u16 = 16;

impl ClientHello {
    /// Reads the beginning of what a client sends in CRYPTO frames.
    pub fn parse(bytes: &[u8]) -> Result<Self, ClientHelloError> {
        let [kind, length @ ..] = bytes
            .first_chunk::<4>()
            .ok_or(ClientHelloError::Incomplete)?;
        let length = length
            .iter()
            .fold(0, |all, byte| all << 8 | usize::from(*byte));
        if *kind != CLIENT_HELLO || length > LARGEST {
            return Err(ClientHelloError::Invalid);
        }
        let message = bytes[4..]
            .get(..length)
            .ok_or(ClientHelloError::Incomplete)?;
        Self::of_message(&mut Reader(message)).ok_or(ClientHelloError::Invalid)
    }

    fn of_message(message: &mut Reader<'_>) -> Option<Self> {
        // Version and random; session ID, cipher suites, compression methods.
        message.take(34)?;
        message.vector(1)?;
        message.vector(2)?;
        message.vector(1)?;
        let mut hello = Self::default();
        let mut extensions = message.vector(2)?;
        while !extensions.0.is_empty() {
            let kind = extensions.number(2)?;
            let mut content = extensions.vector(2)?;
            match u16::try_from(kind).ok()? {
                SERVER_NAME => add_name(&mut hello, &mut content.vector(2)?)?,
                PROTOCOLS => hello.protocols = protocols(&mut content.vector(2)?)?,
                _ => {}
            }
        }
        Some(hello)
    }
}

/// The first DNS name. rustls takes no other kind, and neither does anybody else.
fn add_name(hello: &mut ClientHello, names: &mut Reader<'_>) -> Option<()> {
    while !names.0.is_empty() && hello.server_name.is_none() {
        let kind = names.number(1)?;
        let name = names.vector(2)?;
        if kind == 0 {
            let text = std::str::from_utf8(name.0).ok()?;
            hello.server_name = Some(text.to_ascii_lowercase());
        }
    }
    Some(())
}

fn protocols(list: &mut Reader<'_>) -> Option<Vec<Vec<u8>>> {
    let mut protocols = Vec::new();
    while !list.0.is_empty() {
        protocols.push(list.vector(1)?.0.to_vec());
    }
    Some(protocols)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A `ClientHello` with these extensions.
    fn hello(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3; 34];
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
        body.extend(extensions);
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[CLIENT_HELLO][..], &length[1..], &body].concat()
    }

    #[test]
    fn name_and_protocols_are_found_among_others() {
        let extensions = [
            &[0x7a, 0x7a, 0, 0][..],
            &[0, 0, 0, 9, 0, 7, 0, 0, 4],
            b"A.ex",
            &[0, 16, 0, 8, 0, 6, 2],
            b"h3",
            &[2],
            b"hq",
        ];
        let bytes = hello(&extensions.concat());
        let expected = ClientHello {
            server_name: Some("a.ex".into()),
            protocols: vec![b"h3".to_vec(), b"hq".to_vec()],
        };
        assert_eq!(ClientHello::parse(&bytes), Ok(expected));
        for end in 0..bytes.len() {
            assert_eq!(
                ClientHello::parse(&bytes[..end]),
                Err(ClientHelloError::Incomplete)
            );
        }
    }

    #[test]
    fn what_asks_for_nothing_is_a_hello_and_lengths_that_lie_are_not() {
        assert_eq!(ClientHello::parse(&hello(&[])), Ok(ClientHello::default()));
        assert_eq!(
            ClientHello::parse(&hello(&[0, 16, 0, 3, 0, 2, 2])),
            Err(ClientHelloError::Invalid)
        );
        assert_eq!(
            ClientHello::parse(&hello(&[0, 0, 0, 1, 0])),
            Err(ClientHelloError::Invalid)
        );
        assert_eq!(
            ClientHello::parse(&[2, 0, 0, 0]),
            Err(ClientHelloError::Invalid)
        );
        assert_eq!(
            ClientHello::parse(&[1, 0xff, 0xff, 0xff]),
            Err(ClientHelloError::Invalid)
        );
    }

    proptest! {
        #[test]
        fn garbage_is_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = ClientHello::parse(&bytes);
            let _ = ClientHello::parse(&hello(&bytes));
        }
    }
}
