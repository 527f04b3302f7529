//! The parts of packets that are readable on the path.

use bentpipe_endpoint::contract::Arrival;

/// Types of packets with long headers (RFC 9000, table 5).
pub const INITIAL: u8 = 0;
pub const ZERO_RTT: u8 = 1;
pub const HANDSHAKE: u8 = 2;

/// A packet with a long header; all of this is legible to everybody.
#[derive(Debug, Clone, Copy)]
pub struct LongPacket {
    pub kind: u8,
    /// It was sent before this time, in nanoseconds.
    pub by: u64,
    /// Packet number and payload.
    pub length: usize,
}

/// The packets and datagrams that a side has sent.
#[derive(Debug, Default)]
pub struct Sent {
    pub packets: Vec<LongPacket>,
    /// The size of every datagram.
    pub sizes: Vec<usize>,
}

impl Sent {
    /// Adds datagrams that were sent before `by`.
    pub fn add(&mut self, datagrams: &[Arrival], by: u64) {
        for datagram in datagrams {
            self.packets.extend(long_packets(datagram, by));
            self.sizes.push(datagram.payload.len());
        }
    }

    /// Bytes in packets of this kind that were sent between the two times, rounded up to runs.
    pub fn bytes(&self, kind: u8, times: std::ops::Range<u64>) -> usize {
        let wanted = |packet: &&LongPacket| packet.kind == kind && times.contains(&packet.by);
        self.packets
            .iter()
            .filter(wanted)
            .map(|packet| packet.length)
            .sum()
    }
}

/// The packets with long headers that a datagram starts with (RFC 9000, section 17.2).
fn long_packets(datagram: &Arrival, by: u64) -> Vec<LongPacket> {
    let mut rest = &datagram.payload[..];
    let mut packets = Vec::new();
    // The bit after the first may be greased (RFC 9287).
    while rest.first().is_some_and(|first| first & 0x80 != 0) {
        let kind = (rest[0] >> 4) & 3;
        rest = &rest[5..];
        for _ in ["destination", "source"] {
            rest = &rest[1 + usize::from(rest[0])..];
        }
        if kind == INITIAL {
            let token = take_integer(&mut rest);
            rest = &rest[token..];
        }
        let length = take_integer(&mut rest);
        rest = &rest[length..];
        packets.push(LongPacket { kind, by, length });
    }
    packets
}

/// A variable-length integer (RFC 9000, section 16).
fn take_integer(rest: &mut &[u8]) -> usize {
    let (bytes, after) = rest.split_at(1 << (rest[0] >> 6));
    *rest = after;
    let first = usize::from(bytes[0] & 0x3f);
    bytes[1..]
        .iter()
        .fold(first, |value, byte| (value << 8) | usize::from(*byte))
}
