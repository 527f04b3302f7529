//! A sender, a bottleneck and a receiver, without QUIC: what a controller does, in milliseconds.
//!
//! The sender has all data at once, a token bucket as noq's, and loss detection by packet and time
//! threshold (RFC 9002, section 6.1) with a probe timeout. The bottleneck has a fixed rate and a
//! drop-tail queue. The receiver acknowledges every so many packets, or after 25 ms. ACKs are never
//! lost and take no capacity. A round trip with one packet, the handshake, precedes the data.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

use bentpipe_congestion::{
    Algorithms, CongestionEvent, Controller, Resumption, SavedPath, Settings,
};
use bentpipe_units::{Rate, Span, Time};

/// UDP payload of each packet.
pub const DATAGRAM: u64 = 1452;
const OVERHEAD: u64 = 28;
const MAX_ACK_DELAY: Span = Span::from_millis(25);
const PACKET_THRESHOLD: u64 = 3;

/// A path and what is sent over it.
#[derive(Debug, Clone)]
pub struct Model {
    /// Of the bottleneck.
    pub rate: Rate,
    /// There and back, without any queue.
    pub rtt: Span,
    /// The rate becomes another one at this time.
    pub change: Option<(Time, Rate)>,
    /// A round trip becomes longer by that at this time.
    pub longer: Option<(Time, Span)>,
    /// Of others, who know no congestion control.
    pub cross_traffic: Rate,
    /// All that is sent between these times is lost.
    pub outage: Option<(Time, Time)>,
    /// Between these times packets are marked that wait for as long as that.
    pub marked: Option<(Range<Time>, Span)>,
    /// When the application writes, and how many packets; empty: everything at once.
    pub writes: Vec<(Time, u64)>,
    /// The run is cut at this time.
    pub until: Time,
    /// The capacity of the queue, in packets.
    pub queue: u64,
    /// Every packet is delayed further by up to so much, in order.
    pub jitter: Span,
    /// One packet in so many is lost at random; 0: none.
    pub loss_one_in: u64,
    /// Packets until an ACK is sent at once.
    pub ack_every: u64,
    /// The packets that the controller asks for, if it asks, and not `ack_every`.
    pub ack_as_asked: bool,
    /// The size of the transfer, in bytes.
    pub bytes: u64,
    /// The data need not wait for the handshake.
    pub early: bool,
    /// For jitter and losses.
    pub seed: u64,
}

impl Model {
    /// The scenario `sat`, with a queue in packets: 20 Mbit/s, 600 ms, 10 MiB.
    pub fn sat(queue: u64) -> Self {
        Self {
            rate: Rate::from_bps(20_000_000),
            rtt: Span::from_millis(600),
            change: None,
            longer: None,
            cross_traffic: Rate::from_bps(0),
            outage: None,
            marked: None,
            writes: Vec::new(),
            until: Time::NEVER,
            queue,
            jitter: Span::ZERO,
            loss_one_in: 0,
            ack_every: 2,
            ack_as_asked: false,
            bytes: 10 << 20,
            early: false,
            seed: 1,
        }
    }

    /// Packets that fill the path without waiting.
    pub fn bdp_packets(&self) -> u64 {
        self.rate.bytes_in(self.rtt).bytes() / (DATAGRAM + OVERHEAD)
    }

    /// The time of an ideal sender: a round trip for the handshake, one for the request, then the
    /// rate.
    pub fn limit(&self) -> Span {
        let packets = self.bytes.div_ceil(DATAGRAM);
        self.rtt * 2 + transmission(self.rate) * packets
    }

    fn rate_at(&self, now: Time) -> Rate {
        match self.change {
            Some((from, rate)) if now >= from => rate,
            _ => self.rate,
        }
    }

    /// Sends everything.
    pub fn run(&self, cc: &str, ss: &str) -> History {
        let algorithms = Algorithms::new(cc, ss).expect("the test names algorithms that exist");
        let controller = algorithms.controller(Settings::default(), DATAGRAM, Time::ZERO);
        self.run_with(controller)
    }

