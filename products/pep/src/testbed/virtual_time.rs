//! Virtual time: what a trial's packets are to the proxy.

use std::net::SocketAddr;
use std::time::Duration;

use bentpipe_endpoint::contract::{ProxyBye, ProxyHello};
use bentpipe_endpoint::driver::MAX_DATAGRAMS;
use bentpipe_endpoint::{Clock, EndpointError, Received};
use bentpipe_fec::hop::RepairedHop;
use bentpipe_pep::{Proxy, Socket};
use bentpipe_service::virtual_time::{self, Middlebox, Program, Side};
use bytes::BytesMut;

use super::job::Job;
use crate::VERSION;

const PROGRAM: Program = Program {
    name: "bentpipe-pep",
    version: VERSION,
    driver: "at each instant: all arrivals, then timers, then polls of up to 10 datagrams \
             until there is nothing more to send on either side",
};

/// Exchanges messages with the coordinator until FINISH, or until it goes away.
pub fn run() -> Result<(), EndpointError> {
    virtual_time::run(PROGRAM, |hello, clock| {
        RepairedHop::new(hello, |hello| VirtualTime::new(hello, clock))
    })
}

struct VirtualTime {
    job: Job,
    proxy: Proxy,
    /// Where datagrams on the client side come from.
    previous_hop: SocketAddr,
    buffer: Vec<u8>,
}

impl VirtualTime {
    fn new(hello: ProxyHello, clock: &Clock) -> Result<Self, EndpointError> {
        let (job, proxy) = Job::new(hello, clock, false, true)?;
        let previous_hop = job.previous_hop.ok_or_else(|| EndpointError::Field {
            field: "previous_hop",
            value: "null".into(),
            problem: "in virtual time datagrams do not say where they come from".into(),
        })?;
        Ok(Self {
            job,
            proxy,
            previous_hop,
            buffer: Vec::new(),
        })
    }
}

impl Middlebox for VirtualTime {
    fn arrive(&mut self, now: Duration, side: Side, ecn: u8, payload: &[u8]) {
        let (socket, remote) = match side {
            Side::Client => (Socket::Client, self.previous_hop),
            Side::Server => (Socket::Server, self.job.next_hop),
        };
        // A copy for each: what the library holds on to is then no more than it needs.
        let datagram = Received {
            remote,
            local_ip: None,
            ecn,
            payload: BytesMut::from(payload),
        };
        self.proxy.handle_datagram(now, socket, datagram);
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        self.proxy.next_timeout()
    }

    fn handle_timeout(&mut self, now: Duration) {
        self.proxy.handle_timeout(now);
    }

    fn depart(&mut self, now: Duration, leave: &mut dyn FnMut(Side, u8, &[u8])) {
        while let Some((socket, transmit)) = {
            self.buffer.clear();
            self.proxy
                .poll_transmit(now, MAX_DATAGRAMS, &mut self.buffer)
        } {
            let side = match socket {
                Socket::Client => Side::Client,
                Socket::Server | Socket::Bypass(_) => Side::Server,
            };
            let segment = transmit.segment_size.unwrap_or(self.buffer.len()).max(1);
            for payload in self.buffer.chunks(segment) {
                leave(side, transmit.ecn, payload);
            }
        }
        // There is nobody to tell.
        while self.proxy.poll_event().is_some() {}
    }

    fn finish(self) -> Result<ProxyBye, EndpointError> {
        self.job.finish(self.proxy)
    }
}
