//! Puts packets in order, without a second copy of them.

use bentpipe_wire::quic::Identity;

use super::clock::since;
use super::observed::{ObservedConnection, PacketObservation};
use super::{Nanos, Packet, Protocol, copies};

/// The place of a packet among all.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) time: Nanos,
    /// That orders packets of the same instant.
    pub(super) position: u32,
    /// The number of the packet before they were in order.
    pub(super) number: u32,
}

/// The packets in order, the copies among them marked. Both are by the numbers that packets had.
pub(super) fn arranged(
    protocol: Protocol,
    mut order: Vec<Place>,
    mut packet: impl FnMut(usize) -> Packet,
    identity: impl Fn(usize) -> Identity,
) -> Vec<Packet> {
    order.sort_unstable();
    let packets = order.iter().map(|place| packet(place.number as usize));
    let mut packets: Vec<_> = packets.collect();
    let identity = |at: usize| identity(order[at].number as usize);
    copies::mark(protocol, &mut packets, identity);
    packets
}

/// The packets of one place by the time at which they passed, counted from `start`.
pub(super) fn in_time(
    recorded: &ObservedConnection,
    start: u64,
    packet: impl Fn(&PacketObservation) -> Packet,
) -> Vec<Packet> {
    let observations = &recorded.observations;
    let order = observations.iter().zip(0..).map(|(it, at)| Place {
        time: since(start, it.time),
        position: at,
        number: at,
    });
    arranged(
        recorded.protocol,
        order.collect(),
        |number| packet(&observations[number]),
        |number| observations[number].identity,
    )
}