    /// Sends everything under this controller, which is new.
    pub fn run_with(&self, controller: Controller) -> History {
        let mut run = Run::new(self, controller, Time::ZERO);
        while !run.is_over() {
            run.step();
        }
        run.end()
    }

    /// Two senders, by their `cc` and `ss`, share the bottleneck; each sends everything, the second
    /// one from `later` on.
    pub fn run_two(&self, senders: [(&str, &str); 2], later: Time) -> [History; 2] {
        let other = Self {
            seed: self.seed + 1000,
            ..self.clone()
        };
        let begin = |model, (cc, ss): (&str, &str), start| {
            let algorithms = Algorithms::new(cc, ss).expect("the test names algorithms that exist");
            let controller = algorithms.controller(Settings::default(), DATAGRAM, start);
            Run::new(model, controller, start)
        };
        let mut runs = [
            begin(self, senders[0], Time::ZERO),
            begin(&other, senders[1], later),
        ];
        let mut bottleneck_free = Time::ZERO;
        loop {
            let running = runs.iter_mut().filter(|run| !run.is_over());
            let Some(next) = running.min_by_key(|run| run.next_event()) else {
                return runs.map(Run::end);
            };
            next.bottleneck_free = bottleneck_free;
            next.step();
            bottleneck_free = next.bottleneck_free;
        }
    }
}

/// Of one packet.
fn transmission(rate: Rate) -> Span {
    let bits = (DATAGRAM + OVERHEAD) * 8;
    Span::from_nanos(bits * 1_000_000_000 / rate.bps())
}

/// The event.
#[derive(Debug, Clone)]
pub struct History {
    /// The window, the bytes in flight and the phase at the end of each round trip time.
    pub samples: Vec<Sample>,
    /// The phases in their order.
    pub phases: Vec<&'static str>,
    /// When everything had arrived.
    pub completion: Time,
    /// Packets that the queue dropped.
    pub drops: u64,
    /// Packets that were sent.
    pub sent: u64,
    /// The most packets that ever waited.
    pub longest_queue: u64,
    /// The path as the controller would save it.
    pub observed: Option<SavedPath>,
    /// The outcome of a saved path, and whether that may still be right.
    pub resumption: Resumption,
    pub confirms: bool,
}

/// The state of the sender at some time.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub at: Time,
    pub window: u64,
    pub phase: &'static str,
    /// Packets that have been acknowledged, and that were lost.
    pub delivered: u64,
    pub lost: u64,
}

impl History {
    /// The limit's share of the time taken, in percent.
    pub fn share(&self, model: &Model) -> u64 {
        let taken = (self.completion - Time::ZERO).as_nanos();
        model.limit().as_nanos() * 100 / taken
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Handshake,
    Arrival(u64),
    AckTimer(u64),
    Ack(Vec<u64>),
    Pace,
    LossTimer,
    Write(u64),
    Sample,
}

#[derive(Debug)]
struct Run<'a> {
    model: &'a Model,
    controller: Controller,
    history: History,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    order: u64,
    /// By number: when it was sent.
    in_flight: BTreeMap<u64, Time>,
    next_number: u64,
    /// Packets that still have to be sent, for the first time or again.
    to_send: u64,
    to_arrive: u64,
    largest_acked: Option<u64>,
    bottleneck_free: Time,
    next_of_others: Time,
    last_arrival: Time,
    unacked: Vec<u64>,
    /// Numbers of packets that were marked.
    marked: BTreeSet<u64>,
    ack_timer: u64,
    /// When the probe timeout is due.
    probe_at: Time,
    /// When the timer for it goes off, which may be too early.
    loss_timer: Time,
    tokens: u64,
    refilled: Time,
    pacing: bool,
    random: u64,
    probes: u32,
}

