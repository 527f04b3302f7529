//! Virtual time: both endpoint programs run an epoch at a time, in parallel, and the coordinator owns the links.
//!
//! The model is conservative parallel discrete-event simulation (Chandy and Misra 1979) with two processes. A packet
//! takes at least `L`, the smaller of the two one-way delays, to cross. If neither side can act before `e`, then nothing
//! that either will send can arrive before `e + L`: both may run up to there without hearing of each other. Idle
//! time is skipped, since `e` is the time of the next wake or arrival, not the clock.

use std::collections::VecDeque;

use bentpipe_endpoint::contract::{self, Arrival, Ready};
use bentpipe_link::{Direction, Fate, Path};
use bentpipe_trace::IPV4_UDP_HEADER;
use bentpipe_units::{Span, Time};
use bytes::Bytes;

use crate::child::{Child, ChildError};
use crate::job::Role;
use crate::packet_log::{Packet, PacketLog};

/// Once the client is done its outcome stands; the server gets this many round trips to hear of it.
const DRAIN_ROUND_TRIPS: u64 = 10;

/// How the conversation came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client is done, and so is the server, or it had time enough.
    Done,
    /// The scenario's timeout passed in virtual time.
    TimeLimit,
    /// Neither side will ever wake, and nothing is under way.
    Deadlock,
}

/// One side of the trial: its program and what is on its way to it.
#[derive(Debug)]
pub struct Side {
    pub child: Child,
    pub next_wake: Time,
    done: bool,
    pending: VecDeque<Arrival>,
    /// When its current run begins in effect: the first event for which it was asked. Before that it sleeps.
    awake: Time,
}

impl Side {
    /// A program that has answered READY.
    pub fn new(child: Child, ready: &Ready) -> Self {
        let next_wake = ready.next_wake.map_or(Time::NEVER, Time::from_nanos);
        Self {
            child,
            next_wake,
            done: false,
            pending: VecDeque::new(),
            awake: Time::ZERO,
        }
    }

    /// The first time at which anything happens here.
    fn next_event(&self) -> Time {
        let arrival = self
            .pending
            .front()
            .map_or(Time::NEVER, |arrival| Time::from_nanos(arrival.time));
        arrival.min(self.next_wake)
    }
}

/// A trial under way.
pub struct Coordinator {
    pub client: Side,
    pub server: Side,
    pub forward: Path,
    pub back: Path,
    pub log: PacketLog,
    /// When the client sent its first packet.
    pub first_sent: Option<Time>,
    pub now: Time,
    pub epochs: u64,
}

impl Coordinator {
    /// A trial at time zero.
    pub fn new([client, server]: [Side; 2], [forward, back]: [Path; 2], log: PacketLog) -> Self {
        let (first_sent, now, epochs) = (None, Time::ZERO, 0);
        Self {
            client,
            server,
            forward,
            back,
            log,
            first_sent,
            now,
            epochs,
        }
    }

    /// Runs until both sides are done or the trial can't go on; no longer than until `limit`.
    pub fn run(&mut self, limit: Time) -> Result<End, ChildError> {
        let one_way = self.forward.min_delay().min(self.back.min_delay());
        assert!(
            one_way > Span::ZERO,
            "a scenario without delay gives no lookahead; the job's check refuses it"
        );
        let round_trip = self.forward.min_delay() + self.back.min_delay();
        let drain = round_trip * DRAIN_ROUND_TRIPS;
        let mut limit = limit;
        let mut end_at_limit = End::TimeLimit;
        loop {
            if self.client.done && self.server.done {
                return Ok(End::Done);
            }
            if self.client.done && end_at_limit == End::TimeLimit {
                limit = limit.min(self.now + drain);
                end_at_limit = End::Done;
            }
            let next = self.client.next_event().min(self.server.next_event());
            if next == Time::NEVER {
                return Ok(if self.client.done {
                    End::Done
                } else {
                    End::Deadlock
                });
            }
            if next >= limit {
                self.now = limit;
                return Ok(end_at_limit);
            }
            self.epoch((next + one_way).min(limit))?;
        }
    }

