//! A flow under way: a client, a server, and the end that they come to.
//!
//! A flow that starts later lives by a time of its own, which is zero at its start: so its programs start as those of any
//! trial do. All times that leave this module are those of the trial.

use std::collections::VecDeque;

use bentpipe_endpoint::contract::{self, Arrival, Ready};
use bentpipe_units::{Span, Time};
use bytes::Bytes;

use crate::child::{Child, ChildError};
use bentpipe_trial::{End, Role};

/// A datagram that a program has sent.
#[derive(Debug)]
pub struct Departure {
    pub sent: Time,
    pub ecn: u8,
    pub payload: Bytes,
}

/// One side of a flow: its program and what is on its way to it.
#[derive(Debug)]
pub struct Side {
    pub child: Child,
    /// Zero of the program's time.
    zero: Span,
    next_wake: Time,
    done: bool,
    pending: VecDeque<Arrival>,
    /// When its current run begins in effect: the first event for which it was asked. Before that it sleeps.
    awake: Time,
    /// The end of the run for which it was asked and has not answered yet.
    asked: Option<Time>,
}

impl Side {
    /// A program that has answered READY, and whose time begins at `start`.
    pub fn new(child: Child, ready: &Ready, start: Time) -> Self {
        let zero = start - Time::ZERO;
        let next_wake = ready
            .next_wake
            .map_or(Time::NEVER, |wake| Time::from_nanos(wake) + zero);
        Self {
            child,
            zero,
            next_wake,
            done: false,
            pending: VecDeque::new(),
            awake: Time::ZERO,
            asked: None,
        }
    }

    /// A datagram is under way to it.
    pub fn expect(&mut self, arrival: Arrival) {
        self.pending.push_back(arrival);
    }

    /// The first time at which anything happens here.
    fn next_event(&self) -> Time {
        let arrival = self
            .pending
            .front()
            .map_or(Time::NEVER, |arrival| Time::from_nanos(arrival.time));
        arrival.min(self.next_wake)
    }

    /// Sends RUN, unless nothing can happen on this side before `until`.
    fn ask(&mut self, until: Time) -> Result<(), ChildError> {
        self.awake = self.next_event();
        if self.awake >= until {
            return Ok(());
        }
        let due = self
            .pending
            .partition_point(|arrival| arrival.time < until.as_nanos());
        let zero = self.zero;
        let mut arrivals: Vec<Arrival> = self.pending.drain(..due).collect();
        for arrival in &mut arrivals {
            arrival.time -= zero.as_nanos();
        }
        let until_here = until.as_nanos() - zero.as_nanos();
        self.asked = Some(until);
        self.child
            .send(contract::encode_run(until_here, arrivals.iter()))
    }

    /// Takes the answer to RUN, if that was sent: what departed.
    fn answer(&mut self) -> Result<Vec<Departure>, ChildError> {
        let Some(until) = self.asked.take() else {
            return Ok(Vec::new());
        };
        let body = self.child.receive(contract::RAN)?;
        let ran =
            contract::Ran::decode(&body).map_err(|error| self.child.rubbish(error.to_string()))?;
        let next_wake = Time::from_nanos(ran.next_wake) + self.zero;
        if next_wake < until {
            let what = format!("RAN until {until} wants to wake at {next_wake}, before that");
            return Err(self.child.rubbish(what));
        }
        let mut departures = Vec::with_capacity(ran.departures.len());
        let mut earliest = self.awake;
        for departure in &ran.departures {
            let sent = Time::from_nanos(departure.time.saturating_add(self.zero.as_nanos()));
            if sent < earliest || sent >= until {
                let what = format!(
                    "RAN until {until} has a departure at {sent}, where none can be before {earliest}"
                );
                return Err(self.child.rubbish(what));
            }
            earliest = sent;
            let payload = body.slice(departure.payload.clone());
            if payload.len() > contract::PAYLOAD_LIMIT {
                let what = format!(
                    "a datagram of {} bytes, more than IPv4 carries",
                    payload.len()
                );
                return Err(self.child.rubbish(what));
            }
            let ecn = departure.ecn;
            departures.push(Departure { sent, ecn, payload });
        }
        self.next_wake = next_wake;
        self.done = ran.done;
        Ok(departures)
    }
}

/// Until when a flow may live.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// When the scenario's timeout passes.
    pub timeout: Time,
    /// When the transfer is cut, if it is one of so much time.
    pub cut: Option<Time>,
}

/// A client and a server that talk to each other.
#[derive(Debug)]
pub struct Flow {
    sides: [Side; 2],
    limit: Time,
    end_at_limit: End,
    /// When the client sent its first packet.
    pub first_sent: Option<Time>,
    /// Until when it has lived.
    pub now: Time,
    /// How it ended, once it has.
    pub end: Option<Result<End, ChildError>>,
}

impl Flow {
    /// A flow at time zero of the trial.
    pub fn new(sides: [Side; 2], limits: Limits) -> Self {
        let (limit, end_at_limit) = match limits.cut {
            Some(cut) => (cut, End::Cut),
            None => (limits.timeout, End::TimeLimit),
        };
        Self {
            sides,
            limit,
            end_at_limit,
            first_sent: None,
            now: Time::ZERO,
            end: None,
        }
    }

    /// The side that plays `role`.
    pub fn side(&mut self, role: Role) -> &mut Side {
        &mut self.sides[role.index()]
    }

    /// The first time at which anything happens on either side.
    pub fn next_event(&self) -> Time {
        let [client, server] = &self.sides;
        client.next_event().min(server.next_event())
    }

    /// Sees whether it has come to its end. Once the client is done, the server has `drain` to be so.
    pub fn settle(&mut self, drain: Span) {
        if self.end.is_some() {
            return;
        }
        let [client, server] = [self.sides[0].done, self.sides[1].done];
        if client && self.end_at_limit != End::Done {
            self.limit = self.limit.min(self.now + drain);
            self.end_at_limit = End::Done;
        }
        let next = self.next_event();
        let end = if client && server {
            End::Done
        } else if next == Time::NEVER {
            if client { End::Done } else { End::Deadlock }
        } else if next >= self.limit {
            self.now = self.limit;
            self.end_at_limit
        } else {
            return;
        };
        self.end = Some(Ok(end));
    }

    /// Asks both sides to live until `until`, or its limit, if it has not come to its end.
    pub fn ask(&mut self, until: Time) {
        if self.end.is_some() {
            return;
        }
        self.now = until.min(self.limit);
        for side in &mut self.sides {
            if let Err(error) = side.ask(self.now) {
                self.end = Some(Err(error));
                return;
            }
        }
    }

    /// What a side sent in the run that it was asked for.
    pub fn answer(&mut self, role: Role) -> Vec<Departure> {
        if self.end.is_some() {
            return Vec::new();
        }
        match self.sides[role.index()].answer() {
            Ok(departures) => {
                if let (Role::Client, None, Some(first)) =
                    (role, self.first_sent, departures.first())
                {
                    self.first_sent = Some(first.sent);
                }
                departures
            }
            Err(error) => {
                self.end = Some(Err(error));
                Vec::new()
            }
        }
    }

    /// Asks both sides for their last words, BYE in JSON: the client's and the server's.
    pub fn finish(&mut self) -> Result<[Bytes; 2], ChildError> {
        let [client, server] = &mut self.sides;
        let finish = contract::encode_frame(contract::FINISH, &[]);
        client.child.send(finish.clone())?;
        server.child.send(finish)?;
        Ok([
            client.child.receive(contract::BYE)?,
            server.child.receive(contract::BYE)?,
        ])
    }
}
