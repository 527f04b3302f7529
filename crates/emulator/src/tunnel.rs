//! The parts of a topology for a tunnel: a TUN device on the client and one on another host, with
//! addresses and a route. Programs that attach to both carry the packets.

pub(crate) mod capture;

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use bentpipe_link::HostName;
use bentpipe_netlink::{Netlink, Prefix, tun};

use crate::error::{Doing, EmulatorError};
use crate::hosts::device::wait_until_heard;
use crate::hosts::topology::{Topology, set};

/// The name of both devices.
pub const TUNNEL: &str = "tunnel";
const CONGESTION_CONTROL: &str = "ipv4/tcp_congestion_control";

/// A tunnel that hosts are to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelPlan {
    /// The host at which it ends, from the client.
    pub to: HostName,
    /// Its addresses on the client and where it ends.
    pub addresses: [IpAddr; 2],
    /// The address of the servers: the tunnel's end, or behind that.
    pub server: IpAddr,
    /// The largest IP packet that it takes.
    pub mtu: u32,
    /// Whether it is itself a connection of TCP.
    pub is_tcp: bool,
}

impl Topology {
    /// Makes the devices of a tunnel.
    pub fn add_tunnel(&self, plan: &TunnelPlan) -> Result<(), EmulatorError> {
        for (host, address) in [HostName::Client, plan.to].into_iter().zip(plan.addresses) {
            let network = self.host(host).network();
            network.within(|| {
                if plan.is_tcp {
                    tcp_settings()?;
                }
                tun::make(TUNNEL, plan.mtu).doing(format!("making a TUN device on the {host}"))?;
                let mut netlink = Netlink::open().doing("opening netlink")?;
                netlink
                    .set_up_silent(TUNNEL)
                    .doing(format!("setting up {TUNNEL}"))?;
                netlink
                    .add_address(TUNNEL, neighbours(address))
                    .doing(format!("giving {address} to the {host}"))
            })?;
            wait_until_heard(network, address)?;
        }
        if plan.addresses.contains(&plan.server) {
            return Ok(());
        }
        self.host(HostName::Client).network().within(|| {
            let mut netlink = Netlink::open().doing("opening netlink")?;
            netlink
                .add_device_route(alone(plan.server), TUNNEL)
                .doing("routing into the tunnel")
        })
    }

    /// The congestion control of a host's connections that do not choose one.
    pub fn congestion_control(&self, host: HostName) -> Result<String, EmulatorError> {
        let path = Path::new("/proc/sys/net").join(CONGESTION_CONTROL);
        self.host(host).network().within(|| {
            let text = fs::read_to_string(&path).doing(format!("reading {}", path.display()))?;
            Ok(text.trim().to_owned())
        })
    }

    /// The device of the server on which packets from a tunnel arrive.
    pub(crate) fn behind_tunnel(plan: &TunnelPlan) -> &'static str {
        match plan.to {
            HostName::Server => TUNNEL,
            _ => "ground",
        }
    }
}

/// The network that has both addresses of a tunnel.
fn neighbours(address: IpAddr) -> Prefix {
    let length = if address.is_ipv4() { 24 } else { 64 };
    Prefix { address, length }
}

/// The network of a single address.
fn alone(address: IpAddr) -> Prefix {
    let length = if address.is_ipv4() { 32 } else { 128 };
    Prefix { address, length }
}

/// A tunnel over TCP has what Linux documents, whatever this machine's are; CUBIC where the kernel
/// lets namespaces choose it.
fn tcp_settings() -> Result<(), EmulatorError> {
    for (file, value) in [
        ("ipv4/tcp_rmem", "4096 131072 33554432"),
        ("ipv4/tcp_wmem", "4096 16384 4194304"),
    ] {
        set(file, value)?;
    }
    // If it may not be chosen, the machine's stays, and records name it.
    let _ = set(CONGESTION_CONTROL, "cubic");
    Ok(())
}
