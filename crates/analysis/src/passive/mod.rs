//! Measurements of a connection that need no secrets.
//!
//! Source: RFC 9312 (what QUIC shows, and how to measure with it), RFC 8546 (the term wire image).
//! An operator has no keys. He sees when datagrams passed and how large they were; the Initial
//! packets, whose keys anybody can make; and in each short header the spin bit, with some stacks
//! loss bits. Of captures at both sides, packets are matched as they are, encrypted. What is
//! measured here is the same whether there are secrets or not.

mod bursts;
mod handshake;
mod loss_bits;
mod matching;
mod spin;
#[cfg(test)]
mod tests;

use bentpipe_wire::quic::{ConnectionId, End};
use serde::Serialize;

use crate::connection::{Connection, Nanos, Protocol};
use crate::durations::{milliseconds, seconds, spread_ms};

pub use bursts::Bursts;
pub use loss_bits::LossBits;
pub use spin::{Spin, SpinBit};

/// The measurements that need no secrets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Passive {
    /// The server that the client asked for (SNI). None: not seen, or not named.
    pub server_name: Option<String>,
    /// The application protocols that the client offered (ALPN).
    pub alpn: Vec<String>,
    /// In hexadecimal, those of packets to the client and to the server that became known.
    pub connection_ids: EndPair<Vec<String>>,
    /// The addresses that ends changed to.
    pub later_addresses: Vec<AddressChange>,
    /// The round trip of the handshake, what both ends took to answer included.
    pub handshake_rtt_ms: Option<f64>,
    /// Whether the spin bit spins. None of TCP.
    pub spin_bit: Option<SpinBit>,
    /// RTT by the spin bit.
    pub spin_rtt: RttSpread,
    /// RTT samples by the spin bit that were left out, since nobody had anything to send.
    pub spin_rejected: u64,
    /// RTT by matching packets of both sides, as the end that sent more bytes has it.
    pub matched_rtt: RttSpread,
    /// The losses by the loss bits of client and server. None: they show none.
    pub loss_bits: EndPair<Option<LossBits>>,
    /// Bursts of the datagrams of client and server.
    pub bursts: EndPair<Bursts>,
    /// IP bytes of the server / those of the client.
    pub bytes_ratio: Option<f64>,
    /// Datagrams of the server / datagrams of the client.
    pub datagrams_ratio: Option<f64>,
}

/// A value of each end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct EndPair<T> {
    /// The client's value.
    pub client: T,
    /// The server's value.
    pub server: T,
}

impl<T> EndPair<T> {
    fn of(value: impl Fn(End) -> T) -> Self {
        Self {
            client: value(End::Client),
            server: value(End::Server),
        }
    }
}

/// The least, the middle and the greatest of RTT samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RttSpread {
    /// The number of samples.
    pub samples: u64,
    /// The shortest.
    pub min_ms: Option<f64>,
    /// The middle one.
    pub median_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
}

impl RttSpread {
    fn of(samples: impl Iterator<Item = Nanos>) -> Self {
        let mut samples: Vec<Nanos> = samples.collect();
        let [min_ms, median_ms, max_ms] = spread_ms(&mut samples);
        Self {
            samples: samples.len() as u64,
            min_ms,
            median_ms,
            max_ms,
        }
    }
}

/// An address that an end came to use: it migrated, or a NAT gave it another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AddressChange {
    /// The end: "client" or "server".
    pub end: &'static str,
    /// Address and port.
    pub address: String,
    /// The time at which a packet from it was first seen, in seconds since the connection's first
    /// packet.
    pub at_s: f64,
}

impl Passive {
    /// The passive measures of a connection, whose spin bit gave `spin`.
    #[must_use]
    pub fn of(connection: &Connection, spin: &Spin) -> Self {
        let image = &connection.wire_image;
        let [client, server] = [End::Client, End::Server].map(|end| Sent::of(connection, end));
        let matched = matching::samples(connection, connection.busier_end());
        let ids = |end: End| {
            image.connection_ids[end as usize]
                .iter()
                .map(in_hex)
                .collect()
        };
        let changes = image.later_addresses.iter().map(|it| AddressChange {
            end: it.end.name(),
            address: it.address.to_string(),
            at_s: seconds(since(connection.start, it.since)),
        });
        Self {
            server_name: image.client_hello.server_name.clone(),
            alpn: image.client_hello.alpn.clone(),
            connection_ids: EndPair::of(ids),
            later_addresses: changes.collect(),
            handshake_rtt_ms: handshake_rtt(connection).map(milliseconds),
            spin_bit: (connection.protocol != Protocol::Tcp).then_some(spin.bit),
            spin_rtt: RttSpread::of(spin.samples.iter().map(|(_, length)| *length)),
            spin_rejected: spin.rejected,
            matched_rtt: RttSpread::of(matched.into_iter().map(|(_, length)| length)),
            loss_bits: EndPair::of(|end| LossBits::of(connection, end)),
            bursts: EndPair::of(|end| Bursts::of(connection, end)),
            bytes_ratio: ratio(server.bytes, client.bytes),
            datagrams_ratio: ratio(server.datagrams, client.datagrams),
        }
    }
}

/// Datagrams and bytes that an end was seen to send.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    datagrams: u64,
    bytes: u64,
}

impl Sent {
    fn of(connection: &Connection, end: End) -> Self {
        let packets = connection.packets.iter();
        let sizes = packets
            .filter(|it| it.sender == end && !it.copy)
            .filter_map(|it| it.ip_size);
        sizes.fold(Self::default(), |sum, size| Self {
            datagrams: sum.datagrams + 1,
            bytes: sum.bytes + u64::from(size),
        })
    }
}

/// The round trip of a connection's handshake, for who measures with it.
#[must_use]
pub fn handshake_rtt(connection: &Connection) -> Option<Nanos> {
    handshake::round_trip(connection)
}

fn in_hex(id: &ConnectionId) -> String {
    format!("{id:?}")
}

fn since(start: u64, time: u64) -> Nanos {
    let ahead = i128::from(time) - i128::from(start);
    Nanos::try_from(ahead).unwrap_or(Nanos::MAX)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| share(part, whole))
}

/// A part of a whole; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
