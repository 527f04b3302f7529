//! The sockets that workers share an address with.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

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
