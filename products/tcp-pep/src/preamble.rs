//! The preamble that a terminal sends first on a pooled connection: which client wants to reach
//! whom.
//!
//! It is the header of the PROXY protocol, version 2, as `HAProxy` defines it
//! (<https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>, section 2.2), with both
//! addresses of TCP; additional fields are read over. So other programs can stand at either end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::pair::Ends;

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, and that it is of a connection of somebody else's.
const PROXY: u8 = 0x21;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;
/// Bytes before the addresses.
const HEAD: usize = 16;
/// Bytes of addresses and additional fields.
const MOST: usize = 536;

/// A preamble, as far as it has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Preamble {
    /// At least this number of bytes more is needed.
    Needs(usize),
    /// All of it.
    Of(Ends),
    /// It is none.
    Wrong,
}

/// The bytes that say it.
pub fn encode(ends: Ends) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.push(PROXY);
    match (ends.client.ip(), ends.server.ip()) {
        (IpAddr::V4(client), IpAddr::V4(server)) => {
            bytes.extend([TCP_OVER_IPV4, 0, 12]);
            bytes.extend([client.octets(), server.octets()].concat());
        }
        (client, server) => {
            bytes.extend([TCP_OVER_IPV6, 0, 36]);
            bytes.extend([client, server].map(ipv6).concat());
        }
    }
    bytes.extend(ends.client.port().to_be_bytes());
    bytes.extend(ends.server.port().to_be_bytes());
    bytes
}

fn ipv6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// Reads what has come.
pub fn decode(bytes: &[u8]) -> Preamble {
    let known = bytes.len().min(SIGNATURE.len());
    if bytes[..known] != SIGNATURE[..known] || bytes.get(12).is_some_and(|it| *it != PROXY) {
        return Preamble::Wrong;
    }
    let Some(head) = bytes.get(..HEAD) else {
        return Preamble::Needs(HEAD - bytes.len());
    };
    let length = usize::from(u16::from_be_bytes([head[14], head[15]]));
    let addresses = match head[13] {
        TCP_OVER_IPV4 => 4,
        TCP_OVER_IPV6 => 16,
        _ => return Preamble::Wrong,
    };
    if length < 2 * addresses + 4 || length > MOST {
        return Preamble::Wrong;
    }
    let Some(rest) = bytes.get(HEAD..HEAD + length) else {
        return Preamble::Needs(HEAD + length - bytes.len());
    };
    let address = |at: usize| {
        let bytes = &rest[at..at + addresses];
        if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
            return IpAddr::V4(Ipv4Addr::from(bytes));
        }
        let bytes: [u8; 16] = bytes.try_into().expect("it is of 4 or of 16");
        Ipv6Addr::from(bytes).to_canonical()
    };
    let port = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
    Preamble::Of(Ends {
        client: SocketAddr::new(address(0), port(2 * addresses)),
        server: SocketAddr::new(address(addresses), port(2 * addresses + 2)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(client: &str, server: &str) -> Ends {
        Ends {
            client: client.parse().unwrap(),
            server: server.parse().unwrap(),
        }
    }

    #[test]
    fn it_is_what_haproxy_says() {
        let bytes = encode(ends("192.0.2.1:40000", "198.51.100.1:443"));
        let mut wanted = b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a".to_vec();
        wanted.extend(b"\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x01\x9c\x40\x01\xbb");
        assert_eq!(bytes, wanted);
    }

    #[test]
    fn what_was_said_is_understood_byte_by_byte() {
        for (client, server) in [
            ("192.0.2.1:40000", "198.51.100.1:443"),
            ("[2001:db8::1]:1", "[2001:db8::2]:65535"),
            ("192.0.2.1:40000", "[2001:db8::2]:443"),
        ] {
            let said = ends(client, server);
            let mut bytes = encode(said);
            for length in 0..bytes.len() {
                let Preamble::Needs(more) = decode(&bytes[..length]) else {
                    panic!("{length} bytes of {bytes:?}");
                };
                assert!((1..=bytes.len() - length).contains(&more));
            }
            assert_eq!(decode(&bytes), Preamble::Of(said));
            // With an additional field of three bytes.
            bytes[15] += 3;
            bytes.extend([4, 0, 0]);
            assert_eq!(decode(&bytes), Preamble::Of(said));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let good = encode(ends("192.0.2.1:40000", "198.51.100.1:443"));
        for (at, value) in [(0, b'G'), (11, 0), (12, 0x20), (13, 0x12), (14, 9), (15, 4)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(decode(&bad), Preamble::Wrong, "{at}");
        }
        assert_eq!(decode(b"GET / HTTP/1.1"), Preamble::Wrong);
    }
}
