//! Virtual time: lives from one RUN to the next, and reads no clock.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;

use crate::clock::Clock;
use crate::contract::{
    BYE, Bye, FINISH, NEVER, PATH_BITS, PATH_SHIFT, RUN, RanMessage, Run, encode_message,
    message_name,
};
use crate::error::EndpointError;
use crate::setup::PathEnds;
use crate::stack::{Received, Stack, Transmit};

use super::{Endpoint, MAX_DATAGRAMS, Pipes};

/// A timer that is due again right after it was handled waits this long, so that time goes on.
const TIMER_RESOLUTION: Duration = Duration::from_micros(1);

/// The driver of virtual time.
pub struct VirtualTime<S> {
    endpoint: Endpoint<S>,
    clock: Clock,
    remote: SocketAddr,
    /// Where there are several that the stack knows; by number.
    paths: Vec<PathEnds>,
    now: Duration,
    /// Whether the application still has to act for the first time.
    idle: bool,
    /// Timers are not handled before this time.
    timer_floor: Duration,
    ran: RanMessage,
    buffer: Vec<u8>,
}

impl<S: Stack> VirtualTime<S> {
    /// The driver in READY, in words.
    pub const DRIVER: &'static str = "at each instant: all arrivals, then timers, then the \
                                      application, then polls of up to 10 datagrams until there is \
                                      nothing more to send";

    /// A driver at time 0 whose datagrams all come from `remote`, and depart by way of `ran`.
    pub fn new(endpoint: Endpoint<S>, clock: Clock, remote: SocketAddr, ran: RanMessage) -> Self {
        Self {
            endpoint,
            clock,
            remote,
            paths: Vec::new(),
            now: Duration::ZERO,
            idle: true,
            timer_floor: Duration::ZERO,
            ran,
            buffer: Vec::new(),
        }
    }

    /// The same with several paths, which the datagrams name by number.
    #[must_use]
    pub fn over(self, paths: Vec<PathEnds>) -> Self {
        Self { paths, ..self }
    }

    /// Answers RUN after RUN until FINISH, whose BYE is returned after it was sent.
    /// `None`: the coordinator went away.
    pub fn run<R: Read, W: Write>(
        mut self,
        pipes: &mut Pipes<R, W>,
    ) -> Result<Option<Bye>, EndpointError> {
        while let Some((kind, body)) = pipes.receive()? {
            match kind {
                RUN => {
                    let ran = self.live(body)?;
                    pipes.send(ran)?;
                }
                FINISH => {
                    let bye = self.endpoint.finish()?;
                    pipes.send(&encode_message(BYE, &serde_json::to_vec(&bye)?))?;
                    return Ok(Some(bye));
                }
                other => {
                    let what = format!("{} in place of RUN or FINISH", message_name(other));
                    return Err(EndpointError::Conversation(what));
                }
            }
        }
        Ok(None)
    }

    /// Lives through one RUN and returns its RAN.
    pub fn live(&mut self, body: &[u8]) -> Result<&[u8], EndpointError> {
        let run = Run::decode(body)?;
        let until = Duration::from_nanos(run.until);
        self.check(&run)?;
        self.ran.clear();
        let mut arrivals = run.arrivals.into_iter().peekable();
        loop {
            let arrival = arrivals.peek().map(|next| Duration::from_nanos(next.time));
            let Some(next) = arrival.into_iter().chain(self.next_wake()).min() else {
                break;
            };
            if next >= until {
                break;
            }
            self.now = next;
            self.clock.set(next);
            let due = |time: u64| Duration::from_nanos(time) == next;
            while let Some(datagram) = arrivals.next_if(|arrival| due(arrival.time)) {
                self.arrive(datagram.ecn, &body[datagram.payload]);
            }
            self.act()?;
        }
        self.now = until;
        let next_wake = self
            .next_wake()
            .map_or(NEVER, |time| nanos(time.max(until)));
        Ok(self
            .ran
            .finish(next_wake, self.endpoint.application.is_done()))
    }

    fn check(&self, run: &Run) -> Result<(), EndpointError> {
        let times = run
            .arrivals
            .iter()
            .map(|arrival| arrival.time)
            .chain([run.until]);
        let number = |ecn: u8| usize::from((ecn & PATH_BITS) >> PATH_SHIFT);
        let count = self.paths.len().max(1);
        let mut numbers = run.arrivals.iter().map(|arrival| number(arrival.ecn));
        if let Some(number) = numbers.find(|number| *number >= count) {
            let what = format!("RUN has a datagram on path {number}, of {count}");
            return Err(EndpointError::Conversation(what));
        }
        let now = nanos(self.now);
        if times.clone().is_sorted() && times.min().is_none_or(|earliest| earliest >= now) {
            return Ok(());
        }
        let what = format!(
            "RUN until {} has times out of order, or before {now}",
            run.until
        );
        Err(EndpointError::Conversation(what))
    }

    /// When the next timer is to be handled.
    fn next_wake(&mut self) -> Option<Duration> {
        if self.idle {
            return Some(self.now);
        }
        let timeout = self.endpoint.stack.next_timeout();
        let timeout = timeout.map(|time| time.max(self.timer_floor));
        let wake = self.endpoint.next_wake();
        let earliest = timeout.into_iter().chain(wake).min()?;
        Some(earliest.max(self.now))
    }

    fn arrive(&mut self, ecn: u8, payload: &[u8]) {
        // A copy for each: what a stack holds on to is then no more than it needs.
        let payload = BytesMut::from(payload);
        let path = self.paths.get(usize::from((ecn & PATH_BITS) >> PATH_SHIFT));
        let datagram = Received {
            remote: path.map_or(self.remote, |path| path.remote),
            local_ip: path.map(|path| path.local.ip()),
            ecn: ecn & !PATH_BITS,
            payload,
        };
        self.endpoint.stack.handle_datagram(self.now, datagram);
    }

    /// Handles timers, lets the application act, and collects what departs.
    fn act(&mut self) -> Result<(), EndpointError> {
        if self.idle {
            self.idle = false;
            self.endpoint
                .application
                .start(&mut self.endpoint.stack, self.now)?;
        }
        if self.now >= self.timer_floor && self.endpoint.handle_timers(self.now) {
            self.timer_floor = self.now + TIMER_RESOLUTION;
        }
        self.endpoint.handle_events(self.now)?;
        self.endpoint.wake(self.now)?;
        while let Some(transmit) =
            self.endpoint
                .poll_transmit(self.now, MAX_DATAGRAMS, &mut self.buffer)
        {
            self.depart(transmit);
        }
        Ok(())
    }

    fn depart(&mut self, transmit: Transmit) {
        let size = transmit.segment_size.unwrap_or(self.buffer.len()).max(1);
        let ecn = transmit.ecn | self.path_of(&transmit) << PATH_SHIFT;
        for payload in self.buffer.chunks(size) {
            self.ran.push(nanos(self.now), ecn, payload);
        }
    }
}

impl<S> VirtualTime<S> {
    /// The number of the path between these addresses; the first if the local one is not said.
    fn path_of(&self, transmit: &Transmit) -> u8 {
        let is_it = |path: &PathEnds| {
            path.remote == transmit.destination
                && transmit
                    .source
                    .is_none_or(|source| source == path.local.ip())
        };
        let found = self.paths.iter().position(is_it);
        found.and_then(|it| u8::try_from(it).ok()).unwrap_or(0)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER)
}
