//! A path beside the first: its terminal and gateway, between the client and the server of all.
//!
//! ```text
//!          ┌──access── terminal ──satellite── gateway ──ground──┐
//! client ──┤                                                    ├── server
//!          └──access2── terminal ──satellite── gateway ──ground2─┘
//! ```
//!
//! The client has one more address for each. What it sends from that, and what the server sends to
//! it, goes over this path. The path's routers have no addresses: on each host a route leads to a
//! device, and the host knows the hardware address behind that.

use std::net::IpAddr;
use std::os::fd::AsFd;

use bentpipe_link::{HostName, Scenario, SegmentName};
use bentpipe_netlink::{Netlink, PairEnd, Prefix};

use crate::error::{Doing, EmulatorError};
use crate::hosts::addresses::{client_addresses, server_addresses};
use crate::hosts::device::{
    SegmentPorts, bring_up, pair, port, wait_until_heard, wait_until_running,
};
use crate::hosts::host::Host;
use crate::hosts::namespace::Namespace;

/// The first table of routes of the client that is a further path's.
const FIRST_TABLE: u8 = 100;

/// The hosts of a path beside the first that no other path has.
#[derive(Debug)]
pub(crate) struct FurtherPath {
    /// Its place among all paths; the first is 0.
    pub number: usize,
    /// Its terminal and its gateway.
    pub routers: [Host; 2],
}

/// A device of a segment, on the host at an end of it.
struct PathDevice {
    host: HostName,
    name: String,
    mac: [u8; 6],
}

impl PathDevice {
    fn at<'a>(&'a self, namespace: &'a Namespace) -> PairEnd<'a> {
        PairEnd {
            name: &self.name,
            mac: self.mac,
            namespace: namespace.as_fd(),
        }
    }
}

/// The client's and the server's addresses on a path, of one version of IP.
#[derive(Clone, Copy)]
struct PathEnds {
    client: Prefix,
    server: Prefix,
}

/// A path beside the first that is being connected.
struct Connecting<'a> {
    number: usize,
    /// Those of client, terminal, gateway and server.
    hosts: [&'a Namespace; 4],
    emulator: &'a Namespace,
    /// Of IPv4, and of IPv6.
    ends: [PathEnds; 2],
}

impl FurtherPath {
    /// Connects it with the client and the server. `scenario` is that of the path alone. The ports
    /// of the segments that run through the emulator.
    pub(crate) fn connect(
        &self,
        scenario: &Scenario,
        [client, server]: [&Namespace; 2],
        emulator: &Namespace,
    ) -> Result<Vec<SegmentPorts>, EmulatorError> {
        let [terminal, gateway] = self.routers.each_ref().map(Host::network);
        let (clients, servers) = (client_addresses(self.number), server_addresses());
        let path = Connecting {
            number: self.number,
            hosts: [client, terminal, gateway, server],
            emulator,
            ends: [0, 1].map(|version| PathEnds {
                client: only(clients[version]),
                server: only(servers[version]),
            }),
        };
        let mut laid = Vec::new();
        for segment in SegmentName::ALL {
            let devices = devices(self.number, segment);
            let is_given = scenario.segment(segment).is_some();
            laid.extend(path.lay(segment, &devices, is_given)?);
            path.configure(&devices)?;
        }
        for end in &path.ends {
            wait_until_heard(client, end.client.address)?;
        }
        Ok(laid)
    }
}

impl Connecting<'_> {
    fn host(&self, name: HostName) -> &Namespace {
        self.hosts[name as usize]
    }

    /// Lays a segment; its ports, if it runs through the emulator.
    fn lay(
        &self,
        segment: SegmentName,
        [near, far]: &[PathDevice; 2],
        is_given: bool,
    ) -> Result<Option<SegmentPorts>, EmulatorError> {
        let (a, b) = (self.host(near.host), self.host(far.host));
        if !is_given {
            pair(self.emulator, near.at(a), far.at(b))?;
            return Ok(None);
        }
        let name = numbered(segment.name(), self.number);
        let ports = SegmentPorts {
            path: self.number,
            name: segment,
            client_side: format!("c-{name}"),
            server_side: format!("s-{name}"),
        };
        let emulator = self.emulator;
        pair(emulator, near.at(a), port(&ports.client_side, emulator))?;
        pair(emulator, far.at(b), port(&ports.server_side, emulator))?;
        emulator.within(|| {
            bring_up(&ports.client_side)?;
            bring_up(&ports.server_side)
        })?;
        Ok(Some(ports))
    }

    /// Has what goes to the server leave by the near device, and what goes to the client by the
    /// other one.
    fn configure(&self, [near, far]: &[PathDevice; 2]) -> Result<(), EmulatorError> {
        let table = FIRST_TABLE + u8::try_from(self.number).expect("a few paths");
        self.host(near.host).within(|| {
            bring_up(&near.name)?;
            let mut netlink = Netlink::open().doing("opening netlink")?;
            for PathEnds { client, server } in &self.ends {
                if near.host == HostName::Client {
                    let done = netlink
                        .add_address(&near.name, *client)
                        .and_then(|()| netlink.add_device_route_in(table, *server, &near.name))
                        .and_then(|()| netlink.route_from(client.address, table));
                    done.doing(format!("giving {} to the client", client.address))?;
                } else {
                    let done = netlink.add_device_route(*server, &near.name);
                    done.doing(format!("routing on the {}", near.host))?;
                }
                netlink
                    .add_neighbour(&near.name, server.address, far.mac)
                    .doing(format!("telling the {} of the server", near.host))?;
            }
            Ok(())
        })?;
        self.host(far.host).within(|| {
            bring_up(&far.name)?;
            let mut netlink = Netlink::open().doing("opening netlink")?;
            for PathEnds { client, .. } in &self.ends {
                netlink
                    .add_device_route(*client, &far.name)
                    .and_then(|()| netlink.add_neighbour(&far.name, client.address, near.mac))
                    .doing(format!("telling the {} of the client", far.host))?;
            }
            Ok(())
        })?;
        wait_until_running(self.host(near.host), &near.name)?;
        wait_until_running(self.host(far.host), &far.name)
    }
}

/// The devices at the ends of a segment, that towards the client first. Client and server have one
/// of each path.
fn devices(path: usize, segment: SegmentName) -> [PathDevice; 2] {
    let number = u8::try_from(path).expect("a few paths");
    let [near, far] = segment.ends();
    let device = |host, index| PathDevice {
        host,
        name: match host {
            HostName::Client | HostName::Server => numbered(segment.name(), path),
            HostName::Terminal | HostName::Gateway => segment.name().to_owned(),
        },
        mac: [2, 0, 0, number, segment as u8, index],
    };
    [device(near, 0), device(far, 1)]
}

/// The name of a device where several paths have one, as people count: the first has no number.
fn numbered(name: &str, path: usize) -> String {
    format!("{name}{}", path + 1)
}

fn only(address: IpAddr) -> Prefix {
    let length = if address.is_ipv4() { 32 } else { 128 };
    Prefix { address, length }
}
