//! Which end became silent before a connection was given up, by the packets that its ends sent and
//! received.
//!
//! A stack that says `idle timeout` (RFC 9000 section 10.1) says that it received nothing for too
//! long, not why. The packets of the hop beside the client do: the end that sent its last packet
//! first is the one to look at, or what became of that packet.

use bentpipe_link::{Direction, Fate, HostName};
use bentpipe_units::Time;

use crate::evidence::Packet;

/// The last packets at an end of a hop.
#[derive(Debug, Clone, Copy, Default)]
struct End {
    /// When it sent its last packet, and whether that came through.
    sent: Option<(Time, bool)>,
    /// When the last packet of the other end reached it.
    reached: Option<Time>,
}

/// Says in words who was silent, and since when. `ends` are the hosts towards the client and
/// towards the server; the packets are those of one flow.
pub fn silence<'a>(packets: impl Iterator<Item = &'a Packet>, ends: [HostName; 2]) -> String {
    let [mut near, mut far] = [End::default(); 2];
    for packet in packets {
        let (sender, receiver) = match packet.direction {
            Direction::Return => (&mut near, &mut far),
            Direction::Forward => (&mut far, &mut near),
        };
        let at = match packet.fate {
            Fate::Delivered { at } => Some(at),
            Fate::QueueDrop | Fate::Loss => None,
        };
        sender.sent = Some((packet.sent, at.is_some()));
        receiver.reached = receiver.reached.max(at);
    }
    let last = |end: End| end.sent.map(|(time, _)| time);
    let named = [(ends[0], near), (ends[1], far)];
    let [(silent, its), (other, others)] = if last(near) < last(far) {
        named
    } else {
        [named[1], named[0]]
    };
    let began = match its.sent {
        None => format!("the {silent} sent nothing"),
        Some((time, true)) => format!("the {silent} was silent after {}", rounded(time)),
        Some((time, false)) => {
            let time = rounded(time);
            format!("the {silent} was silent after {time} by a packet that was lost")
        }
    };
    let heard = match its.reached {
        None => "and nothing reached it".to_owned(),
        Some(at) if Some(at) > last(its) => {
            format!("though packets reached it until {}", rounded(at))
        }
        Some(at) => format!("and nothing reached it after {}", rounded(at)),
    };
    let then = last(others).map(|time| {
        let time = rounded(time);
        format!("; the {other} sent its last packet at {time}")
    });
    format!("{began}, {heard}{}", then.unwrap_or_default())
}

/// The time to the millisecond, which is enough to find it in a trace.
fn rounded(time: Time) -> Time {
    Time::from_nanos(time.as_nanos() / 1_000_000 * 1_000_000)
}

#[cfg(test)]
mod tests {
    use bentpipe_wire::IpVersion;
    use bytes::Bytes;

    use super::*;
    use crate::evidence::IpPacket;

    /// A packet that is sent at `sent_ms` milliseconds, and takes 300 of them unless it is lost.
    fn packet(direction: Direction, sent_ms: u64, lost: bool) -> Packet {
        let at = Time::from_nanos((sent_ms + 300) * 1_000_000);
        Packet {
            path: 0,
            flow: 0,
            direction,
            sent: Time::from_nanos(sent_ms * 1_000_000 + 7),
            ip: IpPacket::udp(IpVersion::V4, 0, Bytes::new()),
            marked: false,
            copies: Vec::new(),
            fate: if lost {
                Fate::Loss
            } else {
                Fate::Delivered { at }
            },
        }
    }

    #[test]
    fn the_end_whose_last_packet_is_older_is_named() {
        let (client, server) = (Direction::Return, Direction::Forward);
        for (packets, words) in [
            (
                vec![
                    (client, 0, false),
                    (server, 300, false),
                    (client, 900, false),
                ],
                "the server was silent after 300 ms, though packets reached it until 1.2 s; the \
                 client sent its last packet at 900 ms",
            ),
            (
                vec![(client, 0, false), (server, 300, true), (client, 400, true)],
                "the server was silent after 300 ms by a packet that was lost, and nothing reached \
                 it after 300 ms; the client sent its last packet at 400 ms",
            ),
            (
                vec![(client, 0, true), (client, 1000, true)],
                "the server sent nothing, and nothing reached it; the client sent its last packet \
                 at 1 s",
            ),
            (
                vec![
                    (client, 0, false),
                    (server, 300, false),
                    (server, 800, true),
                ],
                "the client was silent after 0 ms, though packets reached it until 600 ms; the \
                 server sent its last packet at 800 ms",
            ),
        ] {
            let packets: Vec<Packet> = packets
                .into_iter()
                .map(|(way, sent, lost)| packet(way, sent, lost))
                .collect();
            assert_eq!(
                silence(packets.iter(), [HostName::Client, HostName::Server]),
                words
            );
        }
    }
}
