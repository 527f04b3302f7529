//! The queues by which datagrams get into and out of the endpoint.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use bentpipe_endpoint::{Outbox, Received, Transmit};
use s2n_quic_core::inet::datagram::Header;
use s2n_quic_core::inet::{ExplicitCongestionNotification, SocketAddress};
use s2n_quic_core::io::{rx, tx};
use s2n_quic_core::path::{Handle as _, Tuple};

/// Datagrams that the endpoint may write before the driver takes them.
const CAPACITY: usize = 64;
/// The buffer of one datagram: the largest UDP payload of an Ethernet frame.
const LARGEST: usize = 1500 - 28;

/// The addresses of clients, as the endpoint is told them.
///
/// s2n-quic follows a client to no address that is set aside for documentation (RFC 5737, RFC
/// 3849), as those of trials are, and lets no application change that. So where clients may migrate
/// it is told others, which differ in one bit.
#[derive(Clone, Copy, Default)]
pub struct Disguise {
    is_worn: bool,
}

impl Disguise {
    pub fn worn_if(is_worn: bool) -> Self {
        Self { is_worn }
    }

    /// From the one to the other, either way.
    fn change(self, mut address: SocketAddr) -> SocketAddr {
        if !self.is_worn {
            return address;
        }
        address.set_ip(match address.ip() {
            IpAddr::V4(ip) => {
                let [first, rest @ ..] = ip.octets();
                IpAddr::from([first ^ 1, rest[0], rest[1], rest[2]])
            }
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() ^ 1 << 96).into(),
        });
        address
    }
}

/// A datagram that has arrived.
pub struct Arrival {
    header: Header<Tuple>,
    datagram: Received,
}

impl Arrival {
    /// `local` stands for the local address if that is not known of this datagram.
    pub fn new(datagram: Received, local: SocketAddr, disguise: Disguise) -> Self {
        let local_ip = datagram.local_ip.unwrap_or(local.ip());
        Self {
            header: Header {
                path: Tuple {
                    remote_address: SocketAddress::from(disguise.change(datagram.remote)).into(),
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
pub struct Departures(pub Outbox, pub Disguise);

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
            destination: self.1.change(path.remote_address().into()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disguise_is_no_address_of_documentation_and_is_taken_off_again() {
        let disguise = Disguise::worn_if(true);
        for (address, told) in [
            ("192.0.2.2:50000", "193.0.2.2:50000"),
            ("[2001:db8:1::2]:50000", "[2001:db9:1::2]:50000"),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(disguise.change(address).to_string(), told);
            assert_eq!(disguise.change(disguise.change(address)), address);
            assert_eq!(Disguise::default().change(address), address);
        }
    }
}
