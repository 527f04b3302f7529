//! Counters that other threads can read while packets are on the move.

use std::sync::atomic::{AtomicU64, Ordering};

use bentpipe_link::{Direction, SegmentName, SourceCounters};
use bentpipe_units::Time;
use serde::Serialize;

use crate::links::emulated_link::EmulatedLink;

/// The counters of one direction of one segment, so far. `packets = delivered + queue_drops +
/// losses`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentCounters {
    /// The number of the path, in the order of the scenario; the first is 0.
    pub path: usize,
    /// The segment.
    pub segment: SegmentName,
    /// The direction.
    pub direction: Direction,
    /// Packets that came in.
    pub packets: u64,
    /// Their bytes, of IP packets, here and below.
    pub bytes: u64,
    /// Packets that came out, or will.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets dropped by a full queue.
    pub queue_drops: u64,
    /// Packets lost.
    pub losses: u64,
    /// Copies that came out, or will, each behind another one of the same packet.
    pub duplicated: u64,
    /// Packets that came out, copies included.
    pub released: u64,
    /// Their bytes.
    pub released_bytes: u64,
    /// Bytes that wait for the link's capacity now.
    pub queue_bytes: u64,
    /// The most that ever waited.
    pub max_queue_bytes: u64,
    /// The fates of its sources' packets.
    #[serde(skip)]
    pub sources: SourceCounters,
}

/// The counters of one link. Those of one moment may be read with some of the next.
#[derive(Debug)]
pub(crate) struct Meter {
    path: usize,
    segment: SegmentName,
    direction: Direction,
    counts: [AtomicU64; 15],
}

impl Meter {
    /// The counters of a link that nothing has passed yet.
    pub fn new(path: usize, segment: SegmentName, direction: Direction) -> Self {
        Self {
            path,
            segment,
            direction,
            counts: Default::default(),
        }
    }

    /// Shows what has passed `emulated`.
    pub fn show(&self, emulated: &EmulatedLink, now: Time) {
        let link = emulated.counters();
        let (released, released_bytes) = emulated.released();
        let sources = link.sources.unwrap_or_default();
        let counts = [
            link.packets,
            link.bytes,
            link.delivered,
            link.delivered_bytes,
            link.queue_drops,
            link.losses,
            released,
            released_bytes,
            emulated.queue_bytes(now),
            link.max_queue_bytes,
            sources.packets,
            sources.bytes,
            sources.delivered_bytes,
            sources.lost,
            link.duplicated,
        ];
        for (shown, count) in self.counts.iter().zip(counts) {
            shown.store(count, Ordering::Relaxed);
        }
    }

    /// The values that were shown last.
    pub fn read(&self) -> SegmentCounters {
        let count = |index: usize| self.counts[index].load(Ordering::Relaxed);
        SegmentCounters {
            path: self.path,
            segment: self.segment,
            direction: self.direction,
            packets: count(0),
            bytes: count(1),
            delivered: count(2),
            delivered_bytes: count(3),
            queue_drops: count(4),
            losses: count(5),
            duplicated: count(14),
            released: count(6),
            released_bytes: count(7),
            queue_bytes: count(8),
            max_queue_bytes: count(9),
            sources: SourceCounters {
                packets: count(10),
                bytes: count(11),
                delivered_bytes: count(12),
                lost: count(13),
            },
        }
    }
}
