//! A network namespace's links, addresses, routes and neighbours, over netlink, each request waited
//! for.

mod addresses;
mod mptcp;
pub mod tun;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric,
    RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{AddressFamily as Family, SocketType, socket};

pub use addresses::OwnWatch;
pub use mptcp::{MptcpEndpoint, MptcpPathManager};

/// The payload of one Ethernet frame.
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
    /// The route of all addresses of the version of IP of `like`.
    #[must_use]
    pub fn everything(like: IpAddr) -> Self {
        let address: IpAddr = match like {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self { address, length: 0 }
    }

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

/// An interception: packets that a device brings, to a port or as replies from it.
#[derive(Debug, Clone)]
pub struct Interception {
    /// The name of the device.
    pub device: String,
    /// The port.
    pub port: u16,
    /// Whether packets come from the port.
    pub is_reply: bool,
    /// Whether it is for packets of TCP alone.
    pub is_tcp: bool,
    /// The prefix of length zero of the version of IP.
    pub everything: Prefix,
    /// The table of routes that they are looked up in.
    pub table: u8,
}

/// Packets that have a mark.
#[derive(Debug, Clone, Copy)]
pub struct Marked {
    /// The mark.
    pub mark: u32,
    /// The prefix of length zero of the version of IP.
    pub everything: Prefix,
    /// The table of routes that they are looked up in.
    pub table: u8,
}

impl Marked {
    fn rule(self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = family(self.everything.address);
        message.header.action = RuleAction::ToTable;
        message.header.table = self.table;
        message.attributes = vec![priority(self.table), RuleAttribute::FwMark(self.mark)];
        message
    }
}

/// A route as it was.
#[derive(Debug, Clone)]
pub struct Route(RouteMessage);

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

    /// Lets a device work that sends nothing on its own account: it asks nobody for addresses, and
    /// is in no group.
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

    /// Has what this host sends from an address be looked up in a table.
    pub fn route_from(&mut self, source: IpAddr, table: u8) -> io::Result<()> {
        let mut message = RuleMessage::default();
        message.header.family = family(source);
        message.header.action = RuleAction::ToTable;
        message.header.table = table;
        message.header.src_len = if source.is_ipv4() { 32 } else { 128 };
        message.attributes = vec![priority(table), RuleAttribute::Source(source)];
        self.add(RouteNetlinkMessage::NewRule(message))
    }

    /// Routes what goes to `destination` to a device, in a table.
    pub fn add_device_route_in(
        &mut self,
        table: u8,
        destination: Prefix,
        device: &str,
    ) -> io::Result<()> {
        let way = RouteAttribute::Oif(index(device)?);
        let mut message = route(destination, way);
        message.header.table = table;
        self.add(RouteNetlinkMessage::NewRoute(message))
    }

    /// Routes what goes to `destination`, or everything else with a prefix of length zero, by way
    /// of a neighbour.
    pub fn add_route(&mut self, destination: Prefix, via: IpAddr) -> io::Result<()> {
        let way = RouteAttribute::Gateway(route_address(via));
        self.add(RouteNetlinkMessage::NewRoute(route(destination, way)))
    }

    /// The same, to a device that has no neighbours.
    pub fn add_device_route(&mut self, destination: Prefix, device: &str) -> io::Result<()> {
        let way = RouteAttribute::Oif(index(device)?);
        self.add(RouteNetlinkMessage::NewRoute(route(destination, way)))
    }

    /// Ends that.
    pub fn remove_device_route(&mut self, destination: Prefix, device: &str) -> io::Result<()> {
        let way = RouteAttribute::Oif(index(device)?);
        self.ask(RouteNetlinkMessage::DelRoute(route(destination, way)), 0)
    }

    /// Has what a device brings to or from a port be looked up in a table of routes: with a local
    /// route there it is this host's own, whoever it is addressed to.
    pub fn intercept(&mut self, what: &Interception) -> io::Result<()> {
        self.add(RouteNetlinkMessage::NewRule(rule(what)))
    }

    /// Ends that.
    pub fn stop_intercepting(&mut self, what: &Interception) -> io::Result<()> {
        self.ask(RouteNetlinkMessage::DelRule(rule(what)), 0)
    }

    /// Has what this host itself sends with a mark be looked up in a table.
    pub fn route_marked(&mut self, what: &Marked) -> io::Result<()> {
        self.add(RouteNetlinkMessage::NewRule(what.rule()))
    }

    /// Ends that.
    pub fn stop_routing_marked(&mut self, what: &Marked) -> io::Result<()> {
        self.ask(RouteNetlinkMessage::DelRule(what.rule()), 0)
    }

    /// Has all packets that are looked up in a table be this host's own.
    pub fn add_local_route(&mut self, everything: Prefix, table: u8) -> io::Result<()> {
        self.add(RouteNetlinkMessage::NewRoute(local_route(
            everything, table,
        )?))
    }

    /// Ends that.
    pub fn remove_local_route(&mut self, everything: Prefix, table: u8) -> io::Result<()> {
        let message = local_route(everything, table)?;
        self.ask(RouteNetlinkMessage::DelRoute(message), 0)
    }

    /// The device by which packets to `address` leave.
    pub fn device_to(&mut self, address: IpAddr) -> io::Result<u32> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        let to = RouteAttribute::Destination(route_address(address));
        message.attributes = vec![to];
        let answer = self.exchange(RouteNetlinkMessage::GetRoute(message), 0)?;
        let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) = answer else {
            return Err(unexpected(answer));
        };
        output(&route).ok_or_else(|| io::Error::other(format!("no device leads to {address}")))
    }

    /// The name of a device.
    pub fn name_of(&mut self, device: u32) -> io::Result<String> {
        let any = socket(Family::INET, SocketType::DGRAM, None)?;
        Ok(index_to_name(any, device)?)
    }

    /// Lets TCP connections that leave by a device, or by any, begin with a window of `packets`
    /// packets (RFC 6928 says 10). The routes as they were.
    pub fn set_initial_window(
        &mut self,
        device: Option<u32>,
        packets: u32,
    ) -> io::Result<Vec<Route>> {
        let mut changed = Vec::new();
        for mut message in self.routes()? {
            let header = &message.header;
            let is_main = header.table == RouteHeader::RT_TABLE_MAIN;
            let is_wanted = device.is_none() || output(&message) == device;
            if !is_main || !is_wanted || header.kind != RouteType::Unicast {
                continue;
            }
            changed.push(Route(message.clone()));
            let windows = [
                RouteMetric::InitCwnd(packets),
                RouteMetric::InitRwnd(packets),
            ];
            set_metrics(&mut message, windows);
            make_settable(&mut message);
            let replace = NLM_F_CREATE | NLM_F_REPLACE;
            self.ask(RouteNetlinkMessage::NewRoute(message), replace)?;
        }
        Ok(changed)
    }

    /// Makes a route what it was.
    pub fn restore(&mut self, route: Route) -> io::Result<()> {
        let Route(mut message) = route;
        make_settable(&mut message);
        let replace = NLM_F_CREATE | NLM_F_REPLACE;
        self.ask(RouteNetlinkMessage::NewRoute(message), replace)
    }

    /// The number of a device.
    pub fn device(&self, name: &str) -> io::Result<u32> {
        index(name)
    }

    /// All routes of both versions of IP.
    fn routes(&mut self) -> io::Result<Vec<RouteMessage>> {
        let mut found = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            self.dump(
                RouteNetlinkMessage::GetRoute(message),
                |answer| match answer {
                    RouteNetlinkMessage::NewRoute(route) => {
                        found.push(route);
                        None
                    }
                    other => Some(other),
                },
            )?;
        }
        Ok(found)
    }

    /// Asks for all of a kind, each of which `take` gets; it returns what it did not expect.
    fn dump(
        &mut self,
        request: RouteNetlinkMessage,
        mut take: impl FnMut(RouteNetlinkMessage) -> Option<RouteNetlinkMessage>,
    ) -> io::Result<()> {
        let mut request = NetlinkMessage::from(request);
        request.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        self.send(request)?;
        while self.take_part(&mut take)? {}
        Ok(())
    }

    /// Takes the next part of a dump; whether more is to come.
    fn take_part(
        &mut self,
        take: &mut impl FnMut(RouteNetlinkMessage) -> Option<RouteNetlinkMessage>,
    ) -> io::Result<bool> {
        let (answer, _) = self.0.recv_from_full()?;
        let mut rest = &answer[..];
        while !rest.is_empty() {
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                .map_err(io::Error::other)?;
            let length = (message.header.length as usize).next_multiple_of(4);
            let odd = match message.payload {
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(-done.code));
                }
                NetlinkPayload::Done(_) => return Ok(false),
                NetlinkPayload::InnerMessage(inner) => {
                    take(inner).map(NetlinkPayload::InnerMessage)
                }
                other => Some(other),
            };
            if let Some(odd) = odd {
                return Err(unexpected(odd));
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(true)
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

    fn send(&mut self, mut request: NetlinkMessage<RouteNetlinkMessage>) -> io::Result<()> {
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.0.send(&bytes, 0).map(drop)
    }

    /// Sends one request; the answer.
    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        self.send(request)?;
        let (answer, _) = self.0.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
            .map_err(io::Error::other)?;
        Ok(answer.payload)
    }
}

