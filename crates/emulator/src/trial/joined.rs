//! Joins the departures of a hop's packets with their arrivals.
//!
//! Where one segment is emulated, each packet is known at both ends. Where more are, hosts route
//! between them, and a packet's departure is joined with its arrival by what is in it, and of
//! packets that are alike, as TCP's can be, the first with the first: links and routers mostly keep
//! them in order. So is it with what a further segment dropped or lost. Each link says how many
//! copies it made of a packet: so often more that packet arrives, or is dropped or lost, and no
//! other that is like it. What arrives with Congestion Experienced that it was sent without was
//! marked on its way, by a link or in a tunnel.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use bentpipe_analysis::connection::Fate as Known;
use bentpipe_emulator::HopPacket;
use bentpipe_link::{Direction, Fate, FurtherArrival};
use bentpipe_trial::{IpPacket, Packet, Transport};
use bentpipe_wire::{Path, ecn};

/// A packet: the flow that it belongs to, its path as far as it is known, and what it is.
pub type Read = (usize, Option<Path>, IpPacket);

/// The identity of a packet along its path.
type Key = (Direction, Option<Path>, Transport);

/// The packets of a hop that `read` can tell, with their fates, in the order of sending. What was
/// still under way when the emulator ended is left out.
pub fn packets<'a>(
    read: impl Fn(&HopPacket) -> Option<Read>,
    captured: impl Iterator<Item = &'a HopPacket>,
) -> Vec<Packet> {
    let mut joined = Joined::default();
    let mut later = Vec::new();
    for captured in captured {
        let Some((flow, path, ip)) = read(captured) else {
            continue;
        };
        let key = (captured.direction, path, identity(&ip.transport));
        if captured.sent.is_some() {
            joined.depart(flow, key, ip, captured);
        } else if is_blind(captured) {
            joined.come_out(&key, captured);
        } else {
            later.push((key, captured));
        }
    }
    // A link that reorders reports packets after links that they meet later.
    for (key, captured) in &later {
        joined.duplicate(key, captured);
    }
    for (key, captured) in &later {
        joined.end(key, captured);
    }
    joined.finish()
}

/// Whether it was seen behind a tunnel, which says neither what it lost nor what it duplicated.
fn is_blind(captured: &HopPacket) -> bool {
    captured.fate == Known::Unknown && captured.arrived.is_some()
}

#[derive(Default)]
struct Joined {
    packets: Vec<Packet>,
    /// Whether each counts as lost because nothing was seen of it.
    lost_if_open: Vec<bool>,
    alike: HashMap<Key, EqualPackets>,
    /// The number behind the last that came out of a tunnel, in each direction.
    behind_arrived: [usize; 2],
}

/// Packets that are alike.
#[derive(Default)]
struct EqualPackets {
    /// Packets that may still be seen.
    open: VecDeque<OnTheWay>,
    /// The number of the last of which something was.
    last: Option<usize>,
}

/// A packet behind the first link.
struct OnTheWay {
    number: usize,
    /// How many of it are under way: itself, and copies.
    under_way: usize,
}

impl Joined {
    /// A packet was sent. Of one link all is known at once.
    fn depart(&mut self, flow: usize, key: Key, ip: IpPacket, captured: &HopPacket) {
        let number = self.packets.len();
        let fate = fate(captured);
        if fate.is_none() {
            let on_the_way = OnTheWay {
                number,
                under_way: 1 + captured.copies.len(),
            };
            self.alike
                .entry(key)
                .or_default()
                .open
                .push_back(on_the_way);
        }
        self.lost_if_open.push(fate.is_none());
        let copies = captured.copies.iter().filter(|_| fate.is_some());
        self.packets.extend(captured.sent.map(|sent| Packet {
            flow,
            direction: captured.direction,
            path: captured.path,
            sent,
            ip,
            fate: fate.unwrap_or(Fate::Loss),
            marked: captured.marked,
            copies: copies.copied().collect(),
        }));
    }

