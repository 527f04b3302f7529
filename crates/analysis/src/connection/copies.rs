//! Tells packets that were seen more than once at the same place.

use std::collections::HashSet;

use bentpipe_wire::quic::Identity;

use super::{Packet, Protocol};

/// Marks the copies among `packets`, which stand in order; `identity` tells what each is. What was
/// seen leaving its sender comes first: a copy that was only seen to arrive is one, whatever the
/// clocks say.
///
/// The headers of a TCP segment that was sent anew may be those of the original, so none is taken
/// for a copy.
pub(super) fn mark(
    protocol: Protocol,
    packets: &mut [Packet],
    identity: impl Fn(usize) -> Identity,
) {
    if protocol == Protocol::Tcp {
        return;
    }
    let suspects = alike(packets.len(), &identity);
    let mut known = HashSet::with_capacity(suspects.len());
    for was_sent in [true, false] {
        for at in suspects.iter().copied() {
            let packet = &mut packets[at];
            if packet.sent().is_some() == was_sent {
                packet.copy = !known.insert((identity(at), packet.size));
            }
        }
    }
}

/// The packets, in order, whose identities begin as that of another one does: few, and all that
/// have copies are among them.
fn alike(count: usize, identity: impl Fn(usize) -> Identity) -> Vec<usize> {
    let beginnings = (0..count).map(|at| (beginning(&identity(at)), index(at)));
    let mut beginnings: Vec<_> = beginnings.collect();
    beginnings.sort_unstable();
    let alike = beginnings.chunk_by(|one, other| one.0 == other.0);
    let alike = alike.filter(|of_one| of_one.len() > 1).flatten();
    let mut alike: Vec<_> = alike.map(|(_, at)| *at as usize).collect();
    alike.sort_unstable();
    alike
}

/// The first half of an identity, by which they are sorted: it nearly always tells them apart.
pub(super) fn beginning(identity: &Identity) -> u64 {
    let (first, _) = identity.split_first_chunk().expect("it has 16 bytes");
    u64::from_be_bytes(*first)
}

/// An index in four bytes: of these there is one for every packet.
pub(super) fn index(at: usize) -> u32 {
    u32::try_from(at).expect("fewer than 2^32 packets in a capture")
}
