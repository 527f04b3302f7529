//! Interception: packets of connections to some ports come to the proxy, whoever they are addressed
//! to.
//!
//! Rules of routing have the kernel take them as the host's own: from the client's side those to
//! the ports, from the server's side those from them. All other traffic is routed as before.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bentpipe_netlink::{Interception as Rule, Marked, Netlink, Prefix, Route};

use crate::syn_gate::{MARK, SynGate};

/// The number of a table of routes that nobody else uses here.
const TABLE: u8 = 80;

/// The connections that are intercepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interception {
    /// The name of the device towards clients, and of that towards servers.
    pub devices: [String; 2],
    /// The servers' ports.
    pub ports: Vec<u16>,
    /// The unspecified address of each version of IP that is meant.
    pub versions: Vec<IpAddr>,
    /// Whether SYNs wait for who lets them through (late acceptance).
    pub is_late: bool,
    /// The initial windows, in packets, of what leaves by either device; None: the kernel's.
    pub initial_windows: [Option<u32>; 2],
}

impl Interception {
    /// The unspecified addresses of both versions of IP.
    pub const VERSIONS: [IpAddr; 2] = [
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];

    /// Sets up rules, and the initial windows of both sides; the routes as they were. What is there
    /// already stays: it is of another proxy, or of one that was killed.
    pub fn install(&self) -> io::Result<Vec<Route>> {
        let mut before = Vec::new();
        let installed = self.install_all(&mut before);
        if installed.is_err() {
            // The first error says what is wrong; half of the rules lead nowhere.
            let _ = self.remove(std::mem::take(&mut before));
        }
        installed.map(|()| before)
    }

    fn install_all(&self, before: &mut Vec<Route>) -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        for everything in self.everything() {
            unless_there(netlink.add_local_route(everything, TABLE))?;
        }
        for rule in self.rules() {
            unless_there(netlink.intercept(&rule))?;
        }
        for marked in self.marked() {
            unless_there(netlink.route_marked(&marked))?;
        }
        for (device, packets) in self.devices.iter().zip(self.initial_windows) {
            if let Some(packets) = packets {
                let device = netlink.device(device)?;
                before.extend(netlink.set_initial_window(Some(device), packets)?);
            }
        }
        Ok(())
    }

    /// Takes back what can be taken back of all that, with the routes as they were. The first error
    /// is that of what stayed.
    pub fn remove(&self, before: Vec<Route>) -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        let mut result = Ok(());
        for rule in self.rules() {
            result = result.and(netlink.stop_intercepting(&rule));
        }
        for marked in self.marked() {
            result = result.and(netlink.stop_routing_marked(&marked));
        }
        for everything in self.everything() {
            result = result.and(netlink.remove_local_route(everything, TABLE));
        }
        for route in before {
            result = result.and(netlink.restore(route));
        }
        result
    }

    /// The gates for SYNs, with late acceptance.
    pub fn gates(&self) -> io::Result<Vec<SynGate>> {
        if !self.is_late {
            return Ok(Vec::new());
        }
        let device = Netlink::open()?.device(&self.devices[0])?;
        let gates = self.versions.iter();
        let gates = gates.map(|version| SynGate::open(device, version.is_ipv6()));
        Ok(gates.collect::<Result<_, _>>()?)
    }

    fn marked(&self) -> impl Iterator<Item = Marked> {
        let is_late = self.is_late;
        let all = self.everything().filter(move |_| is_late);
        all.map(|everything| Marked {
            mark: MARK,
            everything,
            table: TABLE,
        })
    }

    fn everything(&self) -> impl Iterator<Item = Prefix> {
        self.versions.iter().copied().map(Prefix::everything)
    }

    fn rules(&self) -> Vec<Rule> {
        let mut rules = Vec::new();
        for everything in self.everything() {
            for (device, is_reply) in self.devices.iter().zip([false, true]) {
                rules.extend(self.ports.iter().map(|port| Rule {
                    device: device.clone(),
                    port: *port,
                    is_reply,
                    is_tcp: true,
                    everything,
                    table: TABLE,
                }));
            }
        }
        rules
    }
}

fn unless_there(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}
