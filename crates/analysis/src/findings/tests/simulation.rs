//! A simulated transfer: a server that sends a file over a fixed link, packet by packet, and what a
//! capture at both sides shows of it.
//!
//! The link has a rate, a queue towards the client, and a delay; ACKs are never lost, and come for
//! every packet. The server doubles its window per round trip up to a threshold, then keeps it; a
//! loss by the packet threshold takes it to a share, once per round trip.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use crate::connection::{
    Codepoint, Connection, Fate, Frame, Kind, Nanos, Packet, Protocol, Vantage, WireImage,
};
use bentpipe_wire::quic::{EcnCounts, End, PacketType};

pub const MS: Nanos = 1_000_000;
const SECOND: u64 = 1_000_000_000;
/// Bytes of a full packet, and of the stream data in it.
const SIZE: u32 = 1200;
const DATA: u64 = 1170;
const IP_UDP: u32 = 28;
/// The most ranges of an ACK frame.
const RANGES: usize = 32;

/// The parameters of a simulated transfer.
#[derive(Clone)]
pub struct SimulatedTransfer {
    /// Bit/s from server to client.
    pub rate: u64,
    pub rtt: Nanos,
    /// Bytes that wait for the link at most.
    pub queue: u64,
    pub file: u64,
    pub initial_window: u64,
    /// The window from which on it no longer grows.
    pub threshold: u64,
    /// Percent of the window that a loss leaves.
    pub after_loss: u64,
    /// Sends only at multiples of this; when an ACK comes, if 0.
    pub tick: Nanos,
    /// Spreads the window over half a round trip.
    pub is_paced: bool,
    /// Copies of each packet.
    pub copies: u64,
    /// Flow-control window of the stream, raised with every ACK. None: no limit, and no frames.
    pub credit: Option<u64>,
    /// The application writes this many bytes at once, then again every second.
    pub write: u64,
    /// Which packet numbers the link loses.
    pub is_lost: fn(u64) -> bool,
    /// Which packet numbers leave with ECT(0).
    pub is_capable: fn(u64) -> bool,
    /// Packets that would wait behind more bytes than this are marked.
    pub mark_above: u64,
    /// Whether ACKs have ECN counts.
    pub has_counts: bool,
    /// Percent of the window that a mark leaves.
    pub after_mark: u64,
    /// Whether each ACK with more marks counts, and not only the first in a round trip.
    pub answers_each: bool,
}

impl Default for SimulatedTransfer {
    /// A sender that does everything right on sat: 20 Mbit/s, 600 ms, a queue of a BDP.
    fn default() -> Self {
        Self {
            rate: 20_000_000,
            rtt: 600 * MS,
            queue: 1_500_000,
            file: 10_000_000,
            initial_window: 12_000,
            threshold: 1_600_000,
            after_loss: 70,
            tick: 0,
            is_paced: true,
            copies: 1,
            credit: None,
            write: u64::MAX,
            is_lost: |_| false,
            is_capable: |_| false,
            mark_above: u64::MAX,
            has_counts: true,
            after_mark: 70,
            answers_each: false,
        }
    }
}

impl SimulatedTransfer {
    pub fn play(&self) -> Connection {
        let mut simulation = Simulation::new(self);
        simulation.handshake();
        while let Some(Reverse((now, _, event))) = simulation.events.pop() {
            simulation.happens(now, &event);
        }
        simulation.connection.packets.sort_by_key(Packet::time);
        simulation.connection
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The client gets the packet with this number.
    Arrival(u64),
    /// The server gets an ACK; news in it are this packet, the limit, and the CE count.
    Ack(u64, u64, u64),
    /// The server may send.
    Wake,
}

struct Simulation<'a> {
    transfer: &'a SimulatedTransfer,
    connection: Connection,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    scheduled: u64,
    link_free: Nanos,
    window: u64,
    threshold: u64,
    next: u64,
    number: u64,
    /// Number → offset of what is in flight.
    flight: BTreeMap<u64, u64>,
    again: VecDeque<u64>,
    /// Packets below this number belong to a loss that was reacted to.
    recovery: u64,
    /// The largest number acknowledged.
    largest: u64,
    limit: u64,
    paced_until: Nanos,
    arrived: Vec<(u64, u64)>,
    received: crate::intervals::Intervals,
    acks: u64,
    /// Number → offset and length.
    data: BTreeMap<u64, (u64, u64)>,
    waking: Option<Nanos>,
    /// The numbers of packets that arrive marked.
    marked: BTreeSet<u64>,
    /// Packets with ECT(0) and with CE that arrived.
    counted: [u64; 2],
    /// The CE count that the server knows, and below which number packets belong to marks that it
    /// reacted to.
    known_marks: u64,
    mark_recovery: u64,
}

