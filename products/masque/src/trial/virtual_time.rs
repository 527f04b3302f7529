//! Virtual time: what a trial's packets are to an end.

use std::net::SocketAddr;
use std::time::Duration;

use bentpipe_endpoint::contract::{ProxyBye, ProxyHello};
use bentpipe_endpoint::driver::MAX_DATAGRAMS;
use bentpipe_endpoint::{Clock, EndpointError, Received};
use bentpipe_fec::hop::RepairedHop;
use bentpipe_masque::{Delivery, FlowId, Output, Refusal};
use bentpipe_service::virtual_time::{self, Middlebox, Program, Side};
use bentpipe_wire::ecn;
use bytes::BytesMut;

use super::end::{End, Kind};
use super::outer::Outer;
use super::{job, repair};
use crate::VERSION;

const PROGRAM: Program = Program {
    name: "bentpipe-masque",
    version: VERSION,
    driver: "at each instant: all arrivals, then timers, then polls of up to 10 datagrams",
};

/// Exchanges messages with the coordinator until FINISH, or until it goes away.
pub fn run() -> Result<(), EndpointError> {
    virtual_time::run(PROGRAM, |mut hello, clock| {
        repair::fit(&mut hello.options)?;
        let satellite = match hello.place.as_str() {
            "terminal" => Side::Server,
            _ => Side::Client,
        };
        let ends = hello.tunnel.as_ref().map(job::tunnel).transpose()?;
        let repaired = RepairedHop::new(hello, |hello| VirtualTime::new(hello, clock))?;
        Ok(Outer::new(repaired, satellite, ends))
    })
}

struct VirtualTime {
    end: End,
    /// Where datagrams on the client side come from.
    previous_hop: SocketAddr,
    /// The latest flow of a proxy that is allowed: all of them would have one address.
    flow: Option<FlowId>,
    buffer: Vec<u8>,
}

impl VirtualTime {
    fn new(hello: ProxyHello, clock: &Clock) -> Result<Self, EndpointError> {
        let end = job::make(hello, clock, false, None)?;
        let previous_hop = end.job.previous_hop.ok_or_else(|| EndpointError::Field {
            field: "previous_hop",
            value: "null".into(),
            problem: "in virtual time datagrams do not say where they come from".into(),
        })?;
        Ok(Self {
            end,
            previous_hop,
            flow: None,
            buffer: Vec::new(),
        })
    }
}

impl Middlebox for VirtualTime {
    fn arrive(&mut self, now: Duration, side: Side, bits: u8, payload: &[u8]) {
        let tunnel = self.end.job.tunnel;
        let remote = match (&mut self.end.kind, side) {
            (Kind::Client(client), Side::Client) if tunnel.is_some() => {
                return client.send_packet(now, payload);
            }
            (Kind::Proxy(proxy, _), Side::Server) if tunnel.is_some() => {
                proxy.handle_packet(now, payload);
                return;
            }
            (Kind::Client(client), Side::Client) => {
                return client.send(now, self.previous_hop, bits, payload);
            }
            (Kind::Proxy(proxy, _), Side::Server) => {
                if let Some(flow) = self.flow {
                    proxy.handle_reply(now, flow, bits, payload);
                }
                return;
            }
            (Kind::Client(_), Side::Server) => self.end.job.next_hop,
            (Kind::Proxy(..), Side::Client) => self.previous_hop,
        };
        // A copy for each: what the library holds on to is then no more than it needs.
        let datagram = Received {
            remote: tunnel.map_or(remote, |[_, other]| other),
            local_ip: None,
            ecn: bits,
            payload: BytesMut::from(payload),
        };
        self.end.handle_datagram(now, datagram);
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        self.end.next_timeout()
    }

    fn handle_timeout(&mut self, now: Duration) {
        self.end.handle_timeout(now);
    }

    fn depart(&mut self, now: Duration, leave: &mut dyn FnMut(Side, u8, &[u8])) {
        let is_whole = self.end.job.tunnel.is_some();
        let tunnel = match &mut self.end.kind {
            Kind::Client(client) if is_whole => {
                while let Some(packet) = client.poll_packet() {
                    leave(Side::Client, ecn(&packet), &packet);
                }
                Side::Server
            }
            Kind::Client(client) => {
                while let Some(Delivery { ecn, payload, .. }) = client.poll_arrived() {
                    leave(Side::Client, ecn, &payload);
                }
                Side::Server
            }
            Kind::Proxy(proxy, target) => {
                while let Some(output) = proxy.poll_output() {
                    match output {
                        Output::Open(flow, asked) => {
                            let answer = if asked == *target && !is_whole {
                                self.flow = Some(flow);
                                Ok(())
                            } else {
                                Err(Refusal::NotAllowed)
                            };
                            proxy.answer(now, flow, answer);
                        }
                        Output::Send(flow, ecn, payload) if self.flow == Some(flow) => {
                            leave(Side::Server, ecn, &payload);
                        }
                        Output::Packet(_, packet) => leave(Side::Server, ecn(&packet), &packet),
                        Output::Send(..)
                        | Output::Close(_)
                        | Output::Tell(_)
                        | Output::Unrouted(..) => {}
                    }
                }
                Side::Client
            }
        };
        while let Some(transmit) = self.end.poll_transmit(now, MAX_DATAGRAMS, &mut self.buffer) {
            let segment = transmit.segment_size.unwrap_or(self.buffer.len()).max(1);
            for payload in self.buffer.chunks(segment) {
                leave(tunnel, transmit.ecn, payload);
            }
        }
    }

    fn finish(self) -> Result<ProxyBye, EndpointError> {
        self.end.finish()
    }
}
