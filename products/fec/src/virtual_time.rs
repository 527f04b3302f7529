//! Virtual time: lives from one RUN to the next, and reads no clock. At each instant arrivals are
//! handled, then timers.

use std::time::Duration;

use bentpipe_endpoint::EndpointError;
use bentpipe_endpoint::contract::{
    BYE, FINISH, HELLO, NEVER, ProxyBye, ProxyHello, READY, RUN, RanMessage, Ready, Run,
    SERVER_SIDE, encode_message, message_name,
};
use bentpipe_endpoint::driver::Pipes;
use bentpipe_fec::{Departure, Settings, Side, Tunnel};

use crate::VERSION;
use crate::instructions::Instructions;

/// Exchanges messages with the coordinator until FINISH, or until it goes away.
pub fn run(defaults: Settings) -> Result<(), EndpointError> {
    let mut pipes = Pipes::inherited();
    let Some((kind, body)) = pipes.receive()? else {
        return Ok(());
    };
    if kind != HELLO {
        return Err(unexpected(kind, "HELLO"));
    }
    let hello: ProxyHello = serde_json::from_slice(body)?;
    let shared_memory = pipes.share(hello.shared_memory)?;
    let instructions = Instructions::of(hello, defaults)?;
    let mut end = VirtualTime {
        client_side: instructions.client_side,
        tunnel: Tunnel::new(instructions.settings),
        now: Duration::ZERO,
        departures: Vec::new(),
        ran: RanMessage::new(),
    };
    let ready = Ready {
        stack: "bentpipe-fec".into(),
        version: VERSION.into(),
        driver: "at each instant: all arrivals, then timers".into(),
        next_wake: None,
        shared_memory,
    };
    pipes.send(&encode_message(READY, &serde_json::to_vec(&ready)?))?;
    while let Some((kind, body)) = pipes.receive()? {
        match kind {
            RUN => {
                let ran = end.live(body)?;
                pipes.send(ran)?;
            }
            FINISH => {
                let bye = ProxyBye {
                    statistics: end.tunnel.statistics(),
                    ..ProxyBye::default()
                };
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

struct VirtualTime {
    client_side: Side,
    tunnel: Tunnel,
    now: Duration,
    /// The packets that leave at an instant.
    departures: Vec<Departure>,
    ran: RanMessage,
}

impl VirtualTime {
    /// Lives through one RUN and returns its RAN.
    fn live(&mut self, body: &[u8]) -> Result<&[u8], EndpointError> {
        let run = Run::decode_for_proxy(body)?;
        let until = Duration::from_nanos(run.until);
        self.ran.clear();
        let mut arrivals = run.arrivals.into_iter().peekable();
        loop {
            let arrival = arrivals.peek().map(|next| Duration::from_nanos(next.time));
            let next = arrival.into_iter().chain(self.tunnel.next_timeout()).min();
            // A timer that should have been set earlier is due now.
            let next = next.map(|next| next.max(self.now));
            let Some(now) = next.filter(|next| *next < until) else {
                break;
            };
            self.now = now;
            let due = |time: u64| Duration::from_nanos(time) == now;
            while let Some(datagram) = arrivals.next_if(|arrival| due(arrival.time)) {
                let side = self.side(datagram.ecn & SERVER_SIDE != 0);
                let came = (side, datagram.ecn & !SERVER_SIDE, &body[datagram.payload]);
                self.tunnel.arrive(now, came, &mut self.departures);
            }
            if self.tunnel.next_timeout().is_some_and(|at| at <= now) {
                self.tunnel.handle_timeout(now, &mut self.departures);
            }
            self.depart(now);
        }
        self.now = until;
        let wake = self.tunnel.next_timeout();
        let wake = wake.map_or(NEVER, |at| nanos(at.max(until)));
        Ok(self.ran.finish(wake, true))
    }

    /// The side of the tunnel towards the server, or the client.
    fn side(&self, is_of_server: bool) -> Side {
        match (self.client_side, is_of_server) {
            (side, false) => side,
            (Side::Plain, true) => Side::Tunnel,
            (Side::Tunnel, true) => Side::Plain,
        }
    }

    fn depart(&mut self, now: Duration) {
        for Departure { side, ecn, payload } in self.departures.drain(..) {
            let place = if side == self.client_side {
                0
            } else {
                SERVER_SIDE
            };
            self.ran.push(nanos(now), ecn | place, &payload);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER)
}