impl<'a> Run<'a> {
    /// Nothing has been sent yet; the handshake leaves at `start`.
    fn new(model: &'a Model, controller: Controller, start: Time) -> Self {
        let writes = model.writes.iter();
        let packets = match writes.map(|&(_, packets)| packets).sum() {
            0 => model.bytes.div_ceil(DATAGRAM),
            written => written,
        };
        let history = History {
            samples: Vec::new(),
            phases: Vec::new(),
            completion: Time::NEVER,
            drops: 0,
            sent: 0,
            longest_queue: 0,
            observed: None,
            resumption: Resumption::default(),
            confirms: false,
        };
        let mut run = Self {
            model,
            controller,
            history,
            events: BinaryHeap::new(),
            order: 0,
            in_flight: BTreeMap::new(),
            next_number: 0,
            to_send: if model.writes.is_empty() { packets } else { 0 },
            to_arrive: packets,
            largest_acked: None,
            bottleneck_free: Time::ZERO,
            next_of_others: Time::ZERO,
            last_arrival: Time::ZERO,
            unacked: Vec::new(),
            marked: BTreeSet::new(),
            ack_timer: 0,
            probe_at: Time::NEVER,
            loss_timer: Time::NEVER,
            tokens: 10 * DATAGRAM,
            refilled: start,
            pacing: false,
            random: model.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            probes: 0,
        };
        run.at(start, Event::Handshake);
        run.at(start + model.rtt * 2, Event::Sample);
        for &(time, packets) in &model.writes {
            run.at(time, Event::Write(packets));
        }
        run
    }

    fn is_over(&self) -> bool {
        self.history.completion != Time::NEVER || self.next_event() > self.model.until
    }

    fn next_event(&self) -> Time {
        let next = self.events.peek();
        next.map_or(Time::NEVER, |Reverse((time, _, _))| *time)
    }

    fn step(&mut self) {
        let Some(Reverse((now, _, event))) = self.events.pop() else {
            panic!("nothing will ever happen again: {self:?}");
        };
        assert!(
            now < Time::ZERO + Span::from_secs(3600),
            "an hour has passed: {self:?}"
        );
        self.handle(now, event);
        let phase = self.controller.phase();
        if self.history.phases.last() != Some(&phase) {
            self.history.phases.push(phase);
        }
    }

    fn end(mut self) -> History {
        self.history.observed = self.controller.observed();
        self.history.resumption = self.controller.resumption();
        let saved = self.history.resumption.saved;
        self.history.confirms = saved.is_some_and(|it| self.controller.confirms(&it));
        self.history
    }