impl<'a> Simulation<'a> {
    fn new(transfer: &'a SimulatedTransfer) -> Self {
        Self {
            transfer,
            connection: Connection {
                protocol: Protocol::Quic(1),
                ends: [
                    "192.0.2.1:50000".parse().unwrap(),
                    "198.51.100.1:443".parse().unwrap(),
                ],
                initial_credit: [None; 2],
                handshake: bentpipe_wire::quic::Handshake::default(),
                wire_image: WireImage::default(),
                tls: None,
                subflow: None,
                vantage: Vantage::Both,
                start: 0,
                clock_ahead: 0,
                packets: Vec::new(),
                frames: Vec::new(),
                ranges: Vec::new(),
            },
            events: BinaryHeap::new(),
            scheduled: 0,
            link_free: 0,
            window: transfer.initial_window,
            threshold: transfer.threshold,
            next: 0,
            number: 0,
            flight: BTreeMap::new(),
            again: VecDeque::new(),
            recovery: 0,
            largest: 0,
            limit: transfer.credit.unwrap_or(u64::MAX),
            paced_until: 0,
            arrived: Vec::new(),
            received: crate::intervals::Intervals::default(),
            acks: 1,
            data: BTreeMap::new(),
            waking: None,
            marked: BTreeSet::new(),
            counted: [0; 2],
            known_marks: 0,
            mark_recovery: 0,
        }
    }

    fn at(&mut self, time: Nanos, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }

    /// An Initial each way, and the request.
    fn handshake(&mut self) {
        let half = self.transfer.rtt / 2;
        let crypto = || {
            vec![Frame::Crypto {
                offset: 0,
                length: 300,
            }]
        };
        let initial = Kind::Quic(PacketType::Initial);
        self.note(End::Client, initial, 0, (0, Some(half)), 1200, crypto());
        self.note(
            End::Server,
            initial,
            0,
            (half, Some(2 * half)),
            1200,
            crypto(),
        );
        let request = Frame::Stream {
            id: 0,
            offset: 0,
            length: 20,
            fin: true,
        };
        let one_rtt = Kind::Quic(PacketType::OneRtt);
        self.note(
            End::Client,
            one_rtt,
            0,
            (2 * half, Some(3 * half)),
            60,
            vec![request],
        );
        self.at(3 * half, Event::Wake);
    }

    fn note(
        &mut self,
        sender: End,
        kind: Kind,
        number: u64,
        (sent, received): (Nanos, Option<Nanos>),
        size: u32,
        frames: Vec<Frame>,
    ) {
        let start = u32::try_from(self.connection.frames.len()).unwrap();
        self.connection.frames.extend(frames);
        let end = u32::try_from(self.connection.frames.len()).unwrap();
        let mut seen = [None; 2];
        seen[sender as usize] = Some(sent);
        seen[sender.other() as usize] = received;
        self.connection.packets.push(Packet {
            sender,
            kind,
            number: Some(number),
            path_id: 0,
            size,
            first_byte: 0x40,
            ip_size: Some(size + IP_UDP),
            seen,
            ecn: [Some(Codepoint::NotEct); 2],
            fate: if received.is_some() {
                Fate::Delivered
            } else {
                Fate::QueueDrop
            },
            copy: false,
            decoded: true,
            frames: start..end,
        });
    }

    fn happens(&mut self, now: Nanos, event: &Event) {
        match *event {
            Event::Arrival(number) => self.arrival(now, number),
            Event::Ack(number, limit, marks) => {
                self.limit = limit;
                self.acked(number);
                self.hears_of_marks(number, marks);
                if self.transfer.tick == 0 {
                    self.send(now);
                }
            }
            Event::Wake => {
                self.send(now);
                let tick = self.transfer.tick;
                if tick > 0 && (self.next < self.transfer.file || !self.flight.is_empty()) {
                    self.at(now + tick, Event::Wake);
                }
            }
        }
    }

