//! Virtual time: lives from one RUN to the next, and reads no clock. At each instant arrivals of
//! both sides are handled, then timers, then everything that is to be sent is sent.

use std::net::SocketAddr;
use std::time::Duration;

use bentpipe_endpoint::contract::{
    BYE, FINISH, HELLO, NEVER, ProxyHello, READY, RUN, RanMessage, Ready, Run, SERVER_SIDE,
    encode_message, message_name,
};
use bentpipe_endpoint::driver::{MAX_DATAGRAMS, Pipes};
use bentpipe_endpoint::{Clock, EndpointError, Received, Transmit, seed_entropy};
use bentpipe_pep::{Proxy, Socket};
use bytes::BytesMut;

use super::job::Job;
use crate::VERSION;

/// The driver's description in READY.
const DRIVER: &str = "at each instant: all arrivals, then timers, then polls of up to 10 datagrams \
                      until there is nothing more to send on either side";
/// A timer that is due again right after it was handled waits this long, so that time goes on.
const TIMER_RESOLUTION: Duration = Duration::from_micros(1);

/// Exchanges messages with the coordinator until FINISH, or until it goes away.
pub fn run() -> Result<(), EndpointError> {
    bentpipe_endpoint::keep_freed_memory();
    let mut pipes = Pipes::inherited();
    let Some((kind, body)) = pipes.receive()? else {
        return Ok(());
    };
    if kind != HELLO {
        let what = format!("{} in place of HELLO", message_name(kind));
        return Err(EndpointError::Conversation(what));
    }
    let hello: ProxyHello = serde_json::from_slice(body)?;
    seed_entropy(&hello.seed, 0)?;
    let shared_memory = pipes.share(hello.shared_memory)?;
    let clock = Clock::new(Duration::from_secs(hello.epoch_unix_s));
    let (job, proxy) = Job::new(hello, &clock, false)?;
    let mut driver = VirtualTime::new(job, proxy, clock)?;
    let ready = Ready {
        stack: "bentpipe-pep".into(),
        version: VERSION.into(),
        driver: DRIVER.into(),
        next_wake: Some(0),
        shared_memory,
    };
    pipes.send(&encode_message(READY, &serde_json::to_vec(&ready)?))?;
    while let Some((kind, body)) = pipes.receive()? {
        match kind {
            RUN => {
                let ran = driver.live(body)?;
                pipes.send(ran)?;
            }
            FINISH => {
                let bye = driver.job.finish(driver.proxy)?;
                return pipes.send(&encode_message(BYE, &serde_json::to_vec(&bye)?));
            }
            other => {
                let what = format!("{} in place of RUN or FINISH", message_name(other));
                return Err(EndpointError::Conversation(what));
            }
        }
    }
    Ok(())
}

struct VirtualTime {
    job: Job,
    proxy: Proxy,
    /// Where datagrams on the client side come from.
    previous_hop: SocketAddr,
    clock: Clock,
    now: Duration,
    /// Timers are not handled before this time.
    timer_floor: Duration,
    /// Whether it has not lived yet.
    is_new: bool,
    ran: RanMessage,
    buffer: Vec<u8>,
}

impl VirtualTime {
    fn new(job: Job, proxy: Proxy, clock: Clock) -> Result<Self, EndpointError> {
        let previous_hop = job.previous_hop.ok_or_else(|| EndpointError::Field {
            field: "previous_hop",
            value: "null".into(),
            problem: "in virtual time datagrams do not say where they come from".into(),
        })?;
        Ok(Self {
            job,
            proxy,
            previous_hop,
            clock,
            now: Duration::ZERO,
            timer_floor: Duration::ZERO,
            is_new: true,
            ran: RanMessage::new(),
            buffer: Vec::new(),
        })
    }

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
                self.arrive(datagram.ecn, &body[datagram.payload]);
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

    /// When the next timer is to be handled.
    fn next_wake(&mut self) -> Option<Duration> {
        if self.is_new {
            return Some(self.now);
        }
        let timeout = self.proxy.next_timeout()?;
        Some(timeout.max(self.timer_floor).max(self.now))
    }

    fn arrive(&mut self, ecn: u8, payload: &[u8]) {
        let (socket, remote) = match ecn & SERVER_SIDE {
            0 => (Socket::Client, self.previous_hop),
            _ => (Socket::Server, self.job.next_hop),
        };
        // A copy for each: what the library holds on to is then no more than it needs.
        let datagram = Received {
            remote,
            local_ip: None,
            ecn: ecn & !SERVER_SIDE,
            payload: BytesMut::from(payload),
        };
        self.proxy.handle_datagram(self.now, socket, datagram);
    }

    /// Handles timers, and collects what departs.
    fn act(&mut self) {
        self.is_new = false;
        let due = |timeout: Duration| timeout <= self.now;
        if self.now >= self.timer_floor && self.proxy.next_timeout().is_some_and(due) {
            self.proxy.handle_timeout(self.now);
            self.timer_floor = self.now + TIMER_RESOLUTION;
        }
        while let Some((socket, transmit)) = {
            self.buffer.clear();
            self.proxy
                .poll_transmit(self.now, MAX_DATAGRAMS, &mut self.buffer)
        } {
            self.depart(socket, transmit);
        }
        // There is nobody to tell.
        while self.proxy.poll_event().is_some() {}
    }

    fn depart(&mut self, socket: Socket, transmit: Transmit) {
        let side = match socket {
            Socket::Client => 0,
            Socket::Server | Socket::Bypass(_) => SERVER_SIDE,
        };
        let segment = transmit.segment_size.unwrap_or(self.buffer.len()).max(1);
        for payload in self.buffer.chunks(segment) {
            self.ran.push(nanos(self.now), transmit.ecn | side, payload);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER)
}
