//! Virtual time: what a trial's packets are to an end of the tunnel.

use std::time::Duration;

use bentpipe_endpoint::EndpointError;
use bentpipe_endpoint::contract::ProxyBye;
use bentpipe_fec::{Departure, Settings, Side, Tunnel};
use bentpipe_service::virtual_time::{self, Middlebox, Program, Side as Place};

use crate::VERSION;
use crate::instructions::Instructions;

const PROGRAM: Program = Program {
    name: "bentpipe-fec",
    version: VERSION,
    driver: "at each instant: all arrivals, then timers",
};

/// Exchanges messages with the coordinator until FINISH, or until it goes away.
pub fn run(defaults: Settings) -> Result<(), EndpointError> {
    virtual_time::run(PROGRAM, |hello, _| {
        let instructions = Instructions::of(hello, defaults)?;
        Ok(VirtualTime {
            client_side: instructions.client_side,
            tunnel: Tunnel::new(instructions.settings),
            departures: Vec::new(),
        })
    })
}

struct VirtualTime {
    client_side: Side,
    tunnel: Tunnel,
    /// The packets that leave at an instant.
    departures: Vec<Departure>,
}

impl Middlebox for VirtualTime {
    fn arrive(&mut self, now: Duration, place: Place, ecn: u8, payload: &[u8]) {
        let side = match (self.client_side, place) {
            (side, Place::Client) => side,
            (Side::Plain, Place::Server) => Side::Tunnel,
            (Side::Tunnel, Place::Server) => Side::Plain,
        };
        let came = (side, ecn, payload);
        self.tunnel.arrive(now, came, &mut self.departures);
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        self.tunnel.next_timeout()
    }

    fn handle_timeout(&mut self, now: Duration) {
        self.tunnel.handle_timeout(now, &mut self.departures);
    }

    fn depart(&mut self, _: Duration, leave: &mut dyn FnMut(Place, u8, &[u8])) {
        for Departure { side, ecn, payload } in self.departures.drain(..) {
            let place = if side == self.client_side {
                Place::Client
            } else {
                Place::Server
            };
            leave(place, ecn, &payload);
        }
    }

    fn finish(self) -> Result<ProxyBye, EndpointError> {
        Ok(ProxyBye {
            statistics: self.tunnel.statistics(),
            ..ProxyBye::default()
        })
    }
}
