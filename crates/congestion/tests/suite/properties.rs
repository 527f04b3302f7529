//! Properties of every composition, whatever a stack reports.

use std::collections::BTreeMap;

use bentpipe_congestion::{Algorithms, CongestionEvent, Controller, Settings};
use bentpipe_units::{Span, Time};
use proptest::prelude::*;

const DATAGRAM: u64 = 1200;
const MOST: u64 = 300 * DATAGRAM;
const CAP: u64 = 2_000_000;

/// The next event; the numbers choose among the packets in flight, or time in milliseconds.
#[derive(Debug, Clone)]
enum Event {
    Send(u8),
    Ack { from: u16, count: u8, limited: bool },
    Lose { from: u16, count: u8, ecn: bool },
    Persistent,
    Spurious,
    UnknownAck(u64),
    UnknownLoss(u64),
    Wait(u16),
    Size(u16),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (1..40u8).prop_map(Event::Send),
        8 => (0..20u16, 1..12u8, any::<bool>())
            .prop_map(|(from, count, limited)| Event::Ack { from, count, limited }),
        2 => (0..20u16, 1..4u8, any::<bool>())
            .prop_map(|(from, count, ecn)| Event::Lose { from, count, ecn }),
        1 => Just(Event::Persistent),
        1 => Just(Event::Spurious),
        1 => any::<u64>().prop_map(Event::UnknownAck),
        1 => any::<u64>().prop_map(Event::UnknownLoss),
        6 => (0..400u16).prop_map(Event::Wait),
        1 => (1200..1500u16).prop_map(Event::Size),
    ]
}

/// A stack that tells what happens.
struct Stack {
    controller: Controller,
    now: Time,
    next: u64,
    /// When each packet in flight was sent, and its size.
    flight: BTreeMap<u64, (Time, u64)>,
    datagram: u64,
    /// When the last reduction was.
    reduced: Option<Time>,
}

impl Stack {
    fn new(cc: &str, ss: &str) -> Self {
        let settings = Settings {
            maximum_window: MOST,
            maximum_rate: CAP,
            ..Settings::default()
        };
        let algorithms = Algorithms::new(cc, ss).unwrap();
        let now = Time::ZERO + Span::from_secs(1);
        Self {
            controller: algorithms.controller(settings, DATAGRAM, now),
            now,
            next: 0,
            flight: BTreeMap::new(),
            datagram: DATAGRAM,
            reduced: None,
        }
    }

    fn in_flight(&self) -> u64 {
        self.flight.values().map(|(_, bytes)| bytes).sum()
    }

    fn pick(&self, from: u16, count: u8) -> Vec<(u64, Time, u64)> {
        let chosen = self.flight.iter().skip(from.into()).take(count.into());
        chosen
            .map(|(number, (sent, bytes))| (*number, *sent, *bytes))
            .collect()
    }

    fn send(&mut self, packets: u8) {
        for _ in 0..packets {
            if self.in_flight() + self.datagram > self.controller.window() {
                return;
            }
            self.controller.on_sent(self.now, self.next, self.datagram);
            self.flight.insert(self.next, (self.now, self.datagram));
            self.next += 1;
        }
    }

    fn ack(&mut self, from: u16, count: u8, limited: bool) {
        for (number, sent, _) in self.pick(from, count) {
            self.controller.on_ack(self.now, number, sent);
            // Once more: it has no effect.
            self.controller.on_ack(self.now, number, sent);
            self.flight.remove(&number);
        }
        let in_flight = self.in_flight();
        self.controller.on_acks_end(self.now, in_flight, limited);
        assert_eq!(self.controller.path().in_flight, in_flight);
    }

    fn lose(&mut self, from: u16, count: u8, ecn: bool, persistent: bool) {
        let lost = self.pick(from, count);
        let Some(&(_, sent, _)) = lost.last() else {
            return;
        };
        let before = self.controller.window();
        for (number, _, bytes) in &lost {
            self.controller.on_lost(self.now, *number, *bytes);
            self.controller.on_lost(self.now, *number, *bytes);
            self.flight.remove(number);
        }
        self.controller.on_congestion(&CongestionEvent {
            now: self.now,
            sent,
            lost: lost.iter().map(|(_, _, bytes)| bytes).sum(),
            ecn,
            persistent,
        });
        let after = self.controller.window();
        if after < before && !persistent {
            assert!(
                self.reduced.is_none_or(|reduced| sent > reduced),
                "reduced twice in a round trip, from {before} to {after}"
            );
            self.reduced = Some(self.now);
        }
    }

