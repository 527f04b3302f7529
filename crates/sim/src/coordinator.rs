//! Virtual time: all endpoint programs run an epoch at a time, in parallel, and the coordinator owns the links.
//!
//! The model is conservative parallel discrete-event simulation (Chandy and Misra 1979) with two processes for each flow. A
//! packet takes at least `L`, the smaller of the two one-way delays, to cross. If no side can act before `e`, then nothing
//! that any will send can arrive before `e + L`: all may run up to there without hearing of each other. Idle
//! time is skipped, since `e` is the time of the next wake or arrival, not the clock.
//!
//! All flows share the links. What they sent in an epoch meets these in the order of time; of packets that were sent at the
//! same instant, that of the earlier flow comes first.

use bentpipe_endpoint::contract::Arrival;
use bentpipe_link::{Direction, Fate, Path};
use bentpipe_trace::IPV4_UDP_HEADER;
use bentpipe_units::{Span, Time};

use crate::flow::{Departure, Flow};
use bentpipe_trial::{Course, EPOCH_UNIX_S, Fidelity, Lifetime, Packet, PacketLog, Role};

/// Once a client is done its outcome stands; its server gets this many round trips to hear of it.
const DRAIN_ROUND_TRIPS: u64 = 10;

/// A trial under way.
pub struct Coordinator {
    pub flows: Vec<Flow>,
    pub forward: Path,
    pub back: Path,
    pub log: PacketLog,
    pub now: Time,
    pub epochs: u64,
}

impl Coordinator {
    /// A trial at time zero.
    pub fn new(flows: Vec<Flow>, [forward, back]: [Path; 2]) -> Self {
        Self {
            log: PacketLog::new(flows.len(), EPOCH_UNIX_S * 1_000_000_000),
            flows,
            forward,
            back,
            now: Time::ZERO,
            epochs: 0,
        }
    }

    /// Runs until every flow has come to its end.
    pub fn run(&mut self) {
        let one_way = self.forward.min_delay().min(self.back.min_delay());
        assert!(
            one_way > Span::ZERO,
            "a scenario without delay gives no lookahead; the job's check refuses it"
        );
        let round_trip = self.forward.min_delay() + self.back.min_delay();
        loop {
            for flow in &mut self.flows {
                flow.settle(round_trip * DRAIN_ROUND_TRIPS);
            }
            let open = self.flows.iter().filter(|flow| flow.end.is_none());
            let Some(next) = open.map(Flow::next_event).min() else {
                break;
            };
            self.epoch(next + one_way);
        }
        let ends = self.flows.iter().map(|flow| flow.now);
        self.now = ends.max().unwrap_or(Time::ZERO);
    }

    /// What was seen of the trial.
    pub fn course(self) -> Course {
        let flows = self.flows.iter().map(|flow| Lifetime {
            first_sent: flow.first_sent,
            end: flow.now,
        });
        Course {
            flows: flows.collect(),
            log: self.log,
            forward: self.forward.counters(),
            back: self.back.counters(),
            end: self.now,
            epochs: self.epochs,
            fidelity: Fidelity::default(),
        }
    }

    /// Lets all sides live until `until`, in parallel, and sends on what they sent.
    fn epoch(&mut self, until: Time) {
        self.epochs += 1;
        for flow in &mut self.flows {
            flow.ask(until);
        }
        let mut sent: [Vec<(usize, Departure)>; 2] = [Vec::new(), Vec::new()];
        for (number, flow) in self.flows.iter_mut().enumerate() {
            for role in [Role::Client, Role::Server] {
                let departures = flow.answer(role).into_iter();
                sent[role.index()].extend(departures.map(|departure| (number, departure)));
            }
        }
        for (role, mut departures) in [Role::Client, Role::Server].into_iter().zip(sent) {
            departures.sort_by_key(|(_, departure)| departure.sent);
            for (number, departure) in departures {
                self.carry(role, number, departure);
            }
        }
    }

    /// Puts a packet of the flow with that number on the way from `role` to the other side.
    fn carry(&mut self, role: Role, number: usize, departure: Departure) {
        let (path, direction, receiver) = match role {
            Role::Client => (&mut self.back, Direction::Return, Role::Server),
            Role::Server => (&mut self.forward, Direction::Forward, Role::Client),
        };
        let Departure { sent, ecn, payload } = departure;
        let ip_bytes =
            u32::try_from(payload.len() + IPV4_UDP_HEADER).expect("the length field has 16 bits");
        let fate = path.admit(sent, ip_bytes);
        if let Fate::Delivered { at } = fate {
            let arrival = Arrival {
                time: at.as_nanos(),
                ecn,
                payload: payload.clone(),
            };
            self.flows[number].side(receiver).expect(arrival);
        }
        self.log.add(Packet {
            flow: number,
            direction,
            sent,
            ecn,
            payload,
            fate,
        });
    }
}