    /// A packet came out of a tunnel. That mostly keeps the order, so of packets that are alike the
    /// first one is meant that was sent after all that have arrived. Before the tunnel a busy
    /// machine may let one burst overtake another: where there is none, it is the last one. What
    /// comes out more often than it went in was duplicated.
    fn come_out(&mut self, key: &Key, captured: &HopPacket) {
        let alike = self.alike.entry(key.clone()).or_default();
        let next = &mut self.behind_arrived[captured.direction as usize];
        let in_order = alike.open.iter().position(|it| it.number >= *next);
        let place = in_order.unwrap_or(alike.open.len().saturating_sub(1));
        let number = match alike.open.remove(place) {
            Some(found) => {
                *next = (*next).max(found.number + 1);
                found.number
            }
            None => match alike.last {
                Some(number) => number,
                None => return,
            },
        };
        alike.last = Some(number);
        self.arrive(number, captured);
    }

    /// A link in the middle made copies of a packet.
    fn duplicate(&mut self, key: &Key, captured: &HopPacket) {
        if captured.arrived.is_none()
            && let Some(first) = self.alike.get_mut(key).and_then(|it| it.open.front_mut())
        {
            first.under_way += captured.copies.len();
        }
    }

    /// A further link dropped or lost a packet, or a copy, or it arrived.
    fn end(&mut self, key: &Key, captured: &HopPacket) {
        let (Some(alike), Some(fate)) = (self.alike.get_mut(key), fate(captured)) else {
            return;
        };
        let Some(first) = alike.open.front_mut() else {
            return;
        };
        let number = first.number;
        first.under_way -= 1;
        if first.under_way == 0 {
            alike.open.pop_front();
        }
        match fate {
            Fate::Delivered { .. } => self.arrive(number, captured),
            // Another one of it has arrived.
            _ if self.has_arrived(number) => {}
            fate => self.packets[number].fate = fate,
        }
        self.lost_if_open[number] = false;
    }

    fn has_arrived(&self, number: usize) -> bool {
        matches!(self.packets[number].fate, Fate::Delivered { .. })
    }

    /// A packet arrives, with the copies that the last link made.
    fn arrive(&mut self, number: usize, captured: &HopPacket) {
        let packet = &mut self.packets[number];
        let before_last_link = ecn(captured.ip());
        let first = captured.arrived.map(|at| FurtherArrival {
            at,
            marked: captured.marked,
        });
        for arrival in first.into_iter().chain(captured.copies.iter().copied()) {
            let marked = packet.is_marked(before_last_link, arrival.marked);
            packet.arrive(FurtherArrival { marked, ..arrival });
        }
        self.lost_if_open[number] = false;
    }

    fn finish(self) -> Vec<Packet> {
        let mut packets = self.packets;
        let under_way = under_way(&packets, &self.lost_if_open);
        let mut number = 0;
        packets.retain(|_| {
            number += 1;
            !under_way[number - 1]
        });
        packets.sort_by_key(|packet| packet.sent);
        packets
    }
}

/// The fate of a packet, as far as what was seen of it tells.
fn fate(captured: &HopPacket) -> Option<Fate> {
    match (captured.fate, captured.arrived) {
        (Known::QueueDrop, _) => Some(Fate::QueueDrop),
        (Known::Loss, _) => Some(Fate::Loss),
        (_, Some(at)) => Some(Fate::Delivered { at }),
        (_, None) => None,
    }
}

/// The part of a packet that stays the same along its path. Tunnels may write another maximum
/// segment size into the first option of a SYN, which is where Linux has it, and so another
/// checksum.
fn identity(transport: &Transport) -> Transport {
    const SYN: u8 = 2;
    const CHECKSUM: Range<usize> = 16..18;
    const SEGMENT_SIZE: Range<usize> = 20..24;
    match transport {
        Transport::Tcp(segment) if segment.get(13).is_some_and(|flags| flags & SYN != 0) => {
            let mut known = segment.to_vec();
            for part in [CHECKSUM, SEGMENT_SIZE] {
                if let Some(bytes) = known.get_mut(part) {
                    bytes.fill(0);
                }
            }
            Transport::Tcp(known.into())
        }
        other => other.clone(),
    }
}

/// Which packets were sent after the last of their direction that was seen to arrive, and not seen
/// themselves.
fn under_way(packets: &[Packet], open: &[bool]) -> Vec<bool> {
    // In either direction they stand in the order of sending, also those of the same instant.
    let mut behind = [true; 2];
    let mut under_way = vec![false; packets.len()];
    for (number, packet) in packets.iter().enumerate().rev() {
        let behind = &mut behind[packet.direction as usize];
        *behind &= !matches!(packet.fate, Fate::Delivered { .. });
        under_way[number] = open[number] && *behind;
    }
    under_way
}
