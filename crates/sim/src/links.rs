//! The links of a hop, the packets on them, and the log of those that have passed.

use std::collections::VecDeque;

use bentpipe_link::{Direction, Fate, FurtherArrival, Hop, Outcome, PacketMeta, Path, RequestWait};
use bentpipe_trial::{EPOCH_UNIX_S, HopPackets, Packet, PacketLog, Transport, flow_number};
use bentpipe_units::Time;

use crate::flow::{Delays, HeldBack};
use crate::node::Departure;
use crate::packet::SentPacket;

/// A hop, both ways.
pub struct Links {
    forward: Path,
    back: Path,
    /// The packets from the first on whose fate, or that of a copy, is open, in the order of
    /// sending.
    sent: VecDeque<Sent>,
    /// The number of the first of them.
    first: u64,
    /// How many of each flow's packets are open.
    open: Vec<usize>,
    log: PacketLog,
}

/// A packet that was sent over the hop.
struct Sent {
    flow: usize,
    way: Direction,
    at: Time,
    packet: SentPacket,
    /// The packet as it arrives, if a queue has marked it or a copy.
    marked: Option<Box<SentPacket>>,
    fate: Option<Fate>,
    is_marked: bool,
    copies: Vec<FurtherArrival>,
    /// Whether nothing of it is under way any more.
    is_settled: bool,
}

impl Sent {
    /// Takes note of the fate of the packet, or of a copy.
    fn note(&mut self, outcome: &Outcome) {
        self.is_settled = outcome.copies_under_way == 0;
        if outcome.is_marked && self.marked.is_none() {
            self.marked = Some(Box::new(self.packet.marked()));
        }
        match outcome.fate {
            fate if !outcome.is_copy => {
                self.fate = Some(fate);
                self.is_marked = outcome.is_marked;
            }
            Fate::Delivered { at } => self.copies.push(FurtherArrival {
                at,
                marked: outcome.is_marked,
            }),
            Fate::QueueDrop | Fate::Loss => {}
        }
    }

    /// The packet as it arrives.
    fn arriving(&self, is_marked: bool) -> &SentPacket {
        let marked = self.marked.as_deref().filter(|_| is_marked);
        marked.unwrap_or(&self.packet)
    }
}

impl Links {
    /// A hop that nothing has passed yet.
    pub fn new(hop: Hop, seed: u64, flows: usize) -> Self {
        Self {
            forward: Path::over(hop, Direction::Forward, seed),
            back: Path::over(hop, Direction::Return, seed),
            sent: VecDeque::new(),
            first: 0,
            open: vec![0; flows],
            log: PacketLog::new(flows, EPOCH_UNIX_S * 1_000_000_000),
        }
    }

    /// One of its directions.
    pub fn path(&mut self, way: Direction) -> &mut Path {
        match way {
            Direction::Forward => &mut self.forward,
            Direction::Return => &mut self.back,
        }
    }

    /// The smallest delays.
    pub fn delays(&self) -> Delays {
        [self.forward.min_delay(), self.back.min_delay()]
    }

    /// When packets and copies whose fate is open arrive, at the earliest.
    pub fn next_arrivals(&self) -> HeldBack {
        [self.forward.next_arrival(), self.back.next_arrival()]
    }

    /// When a packet of a flow whose fate is open arrives, at the earliest.
    pub fn next_arrival_of(&self, flow: usize) -> Time {
        if self.open[flow] == 0 {
            return Time::NEVER;
        }
        let [forward, back] = self.next_arrivals();
        forward.min(back)
    }

    /// A program of a flow has sent a packet.
    pub fn send(&mut self, way: Direction, flow: usize, departure: Departure) {
        let Departure { sent: at, packet } = departure;
        let meta = PacketMeta {
            id: self.first + self.sent.len() as u64,
            ip_bytes: packet.ip.bytes,
            ecn: packet.ip.ecn,
            flow: flow_number(flow, &packet.ip.transport),
            is_udp: is_udp(&packet.ip.transport),
        };
        self.open[flow] += 1;
        self.sent.push_back(Sent {
            flow,
            way,
            at,
            packet,
            marked: None,
            fate: None,
            is_marked: false,
            copies: Vec::new(),
            is_settled: false,
        });
        self.path(way).enqueue(at, meta);
    }

    /// Takes note of the fates that are known by now. `arrive` is called for each packet that
    /// arrives, and for each copy: of which flow, and when.
    pub fn settle(&mut self, way: Direction, mut arrive: impl FnMut(usize, Time, &SentPacket)) {
        while let Some(outcome) = self.path(way).outcome() {
            let index = usize::try_from(outcome.packet.id - self.first);
            let sent = &mut self.sent[index.expect("it was numbered by a length")];
            sent.note(&outcome);
            self.open[sent.flow] -= usize::from(sent.is_settled);
            if let Fate::Delivered { at } = outcome.fate {
                arrive(sent.flow, at, sent.arriving(outcome.is_marked));
            }
        }
        while let Some((sent, fate)) = self.next_settled() {
            self.log.add(Packet {
                flow: sent.flow,
                direction: sent.way,
                sent: sent.at,
                ip: sent.packet.ip,
                fate,
                marked: sent.is_marked,
                copies: sent.copies,
            });
        }
    }

    /// The packet that was sent first, if its fate is known, and those of its copies. The log has
    /// all in this order.
    fn next_settled(&mut self) -> Option<(Sent, Fate)> {
        let fate = self.sent.front().filter(|it| it.is_settled)?.fate?;
        let sent = self.sent.pop_front()?;
        self.first += 1;
        Some((sent, fate))
    }

    /// The requests for capacity that have been answered, forward and return.
    pub fn answered_requests(&self) -> [Vec<RequestWait>; 2] {
        [&self.forward, &self.back].map(Path::answered_requests)
    }

    /// The packets that passed it, once the fates of all are known.
    pub fn packets(self) -> HopPackets {
        assert!(self.sent.is_empty(), "the fate of a packet is open");
        HopPackets {
            forward: self.forward.counters(),
            back: self.back.counters(),
            log: self.log,
        }
    }
}

fn is_udp(transport: &Transport) -> bool {
    match transport {
        Transport::Udp(_) => true,
        Transport::Other { protocol, .. } => *protocol == bentpipe_wire::UDP,
        Transport::Tcp(_) => false,
    }
}
