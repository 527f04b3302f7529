//! Virtual time: all endpoint programs run an epoch at a time, in parallel, and the coordinator
//! owns the links.
//!
//! The model is conservative parallel discrete-event simulation (Chandy and Misra 1979) with two
//! processes for each flow. A packet takes at least `L`, the smaller of the two one-way delays, to
//! cross. If no side can act before `e`, then nothing that any will send can arrive before `e + L`:
//! all may run up to there without hearing of each other. Idle time is skipped, since `e` is the
//! time of the next wake or arrival, not the clock.
//!
//! Where there are proxies, hops differ: 0.1 ms of cable beside 250 ms of satellite. One `L` for
//! all would have all programs live in steps of 0.1 ms. So each program has a separate horizon
//! there, by what its neighbours can do first ([`FlowRun::horizons`]).
//!
//! Where a hop has several paths, `L` is the smallest delay of any.
//!
//! All flows share the links. What they sent in an epoch meets these in the order of time; of
//! packets that were sent at the same instant, that of the earlier flow comes first. A packet waits
//! with that until no other flow can send one before it.

use bentpipe_link::{Direction, Hop};
use bentpipe_units::{Span, Time};

use crate::flow::{Delays, FlowRun, HeldBack};
use crate::links::Links;
use crate::node::Departure;
use bentpipe_trial::{Fidelity, FlowLifetime, KnownEvents, TestbedObservation};

/// Once a client is done its outcome stands; its server gets this many round trips to receive its
/// close.
const DRAIN_ROUND_TRIPS: u64 = 10;

/// A trial under way.
pub struct Coordinator {
    pub flows: Vec<FlowRun>,
    hops: Vec<Links>,
    delays: Vec<Delays>,
    now: Time,
    epochs: u64,
}

impl Coordinator {
    /// A trial at time zero.
    pub fn new(flows: Vec<FlowRun>, hops: &[Hop], seed: u64) -> Self {
        let links = |hop: &Hop| Links::new(*hop, seed, flows.len());
        let hops: Vec<Links> = hops.iter().map(links).collect();
        let delays: Vec<Delays> = hops.iter().map(Links::delays).collect();
        assert!(
            delays.iter().flatten().all(|delay| *delay > Span::ZERO),
            "a hop without delay gives no lookahead; the job's check refuses it"
        );
        Self {
            flows,
            hops,
            delays,
            now: Time::ZERO,
            epochs: 0,
        }
    }

    /// Runs until every flow has come to its end.
    pub fn run(&mut self) {
        let round_trip: Span = self.hops.iter().map(Links::longest_round_trip).sum();
        loop {
            self.advance_links();
            for (number, flow) in self.flows.iter_mut().enumerate() {
                let held = self.hops.iter().map(|hop| hop.next_arrival_of(number));
                flow.settle(round_trip * DRAIN_ROUND_TRIPS, held.min());
            }
            if self.flows.iter().all(|flow| flow.end.is_some()) {
                break;
            }
            self.epoch();
        }
        let ends = self.flows.iter().map(|flow| flow.now);
        self.now = ends.max().unwrap_or(Time::ZERO);
        for hop in 0..self.hops.len() {
            for way in Direction::BOTH {
                self.advance(hop, way, self.now);
                self.advance(hop, way, Time::NEVER);
            }
        }
    }

    /// Tells links that hold packets how far time has come: until when nobody sends any more.
    fn advance_links(&mut self) {
        let held = self.held();
        if held.iter().flatten().all(|at| *at == Time::NEVER) {
            return;
        }
        let open = self.flows.iter().filter(|flow| flow.end.is_none());
        let acts: Vec<Vec<Time>> = open.map(|flow| flow.acts(&self.delays, &held)).collect();
        for hop in 0..self.hops.len() {
            for way in Direction::BOTH {
                let first = acts.iter().map(|acts| acts[sender(hop, way)]).min();
                self.advance(hop, way, first.unwrap_or(Time::NEVER));
            }
        }
    }

    /// Nothing is sent before `until`.
    fn advance(&mut self, hop: usize, way: Direction, until: Time) {
        self.hops[hop].advance(way, until);
        self.deliver(hop, way);
    }

    /// When packets that links hold arrive, at the earliest.
    fn held(&self) -> Vec<HeldBack> {
        self.hops.iter().map(Links::next_arrivals).collect()
    }

