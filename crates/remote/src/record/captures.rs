//! From captures at both ends of a path to what was observed of it.

use std::error::Error;
use std::path::Path;

use bentpipe_link::{Counters, Direction};
use bentpipe_trial::{
    Fidelity, FlowLifetime, HopPackets, IpPacket, PacketLog, TestbedObservation, Transport,
};
use bentpipe_units::Time;
use bentpipe_wire::IpLayer;
use bentpipe_wire::capture::{CapturedPacket, Input, Item, Piece};

use super::ended::time;
use super::joined::{Joined, Seen};
use super::observed::Observed;

/// The path of a trial, by its captures, and what these say of each other; without any, nothing was seen of it.
pub fn observation(observed: &Observed) -> Result<(TestbedObservation, Joined), Box<dyn Error>> {
    let epoch = u64::try_from(observed.begun_unix_ns)?;
    let mut path = HopPackets {
        log: PacketLog::new(1, epoch),
        forward: Counters::default(),
        back: Counters::default(),
    };
    let mut joined = Joined::default();
    let mut packets = Vec::new();
    if let Some([client, server]) = &observed.captures {
        let [own, theirs] = observed.stamps_ns;
        let near = seen(client, observed.port, |at| time(observed, at + own))?;
        let clock = observed.server_clock;
        let far = seen(server, observed.port, |at| {
            time(observed, clock.corrected(at + theirs))
        })?;
        let [near_sent, near_got] = near;
        let [far_got, far_sent] = far;
        packets.extend(joined.both(Direction::Return, near_sent, far_got));
        packets.extend(joined.both(Direction::Forward, far_sent, near_got));
    }
    packets.sort_by_key(|packet| packet.sent);
    for packet in packets {
        let counters = match packet.direction {
            Direction::Forward => &mut path.forward,
            Direction::Return => &mut path.back,
        };
        counters.count(packet.fate, packet.ip.bytes);
        path.log.add(packet);
    }
    let mut sent = path.log.packets().iter();
    let first = sent.find(|it| it.direction == Direction::Return);
    let end = time(observed, observed.ended_unix_ns);
    let flow = FlowLifetime {
        first_sent: Some(first.map_or(Time::ZERO, |packet| packet.sent)),
        end,
    };
    let observation = TestbedObservation {
        flows: vec![flow],
        hops: vec![path],
        tunnel: None,
        end,
        epochs: 0,
        fidelity: Fidelity::default(),
        unfaithful: Vec::new(),
    };
    Ok((observation, joined))
}

/// The packets of a capture, those towards the server and those from it.
fn seen(
    capture: &Path,
    port: u16,
    stamp: impl Fn(i64) -> Time,
) -> Result<[Vec<Seen>; 2], Box<dyn Error>> {
    let mut both = [Vec::new(), Vec::new()];
    let mut take = |item: Item<'_>| {
        if let Item::Packet(packet) = item
            && let Some((is_from_server, ip)) = of_server(&packet, port)
            && let Some(at) = packet.time
        {
            let at = stamp(at.cast_signed());
            both[usize::from(is_from_server)].push(Seen { at, ip });
        }
    };
    let input = Input::open(capture)?;
    let mut pieces = input.pieces()?;
    let mut piece = Piece::default();
    while pieces.next(&mut piece, &mut take) {}
    if let Some(error) = pieces.failure() {
        return Err(format!("{}: {error}", capture.display()).into());
    }
    Ok(both)
}

/// Whether it is from the server, and the packet; None of nobody's port.
fn of_server(packet: &CapturedPacket<'_>, port: u16) -> Option<(bool, IpPacket)> {
    let path = IpLayer::of(packet).ok()??.path()?;
    let is_from_server = match (path.source.port() == port, path.destination.port() == port) {
        (true, _) => true,
        (_, true) => false,
        _ => return None,
    };
    let ip = IpPacket::parse(&without_link(packet)?)?;
    let has_ports = !matches!(ip.transport, Transport::Other { .. });
    has_ports.then_some((is_from_server, ip))
}

/// The packet without what its link puts around it, cut to the length that IP says: links fill up what is short.
fn without_link<'a>(packet: &CapturedPacket<'a>) -> Option<CapturedPacket<'a>> {
    const RAW: u16 = 101;
    let bytes = packet.bytes;
    let start = (0..=bytes.len().min(24)).find(|start| is_ip(&bytes[*start..], packet))?;
    let ip = &bytes[start..];
    let length = match ip[0] >> 4 {
        4 => usize::from(u16::from_be_bytes([ip[2], ip[3]])),
        _ => 40 + usize::from(u16::from_be_bytes([ip[4], ip[5]])),
    };
    Some(CapturedPacket {
        link_type: RAW,
        bytes: ip.get(..length)?,
        ..*packet
    })
}

/// Whether an IP packet begins here: that which was decoded of the whole.
fn is_ip(bytes: &[u8], whole: &CapturedPacket<'_>) -> bool {
    let Some(Ok(Some(known))) = Some(IpLayer::of(whole)) else {
        return false;
    };
    let raw = CapturedPacket {
        link_type: 101,
        bytes,
        ..*whole
    };
    let Ok(Some(here)) = IpLayer::of(&raw) else {
        return false;
    };
    here.path() == known.path() && here.transport() == known.transport()
}
