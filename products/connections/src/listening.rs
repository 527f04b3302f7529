//! The sockets that workers share an address with.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use bentpipe_endpoint::driver::Port;
use bentpipe_endpoint::{EndpointError, Transmit};
use bentpipe_service::supervisor::failed;
use bentpipe_service::{Failure, SettingsError};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use tracing::warn;

use crate::steering;

/// The most that UDP over IPv4 carries, and so the most that one call can send.
const MOST_BYTES: usize = 65_507;
/// The largest UDP payload that the library sends: an Ethernet frame's.
const LARGEST_PAYLOAD: usize = 1500 - 28;

/// A socket at `local` that may have others beside it; one of IPv6 serves IPv4, too, unless it must
/// not.
pub fn shared(local: SocketAddr, only_its_family: bool) -> io::Result<UdpSocket> {
    let family = if local.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    if local.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, only_its_family)?;
    }
    bind(&socket, &local)?;
    Ok(socket.into())
}

/// Sockets for `workers` at `local`, in their order. A port of 0 is one that is free, the same for
/// all.
pub fn group(
    local: SocketAddr,
    workers: usize,
    only_its_family: bool,
) -> io::Result<Vec<UdpSocket>> {
    // Somebody else of the same user could share the address unnoticed, and have a part of the
    // datagrams.
    drop(UdpSocket::bind(local)?);
    let first = shared(local, only_its_family)?;
    let place = first.local_addr()?;
    let mut sockets = vec![first];
    for _ in 1..workers {
        sockets.push(shared(place, only_its_family)?);
    }
    Ok(sockets)
}

/// The addresses, and each worker's sockets there. The kernel hands each worker the datagrams of
/// its connections.
pub fn listen(
    places: &[SocketAddr],
    workers: usize,
) -> Result<(Vec<SocketAddr>, Vec<Vec<UdpSocket>>), Failure> {
    let has_ipv4 = places.iter().any(SocketAddr::is_ipv4);
    let mut bound = Vec::new();
    let mut all: Vec<Vec<UdpSocket>> = (0..workers).map(|_| Vec::new()).collect();
    for &place in places {
        let group = group(place, workers, has_ipv4).map_err(|error| {
            let hint = "name an address of this machine and a UDP port that is free and allowed; \
                        below 1024 it takes the capability CAP_NET_BIND_SERVICE";
            SettingsError::new("listen", format!("{place}: {error}"), hint)
        })?;
        if workers > 1
            && let Err(error) = steering::attach(&group[0], workers)
        {
            let so = "workers hand datagrams on to each other, at a cost";
            warn!(why = %error, so, "steering");
        }
        let place = group[0].local_addr();
        bound.push(place.map_err(failed("asking for an address"))?);
        for (worker, socket) in all.iter_mut().zip(group) {
            worker.push(socket);
        }
    }
    Ok((bound, all))
}

/// A worker's sockets at the addresses that clients connect to.
pub struct ListeningPorts(Vec<(Port, SocketAddr)>);

/// Datagrams of one size that the kernel takes in one call: as many as it knows, and no more bytes
/// than UDP can carry.
#[must_use]
pub fn most_segments(port: &Port) -> usize {
    port.most_segments().min(MOST_BYTES / LARGEST_PAYLOAD)
}

impl ListeningPorts {
    /// Over sockets that are bound.
    pub fn new(sockets: Vec<UdpSocket>) -> Result<Self, EndpointError> {
        let over = |socket| {
            let port = Port::over(socket)?;
            let place = port.local_address()?;
            Ok((port, place))
        };
        let ports: Result<_, EndpointError> = sockets.into_iter().map(over).collect();
        Ok(Self(ports?))
    }

    /// All of them, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Port> {
        self.0.iter().map(|(port, _)| port)
    }

    /// The one of this number.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Port> {
        self.0.get(index).map(|(port, _)| port)
    }

    /// The one of this number, to send and receive.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut Port> {
        self.0.get_mut(index).map(|(port, _)| port)
    }

    /// [`most_segments`] of these sockets.
    #[must_use]
    pub fn most_segments(&self) -> usize {
        self.iter().next().map_or(1, most_segments)
    }

    /// The number of the one that an answer leaves by: its client came to it.
    #[must_use]
    pub fn for_answer(&self, transmit: &Transmit) -> usize {
        let is_it = |(_, place): &(Port, SocketAddr)| {
            let ip = place.ip();
            let exactly = transmit
                .source
                .is_some_and(|source| source.to_canonical() == ip.to_canonical());
            exactly || (ip.is_unspecified() && ip.is_ipv4() == transmit.destination.is_ipv4())
        };
        self.0.iter().position(is_it).unwrap_or(0)
    }
}
