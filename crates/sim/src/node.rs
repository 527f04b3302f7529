//! A program of a flow under way, and what is on its way to it.
//!
//! Flows that start later live by a time of their own, which is zero at their start: so their
//! programs start as those of any trial do. All times that leave this module are those of the
//! trial.

use std::collections::VecDeque;
use std::net::IpAddr;

use bentpipe_endpoint::contract::{self, Arrival, PATH_BITS, PATH_SHIFT, Ran, Ready, SERVER_SIDE};
use bentpipe_link::{Direction, HostName};
use bentpipe_trial::SentMessage;
use bentpipe_units::{Span, Time};
use bytes::Bytes;

use crate::child::{Child, ChildError};
use crate::packet::{DatagramForm, SentPacket};

/// The hint for a program with one path that names another.
const KNOWS_ONE: &str = "HELLO must list paths, and READY must say \"paths\": true";

/// A packet that a program has sent.
#[derive(Debug)]
pub struct Departure {
    pub sent: Time,
    pub packet: SentPacket,
    /// The number of the path that it takes.
    pub path: usize,
}

/// The paths that a program knows of.
#[derive(Debug)]
pub enum KnownPaths {
    /// The first, which is the only one as far as it knows. What comes over others is not for it.
    First,
    /// This many: its datagrams say which they take.
    Numbered(usize),
    /// It makes whole packets, which take the path of the client's address in them: these are the
    /// addresses, by number.
    ByAddress(Vec<IpAddr>),
}

/// A program, what is on its way to it, and what it has sent that no link has seen yet.
#[derive(Debug)]
pub struct Node {
    pub child: Child,
    host: HostName,
    form: DatagramForm,
    paths: KnownPaths,
    /// How many packets have come, as an IPv4 header counts them.
    come: u16,
    /// Zero of the program's time.
    zero: Span,
    next_wake: Time,
    done: bool,
    /// In the order of time.
    pending: VecDeque<Arrival>,
    /// Towards the client and towards the server, each in the order of time.
    sent: [VecDeque<Departure>; 2],
    /// When its current run begins in effect: the first event for which it was asked. Before that
    /// it sleeps.
    awake: Time,
    /// The end of the run for which it was asked and has not answered yet.
    asked: Option<Time>,
}

impl Node {
    /// A program that has answered READY, and whose time begins at `start`.
    pub fn new(
        host: HostName,
        child: Child,
        (form, paths): (DatagramForm, KnownPaths),
        ready: &Ready,
        start: Time,
    ) -> Self {
        let zero = start - Time::ZERO;
        let next_wake = ready
            .next_wake
            .map_or(Time::NEVER, |wake| Time::from_nanos(wake) + zero);
        Self {
            child,
            host,
            form,
            paths,
            come: 0,
            zero,
            next_wake,
            done: false,
            pending: VecDeque::new(),
            sent: [VecDeque::new(), VecDeque::new()],
            awake: Time::ZERO,
            asked: None,
        }
    }

    /// Whether the program has nothing more to do.
    pub fn is_done(&self) -> bool {
        self.done
    }

    fn is_proxy(&self) -> bool {
        matches!(self.host, HostName::Terminal | HostName::Gateway)
    }

    /// A packet that goes `way` is on its way to it, and there at `at`. Packets from either side
    /// come in order of time, but not those of both.
    pub fn expect(&mut self, way: Direction, path: usize, at: Time, packet: &SentPacket) {
        if path > 0 && matches!(self.paths, KnownPaths::First) {
            return;
        }
        self.come = self.come.wrapping_add(1);
        let form = match &self.paths {
            KnownPaths::ByAddress(clients) => self.form.over(self.host, clients[path]),
            KnownPaths::First | KnownPaths::Numbered(_) => self.form,
        };
        let Some(payload) = form.write(packet, way, self.come) else {
            return; // of another protocol than the program's
        };
        let mut arrival = Arrival {
            time: at.as_nanos(),
            ecn: packet.ip.ecn,
            payload,
        };
        if self.is_proxy() && way == Direction::Forward {
            arrival.ecn |= SERVER_SIDE;
        }
        if let KnownPaths::Numbered(_) = self.paths {
            arrival.ecn |= u8::try_from(path).unwrap_or(0) << PATH_SHIFT;
        }
        let later = |other: &&Arrival| other.time > arrival.time;
        let behind = self.pending.iter().rev().take_while(later).count();
        self.pending.insert(self.pending.len() - behind, arrival);
    }

    /// The first time at which anything happens here.
    pub fn next_event(&self) -> Time {
        let arrival = self
            .pending
            .front()
            .map_or(Time::NEVER, |arrival| Time::from_nanos(arrival.time));
        arrival.min(self.next_wake)
    }

