//! The fates of packets on links that decide at arrival.

use bentpipe_link::{Fate, PacketMeta, Path};
use bentpipe_units::Time;

/// Paths on which no node holds packets.
pub trait Decides {
    /// The fate of a packet that is sent now.
    fn admit(&mut self, now: Time, ip_bytes: u32) -> Fate;
}

impl Decides for Path {
    fn admit(&mut self, now: Time, ip_bytes: u32) -> Fate {
        let packet = PacketMeta {
            id: 0,
            ip_bytes,
            ecn: 0,
            flow: 0,
        };
        self.enqueue(now, packet);
        self.outcome().expect("no node holds packets").fate
    }
}
