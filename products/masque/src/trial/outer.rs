//! The headers of the tunnel's own packets, where it carries whole IP packets: in virtual time
//! there is no kernel that writes them.

use std::net::SocketAddr;
use std::time::Duration;

use bentpipe_endpoint::EndpointError;
use bentpipe_endpoint::contract::ProxyBye;
use bentpipe_service::virtual_time::{Middlebox, Side};
use bentpipe_wire::capture::CapturedPacket;
use bentpipe_wire::{Datagram, Endpoints, ecn, encapsulate};

/// Link type 101: raw IP.
const RAW: u16 = 101;

/// A middlebox whose datagrams on the satellite's side are in packets between the ends of a tunnel,
/// if it has one.
pub struct Outer<M> {
    inner: M,
    satellite: Side,
    headers: Option<Headers>,
}

struct Headers {
    sending: Endpoints,
    number: u16,
    whole: Vec<u8>,
}

impl<M> Outer<M> {
    /// One with the satellite on this side, between these ends, this one's first.
    pub fn new(inner: M, satellite: Side, ends: Option<[SocketAddr; 2]>) -> Self {
        Self {
            inner,
            satellite,
            headers: ends.map(Headers::between),
        }
    }
}

impl Headers {
    fn between([source, destination]: [SocketAddr; 2]) -> Self {
        Self {
            sending: Endpoints {
                source,
                destination,
            },
            number: 0,
            whole: Vec::new(),
        }
    }

    fn wrap(&mut self, ecn: u8, payload: &[u8]) -> &[u8] {
        self.number = self.number.wrapping_add(1);
        encapsulate(&mut self.whole, self.sending, ecn, self.number, payload);
        &self.whole
    }

    /// The payload of a packet of the other end's; `None`: it is none.
    fn unwrap<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        let datagram = Datagram::of(&CapturedPacket {
            interface: 0,
            time: None,
            link_type: RAW,
            bytes: packet,
            comment: None,
        });
        let datagram = datagram.ok()?;
        let Endpoints {
            source,
            destination,
        } = self.sending;
        let is_of_other =
            datagram.path.source == destination && datagram.path.destination == source;
        is_of_other.then_some(datagram.payload)
    }
}

impl<M: Middlebox> Middlebox for Outer<M> {
    fn arrive(&mut self, now: Duration, side: Side, bits: u8, packet: &[u8]) {
        let headers = self.headers.as_ref().filter(|_| side == self.satellite);
        let Some(headers) = headers else {
            return self.inner.arrive(now, side, bits, packet);
        };
        // What else comes there is of nobody that the tunnel knows.
        if let Some(payload) = headers.unwrap(packet) {
            self.inner.arrive(now, side, ecn(packet), payload);
        }
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        self.inner.next_timeout()
    }

    fn handle_timeout(&mut self, now: Duration) {
        self.inner.handle_timeout(now);
    }

    fn depart(&mut self, now: Duration, leave: &mut dyn FnMut(Side, u8, &[u8])) {
        let (satellite, headers) = (self.satellite, &mut self.headers);
        self.inner.depart(now, &mut |side, bits, payload| {
            let headers = headers.as_mut().filter(|_| side == satellite);
            let packet = headers.map_or(payload, |it| it.wrap(bits, payload));
            leave(side, bits, packet);
        });
    }

    fn finish(self) -> Result<ProxyBye, EndpointError> {
        self.inner.finish()
    }
}
