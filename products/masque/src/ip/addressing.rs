//! The capsules of RFC 9484, section 4.7: `ADDRESS_ASSIGN`, `ADDRESS_REQUEST` and
//! `ROUTE_ADVERTISEMENT`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use noq_proto::VarInt;
use noq_proto::coding::{Decodable, Encodable};
use thiserror::Error;

use super::network::{Prefix, Route, width};

const ADDRESS_ASSIGN: u64 = 1;
const ADDRESS_REQUEST: u64 = 2;
const ROUTE_ADVERTISEMENT: u64 = 3;

/// The content of a capsule about addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addressing {
    /// All addresses that the receiver has.
    Assign(Vec<Numbered>),
    /// Addresses that the sender would like.
    Request(Vec<Numbered>),
    /// All ranges to which the sender carries packets.
    Routes(Vec<Route>),
}

/// A prefix that is asked for by a number, or assigned for it; 0: nobody asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// The number of the request.
    pub request: u64,
    /// The prefix.
    pub prefix: Prefix,
}

/// The flaw of a capsule, for which its stream is aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// It ends within an entry.
    #[error("an entry is cut short")]
    Truncated,
    /// A version of IP that is none.
    #[error("{0} is no version of IP")]
    Version(u8),
    /// A prefix that is none.
    #[error("a prefix is longer than its address, or the address has bits behind it")]
    Prefix,
    /// An empty list of requests, or one with the number 0.
    #[error("a request for addresses has none, or no number")]
    Request,
    /// A range that is none, or that is out of order.
    #[error("ranges end before they begin, overlap, or are out of order")]
    Range,
}

impl Addressing {
    /// Whether capsules of this type are about addresses.
    #[must_use]
    pub fn is_type(kind: u64) -> bool {
        (ADDRESS_ASSIGN..=ROUTE_ADVERTISEMENT).contains(&kind)
    }

    /// Reads the value of a capsule of such a type.
    pub fn read(kind: u64, mut value: Bytes) -> Result<Self, Malformed> {
        if kind == ROUTE_ADVERTISEMENT {
            let mut routes: Vec<Route> = Vec::new();
            while value.has_remaining() {
                routes.push(range(&mut value)?);
            }
            let in_order = routes.is_sorted_by(|one, next| one.precedes(*next));
            if !in_order || any_overlap(&routes) {
                return Err(Malformed::Range);
            }
            return Ok(Self::Routes(routes));
        }
        let mut prefixes = Vec::new();
        while value.has_remaining() {
            prefixes.push(numbered(&mut value)?);
        }
        if kind == ADDRESS_ASSIGN {
            return Ok(Self::Assign(prefixes));
        }
        if prefixes.is_empty() || prefixes.iter().any(|it| it.request == 0) {
            return Err(Malformed::Request);
        }
        Ok(Self::Request(prefixes))
    }

    /// Appends it as a capsule.
    pub fn put(&self, buffer: &mut BytesMut) {
        let mut value = BytesMut::new();
        let kind = match self {
            Self::Assign(prefixes) => {
                put_prefixes(&mut value, prefixes);
                ADDRESS_ASSIGN
            }
            Self::Request(prefixes) => {
                put_prefixes(&mut value, prefixes);
                ADDRESS_REQUEST
            }
            Self::Routes(routes) => {
                for route in routes {
                    let [start, end] = route.ends();
                    value.put_u8(version(start));
                    put_address(&mut value, start);
                    put_address(&mut value, end);
                    value.put_u8(route.protocol());
                }
                ROUTE_ADVERTISEMENT
            }
        };
        put_integer(buffer, kind);
        put_integer(buffer, value.len() as u64);
        buffer.extend_from_slice(&value);
    }
}

/// Whether a route for all protocols leads where one of a single protocol does. Both kinds are in
/// order by themselves, all of a version before those of its protocols.
fn any_overlap(routes: &[Route]) -> bool {
    let (any, single): (Vec<&Route>, Vec<&Route>) = routes
        .iter()
        .partition(|it| it.protocol() == super::network::ANY);
    single.iter().any(|one| {
        let start = any.partition_point(|it| {
            let [start, end] = it.ends();
            start.is_ipv4() && !one.ends()[0].is_ipv4()
                || start.is_ipv4() == one.ends()[0].is_ipv4() && end < one.ends()[0]
        });
        any.get(start).is_some_and(|it| it.overlaps(**one))
    })
}

fn version(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

fn put_prefixes(value: &mut BytesMut, prefixes: &[Numbered]) {
    for Numbered { request, prefix } in prefixes {
        put_integer(value, *request);
        value.put_u8(version(prefix.address()));
        put_address(value, prefix.address());
        value.put_u8(prefix.length());
    }
}

fn put_address(value: &mut BytesMut, address: IpAddr) {
    match address {
        IpAddr::V4(it) => value.put_slice(&it.octets()),
        IpAddr::V6(it) => value.put_slice(&it.octets()),
    }
}

fn put_integer(buffer: &mut BytesMut, value: u64) {
    let value = VarInt::from_u64(value);
    value.expect("a length or what was read").encode(buffer);
}

fn numbered(value: &mut Bytes) -> Result<Numbered, Malformed> {
    let request = VarInt::decode(value).map_err(|_| Malformed::Truncated)?;
    let version = byte(value)?;
    let address = address(value, version)?;
    let prefix = Prefix::new(address, byte(value)?).ok_or(Malformed::Prefix)?;
    Ok(Numbered {
        request: request.into_inner(),
        prefix,
    })
}

fn range(value: &mut Bytes) -> Result<Route, Malformed> {
    let version = byte(value)?;
    let (start, end) = (address(value, version)?, address(value, version)?);
    debug_assert_eq!(width(start), width(end));
    Route::new(start, end, byte(value)?).ok_or(Malformed::Range)
}

fn byte(value: &mut Bytes) -> Result<u8, Malformed> {
    value.try_get_u8().map_err(|_| Malformed::Truncated)
}

fn address(value: &mut Bytes, version: u8) -> Result<IpAddr, Malformed> {
    match version {
        4 => value.try_get_u32().map(|it| Ipv4Addr::from_bits(it).into()),
        6 => value
            .try_get_u128()
            .map(|it| Ipv6Addr::from_bits(it).into()),
        other => return Err(Malformed::Version(other)),
    }
    .map_err(|_| Malformed::Truncated)
}

#[cfg(test)]
mod tests;
