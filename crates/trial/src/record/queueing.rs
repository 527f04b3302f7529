//! How long packets waited on the way.

use bentpipe_link::{Direction, Fate, Hop};
use bentpipe_units::Span;

use crate::evidence::{Packet, PacketLog};
use crate::numbers::{nearest_rank, seconds};
use crate::schema::Queueing;

impl Queueing {
    /// The queueing of a hop's packets: of those of one flow, or of all. A packet's is the time
    /// that it took above the least delay of the hop in its direction.
    pub(super) fn of(log: &PacketLog, hop: Hop, flow: Option<usize>) -> Self {
        let each = hop.scenario().each_path();
        let [forward, back] = [Direction::Forward, Direction::Return].map(|way| {
            let least = each.iter();
            let least = least.map(|it| it.hop(hop.from, hop.to).min_one_way(way));
            let waits = waits(log, (way, &least.collect::<Vec<_>>()), flow);
            [50, 99].map(|percent| {
                let wait = nearest_rank(&waits, waits.len(), percent)?;
                Some(seconds(*wait) * 1e3)
            })
        });
        Self {
            forward_queueing_median_ms: forward[0],
            forward_queueing_p99_ms: forward[1],
            return_queueing_median_ms: back[0],
            return_queueing_p99_ms: back[1],
        }
    }
}

/// The queueing of each packet that was delivered, in nanoseconds, sorted.
/// `least` is the least delay of each path.
fn waits(log: &PacketLog, (way, least): (Direction, &[Span]), flow: Option<usize>) -> Vec<u64> {
    let own = |it: &&Packet| it.direction == way && flow.is_none_or(|flow| flow == it.flow);
    let own = log.packets().iter().filter(own);
    let waits = own.filter_map(|it| match it.fate {
        // No sooner than the least delay; a clock of real time may see it so.
        Fate::Delivered { at } => Some((at - (it.sent + least[it.path])).as_nanos()),
        _ => None,
    });
    let mut waits: Vec<u64> = waits.collect();
    waits.sort_unstable();
    waits
}

#[cfg(test)]
mod tests {
    use bentpipe_link::Scenario;
    use bentpipe_units::Time;
    use bytes::Bytes;

    use super::*;
    use crate::evidence::{IpPacket, Transport};
    use bentpipe_wire::IpVersion;

    /// Packets that were sent each millisecond, and took the given milliseconds; None: lost.
    fn log(took: &[(usize, Direction, Option<u64>)]) -> PacketLog {
        let mut log = PacketLog::new(2, 0);
        for (number, (flow, direction, took)) in (0..).zip(took) {
            let sent = Time::ZERO + Span::from_millis(number);
            log.add(Packet {
                flow: *flow,
                direction: *direction,
                path: 0,
                sent,
                ip: IpPacket {
                    version: IpVersion::V4,
                    ecn: 0,
                    transport: Transport::Udp(Bytes::new()),
                    bytes: 28,
                },
                fate: took.map_or(Fate::Loss, |took| Fate::Delivered {
                    at: sent + Span::from_millis(took),
                }),
                marked: false,
                copies: Vec::new(),
            });
        }
        log
    }

    #[test]
    fn packets_wait_beyond_the_least_delay() {
        let forward = Direction::Forward;
        let log = log(&[
            (0, forward, Some(300)),
            (1, forward, Some(310)),
            (1, forward, None),
            (0, Direction::Return, Some(200)),
            (1, forward, Some(330)),
            (0, forward, Some(305)),
        ]);
        let scenario = Scenario::parse(
            "title = \"t\"\nsource = \"s\"\ntimeout = \"9 s\"\n\
             [satellite]\nforward = { delay = \"295 ms\" }\nreturn = { delay = \"200 ms\" }",
            "t.toml",
            &[],
        )
        .unwrap();
        let all = Queueing::of(&log, scenario.whole(), None);
        assert_eq!(all.forward_queueing_median_ms, Some(10.0));
        assert_eq!(all.forward_queueing_p99_ms, Some(35.0));
        assert_eq!(all.return_queueing_p99_ms, Some(0.0));
        let second = Queueing::of(&log, scenario.whole(), Some(1));
        assert_eq!(second.forward_queueing_median_ms, Some(15.0));
        assert_eq!(second.return_queueing_median_ms, None);
    }
}
