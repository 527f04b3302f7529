//! Tells packets that were seen more than once at the same place.

use std::collections::HashSet;

use bentpipe_wire::quic::Identity;

use super::{Packet, Protocol};

/// Marks the copies among `packets`, which stand in order. What was seen leaving its sender comes
/// first: a copy that was only seen to arrive is one, whatever the clocks say.
///
/// The headers of a TCP segment that was sent anew may be those of the original, so none is taken
/// for a copy.
pub(super) fn mark(protocol: Protocol, packets: Vec<(Identity, Packet)>) -> Vec<Packet> {
    let mut packets = packets;
    if protocol != Protocol::Tcp {
        let mut known = HashSet::with_capacity(packets.len());
        for was_sent in [true, false] {
            for (identity, packet) in &mut packets {
                if packet.sent().is_some() == was_sent {
                    packet.copy = !known.insert((*identity, packet.size));
                }
            }
        }
    }
    packets.into_iter().map(|(_, packet)| packet).collect()
}
