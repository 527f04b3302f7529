//! The arrivals of stream data of one end, with their times.

use std::collections::HashMap;

use crate::connection::{Connection, Fate, Frame, Nanos, Packet};
use crate::intervals::Intervals;
use bentpipe_wire::quic::End;

/// The times at which bytes of `sender`'s streams arrived that had not been there before, and how
/// many, in order. Packets count that are known to have arrived.
#[must_use]
pub fn arrivals(connection: &Connection, sender: End) -> Vec<(Nanos, u64)> {
    let own = connection.packets.iter();
    let own = own.filter(|it| it.sender == sender && it.fate == Fate::Delivered);
    let mut packets: Vec<(Nanos, &Packet)> =
        own.filter_map(|it| Some((it.received()?, it))).collect();
    packets.sort_by_key(|(time, _)| *time);
    let mut streams: HashMap<u64, Intervals> = HashMap::new();
    let new_bytes = packets.into_iter().map(|(time, packet)| {
        let new = connection.frames(packet).iter().map(|frame| match frame {
            Frame::Stream {
                id, offset, length, ..
            } => {
                let end = offset.saturating_add(u64::from(*length));
                streams.entry(*id).or_default().add(*offset..end)
            }
            _ => 0,
        });
        (time, new.sum())
    });
    new_bytes.filter(|(_, new)| *new > 0).collect()
}