/// The rule that intercepts.
fn rule(what: &Interception) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family(what.everything.address);
    message.header.action = RuleAction::ToTable;
    message.header.table = what.table;
    let ports = RulePortRange {
        start: what.port,
        end: what.port,
    };
    message.attributes = vec![
        priority(what.table),
        RuleAttribute::Iifname(what.device.clone()),
        if what.is_reply {
            RuleAttribute::SourcePortRange(ports)
        } else {
            RuleAttribute::DestinationPortRange(ports)
        },
    ];
    if what.is_tcp {
        let tcp = RuleAttribute::IpProtocol(IpProtocol::Tcp);
        message.attributes.push(tcp);
    }
    message
}

/// The place of rules that lead to a table. With one that the kernel chooses, none is ever one that
/// is there already.
fn priority(table: u8) -> RuleAttribute {
    RuleAttribute::Priority(table.into())
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

fn local_route(everything: Prefix, table: u8) -> io::Result<RouteMessage> {
    let mut message = route(everything, RouteAttribute::Oif(index("lo")?));
    message.header.table = table;
    message.header.scope = RouteScope::Host;
    message.header.kind = RouteType::Local;
    Ok(message)
}

/// Puts metrics into a route that has others, in place of those of their kinds.
fn set_metrics(route: &mut RouteMessage, wanted: [RouteMetric; 2]) {
    let kind = std::mem::discriminant::<RouteMetric>;
    let mut metrics = Vec::new();
    route.attributes.retain_mut(|it| match it {
        RouteAttribute::Metrics(own) => {
            metrics.append(own);
            false
        }
        _ => true,
    });
    metrics.retain(|it| wanted.iter().all(|other| kind(it) != kind(other)));
    metrics.extend(wanted);
    route.attributes.push(RouteAttribute::Metrics(metrics));
}

/// Takes out what the kernel says of a route, and nobody can set.
fn make_settable(route: &mut RouteMessage) {
    route.header.flags &= RouteFlags::Onlink;
    route
        .attributes
        .retain(|it| !matches!(it, RouteAttribute::CacheInfo(_)));
}

/// The device that a route leads to.
fn output(route: &RouteMessage) -> Option<u32> {
    route.attributes.iter().find_map(|it| match it {
        RouteAttribute::Oif(device) => Some(*device),
        _ => None,
    })
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
