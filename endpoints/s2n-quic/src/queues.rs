//! The queues by which datagrams get into and out of the endpoint.

use std::net::SocketAddr;

use bentpipe_endpoint::{Outbox, Received, Transmit};
use s2n_quic_core::inet::datagram::Header;
use s2n_quic_core::inet::{ExplicitCongestionNotification, SocketAddress};
use s2n_quic_core::io::{rx, tx};
use s2n_quic_core::path::{Handle as _, Tuple};

/// Datagrams that the endpoint may write before the driver takes them.
const CAPACITY: usize = 64;
/// The buffer of one datagram: the largest UDP payload of an Ethernet frame.
const LARGEST: usize = 1500 - 28;

/// A datagram that has arrived.
pub struct Arrival {
    header: Header<Tuple>,
    datagram: Received,
}

impl Arrival {
    /// `local` stands for the local address if that is not known of this datagram.
    pub fn new(datagram: Received, local: SocketAddr) -> Self {
        let local_ip = datagram.local_ip.unwrap_or(local.ip());
        Self {
            header: Header {
                path: Tuple {
                    remote_address: SocketAddress::from(datagram.remote).into(),
                    local_address: SocketAddress::from((local_ip, local.port())).into(),
                },
                ecn: ExplicitCongestionNotification::new(datagram.ecn),
            },
            datagram,
        }
    }
}

impl rx::Queue for Arrival {
    type Handle = Tuple;

    fn for_each<F: FnMut(Header<Tuple>, &mut [u8])>(&mut self, mut on_packet: F) {
        on_packet(self.header, &mut self.datagram.payload);
    }

    fn is_empty(&self) -> bool {
        false
    }
}

/// A queue that takes nothing.
pub struct NoRoom;

impl tx::Queue for NoRoom {
    type Handle = Tuple;

    fn push<M: tx::Message<Handle = Tuple>>(&mut self, _: M) -> Result<tx::Outcome, tx::Error> {
        Err(tx::Error::AtCapacity)
    }

    fn capacity(&self) -> usize {
        0
    }
}

/// The queue of datagrams that the endpoint writes.
#[derive(Default)]
pub struct Departures(pub Outbox);

impl tx::Queue for Departures {
    type Handle = Tuple;

    const SUPPORTS_ECN: bool = true;

    fn push<M: tx::Message<Handle = Tuple>>(
        &mut self,
        mut message: M,
    ) -> Result<tx::Outcome, tx::Error> {
        if !self.has_capacity() {
            return Err(tx::Error::AtCapacity);
        }
        let mut payload = [0; LARGEST];
        let len = message.write_payload(tx::PayloadBuffer::new(&mut payload), 0)?;
        if len == 0 {
            return Err(tx::Error::EmptyPayload);
        }
        let path = message.path_handle();
        let source = SocketAddr::from(path.local_address()).ip();
        let transmit = Transmit {
            destination: path.remote_address().into(),
            source: (!source.is_unspecified()).then_some(source),
            ecn: message.ecn() as u8,
            segment_size: None,
        };
        self.0.push(transmit, &payload[..len]);
        Ok(tx::Outcome { len, index: 0 })
    }

    fn capacity(&self) -> usize {
        CAPACITY - self.0.len()
    }
}