    /// The first time at which it can do anything to its neighbours: when something happens here,
    /// or when it sent what has not reached a link.
    pub fn next_action(&self) -> Time {
        let sent = self.sent.iter().filter_map(VecDeque::front);
        let first = sent.map(|departure| departure.sent).min();
        self.next_event().min(first.unwrap_or(Time::NEVER))
    }

    /// Takes what it sent in a direction before a time.
    pub fn take_sent(&mut self, way: Direction, before: Time) -> impl Iterator<Item = Departure> {
        let sent = &mut self.sent[way as usize];
        let count = sent.partition_point(|departure| departure.sent < before);
        sent.drain(..count)
    }

    /// Sends RUN, unless nothing can happen here before `until`; says whether it did.
    pub fn ask(&mut self, until: Time) -> Result<bool, ChildError> {
        self.awake = self.next_event();
        if self.awake >= until {
            return Ok(false);
        }
        let due = self
            .pending
            .partition_point(|arrival| arrival.time < until.as_nanos());
        let zero = self.zero;
        let mut arrivals: Vec<Arrival> = self.pending.drain(..due).collect();
        for arrival in &mut arrivals {
            arrival.time -= zero.as_nanos();
        }
        self.asked = Some(until);
        let until = until.as_nanos() - zero.as_nanos();
        self.child.send(SentMessage::Run { until, arrivals })?;
        Ok(true)
    }

    /// Takes the answer to RUN, if that was sent; tells when the first datagram departed, if one
    /// did.
    pub fn answer(&mut self) -> Result<Option<Time>, ChildError> {
        let Some(until) = self.asked.take() else {
            return Ok(None);
        };
        let body = self.child.receive(contract::RAN)?;
        let ran = if self.is_proxy() {
            Ran::decode_of_proxy(&body)
        } else {
            Ran::decode(&body)
        };
        let ran = ran.map_err(|error| self.child.violation(error.to_string()))?;
        let next_wake = Time::from_nanos(ran.next_wake) + self.zero;
        if next_wake < until {
            let what = format!("RAN until {until} wants to wake at {next_wake}, before that");
            return Err(self.child.violation(what));
        }
        let mut earliest = self.awake;
        for datagram in &ran.departures {
            earliest = self.depart(&body, datagram, earliest..until)?;
        }
        self.next_wake = next_wake;
        self.done = ran.done;
        let first = ran.departures.first();
        Ok(first.map(|it| Time::from_nanos(it.time) + self.zero))
    }

    /// Takes note of a datagram, which has to depart within `run`; tells when it did.
    fn depart(
        &mut self,
        body: &Bytes,
        datagram: &contract::Datagram,
        run: std::ops::Range<Time>,
    ) -> Result<Time, ChildError> {
        let sent = Time::from_nanos(datagram.time) + self.zero;
        if !run.contains(&sent) {
            let (earliest, until) = (run.start, run.end);
            let what = format!(
                "RAN until {until} has a departure at {sent}, where none can be before {earliest}"
            );
            return Err(self.child.violation(what));
        }
        let payload = body.slice(datagram.payload.clone());
        let bytes = payload.len();
        if matches!(self.form, DatagramForm::Udp(_)) && bytes > contract::PAYLOAD_LIMIT {
            let what = format!("a datagram of {bytes} bytes, more than IPv4 carries");
            return Err(self.child.violation(what));
        }
        let ecn = datagram.ecn & !(SERVER_SIDE | PATH_BITS);
        let packet = self.form.read(ecn, payload);
        let packet = packet.ok_or_else(|| {
            let what = format!("a datagram of {bytes} bytes that is no IP packet");
            self.child.violation(what)
        })?;
        let way = self.way(datagram.ecn);
        let path = self.path_of(datagram.ecn, way, &packet)?;
        self.sent[way as usize].push_back(Departure { sent, packet, path });
        Ok(sent)
    }

    /// The number of the path that a departure takes.
    fn path_of(&self, ecn: u8, way: Direction, packet: &SentPacket) -> Result<usize, ChildError> {
        let number = usize::from((ecn & PATH_BITS) >> PATH_SHIFT);
        let (count, hint) = match &self.paths {
            KnownPaths::First => (1, KNOWS_ONE),
            KnownPaths::Numbered(count) => (*count, "HELLO lists them, from 0 on"),
            KnownPaths::ByAddress(clients) => {
                let client = packet.client_address(way);
                let found = clients.iter().position(|it| client == Some(*it));
                return Ok(found.unwrap_or(0));
            }
        };
        if number >= count {
            let what = format!("a datagram on path {number}, of {count} (hint: {hint})");
            return Err(self.child.violation(what));
        }
        Ok(number)
    }

    /// Which way a departure goes.
    fn way(&self, ecn: u8) -> Direction {
        match self.host {
            HostName::Client => Direction::Return,
            HostName::Server => Direction::Forward,
            _ if ecn & SERVER_SIDE != 0 => Direction::Return,
            _ => Direction::Forward,
        }
    }
}
