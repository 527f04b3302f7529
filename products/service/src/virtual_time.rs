//! A middlebox of a trial in virtual time (`endpoints/contract/middleboxes.md`): it lives from one
//! RUN to the next, and reads no clock. At each instant arrivals are handled, then timers, then
//! everything that is to be sent is sent.

use std::time::Duration;

use bentpipe_endpoint::contract::{
    BYE, FINISH, HELLO, NEVER, ProxyBye, ProxyHello, READY, RUN, RanMessage, Ready, Run,
    SERVER_SIDE, encode_message, message_name,
};
use bentpipe_endpoint::driver::Pipes;
use bentpipe_endpoint::{Clock, EndpointError, seed_entropy};

/// A timer that is due again right after it was handled waits this long, so that time goes on.
const TIMER_RESOLUTION: Duration = Duration::from_micros(1);

/// The side at which a packet arrives or departs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Towards the client.
    Client,
    /// Towards the server.
    Server,
}

/// A program between client and server.
pub trait Middlebox {
    /// Takes a packet that came at a side, with its ECN bits.
    fn arrive(&mut self, now: Duration, side: Side, ecn: u8, payload: &[u8]);

    /// The time at which [`Self::handle_timeout`] is to be called.
    fn next_timeout(&mut self) -> Option<Duration>;

    /// Does what is due.
    fn handle_timeout(&mut self, now: Duration);

    /// Hands on all packets that leave now: their side, ECN bits and bytes.
    fn depart(&mut self, now: Duration, leave: &mut dyn FnMut(Side, u8, &[u8]));

    /// Completes all files and says what happened.
    fn finish(self) -> Result<ProxyBye, EndpointError>;
}

/// The words of READY about a program.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Its name and version.
    pub version: &'static str,
    /// How it is driven.
    pub driver: &'static str,
}

/// Exchanges messages with the coordinator until FINISH, or until it goes away.
pub fn run<M: Middlebox>(
    program: Program,
    make: impl FnOnce(ProxyHello, &Clock) -> Result<M, EndpointError>,
) -> Result<(), EndpointError> {
    bentpipe_endpoint::keep_freed_memory();
    let mut pipes = Pipes::inherited();
    let Some((kind, body)) = pipes.receive()? else {
        return Ok(());
    };
    if kind != HELLO {
        return Err(unexpected(kind, "HELLO"));
    }
    let hello: ProxyHello = serde_json::from_slice(body)?;
    seed_entropy(&hello.seed, 0)?;
    let shared_memory = pipes.share(hello.shared_memory)?;
    let clock = Clock::new(Duration::from_secs(hello.epoch_unix_s));
    let mut life = Life {
        middlebox: make(hello, &clock)?,
        clock,
        now: Duration::ZERO,
        timer_floor: Duration::ZERO,
        is_new: true,
        ran: RanMessage::new(),
    };
    let ready = Ready {
        stack: program.name.into(),
        version: program.version.into(),
        driver: program.driver.into(),
        next_wake: Some(0),
        shared_memory,
        paths: false,
    };
    pipes.send(&encode_message(READY, &serde_json::to_vec(&ready)?))?;
    while let Some((kind, body)) = pipes.receive()? {
        match kind {
            RUN => {
                let ran = life.live(body)?;
                pipes.send(ran)?;
            }
            FINISH => {
                let bye = life.middlebox.finish()?;
                return pipes.send(&encode_message(BYE, &serde_json::to_vec(&bye)?));
            }
            other => return Err(unexpected(other, "RUN or FINISH")),
        }
    }
    Ok(())
}

fn unexpected(kind: u8, due: &str) -> EndpointError {
    EndpointError::Conversation(format!("{} in place of {due}", message_name(kind)))
}

struct Life<M> {
    middlebox: M,
    clock: Clock,
    now: Duration,
    /// Timers are not handled before this time.
    timer_floor: Duration,
    /// Whether it has not lived yet.
    is_new: bool,
    ran: RanMessage,
}

impl<M: Middlebox> Life<M> {
    /// Lives through one RUN and returns its RAN.
    fn live(&mut self, body: &[u8]) -> Result<&[u8], EndpointError> {
        let run = Run::decode_for_proxy(body)?;
        let until = Duration::from_nanos(run.until);
        self.check_order(&run)?;
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
                let side = match datagram.ecn & SERVER_SIDE {
                    0 => Side::Client,
                    _ => Side::Server,
                };
                let ecn = datagram.ecn & !SERVER_SIDE;
                let payload = &body[datagram.payload];
                self.middlebox.arrive(next, side, ecn, payload);
            }
            self.act();
        }
        self.now = until;
        let next_wake = self
            .next_wake()
            .map_or(NEVER, |time| nanos(time.max(until)));
        Ok(self.ran.finish(next_wake, true))
    }

    fn check_order(&self, run: &Run) -> Result<(), EndpointError> {
        let arrivals = run.arrivals.iter().map(|arrival| arrival.time);
        let times = arrivals.chain([run.until]);
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

    /// The time at which the next timer is to be handled.
    fn next_wake(&mut self) -> Option<Duration> {
        if self.is_new {
            return Some(self.now);
        }
        let timeout = self.middlebox.next_timeout()?;
        Some(timeout.max(self.timer_floor).max(self.now))
    }

    /// Handles timers, and collects what departs.
    fn act(&mut self) {
        self.is_new = false;
        let due = |timeout: Duration| timeout <= self.now;
        if self.now >= self.timer_floor && self.middlebox.next_timeout().is_some_and(due) {
            self.middlebox.handle_timeout(self.now);
            self.timer_floor = self.now + TIMER_RESOLUTION;
        }
        let (ran, now) = (&mut self.ran, nanos(self.now));
        self.middlebox.depart(self.now, &mut |side, ecn, payload| {
            let place = match side {
                Side::Client => 0,
                Side::Server => SERVER_SIDE,
            };
            ran.push(now, ecn | place, payload);
        });
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER)
}
