//! How long packets waited on the way.

use bentpipe_link::{Direction, Fate};
use bentpipe_units::Span;

use crate::evidence::PacketLog;
use crate::numbers::{nearest_rank, seconds};
use crate::schema::Queueing;

impl Queueing {
    /// The queueing of a hop's packets: of those of one flow, or of all. A packet's is the time
    /// that it took above the fastest of the hop, of any flow, in its direction.
    pub(super) fn of(log: &PacketLog, flow: Option<usize>) -> Self {
        let [forward, back] = [Direction::Forward, Direction::Return].map(|way| {
            let waits = waits(log, way, flow);
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
fn waits(log: &PacketLog, way: Direction, flow: Option<usize>) -> Vec<u64> {
    let took = log.packets().iter().filter_map(|it| match it.fate {
        Fate::Delivered { at } if it.direction == way => Some((it.flow, at - it.sent)),
        _ => None,
    });
    let took: Vec<(usize, Span)> = took.collect();
    let fastest = took.iter().map(|(_, span)| *span).min().unwrap_or_default();
    let own = took
        .iter()
        .filter(|(of, _)| flow.is_none_or(|flow| flow == *of));
    let mut waits: Vec<u64> = own
        .map(|(_, span)| span.as_nanos() - fastest.as_nanos())
        .collect();
    waits.sort_unstable();
    waits
}

#[cfg(test)]
mod tests {
    use bentpipe_units::Time;
    use bytes::Bytes;

    use super::*;
    use crate::evidence::{IpPacket, Packet, Transport};
    use bentpipe_wire::IpVersion;

    /// Packets that were sent each millisecond, and took so many milliseconds; None: lost.
    fn log(took: &[(usize, Direction, Option<u64>)]) -> PacketLog {
        let mut log = PacketLog::new(2, 0);
        for (number, (flow, direction, took)) in (0..).zip(took) {
            let sent = Time::ZERO + Span::from_millis(number);
            log.add(Packet {
                flow: *flow,
                direction: *direction,
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
            });
        }
        log
    }

    #[test]
    fn packets_wait_longer_than_the_fastest_of_all_flows() {
        let forward = Direction::Forward;
        let log = log(&[
            (0, forward, Some(300)),
            (1, forward, Some(310)),
            (1, forward, None),
            (0, Direction::Return, Some(200)),
            (1, forward, Some(330)),
            (0, forward, Some(305)),
        ]);
        let all = Queueing::of(&log, None);
        assert_eq!(all.forward_queueing_median_ms, Some(5.0));
        assert_eq!(all.forward_queueing_p99_ms, Some(30.0));
        assert_eq!(all.return_queueing_p99_ms, Some(0.0));
        let second = Queueing::of(&log, Some(1));
        assert_eq!(second.forward_queueing_median_ms, Some(10.0));
        assert_eq!(second.return_queueing_median_ms, None);
    }
}