    /// The client acknowledges everything that has arrived, and raises the limit.
    fn arrival(&mut self, now: Nanos, number: u64) {
        match self.arrived.first_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => self.arrived.insert(0, (number, number)),
        }
        let (offset, length) = self.data[&number];
        self.received.add(offset..offset + length);
        if (self.transfer.is_capable)(number) {
            self.counted[usize::from(self.marked.contains(&number))] += 1;
        }
        let [ect0, ce] = self.counted;
        let counts = EcnCounts { ect0, ect1: 0, ce };
        let has_counts = self.transfer.has_counts && ect0 + ce > 0;
        let start = u32::try_from(self.connection.ranges.len()).unwrap();
        let newest = self.arrived.iter().take(RANGES);
        self.connection.ranges.extend(newest);
        let end = u32::try_from(self.connection.ranges.len()).unwrap();
        let mut frames = vec![Frame::Ack {
            path_id: None,
            ranges: start..end,
            delay_us: Some(0),
            ecn: has_counts.then(|| Box::new(counts)),
        }];
        let mut limit = u64::MAX;
        if let Some(window) = self.transfer.credit {
            limit = self.received.contiguous() + window;
            frames.push(Frame::MaxStreamData {
                id: 0,
                maximum: limit,
            });
        }
        let there = now + self.transfer.rtt / 2;
        let one_rtt = Kind::Quic(PacketType::OneRtt);
        self.note(
            End::Client,
            one_rtt,
            self.acks,
            (now, Some(there)),
            40,
            frames,
        );
        self.acks += 1;
        self.at(
            there,
            Event::Ack(number, limit, if has_counts { ce } else { 0 }),
        );
    }

    /// Reduces the window once per round trip: RFC 9002 section 7.3.2.
    fn hears_of_marks(&mut self, number: u64, marks: u64) {
        let has_more = marks > self.known_marks;
        self.known_marks = marks;
        if has_more && (self.transfer.answers_each || number >= self.mark_recovery) {
            self.mark_recovery = self.number;
            self.window = (self.window * self.transfer.after_mark / 100).max(2 * u64::from(SIZE));
            if self.transfer.after_mark < 100 {
                self.threshold = self.window;
            }
        }
    }

    fn acked(&mut self, number: u64) {
        self.largest = self.largest.max(number);
        if self.flight.remove(&number).is_some() && self.window < self.threshold {
            self.window += u64::from(SIZE);
        }
        let largest = self.largest;
        let lost: Vec<u64> = self
            .flight
            .range(..largest.saturating_sub(2))
            .map(|(number, _)| *number)
            .collect();
        for number in lost {
            let offset = self.flight.remove(&number).unwrap();
            // A copy of it may be on its way; then it is not needed again.
            if self.transfer.copies == 1 {
                self.again.push_back(offset);
            }
            if number >= self.recovery {
                self.recovery = self.number;
                self.window =
                    (self.window * self.transfer.after_loss / 100).max(2 * u64::from(SIZE));
                self.threshold = self.window;
            }
        }
    }

    /// Sends what the window, pacing, the credit and the application allow.
    fn send(&mut self, now: Nanos) {
        while (self.flight.len() as u64 + 1) * u64::from(SIZE) <= self.window {
            if self.transfer.is_paced && now < self.paced_until {
                return self.wake(self.paced_until);
            }
            let Some((offset, length)) = self.next_data(now) else {
                return;
            };
            for _ in 0..self.transfer.copies {
                self.send_packet(now, offset, length);
            }
            let window = i64::try_from(self.window).unwrap();
            self.paced_until = now + self.transfer.rtt / 2 * i64::from(SIZE) / window;
        }
    }

    /// The next data to send, losses first.
    fn next_data(&mut self, now: Nanos) -> Option<(u64, u64)> {
        if let Some(offset) = self.again.pop_front() {
            return Some((offset, DATA.min(self.transfer.file - offset)));
        }
        let seconds = u64::try_from(now).unwrap() / SECOND;
        let written = self.transfer.write.saturating_mul(seconds);
        if written < self.transfer.file && written <= self.next {
            self.wake(i64::try_from((seconds + 1) * SECOND).unwrap());
        }
        let end = self.transfer.file.min(self.limit).min(written);
        let length = end.saturating_sub(self.next).min(DATA);
        let offset = self.next;
        self.next += length;
        (length > 0).then_some((offset, length))
    }

    fn wake(&mut self, time: Nanos) {
        if self.transfer.tick == 0 && self.waking != Some(time) {
            self.waking = Some(time);
            self.at(time, Event::Wake);
        }
    }

    fn send_packet(&mut self, now: Nanos, offset: u64, length: u64) {
        let number = self.number;
        self.number += 1;
        self.flight.insert(number, offset);
        self.data.insert(number, (offset, length));
        let size = SIZE - u32::try_from(DATA - length).unwrap();
        let is_capable = (self.transfer.is_capable)(number);
        if is_capable && self.waiting(now) > self.transfer.mark_above {
            self.marked.insert(number);
        }
        let received = self
            .link(now, size + IP_UDP)
            .filter(|_| !(self.transfer.is_lost)(number));
        let frame = Frame::Stream {
            id: 0,
            offset,
            length: u32::try_from(length).unwrap(),
            fin: offset + length == self.transfer.file,
        };
        let one_rtt = Kind::Quic(PacketType::OneRtt);
        self.note(
            End::Server,
            one_rtt,
            number,
            (now, received),
            size,
            vec![frame],
        );
        if is_capable {
            let is_marked = self.marked.contains(&number);
            let arrives = if is_marked {
                Codepoint::Ce
            } else {
                Codepoint::Ect0
            };
            let packet = self.connection.packets.last_mut().unwrap();
            packet.ecn[End::Server as usize] = Some(Codepoint::Ect0);
            packet.ecn[End::Client as usize] = received.map(|_| arrives);
        }
        if let Some(time) = received {
            self.at(time, Event::Arrival(number));
        }
    }

    /// Bytes that wait for the link.
    fn waiting(&self, now: Nanos) -> u64 {
        let time = u128::try_from((self.link_free - now).max(0)).unwrap();
        u64::try_from(time * u128::from(self.transfer.rate / 8) / u128::from(SECOND)).unwrap()
    }

    /// When a packet comes out of the link. None: the queue is full.
    fn link(&mut self, now: Nanos, size: u32) -> Option<Nanos> {
        let bits = |bytes: u64| i64::try_from(bytes * 8 * SECOND / self.transfer.rate).unwrap();
        if self.link_free - now > bits(self.transfer.queue) {
            return None;
        }
        self.link_free = self.link_free.max(now) + bits(u64::from(size));
        Some(self.link_free + self.transfer.rtt / 2)
    }
}
