//! The link's side of a comparison.

use bentpipe_link::{
    Direction, DirectionConfig, Fate, LinkSeed, PacketMeta, Path, Scenario, SegmentName,
};
use bentpipe_units::{Span, Time};

use crate::fates::{End, transmission_ns};
use crate::traffic::Packet;

/// A path has a delay, which changes nothing here, in nanoseconds.
const DELAY: u64 = 1_000_000;

/// The fates of packets on a link with that rate, in bit/s, and that queue, as a scenario file has
/// it.
pub fn ends(queue: &str, rate: u64, seed: u64, packets: &[Packet]) -> Result<Vec<End>, String> {
    let seed = LinkSeed {
        seed,
        direction: Direction::Forward,
        segment: SegmentName::Satellite,
    };
    let mut path = Path::of_link(&link(queue, rate)?, Span::from_millis(1), seed);
    for (id, packet) in (0..).zip(packets) {
        let meta = PacketMeta {
            id,
            ip_bytes: packet.bytes,
            ecn: packet.ecn,
            flow: packet.flow.into(),
            is_udp: true,
        };
        path.enqueue(Time::from_nanos(packet.at), meta);
    }
    path.advance(Time::NEVER);
    let mut ends = vec![End::Dropped; packets.len()];
    while let Some(outcome) = path.outcome() {
        let place = usize::try_from(outcome.packet.id).expect("the place of a packet");
        if let Fate::Delivered { at } = outcome.fate {
            let took = transmission_ns(outcome.packet.ip_bytes, rate);
            ends[place] = End::Sent {
                at: at.as_nanos() - DELAY - took,
                is_marked: outcome.is_marked,
            };
        }
    }
    Ok(ends)
}

fn link(queue: &str, rate: u64) -> Result<DirectionConfig, String> {
    let text = format!(
        "title = \"a comparison\"\nsource = \"none\"\ntimeout = \"60 s\"\n\
         [satellite.return]\ndelay = \"1 ms\"\n[satellite.forward]\ndelay = \"1 ms\"\n\
         rate = \"{rate} bit/s\"\nqueue = {queue}\n"
    );
    let scenario = Scenario::parse(&text, "comparison.toml", &[]).map_err(|it| it.to_string())?;
    Ok(scenario.satellite.forward)
}
