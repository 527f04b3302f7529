//! The return carrier of DVB-RCS2: bursts of terminals in slots that the NCC assigns.
//!
//! Superframes follow each other from time 0 on. When one begins, the requests are known that take
//! effect with it, its slots are assigned (`assignment.rs`), and each terminal has the waveform of
//! its bursts in it (ACM by Es/N0, as the forward carrier's MODCODs). A terminal fills its bursts
//! with what waits when they begin; packets arrive with the end of the burst that completes them,
//! and are lost with any that is not received. A slot in which its terminal has nothing stays
//! empty.
//!
//! Requests (`requests.rs`) go along with the first burst of a superframe; in a slot of the
//! terminal's own at intervals; or, from a terminal without a slot in a superframe and without a
//! request on its way, by slotted ALOHA, where two in one slot collide. They take no capacity:
//! slots for them alone lie beside those for traffic, and begin with the superframe.
//!
//! Simplifications: the plan of a superframe is never lost; whatever Es/N0 is when a burst begins
//! holds until it ends; bursts of requests alone are received where the most robust waveform of
//! the carrier's bursts is. A terminal with packets that has sent no burst for a minute logs off
//! and drops them.

use std::collections::VecDeque;

use bentpipe_units::{Decibel, Size, Span, Time};

use super::acm::Adaptation;
use super::assignment::{Assigned, ControlCentre, first};
use super::backlog::Backlog;
use super::rcs2::{ControlChannel, Rcs2, ReturnTerminal};
use super::requests::{Demand, RequestOutcome, Requester, Sending, Waiting};
use super::rle::Rle;
use super::waveforms::Waveform;
use crate::aqm::discipline_of_any;
use crate::events::RequestWait;
use crate::node::{Node, Step, Transit};
use crate::packet::CapacityRequests;
use crate::random::LinkSeed;
use crate::rate::LinkRate;
use crate::scenario::DirectionConfig;

/// After so long without a burst a terminal logs off.
const PATIENCE: Span = Span::from_secs(60);

/// The carrier, with a queue at each terminal.
pub(crate) struct ReturnCarrier {
    carrier: Rcs2,
    /// The trial's terminal is the first.
    terminals: Vec<Station>,
    centre: ControlCentre,
    /// The number of the next superframe whose slots are to be assigned.
    next: u64,
    /// The slots that have not begun of the superframe before that.
    slots: VecDeque<Slot>,
    dropped: VecDeque<Transit>,
    /// Packets of bursts that have begun.
    leaving: VecDeque<(Transit, Step)>,
    max_queue_bytes: u64,
}

/// A slot for one burst.
struct Slot {
    begin: Time,
    end: Time,
    terminal: usize,
}

/// A terminal.
struct Station {
    backlog: Backlog<Rle>,
    requester: Requester,
    adaptation: Adaptation<Waveform>,
    /// The waveform of its bursts in the present superframe.
    waveform: &'static Waveform,
    /// Its slots in the present superframe that have not begun.
    slots: u64,
    /// The last superframe in which a request went along with a burst.
    asked_in: Option<u64>,
    /// When it last sent a burst, or had nothing to send.
    served: Time,
}

impl ReturnCarrier {
    /// The carrier of a link; None if it has another kind of rate.
    pub fn new(config: &DirectionConfig, bdp: Size, seed: LinkSeed) -> Option<Self> {
        let Some(LinkRate::Rcs2(carrier)) = &config.rate else {
            return None;
        };
        let rate = carrier.nominal();
        let stations = carrier.terminals().enumerate().map(|(number, terminal)| {
            let queue = discipline_of_any(&config.queue, rate, bdp, seed.terminal(number));
            let backlog = Backlog::new(queue);
            Station::new(backlog, carrier, terminal, seed, number)
        });
        Some(Self {
            terminals: stations.collect(),
            centre: ControlCentre::new(carrier),
            carrier: Rcs2::clone(carrier),
            next: 0,
            slots: VecDeque::new(),
            dropped: VecDeque::new(),
            leaving: VecDeque::new(),
            max_queue_bytes: 0,
        })
    }

    fn is_idle(&self) -> bool {
        self.terminals.iter().all(|it| it.backlog.is_empty())
    }

    fn begin_of(&self, superframe: u64) -> Time {
        Time::ZERO + self.carrier.superframe * superframe
    }

