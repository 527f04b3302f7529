//! The sizes and times of packets that someone captured.

use bentpipe_units::Time;

use super::config::Replayed;
use super::{Emission, Generator};

/// One flow that sends what a file says.
pub(super) struct Replay {
    packets: std::vec::IntoIter<(bentpipe_units::Span, u32)>,
    start: Time,
    flow: u64,
}

impl Replay {
    pub fn new(replayed: &Replayed, start: Time, flow: u64) -> Self {
        Self {
            packets: replayed.packets.clone().into_iter(),
            start,
            flow,
        }
    }
}

impl Generator for Replay {
    fn next(&mut self) -> Option<Emission> {
        let (after, ip_bytes) = self.packets.next()?;
        Some(Emission {
            at: self.start + after,
            ip_bytes,
            flow: self.flow,
            is_udp: true,
            terminal: 0,
        })
    }
}
