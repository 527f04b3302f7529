//! A network namespace's links, addresses, routes and neighbours, over netlink, each request waited
//! for.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily as Family, SocketType, socket};

/// What one Ethernet frame carries.
const MTU: u32 = 1500;

/// One end of a pair of devices.
#[derive(Debug, Clone, Copy)]
pub struct PairEnd<'a> {
    /// The device's name.
    pub name: &'a str,
    /// Its hardware address.
    pub mac: [u8; 6],
    /// The network namespace that it is in.
    pub namespace: BorrowedFd<'a>,
}

/// A network: its address and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// Any address of the network.
    pub address: IpAddr,
    /// Bits of an address that all its addresses share.
    pub length: u8,
}

impl Prefix {
    /// The address with nothing but the prefix in it.
    fn network(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length));
                (address & Ipv4Addr::from(mask.unwrap_or(0))).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length));
                (address & Ipv6Addr::from(mask.unwrap_or(0))).into()
            }
        }
    }
}

/// The kernel's configuration of the network namespace that the thread was in when this was opened.
pub struct Netlink(Socket);

impl Netlink {
    /// Opens that of the calling thread's network namespace.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self(socket))
    }

    /// Makes a pair of devices, each in its namespace.
    pub fn add_pair(&mut self, one: PairEnd, other: PairEnd) -> io::Result<()> {
        let mut message = one_end(one);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(one_end(other)))),
        ]));
        self.add(RouteNetlinkMessage::NewLink(message))
    }

    /// Lets a device work.
    pub fn set_up(&mut self, device: &str) -> io::Result<()> {
        self.set_flags(device, LinkFlags::Up, LinkFlags::Up)
    }

    /// Lets a device work that sends nothing on its own account: it asks nobody for addresses, and is in no group.
    pub fn set_up_silent(&mut self, device: &str) -> io::Result<()> {
        let flags = LinkFlags::Up | LinkFlags::Noarp;
        self.set_flags(device, flags, flags | LinkFlags::Multicast)
    }

    fn set_flags(&mut self, device: &str, flags: LinkFlags, mask: LinkFlags) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index(device)?;
        message.header.flags = flags;
        message.header.change_mask = mask;
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a device an address, and the way to its neighbours with it.
    pub fn add_address(&mut self, device: &str, prefix: Prefix) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(prefix.address);
        message.header.prefix_len = prefix.length;
        message.header.index = index(device)?;
        // Nodad: with a search for duplicates, even one that is switched off, an IPv6 address works
        // only after a queue of the kernel's has come to it, which may take longer than anybody waits.
        message.header.flags = AddressHeaderFlags::Permanent | AddressHeaderFlags::Nodad;
        message.attributes = vec![AddressAttribute::Address(prefix.address)];
        if prefix.address.is_ipv4() {
            message
                .attributes
                .push(AddressAttribute::Local(prefix.address));
        }
        self.add(RouteNetlinkMessage::NewAddress(message))
    }

    /// Says what hardware address a neighbour has, so that nobody needs to ask over the link.
    pub fn add_neighbour(&mut self, device: &str, ip: IpAddr, mac: [u8; 6]) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(ip);
        message.header.ifindex = index(device)?;
        message.header.state = NeighbourState::Permanent;
        let address = match ip {
            IpAddr::V4(ip) => NeighbourAddress::Inet(ip),
            IpAddr::V6(ip) => NeighbourAddress::Inet6(ip),
        };
        message.attributes = vec![
            NeighbourAttribute::Destination(address),
            NeighbourAttribute::LinkLocalAddress(mac.to_vec()),
        ];
        self.add(RouteNetlinkMessage::NewNeighbour(message))
    }

    /// Routes what goes to `destination`, or everything else with a prefix of length zero, by way of
    /// a neighbour.
    pub fn add_route(&mut self, destination: Prefix, via: IpAddr) -> io::Result<()> {
        let way = RouteAttribute::Gateway(route_address(via));
        self.add(RouteNetlinkMessage::NewRoute(route(destination, way)))
    }

    /// The same, to a device that has no neighbours.
    pub fn add_device_route(&mut self, destination: Prefix, device: &str) -> io::Result<()> {
        let way = RouteAttribute::Oif(index(device)?);
        self.add(RouteNetlinkMessage::NewRoute(route(destination, way)))
    }

    /// Asks for something new; an error if it exists.
    fn add(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Whether packets can leave a device: some time after it and its peer have been set up.
    pub fn is_running(&mut self, device: &str) -> io::Result<bool> {
        let mut message = LinkMessage::default();
        message.header.index = index(device)?;
        match self.exchange(RouteNetlinkMessage::GetLink(message), 0)? {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                Ok(link.header.flags.contains(LinkFlags::Running))
            }
            other => Err(unexpected(other)),
        }
    }

    /// Sends one request, and waits until the kernel says that it is done.
    fn ask(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        match self.exchange(message, NLM_F_ACK | flags)? {
            NetlinkPayload::Error(error) if error.code.is_none() => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Sends one request; the answer.
    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.0.send(&bytes, 0)?;
        let (answer, _) = self.0.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
            .map_err(io::Error::other)?;
        Ok(answer.payload)
    }
}

fn route(destination: Prefix, way: RouteAttribute) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(destination.address);
    message.header.destination_prefix_length = destination.length;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![way];
    if destination.length > 0 {
        let address = route_address(destination.network());
        let to = RouteAttribute::Destination(address);
        message.attributes.push(to);
    }
    message
}

/// The error that the kernel answered with.
fn unexpected(answer: NetlinkPayload<RouteNetlinkMessage>) -> io::Error {
    match answer {
        NetlinkPayload::Error(error) => error.to_io(),
        other => io::Error::other(format!("the kernel answered with {other:?}")),
    }
}

fn one_end(end: PairEnd) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(end.name.to_owned()),
        LinkAttribute::Address(end.mac.to_vec()),
        LinkAttribute::Mtu(MTU),
        LinkAttribute::NetNsFd(end.namespace.as_raw_fd()),
    ];
    message
}

fn index(device: &str) -> io::Result<u32> {
    let any = socket(Family::INET, SocketType::DGRAM, None)?;
    Ok(name_to_index(any, device)?)
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}
