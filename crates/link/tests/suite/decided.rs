//! The fates of packets on links that decide at arrival.

use bentpipe_link::{Fate, PacketMeta, Path};
use bentpipe_units::Time;

/// Paths on which no node holds packets.
pub trait Decides {
    /// The fate of a packet that is sent now.
    fn admit(&mut self, now: Time, ip_bytes: u32) -> Fate;
}

/// A packet of no particular flow.
pub fn packet(ip_bytes: u32) -> PacketMeta {
    PacketMeta {
        id: 0,
        ip_bytes,
        ecn: 0,
        flow: 0,
        is_udp: false,
    }
}

impl Decides for Path {
    fn admit(&mut self, now: Time, ip_bytes: u32) -> Fate {
        self.enqueue(now, packet(ip_bytes));
        self.outcome().expect("no node holds packets").fate
    }
}
