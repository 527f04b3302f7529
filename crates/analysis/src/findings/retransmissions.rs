//! Which stream data were sent more than once, and whether that was needed.
//!
//! A copy was needless if an earlier one arrived, whatever the sender knew of it. It was early if
//! it left sooner than an RTT after the one before: no ACK could have reported it (Endres 2022,
//! section 5.6.7).

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::connection::{Frame, Nanos};
use crate::intervals::Intervals;

use super::transfer::{Transfer, arrived};

/// The data that was sent more than once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Retransmissions {
    /// Distinct bytes sent.
    pub distinct: u64,
    /// Those of them that were sent at least twice.
    pub twice: u64,
    /// Bytes sent in all.
    pub sent: u64,
    /// Bytes sent again though an earlier copy arrived.
    pub needless: u64,
    /// Packets with such bytes, and when the first of them and the last were sent.
    pub needless_packets: u64,
    pub needless_at: Option<(Nanos, Nanos)>,
    /// Packets with bytes sent again.
    pub packets: u64,
    /// The number of these that were early.
    pub early_packets: u64,
}

#[derive(Default)]
struct Stream {
    sent: Intervals,
    twice: Intervals,
    arrived: Intervals,
    /// When the frame that began at an offset was last sent.
    times: BTreeMap<u64, Nanos>,
}

/// The retransmissions of the data sender.
pub(super) fn of(transfer: &Transfer<'_>) -> Retransmissions {
    let mut streams: HashMap<u64, Stream> = HashMap::new();
    let mut copies = Retransmissions::default();
    for at in &transfer.data {
        let (packet, entry) = transfer.packet(*at);
        let (mut needless, mut last_copy) = (0, None);
        for frame in transfer.view.connection.frames(packet) {
            let Frame::Stream {
                id, offset, length, ..
            } = frame
            else {
                continue;
            };
            let range = *offset..offset.saturating_add(u64::from(*length));
            let stream = streams.entry(*id).or_default();
            if entry.retransmitted > 0 {
                needless += stream.arrived.within(range.clone()).map(size).sum::<u64>();
                last_copy = last_copy.max(stream.last_copy(&range));
                for part in stream.sent.within(range.clone()) {
                    stream.twice.add(part);
                }
            }
            stream.times.insert(range.start, packet.time());
            stream.sent.add(range.clone());
            if arrived(packet, entry) == Some(true) {
                stream.arrived.add(range);
            }
        }
        copies.sent += u64::from(entry.stream_bytes);
        copies.packets += u64::from(entry.retransmitted > 0);
        let since = last_copy.map(|last| packet.time() - last);
        let is_early = since
            .zip(transfer.rtt)
            .is_some_and(|(since, rtt)| since < rtt);
        copies.early_packets += u64::from(is_early);
        if needless > 0 {
            copies.needless += needless;
            copies.needless_packets += 1;
            let first = copies.needless_at.map_or(packet.time(), |(first, _)| first);
            copies.needless_at = Some((first, packet.time()));
        }
    }
    copies.distinct = streams.values().map(|it| it.sent.sum()).sum();
    copies.twice = streams.values().map(|it| it.twice.sum()).sum();
    copies
}

impl Stream {
    /// When the bytes of `range` that were sent before were last sent: by the frames that began in
    /// it, or the last before it.
    fn last_copy(&self, range: &Range<u64>) -> Option<Nanos> {
        self.sent.within(range.clone()).next()?;
        let before = self.times.range(..=range.start).next_back();
        let within = self.times.range(range.clone());
        before
            .into_iter()
            .chain(within)
            .map(|(_, time)| *time)
            .max()
    }
}

fn size(range: Range<u64>) -> u64 {
    range.end - range.start
}
