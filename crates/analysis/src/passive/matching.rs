//! RTT samples by matching what passed at both sides.
//!
//! A packet there and the next one back, sent after it had arrived, make a round trip: the sum of
//! their times on the way. What the far end waited in between is not in it, and by how much the two
//! clocks differ cancels out. It needs no secrets, and is an RTT of the path with its queues, at
//! every time at which packets went both ways.

use bentpipe_wire::quic::End;

use crate::connection::{Connection, Nanos, Packet, Vantage};

/// The RTT samples of `sender`, one for each packet that came back: when, and how long. Empty
/// unless both sides were captured.
pub(super) fn samples(connection: &Connection, sender: End) -> Vec<(Nanos, Nanos)> {
    if connection.vantage != Vantage::Both {
        return Vec::new();
    }
    let forth = delays(connection, sender);
    let mut arrivals: Vec<(Nanos, Nanos)> = forth
        .map(|(sent, arrived)| (arrived, arrived - sent))
        .collect();
    arrivals.sort_unstable();
    let back = delays(connection, sender.other());
    let samples = back.filter_map(|(sent, arrived)| {
        let before = arrivals.partition_point(|(arrival, _)| *arrival <= sent);
        let (_, delay) = arrivals[before.checked_sub(1)?];
        Some((arrived, delay + (arrived - sent)))
    });
    samples.collect()
}

/// When the packets of an end left it and reached the other, of those that did.
fn delays(connection: &Connection, sender: End) -> impl Iterator<Item = (Nanos, Nanos)> {
    let packets = connection.packets.iter();
    let own = packets.filter(move |it| it.sender == sender && !it.copy);
    own.filter_map(|packet: &Packet| packet.sent().zip(packet.received()))
}