    /// The observation of the trial.
    pub fn observation(self) -> TestbedObservation {
        let flows = self.flows.iter().map(|flow| FlowLifetime {
            first_sent: flow.first_sent,
            end: flow.now,
        });
        let requests = self.hops.iter().map(Links::answered_requests).collect();
        let hops = self.hops.into_iter().map(Links::packets);
        TestbedObservation {
            flows: flows.collect(),
            hops: hops.collect(),
            links: None,
            tunnel: None,
            events: KnownEvents::All(requests),
            end: self.now,
            epochs: self.epochs,
            fidelity: Fidelity::default(),
            unfaithful: Vec::new(),
        }
    }

    /// Lets all programs live until their horizons, in parallel, and sends on what they sent.
    fn epoch(&mut self) {
        self.epochs += 1;
        for (flow, horizons) in self.horizons().into_iter().enumerate() {
            self.flows[flow].ask(&horizons);
        }
        for flow in &mut self.flows {
            flow.answer();
        }
        let acts = self.first_acts();
        for hop in 0..self.hops.len() {
            for way in [Direction::Return, Direction::Forward] {
                self.carry_all(hop, way, &acts);
            }
        }
    }

    /// The time until which each program of each flow may run; nothing of flows that have ended.
    fn horizons(&self) -> Vec<Vec<Time>> {
        let held = self.held();
        let open = self.flows.iter().filter(|flow| flow.end.is_none());
        if let [only] = self.delays.as_slice() {
            let actions = open.map(FlowRun::next_action);
            let arrives = held[0][0].min(held[0][1]);
            let next = actions.chain([arrives]).min().unwrap_or(Time::NEVER);
            // Packets that links hold may arrive before any that is sent from now on.
            let until = arrives.min(next + only[0].min(only[1]));
            return self.flows.iter().map(|_| vec![until; 2]).collect();
        }
        let all = self.flows.iter();
        all.map(|flow| match flow.end {
            None => flow.horizons(&self.delays, &held),
            Some(_) => Vec::new(),
        })
        .collect()
    }

    /// Before when each program of each flow sends nothing any more; nothing of a single flow, and
    /// of those that have come to their ends: they are in nobody's way.
    fn first_acts(&mut self) -> Vec<Vec<Time>> {
        if self.flows.len() == 1 {
            return vec![Vec::new()];
        }
        let horizons = self.horizons();
        let flows = self.flows.iter_mut().zip(horizons);
        let of = |(flow, horizons): (&mut FlowRun, Vec<Time>)| match flow.end {
            None => {
                let limit = flow.limit();
                let nodes = flow.nodes().iter().zip(horizons);
                let first = nodes.map(|(node, horizon)| node.next_event().min(horizon));
                // Events at its limit or later do not happen: they must delay nobody.
                first
                    .map(|first| if first < limit { first } else { Time::NEVER })
                    .collect()
            }
            Some(_) => Vec::new(),
        };
        flows.map(of).collect()
    }

    /// Puts on a hop, in one direction, what was sent there and may go. `acts` is
    /// [`Coordinator::first_acts`].
    fn carry_all(&mut self, hop: usize, way: Direction, acts: &[Vec<Time>]) {
        let sender = sender(hop, way);
        let mut sent: Vec<(usize, Departure)> = Vec::new();
        for (number, flow) in self.flows.iter_mut().enumerate() {
            let others = acts
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number);
            let others = others.filter_map(|(_, acts)| acts.get(sender));
            let before = others.min().copied().unwrap_or(Time::NEVER);
            let departures = flow.nodes()[sender].take_sent(way, before);
            sent.extend(departures.map(|departure| (number, departure)));
        }
        sent.sort_by_key(|(_, departure)| departure.sent);
        for (number, departure) in sent {
            self.carry((hop, way), number, departure);
        }
    }

    /// Puts a packet of the flow with that number on its way.
    fn carry(&mut self, (hop, way): (usize, Direction), number: usize, departure: Departure) {
        self.hops[hop].send(way, number, departure);
        self.deliver(hop, way);
    }

    /// Puts on the way to their receivers the packets that links have let through.
    fn deliver(&mut self, hop: usize, way: Direction) {
        let receiver = match way {
            Direction::Return => hop + 1,
            Direction::Forward => hop,
        };
        let flows = &mut self.flows;
        self.hops[hop].settle(way, |flow, path, at, packet| {
            flows[flow].nodes()[receiver].expect(way, path, at, packet);
        });
    }
}

/// The number of the program that sends over a hop, from the client on.
fn sender(hop: usize, way: Direction) -> usize {
    match way {
        Direction::Return => hop,
        Direction::Forward => hop + 1,
    }
}
