//! The addresses of a network namespace's devices, all that the kernel takes for its own, and the
//! news that this has changed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::{Netlink, Prefix, family, index};

/// The kernel's groups for news of addresses and routes: `RTNLGRP_IPV4_IFADDR`,
/// `RTNLGRP_IPV6_IFADDR`, `RTNLGRP_IPV4_ROUTE`, `RTNLGRP_IPV6_ROUTE`.
const GROUPS: [u32; 4] = [5, 9, 7, 11];
/// The kernel's table of routes to the host itself: `RT_TABLE_LOCAL`.
const LOCAL: u8 = 255;
/// The types of routes to the host itself.
const OWN: [RouteType; 3] = [RouteType::Local, RouteType::Broadcast, RouteType::Anycast];

/// The news that addresses or routes of the network namespace have changed.
pub struct OwnWatch(Socket);

impl OwnWatch {
    /// Watches the calling thread's network namespace from now on.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        for group in GROUPS {
            socket.add_membership(group)?;
        }
        Ok(Self(socket))
    }

    /// Waits until some have changed, and takes all news that is there.
    pub fn wait(&mut self) -> io::Result<()> {
        let mut news = Vec::new();
        let mut flags = RecvFlags::empty();
        loop {
            news.clear();
            let bits = flags.bits().cast_signed();
            // What the news says does not matter, and may be cut off.
            news.reserve(1);
            let taken = self.0.recv_from(&mut news, bits).map(drop);
            match taken.map_err(|error| (error.raw_os_error(), error)) {
                Ok(()) => {}
                Err((Some(errno), _)) if errno == Errno::AGAIN.raw_os_error() => return Ok(()),
                // There was more news than the kernel keeps.
                Err((Some(errno), _)) if errno == Errno::NOBUFS.raw_os_error() => {}
                Err((_, error)) => return Err(error),
            }
            flags = RecvFlags::DONTWAIT;
        }
    }
}

impl Netlink {
    /// Gives a device an address, and the way to its neighbours with it.
    pub fn add_address(&mut self, device: &str, prefix: Prefix) -> io::Result<()> {
        let message = address(device, prefix)?;
        self.add(RouteNetlinkMessage::NewAddress(message))
    }

    /// Takes an address from a device.
    pub fn remove_address(&mut self, device: &str, prefix: Prefix) -> io::Result<()> {
        let message = address(device, prefix)?;
        self.ask(RouteNetlinkMessage::DelAddress(message), 0)
    }

    /// The networks whose packets the kernel takes for its own: those of its table `local`, which
    /// has the addresses of all devices, their broadcast and anycast addresses, and whatever else
    /// somebody has put there.
    pub fn own_networks(&mut self) -> io::Result<Vec<Prefix>> {
        // Kernels that know no filter send all tables.
        let _ = self.0.set_netlink_get_strict_chk(true);
        let mut found = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            message.header.table = LOCAL;
            let request = RouteNetlinkMessage::GetRoute(message);
            let dumped = self.dump(request, |answer| match answer {
                RouteNetlinkMessage::NewRoute(route) => {
                    found.extend(own_network(&route));
                    None
                }
                other => Some(other),
            });
            // A namespace that has had no address has no such table.
            dumped.or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
        }
        Ok(found)
    }
}

/// The message about an address of a device.
fn address(device: &str, prefix: Prefix) -> io::Result<AddressMessage> {
    let mut message = AddressMessage::default();
    message.header.family = family(prefix.address);
    message.header.prefix_len = prefix.length;
    message.header.index = index(device)?;
    // Nodad: with a search for duplicates, even one that is switched off, an IPv6 address works
    // only after a queue of the kernel's has come to it, which may take longer than anybody
    // waits.
    message.header.flags = AddressHeaderFlags::Permanent | AddressHeaderFlags::Nodad;
    message.attributes = vec![AddressAttribute::Address(prefix.address)];
    if prefix.address.is_ipv4() {
        message
            .attributes
            .push(AddressAttribute::Local(prefix.address));
    }
    Ok(message)
}

/// The network of a route of the table `local` to the host itself.
fn own_network(route: &RouteMessage) -> Option<Prefix> {
    let header = &route.header;
    if header.table != LOCAL || !OWN.contains(&header.kind) {
        return None;
    }
    let length = header.destination_prefix_length;
    let to = route.attributes.iter().find_map(|it| match it {
        RouteAttribute::Destination(RouteAddress::Inet(address)) => Some((*address).into()),
        RouteAttribute::Destination(RouteAddress::Inet6(address)) => Some((*address).into()),
        _ => None,
    });
    let everything: IpAddr = match header.address_family {
        AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
        _ => Ipv6Addr::UNSPECIFIED.into(),
    };
    let address = to.unwrap_or(everything);
    Some(Prefix { address, length })
}
