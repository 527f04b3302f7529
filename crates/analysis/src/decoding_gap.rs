//! How much of a connection's 1-RTT packets could not be decoded.

use std::fmt;

use crate::connection::{Connection, Kind};
use bentpipe_wire::quic::{End, PacketType};

/// The share of an end's packets that may be missing, in percent, and one packet in any case: a
/// stateless reset looks like a packet and is none (RFC 9000 section 10.3).
const TOLERATED_PERCENT: u64 = 1;

/// The 1-RTT packets of connections of QUIC, and those among them that could not be decoded: they
/// were damaged, an extension that is not known here changes them, or the secrets are of other
/// connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecodingGap {
    /// Missing packets of the client and of the server.
    packets: [u64; 2],
    undecoded: [u64; 2],
}

impl DecodingGap {
    /// The gap of several connections together.
    pub fn of<'a>(connections: impl IntoIterator<Item = &'a Connection>) -> Self {
        let mut gap = Self::default();
        let packets = connections.into_iter().flat_map(|it| &it.packets);
        let is_one_rtt = |kind| kind == Kind::Quic(PacketType::OneRtt);
        for packet in packets.filter(|it| is_one_rtt(it.kind) && !it.copy) {
            gap.packets[packet.sender as usize] += 1;
            gap.undecoded[packet.sender as usize] += u64::from(!packet.decoded);
        }
        gap
    }

    /// The number of packets that could not be decoded.
    #[must_use]
    pub fn undecoded(&self) -> u64 {
        self.undecoded.iter().sum()
    }

    /// Whether nothing was decoded.
    #[must_use]
    pub fn is_total(&self) -> bool {
        self.undecoded == self.packets
    }

    /// Whether there are 1-RTT packets, and no secrets to decode any of them with.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.is_total() && self.undecoded() > 0
    }

    /// Whether so many packets of either end are missing that the rest would mislead: more than one
    /// in a hundred packets.
    #[must_use]
    pub fn misleads(&self) -> bool {
        [End::Client, End::Server].into_iter().any(|end| {
            let tolerated = (self.packets[end as usize] * TOLERATED_PERCENT).div_ceil(100);
            self.undecoded[end as usize] > tolerated
        })
    }
}

impl fmt::Display for DecodingGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets: u64 = self.packets.iter().sum();
        write!(
            f,
            "{} of {packets} 1-RTT packets could not be decoded",
            self.undecoded()
        )
    }
}