    /// Assigns the slots of the next superframe.
    fn plan(&mut self) {
        let number = self.next;
        let begin = self.begin_of(number);
        self.next += 1;
        if self.is_idle() {
            self.centre.forget_owed();
        }
        self.answer_requests(number);
        for station in &mut self.terminals {
            station.waveform = station.adaptation.at(begin).0;
            station.log_off(begin, &mut self.dropped);
        }
        let payloads: Vec<u64> = self.terminals.iter().map(Station::payload).collect();
        let assigned = self.centre.assign(number, &payloads);
        for (station, assigned) in self.terminals.iter_mut().zip(&assigned) {
            station.slots = assigned.slots;
            let bytes = assigned.by_volume * station.payload();
            let is_granted = assigned.by_rate > 0;
            station.requester.assigned(begin, bytes, is_granted);
        }
        self.place(number, &assigned);
        match self.carrier.signalling.channel {
            ControlChannel::Dedicated(every) => self.ask_in_own_slots(number, every),
            ControlChannel::Contention { slots: 0, .. } => {}
            ControlChannel::Contention { slots, .. } => self.ask_in_contention(number, slots),
        }
    }

    /// Requests take effect that are granted with a superframe.
    fn answer_requests(&mut self, superframe: u64) {
        for (index, station) in self.terminals.iter_mut().enumerate() {
            loop {
                let rate = self.centre.requested_rate(index);
                let Some(request) = station.requester.answer(superframe, rate) else {
                    break;
                };
                if request.outcome == RequestOutcome::Received {
                    let demand = request.demand;
                    self.centre
                        .hear(index, superframe, demand.bps, demand.volume());
                }
            }
        }
    }

    /// Gives the terminals their slots, carrier by carrier. What does not fit on one goes on where
    /// the next begins, so no terminal sends on two at a time.
    fn place(&mut self, superframe: u64, assigned: &[Assigned]) {
        let begin = self.begin_of(superframe);
        let (terminals, on_one) = (assigned.len(), self.carrier.slots_of_a_carrier());
        let first = first(superframe, terminals);
        let mut places = Vec::new();
        for terminal in (first..terminals).chain(0..first) {
            for _ in 0..assigned[terminal].slots {
                let number = places.len() as u64;
                places.push((number % on_one, number / on_one, terminal));
            }
        }
        places.sort_unstable();
        let slots = places.into_iter().map(|(slot, _, terminal)| Slot {
            begin: begin + self.carrier.slot_begins(slot),
            end: begin + self.carrier.slot_begins(slot + 1),
            terminal,
        });
        self.slots = slots.collect();
    }

    /// Terminals ask in separate slots, spread over the interval between two.
    fn ask_in_own_slots(&mut self, superframe: u64, every: Span) {
        let period = every
            .as_nanos()
            .div_ceil(self.carrier.superframe.as_nanos());
        let (begin, count) = (self.begin_of(superframe), self.terminals.len() as u64);
        let robust = self.carrier.least_threshold();
        for (number, station) in (0..).zip(&mut self.terminals) {
            if superframe % period != number * period / count {
                continue;
            }
            if let Some(demand) = station.demand(begin, superframe) {
                let sending = Sending {
                    at: begin,
                    superframe,
                    outcome: station.outcome(begin, robust),
                    contended: false,
                };
                station.requester.send(demand, sending);
                station.asked_in = Some(superframe);
            }
        }
    }

    /// Terminals ask that have no other way now.
    fn ask_in_contention(&mut self, superframe: u64, slots: u64) {
        let (begin, robust) = (self.begin_of(superframe), self.carrier.least_threshold());
        let mut contenders: Vec<(u64, usize, Demand)> = Vec::new();
        for (index, station) in self.terminals.iter_mut().enumerate() {
            let demand = station.demand(begin, superframe);
            let has_burst = station.slots > 0 && self.carrier.signalling.piggyback;
            let demand = demand.filter(|_| !has_burst);
            let demand = demand.filter(|it| station.requester.contends(superframe, *it));
            if let Some(demand) = demand {
                contenders.push((station.requester.draw_slot(slots), index, demand));
            }
        }
        for (slot, index, demand) in &contenders {
            let there = contenders.iter().filter(|it| it.0 == *slot).count();
            let station = &mut self.terminals[*index];
            let outcome = match there {
                1 => station.outcome(begin, robust),
                _ => RequestOutcome::Collided,
            };
            let sending = Sending {
                at: begin,
                superframe,
                outcome,
                contended: true,
            };
            station.requester.send(*demand, sending);
        }
    }

    /// The terminal of a slot that begins sends its burst, if it has anything to send.
    fn send_burst(&mut self, slot: &Slot) {
        let superframe = self.next - 1;
        let station = &mut self.terminals[slot.terminal];
        if station.backlog.is_empty() {
            station.slots -= 1;
            return;
        }
        let is_lost = !station.adaptation.is_received(station.waveform, slot.begin);
        if self.carrier.signalling.piggyback && station.asked_in != Some(superframe) {
            station.asked_in = Some(superframe);
            if let Some(demand) = station.demand(slot.begin, superframe) {
                let sending = Sending {
                    at: slot.begin,
                    superframe,
                    outcome: RequestOutcome::of(!is_lost),
                    contended: false,
                };
                station.requester.send(demand, sending);
            }
        }
        station.slots -= 1;
        station.served = slot.begin;
        let room = station.payload();
        let complete = station
            .backlog
            .fill(slot.begin, room, is_lost, &mut self.dropped);
        let steps = complete.into_iter().map(|it| it.ends(slot.end));
        self.leaving.extend(steps);
    }

