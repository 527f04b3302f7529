//! The queues by which datagrams get into and out of the endpoint.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use bentpipe_endpoint::{Received, Transmit};
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

/// Datagrams that the endpoint has written.
#[derive(Default)]
pub struct Departures {
    bytes: Vec<u8>,
    waiting: VecDeque<Departure>,
}

#[derive(Clone, PartialEq, Eq)]
struct Departure {
    destination: SocketAddr,
    source: Option<IpAddr>,
    ecn: u8,
    payload: Range<usize>,
}

impl Departure {
    fn goes_with(&self, other: &Self) -> bool {
        let envelope = |it: &Self| (it.destination, it.source, it.ecn);
        envelope(self) == envelope(other)
    }
}

impl Departures {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Puts up to `most` datagrams of one size, of which the last may be shorter, into the empty
    /// `buffer`.
    pub fn take(&mut self, most: usize, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let first = self.waiting.pop_front()?;
        buffer.extend_from_slice(&self.bytes[first.payload.clone()]);
        let size = first.payload.len();
        let mut count = 1;
        while count < most
            && buffer.len() == count * size
            && let Some(next) = self
                .waiting
                .pop_front_if(|next| next.goes_with(&first) && next.payload.len() <= size)
        {
            buffer.extend_from_slice(&self.bytes[next.payload]);
            count += 1;
        }
        if self.waiting.is_empty() {
            self.bytes.clear();
        }
        Some(Transmit {
            destination: first.destination,
            source: first.source,
            ecn: first.ecn,
            segment_size: (count > 1).then_some(size),
        })
    }
}

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
        let start = self.bytes.len();
        self.bytes.resize(start + LARGEST, 0);
        let room = tx::PayloadBuffer::new(&mut self.bytes[start..]);
        let written = message.write_payload(room, 0);
        self.bytes.truncate(start + *written.as_ref().unwrap_or(&0));
        let len = written?;
        if len == 0 {
            return Err(tx::Error::EmptyPayload);
        }
        let path = message.path_handle();
        let source = SocketAddr::from(path.local_address()).ip();
        self.waiting.push_back(Departure {
            destination: path.remote_address().into(),
            source: (!source.is_unspecified()).then_some(source),
            ecn: message.ecn() as u8,
            payload: start..start + len,
        });
        Ok(tx::Outcome { len, index: 0 })
    }

    fn capacity(&self) -> usize {
        CAPACITY - self.waiting.len()
    }
}
