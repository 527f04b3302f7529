//! The round trip of a handshake, from what anybody can read of it.
//!
//! Source: RFC 9312 section 3.8.1. A server's Initial packet answers one of the client: that is the
//! way from the place of capture to the server and back. The client's answer to that is the way to
//! the client and back. Which packet was answered is read from the ACK frame, as Initial packets
//! are no secret: so a packet that was sent twice misleads nobody. Of TCP it is the segment that
//! the ACK gives an RTT sample of, by Karn's algorithm and timestamps.

use bentpipe_wire::quic::{End, PacketType, Space};

use crate::connection::{Connection, Frame, Kind, Nanos, Packet, Protocol, Vantage};

/// The round trip time of the handshake, what both ends took to answer included: that of the whole
/// path. None if the capture does not have it.
pub(super) fn round_trip(connection: &Connection) -> Option<Nanos> {
    let to_server = || component(connection, End::Server, End::Client);
    let to_client = || component(connection, End::Client, End::Server);
    match connection.vantage {
        Vantage::Both => to_server().or_else(to_client),
        Vantage::At(End::Client) => to_server(),
        Vantage::At(End::Server) => to_client(),
        Vantage::Between => Some(to_server()? + to_client()?),
    }
}

/// From the passing of a packet to that of its first answer by `answerer`, both at `place`.
fn component(connection: &Connection, answerer: End, place: End) -> Option<Nanos> {
    let here = |packet: &&Packet| !packet.copy && packet.seen[place as usize].is_some();
    let mut originals = connection.packets.iter().filter(here);
    let (answer, number) = originals.find_map(|packet| {
        let is_answer = packet.sender == answerer && is_of_handshake(packet);
        Some((packet, answered(connection, packet)?)).filter(|_| is_answer)
    })?;
    let mut asked = connection.packets.iter().filter(here);
    let asked = asked.find(|it| {
        it.sender != answerer && it.number == Some(number) && it.space() == answer.space()
    })?;
    if !connection.is_ack_eliciting(asked) {
        return None;
    }
    let [until, from] = [answer, asked].map(|it| it.seen[place as usize]);
    Some(until? - from?).filter(|it| *it >= 0)
}

fn is_of_handshake(packet: &Packet) -> bool {
    matches!(packet.kind, Kind::Tcp | Kind::Quic(PacketType::Initial))
}

/// The number of the packet that a packet answers.
fn answered(connection: &Connection, packet: &Packet) -> Option<u64> {
    let mut frames = connection.frames(packet).iter();
    match connection.protocol {
        Protocol::Tcp => frames.find_map(|frame| match frame {
            Frame::Echo(number) => Some(*number),
            _ => None,
        }),
        Protocol::Quic(_) if packet.space() == Some(Space::Initial) => {
            frames.find_map(|frame| match frame {
                Frame::Ack { ranges, .. } => Some(connection.ranges(ranges).first()?.1),
                _ => None,
            })
        }
        Protocol::Quic(_) => None,
    }
}