    /// Lets both sides live until `until`, in parallel, and sends on what they sent.
    fn epoch(&mut self, until: Time) -> Result<(), ChildError> {
        self.epochs += 1;
        self.now = until;
        let asked = [ask(&mut self.client, until)?, ask(&mut self.server, until)?];
        if asked[0] {
            self.answer(Role::Client, until)?;
        }
        if asked[1] {
            self.answer(Role::Server, until)?;
        }
        Ok(())
    }

    fn answer(&mut self, role: Role, until: Time) -> Result<(), ChildError> {
        let (side, other, path, direction) = match role {
            Role::Client => (
                &mut self.client,
                &mut self.server,
                &mut self.back,
                Direction::Return,
            ),
            Role::Server => (
                &mut self.server,
                &mut self.client,
                &mut self.forward,
                Direction::Forward,
            ),
        };
        let body = side.child.receive(contract::RAN)?;
        let ran =
            contract::Ran::decode(&body).map_err(|error| side.child.rubbish(error.to_string()))?;
        let next_wake = Time::from_nanos(ran.next_wake);
        if next_wake < until {
            let what = format!("RAN until {until} wants to wake at {next_wake}, before that");
            return Err(side.child.rubbish(what));
        }
        let mut earliest = side.awake;
        for departure in &ran.departures {
            let sent = Time::from_nanos(departure.time);
            if sent < earliest || sent >= until {
                let what = format!(
                    "RAN until {until} has a departure at {sent}, where none can be before {earliest}"
                );
                return Err(side.child.rubbish(what));
            }
            earliest = sent;
            let payload = body.slice(departure.payload.clone());
            if payload.len() > contract::PAYLOAD_LIMIT {
                let what = format!(
                    "a datagram of {} bytes, more than IPv4 carries",
                    payload.len()
                );
                return Err(side.child.rubbish(what));
            }
            let ip_bytes = u32::try_from(payload.len() + IPV4_UDP_HEADER)
                .expect("the length field has 16 bits");
            let fate = path.admit(sent, ip_bytes);
            if let Fate::Delivered { at } = fate {
                other.pending.push_back(Arrival {
                    time: at.as_nanos(),
                    ecn: departure.ecn,
                    payload: payload.clone(),
                });
            }
            if role == Role::Client && self.first_sent.is_none() {
                self.first_sent = Some(sent);
            }
            self.log.add(Packet {
                direction,
                sent,
                ecn: departure.ecn,
                payload,
                fate,
            });
        }
        side.next_wake = next_wake;
        side.done = ran.done;
        Ok(())
    }

    /// The side that plays `role`.
    pub fn side(&mut self, role: Role) -> &mut Side {
        match role {
            Role::Client => &mut self.client,
            Role::Server => &mut self.server,
        }
    }

    /// Asks both sides for their last words, BYE in JSON: the client's and the server's.
    pub fn finish(&mut self) -> Result<[Bytes; 2], ChildError> {
        let finish = contract::encode_frame(contract::FINISH, &[]);
        self.client.child.send(finish.clone())?;
        self.server.child.send(finish)?;
        Ok([
            self.client.child.receive(contract::BYE)?,
            self.server.child.receive(contract::BYE)?,
        ])
    }
}

/// Sends RUN, unless nothing can happen on this side before `until`; says whether it did.
fn ask(side: &mut Side, until: Time) -> Result<bool, ChildError> {
    side.awake = side.next_event();
    if side.awake >= until {
        return Ok(false);
    }
    let due = side
        .pending
        .partition_point(|arrival| arrival.time < until.as_nanos());
    let frame = contract::encode_run(until.as_nanos(), side.pending.iter().take(due));
    side.pending.drain(..due);
    side.child.send(frame)?;
    Ok(true)
}