    fn handle(&mut self, event: &Event) {
        match *event {
            Event::Send(packets) => self.send(packets),
            Event::Ack {
                from,
                count,
                limited,
            } => self.ack(from, count, limited),
            Event::Lose { from, count, ecn } => self.lose(from, count, ecn, false),
            Event::Persistent => {
                let heard = !self.flight.is_empty();
                self.lose(0, u8::MAX, false, true);
                if heard {
                    self.reduced = None;
                }
            }
            Event::Spurious => {
                self.controller.on_spurious_congestion();
                // The recovery period is taken back too.
                self.reduced = None;
            }
            Event::UnknownAck(number) => {
                self.controller
                    .on_ack(self.now, number.max(self.next), self.now);
                self.controller
                    .on_acks_end(self.now, self.in_flight(), false);
            }
            Event::UnknownLoss(number) => {
                self.controller
                    .on_lost(self.now, number.max(self.next), self.datagram);
            }
            Event::Wait(milliseconds) => {
                self.now += Span::from_millis(milliseconds.into());
            }
            Event::Size(bytes) => {
                self.datagram = bytes.into();
                self.controller.on_datagram_size(self.datagram);
            }
        }
    }

    fn check(&self) {
        let path = self.controller.path();
        let least = 2 * self.datagram;
        let most = MOST.max(least);
        assert!((least..=most).contains(&path.window), "{}", path.window);
        assert!((least..=most).contains(&self.controller.window()));
        assert!((1..=CAP).contains(&self.controller.pacing_rate()));
        assert!(path.ssthresh.is_none_or(|it| it >= 2 * DATAGRAM));
        // Packets that nobody has told of for three round trips are forgotten, and count as
        // neither.
        assert!(path.delivered + path.lost <= path.sent);
        assert!(path.in_flight <= path.sent);
    }
}

fn every_composition() -> impl Iterator<Item = (&'static str, &'static str)> {
    let slow_starts = Algorithms::slow_starts();
    Algorithms::avoidances()
        .into_iter()
        .flat_map(move |cc| slow_starts.clone().into_iter().map(move |ss| (cc, ss)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn bounds_hold_whatever_happens(events in prop::collection::vec(event(), 1..200)) {
        for (cc, ss) in every_composition() {
            let mut stack = Stack::new(cc, ss);
            for event in &events {
                stack.handle(event);
                stack.check();
            }
        }
    }
}

/// A stack whose slow start has gone on for three round trips.
fn grown(cc: &str, ss: &str) -> Stack {
    let mut stack = Stack::new(cc, ss);
    for _ in 0..4 {
        stack.send(u8::MAX);
        stack.now += Span::from_millis(600);
        stack.ack(0, 10, false);
        stack.send(u8::MAX);
    }
    stack
}

#[test]
fn persistent_congestion_leaves_the_smallest_window_and_slow_start() {
    for (cc, ss) in every_composition() {
        let mut stack = grown(cc, ss);
        stack.lose(0, u8::MAX, false, true);
        assert_eq!(stack.controller.window(), 2 * DATAGRAM, "{cc}, {ss}");
        assert_eq!(stack.controller.phase(), "slow_start", "{cc}, {ss}");
        stack.send(2);
        stack.now += Span::from_millis(600);
        stack.ack(0, 2, false);
        assert_eq!(stack.controller.window(), 4 * DATAGRAM, "{cc}, {ss}");
    }
}

#[test]
fn a_spurious_loss_is_as_if_it_had_not_been() {
    for cc in ["cubic", "pico", "tolerant"] {
        let mut stack = grown(cc, "standard");
        let window = stack.controller.window();
        stack.lose(0, 12, false, false);
        assert!(stack.controller.window() < window, "{cc}");
        stack.controller.on_spurious_congestion();
        assert_eq!(stack.controller.window(), window, "{cc}");
        assert_eq!(stack.controller.phase(), "slow_start", "{cc}");
        assert_eq!(stack.controller.path().ssthresh, None, "{cc}");
    }
}

#[test]
fn a_mark_is_not_spurious() {
    for cc in ["cubic", "pico", "tolerant"] {
        let mut stack = grown(cc, "standard");
        stack.lose(0, 12, true, false);
        let window = stack.controller.window();
        stack.controller.on_spurious_congestion();
        assert_eq!(stack.controller.window(), window, "{cc}");
    }
}