    fn at(&mut self, time: Time, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, event)));
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below.max(1)
    }

    fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Handshake => {
                self.send(now, true);
                self.transmit(now);
            }
            Event::Arrival(number) => self.arrive(now, number),
            Event::AckTimer(id) if id == self.ack_timer => self.acknowledge(now),
            Event::Ack(numbers) => self.hear(now, &numbers),
            Event::Pace => {
                self.pacing = false;
                self.transmit(now);
            }
            Event::LossTimer => self.on_loss_timer(now),
            Event::AckTimer(_) => {}
            Event::Write(packets) => {
                self.to_send += packets;
                self.transmit(now);
            }
            Event::Sample => {
                let path = self.controller.path();
                let sample = Sample {
                    at: now,
                    window: self.controller.window(),
                    phase: self.controller.phase(),
                    delivered: path.delivered / DATAGRAM,
                    lost: path.lost / DATAGRAM,
                };
                self.history.samples.push(sample);
                self.at(now + self.model.rtt, Event::Sample);
            }
        }
    }

    fn transmit(&mut self, now: Time) {
        let may_begin = self.model.early || self.largest_acked.is_some();
        while self.to_send > 0 && may_begin {
            let used = self.in_flight.len() as u64 * DATAGRAM;
            if used + DATAGRAM > self.controller.window() || self.pacing {
                return;
            }
            if let Some(wait) = self.pacer_delay(now) {
                self.pacing = true;
                self.at(now + wait, Event::Pace);
                return;
            }
            self.to_send -= 1;
            self.send(now, false);
        }
    }

    /// As noq's pacer for a controller that names a rate.
    fn pacer_delay(&mut self, now: Time) -> Option<Span> {
        let rate = self.controller.pacing_rate();
        let in_ms = |ms: u64| u64::try_from(u128::from(rate) * u128::from(ms) / 1000).unwrap();
        let target = in_ms(2).clamp(10 * DATAGRAM, 256 * DATAGRAM);
        let capacity = target.min(in_ms(10).max(DATAGRAM));
        self.tokens = self.tokens.min(capacity);
        let elapsed = u128::from((now - self.refilled).as_nanos());
        let earned = u128::from(rate) * elapsed / 1_000_000_000;
        if earned > 0 {
            let filled = u128::from(self.tokens) + earned;
            self.tokens = u64::try_from(filled.min(u128::from(capacity))).unwrap();
            self.refilled = now;
        }
        if self.tokens >= DATAGRAM {
            self.tokens -= DATAGRAM;
            return None;
        }
        let missing = u128::from(DATAGRAM - self.tokens) * 1_000_000_000;
        let nanos = u64::try_from(missing.div_ceil(u128::from(rate))).unwrap();
        Some(Span::from_nanos(nanos))
    }

    fn send(&mut self, now: Time, handshake: bool) {
        let number = self.next_number;
        self.next_number += 1;
        self.history.sent += 1;
        self.controller.on_sent(now, number, DATAGRAM);
        self.in_flight.insert(number, now);
        self.set_loss_timer(now);
        self.enqueue_others(now);
        let waits = self.bottleneck_free - now;
        if !self.enqueue(now) {
            self.history.drops += 1;
            return;
        }
        let outage = self.model.outage;
        if outage.is_some_and(|(begin, end)| now >= begin && now < end) {
            return;
        }
        let marked = self.model.marked.as_ref();
        if marked.is_some_and(|(during, least)| during.contains(&now) && waits >= *least) {
            self.marked.insert(number);
        }
        if !handshake && self.model.loss_one_in > 0 && self.random(self.model.loss_one_in) == 0 {
            return;
        }
        let jitter = self.random(self.model.jitter.as_nanos() + 1);
        let longer = self.model.longer.filter(|&(from, _)| now >= from);
        let longer = longer.map_or(0, |(_, by)| by.as_nanos());
        let half = Span::from_nanos(self.model.rtt.as_nanos() / 2 + jitter + longer);
        self.last_arrival = self.last_arrival.max(self.bottleneck_free + half);
        self.at(self.last_arrival, Event::Arrival(number));
    }

    /// False: the queue overflowed.
    fn enqueue(&mut self, now: Time) -> bool {
        let transmission = transmission(self.model.rate_at(now));
        let waiting = (self.bottleneck_free - now).as_nanos() / transmission.as_nanos();
        self.history.longest_queue = self.history.longest_queue.max(waiting);
        if waiting > self.model.queue {
            return false;
        }
        self.bottleneck_free = self.bottleneck_free.max(now) + transmission;
        true
    }

    fn enqueue_others(&mut self, now: Time) {
        if self.model.cross_traffic.bps() == 0 {
            return;
        }
        while self.next_of_others <= now {
            self.enqueue(self.next_of_others);
            // At random, or else the queue would always drop the packets of the same sender.
            let twice = transmission(self.model.cross_traffic) * 2;
            let distance = self.random(twice.as_nanos());
            self.next_of_others += Span::from_nanos(distance);
        }
    }

    fn arrive(&mut self, now: Time, number: u64) {
        self.unacked.push(number);
        let asked = self.controller.packets_per_ack();
        let asked = asked.filter(|_| self.model.ack_as_asked);
        let every = asked.unwrap_or(self.model.ack_every);
        if number == 0 || self.unacked.len() as u64 >= every {
            self.acknowledge(now);
        } else if self.unacked.len() == 1 {
            self.ack_timer += 1;
            self.at(now + MAX_ACK_DELAY, Event::AckTimer(self.ack_timer));
        }
        if number > 0 {
            self.to_arrive -= 1;
        }
        if self.to_arrive == 0 {
            self.history.completion = now;
        }
    }

    fn acknowledge(&mut self, now: Time) {
        let numbers = std::mem::take(&mut self.unacked);
        self.ack_timer += 1;
        if !numbers.is_empty() {
            let half = Span::from_nanos(self.model.rtt.as_nanos() / 2);
            self.at(now + half, Event::Ack(numbers));
        }
    }

    fn hear(&mut self, now: Time, numbers: &[u64]) {
        self.probes = 0;
        let mut marked = None;
        for &number in numbers {
            if let Some(sent) = self.in_flight.remove(&number) {
                if self.marked.remove(&number) {
                    marked = Some(sent);
                }
                self.controller.on_ack(now, number, sent);
            } else {
                // It had been thought lost, and is sent once more.
                self.to_send = self.to_send.saturating_sub(1);
            }
            self.largest_acked = self.largest_acked.max(Some(number));
        }
        let in_flight = self.in_flight.len() as u64 * DATAGRAM;
        let limited = self.to_send == 0 || self.next_number == 1;
        self.controller.on_acks_end(now, in_flight, limited);
        if let Some(sent) = marked {
            self.controller.on_congestion(&CongestionEvent {
                now,
                sent,
                lost: 0,
                ecn: true,
                persistent: false,
            });
        }
        self.detect_losses(now);
        self.set_loss_timer(now);
        self.transmit(now);
    }

    fn detect_losses(&mut self, now: Time) {
        let largest = self.largest_acked.unwrap_or(0);
        let rtt = self.controller.path().rtt;
        let loss_delay = Span::from_nanos(rtt.smoothed.max(rtt.latest).as_nanos() / 8 * 9);
        let is_lost = |(number, sent): &(&u64, &Time)| {
            **number + PACKET_THRESHOLD <= largest || now - **sent >= loss_delay
        };
        let older = self.in_flight.range(..largest);
        let lost: Vec<_> = older.filter(is_lost).map(|(n, t)| (*n, *t)).collect();
        let Some(&(_, sent)) = lost.last() else {
            return;
        };
        for (number, _) in &lost {
            self.in_flight.remove(number);
            self.controller.on_lost(now, *number, DATAGRAM);
            self.to_send += 1;
        }
        self.controller.on_congestion(&CongestionEvent {
            now,
            sent,
            lost: lost.len() as u64 * DATAGRAM,
            ecn: false,
            persistent: false,
        });
    }

    fn set_loss_timer(&mut self, now: Time) {
        let rtt = self.controller.path().rtt;
        let timeout = match rtt.samples {
            0 => Span::from_secs(1),
            _ => rtt.smoothed + (rtt.variation * 4).max(Span::from_millis(1)) + MAX_ACK_DELAY,
        };
        let backoff = 1 << self.probes.min(6);
        self.probe_at = now + timeout * backoff;
        self.start_loss_timer();
    }

    /// One timer is on its way, unless the timeout has become shorter: else there would be one for
    /// each packet.
    fn start_loss_timer(&mut self) {
        if self.probe_at < self.loss_timer {
            self.loss_timer = self.probe_at;
            self.at(self.probe_at, Event::LossTimer);
        }
    }

    /// The probe timeout: whatever is in flight is sent once more, in one packet.
    fn on_loss_timer(&mut self, now: Time) {
        if now != self.loss_timer {
            return;
        }
        self.loss_timer = Time::NEVER;
        if now < self.probe_at {
            self.start_loss_timer();
            return;
        }
        self.probe_at = Time::NEVER;
        if self.in_flight.is_empty() {
            return;
        }
        self.probes += 1;
        self.send_probe(now);
    }

    fn send_probe(&mut self, now: Time) {
        // A probe carries the data of the oldest packet in flight.
        if let Some((&oldest, _)) = self.in_flight.first_key_value() {
            self.in_flight.remove(&oldest);
            self.controller.on_lost(now, oldest, DATAGRAM);
            self.send(now, false);
        }
    }
}