    /// Nothing has waited: what was to begin by now has done so with empty slots.
    fn catch_up(&mut self, now: Time) {
        let present = now.as_nanos() / self.carrier.superframe.as_nanos();
        while self.next <= present {
            let is_known = self.centre.has_requests(self.next)
                || self.terminals.iter().any(|it| it.requester.is_waiting());
            if !is_known {
                self.next = present;
            }
            self.plan();
        }
        while self.slots.front().is_some_and(|it| it.begin <= now) {
            let slot = self.slots.pop_front().expect("there is one");
            self.terminals[slot.terminal].slots -= 1;
        }
    }

    /// When something may happen to what waits; NEVER if nothing waits.
    fn next_step(&self) -> Time {
        if self.is_idle() {
            return Time::NEVER;
        }
        let is_used = |it: &&Slot| !self.terminals[it.terminal].backlog.is_empty();
        let slot = self.slots.iter().find(is_used);
        slot.map_or_else(|| self.begin_of(self.next), |it| it.begin)
    }
}

impl Station {
    fn new(
        backlog: Backlog<Rle>,
        carrier: &Rcs2,
        terminal: &ReturnTerminal,
        seed: LinkSeed,
        number: usize,
    ) -> Self {
        let mut adaptation = carrier.adaptation(terminal);
        Self {
            backlog,
            requester: Requester::new(carrier, terminal, seed.requests(number)),
            waveform: adaptation.at(Time::ZERO).0,
            adaptation,
            slots: 0,
            asked_in: None,
            served: Time::ZERO,
        }
    }

    fn payload(&self) -> u64 {
        self.waveform.payload_bytes
    }

    /// The capacity that it needs at a time; None: nothing that it has not requested, or nothing
    /// waits.
    fn demand(&self, now: Time, superframe: u64) -> Option<Demand> {
        if self.backlog.is_empty() {
            return None;
        }
        let (bytes, packets) = self.backlog.waiting();
        let waiting = Waiting {
            bytes,
            packets,
            payload: self.payload(),
            slots: self.slots,
        };
        self.requester.demand(now, superframe, waiting)
    }

    /// The outcome of a burst that has only a request, and is received from a threshold on.
    fn outcome(&self, at: Time, threshold: Decibel) -> RequestOutcome {
        RequestOutcome::of(self.adaptation.es_n0(at) >= threshold)
    }

    /// Drops what has waited in vain for too long.
    fn log_off(&mut self, now: Time, dropped: &mut VecDeque<Transit>) {
        if !self.backlog.is_empty() && now - self.served > PATIENCE {
            self.backlog.drop_all(now, dropped);
        }
    }
}

impl Node for ReturnCarrier {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        if self.is_idle() {
            self.catch_up(now);
        }
        let number = transit.terminal;
        let station = &mut self.terminals[number];
        let is_first = station.backlog.is_empty();
        if is_first {
            station.served = now;
        }
        let ip_bytes = transit.packet.ip_bytes;
        station.requester.arrive(now, ip_bytes, is_first);
        station.backlog.enqueue(now, *transit, &mut self.dropped);
        if number == 0 {
            let waiting = station.backlog.queue_bytes();
            self.max_queue_bytes = self.max_queue_bytes.max(waiting);
        }
        Step::Hold
    }

    fn reorders(&self) -> bool {
        self.terminals[0].backlog.reorders()
    }

    fn is_shared(&self) -> bool {
        self.terminals.len() > 1
    }

    fn holds(&self) -> bool {
        true
    }

    fn next_event(&self) -> Time {
        self.next_step()
    }

    fn release(&mut self, until: Time) -> Option<(Transit, Step)> {
        loop {
            if let Some(transit) = self.dropped.pop_front() {
                return Some((transit, Step::Drop));
            }
            if let Some(leaving) = self.leaving.pop_front() {
                return Some(leaving);
            }
            if self.is_idle() {
                return None;
            }
            match self.slots.front() {
                Some(slot) if slot.begin > until => return None,
                Some(_) => {
                    let slot = self.slots.pop_front().expect("there is one");
                    self.send_burst(&slot);
                }
                None if self.begin_of(self.next) > until => return None,
                None => self.plan(),
            }
        }
    }

    fn queue_bytes(&self, _: Time) -> u64 {
        self.terminals[0].backlog.queue_bytes()
    }

    fn max_queue_bytes(&self) -> u64 {
        self.max_queue_bytes
    }

    fn requests(&self) -> Option<CapacityRequests> {
        Some(self.terminals[0].requester.counts())
    }

    fn answered_requests(&self) -> &[RequestWait] {
        self.terminals[0].requester.answered()
    }
}
