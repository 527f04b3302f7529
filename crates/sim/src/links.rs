//! The links of a hop, the packets on them, and the log of those that have passed.

use std::collections::VecDeque;
use std::ops::Range;

use bentpipe_link::{
    Counters, Direction, Fate, FurtherArrival, Hop, Outcome, PacketMeta, Path, RequestWait,
    path_seed,
};
use bentpipe_trial::{EPOCH_UNIX_S, HopPackets, Packet, PacketLog, Transport, flow_number};
use bentpipe_units::{Span, Time};

use crate::flow::{Delays, HeldBack};
use crate::node::Departure;
use crate::packet::SentPacket;

/// A hop, both ways.
pub struct Links {
    /// Forward and return of each path, by number.
    paths: Vec<[Path; 2]>,
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
    /// The number of its path.
    path: usize,
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
        let each = hop.scenario().each_path();
        let paths = each.iter().enumerate().map(|(number, scenario)| {
            // Middleboxes, whose cables a hop of the first path has, stand where there is one path.
            let hop = if number == 0 {
                hop
            } else {
                scenario.hop(hop.from, hop.to)
            };
            Direction::BOTH.map(|way| Path::over(hop, way, path_seed(seed, number)))
        });
        Self {
            paths: paths.collect(),
            sent: VecDeque::new(),
            first: 0,
            open: vec![0; flows],
            log: PacketLog::new(flows, EPOCH_UNIX_S * 1_000_000_000),
        }
    }

    /// Nothing is sent in a direction before `until`.
    pub fn advance(&mut self, way: Direction, until: Time) {
        for path in &mut self.paths {
            path[way as usize].advance(until);
        }
    }

    /// The smallest delays of any path.
    pub fn delays(&self) -> Delays {
        Direction::BOTH.map(|way| {
            let each = self.paths.iter().map(|path| path[way as usize].min_delay());
            each.min().unwrap_or(Span::ZERO)
        })
    }

    /// The round trip of the path with the longest, by its smallest delays.
    pub fn longest_round_trip(&self) -> Span {
        let both = |path: &[Path; 2]| path.iter().map(Path::min_delay).sum();
        let each = self.paths.iter().map(both);
        each.max().unwrap_or(Span::ZERO)
    }

    /// When packets and copies whose fate is open arrive, at the earliest.
    pub fn next_arrivals(&self) -> HeldBack {
        Direction::BOTH.map(|way| {
            let each = self
                .paths
                .iter()
                .map(|path| path[way as usize].next_arrival());
            each.min().unwrap_or(Time::NEVER)
        })
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
        let Departure {
            sent: at,
            packet,
            path,
        } = departure;
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
            path,
            at,
            packet,
            marked: None,
            fate: None,
            is_marked: false,
            copies: Vec::new(),
            is_settled: false,
        });
        self.paths[path][way as usize].enqueue(at, meta);
    }

    /// Takes note of the fates that are known by now. `arrive` is called for each packet that
    /// arrives, and for each copy: of which flow, over which path, and when.
    pub fn settle(
        &mut self,
        way: Direction,
        mut arrive: impl FnMut(usize, usize, Time, &SentPacket),
    ) {
        let mut paths = 0..self.paths.len();
        while let Some(outcome) = self.next_outcome(&mut paths, way) {
            let index = usize::try_from(outcome.packet.id - self.first);
            let sent = &mut self.sent[index.expect("it was numbered by a length")];
            sent.note(&outcome);
            self.open[sent.flow] -= usize::from(sent.is_settled);
            if let Fate::Delivered { at } = outcome.fate {
                arrive(sent.flow, sent.path, at, sent.arriving(outcome.is_marked));
            }
        }
        while let Some((sent, fate)) = self.next_settled() {
            self.log.add(Packet {
                flow: sent.flow,
                direction: sent.way,
                path: sent.path,
                sent: sent.at,
                ip: sent.packet.ip,
                fate,
                marked: sent.is_marked,
                copies: sent.copies,
            });
        }
    }

    /// The next packet about which a path has decided, of the paths from the front of `paths` on.
    fn next_outcome(&mut self, paths: &mut Range<usize>, way: Direction) -> Option<Outcome> {
        while paths.start < paths.end {
            let outcome = self.paths[paths.start][way as usize].outcome();
            if outcome.is_some() {
                return outcome;
            }
            paths.next();
        }
        None
    }

    /// The packet that was sent first, if its fate is known, and those of its copies. The log has
    /// all in this order.
    fn next_settled(&mut self) -> Option<(Sent, Fate)> {
        let fate = self.sent.front().filter(|it| it.is_settled)?.fate?;
        let sent = self.sent.pop_front()?;
        self.first += 1;
        Some((sent, fate))
    }

    /// The requests for capacity that have been answered on the first path, forward and return.
    pub fn answered_requests(&self) -> [Vec<RequestWait>; 2] {
        self.paths[0].each_ref().map(Path::answered_requests)
    }

    /// The packets that passed it, once the fates of all are known.
    pub fn packets(self) -> HopPackets {
        assert!(self.sent.is_empty(), "the fate of a packet is open");
        let [forward, back] = Direction::BOTH.map(|way| {
            let each = self.paths.iter().map(|path| path[way as usize].counters());
            each.reduce(Counters::and).unwrap_or_default()
        });
        HopPackets {
            forward,
            back,
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

#[cfg(test)]
mod tests {
    use bentpipe_link::Scenario;
    use bentpipe_wire::IpVersion;
    use bytes::Bytes;

    use super::*;
    use crate::packet::DatagramForm;

    const MS: u64 = 1_000_000;

    /// A GEO path with 1 Mbit/s towards the client, and a fast one beside it.
    fn scenario() -> Scenario {
        let text = "title = \"t\"\nsource = \"s\"\ntimeout = \"60 s\"\npath = \"geo\"\n\
                    [satellite.forward]\nrate = \"1 Mbit/s\"\ndelay = \"300 ms\"\n\
                    queue = \"100 kB\"\n\
                    [satellite.return]\ndelay = \"280 ms\"\n\
                    [paths.leo.satellite.forward]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\n\
                    [paths.leo.satellite.return]\ndelay = \"4 ms\"\n";
        Scenario::parse(text, "two.toml", &[]).expect("a scenario")
    }

    /// A UDP datagram that is sent at a time, in milliseconds, over the path with that number.
    fn departure(at: u64, path: usize) -> Departure {
        let payload = Bytes::from(vec![0; 972]);
        let packet = DatagramForm::Udp(IpVersion::V4).read(0, payload);
        Departure {
            sent: Time::from_nanos(at * MS),
            packet: packet.expect("a packet"),
            path,
        }
    }

    /// The packets that have arrived: of which flow, over which path, and when, in microseconds.
    fn arrived(links: &mut Links, way: Direction) -> Vec<(usize, usize, u64)> {
        let mut arrived = Vec::new();
        links.settle(way, |flow, path, at, _| {
            arrived.push((flow, path, at.as_nanos() / 1000));
        });
        arrived.sort_by_key(|it| it.2);
        arrived
    }

    #[test]
    fn a_server_waits_as_long_as_the_slowest_path_takes() {
        let scenario = scenario();
        let links = Links::new(scenario.whole(), 1, 1);
        let smallest = links.delays().map(|it| it.as_nanos() / MS);
        assert_eq!(smallest, [5, 4], "the lookahead");
        assert_eq!(links.longest_round_trip(), Span::from_millis(580));
        let alone = &scenario.each_path()[1];
        let links = Links::new(alone.whole(), 1, 1);
        assert_eq!(links.longest_round_trip(), links.delays().into_iter().sum());
    }

    /// 1000 bytes take 8 ms at 1 Mbit/s, and 80 us at 100 Mbit/s.
    #[test]
    fn flows_on_paths_of_their_own_do_not_wait_for_each_other() {
        let scenario = scenario();
        let mut links = Links::new(scenario.whole(), 1, 2);
        let way = Direction::Forward;
        for (flow, path) in [(0, 0), (1, 1), (0, 0), (1, 1)] {
            links.send(way, flow, departure(0, path));
        }
        links.advance(way, Time::NEVER);
        assert_eq!(
            arrived(&mut links, way),
            [
                (1, 1, 5_080),
                (1, 1, 5_160),
                (0, 0, 308_000),
                (0, 0, 316_000),
            ]
        );
        assert_eq!(links.packets().log.packets().len(), 4);
    }
}
