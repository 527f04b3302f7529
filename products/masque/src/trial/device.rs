//! The TUN device of an end that carries IP packets, and the routes that lead into it.
//!
//! Packets from the one side, to the trial's server or from it, are routed into the device, and the
//! program sends them into the tunnel. Those that the program writes the kernel routes as before.

use std::io;
use std::net::SocketAddr;

use bentpipe_endpoint::EndpointError;
use bentpipe_netlink::{Interception, Netlink, Prefix, tun};

use crate::tun::{MOST, TunFile};

/// The tables of routes, of which each flow has one.
const TABLES: std::ops::RangeInclusive<u8> = 100..=199;
/// The packets that a device gets.
pub struct Taken {
    /// A neighbour, by way of which they come.
    pub from: std::net::IpAddr,
    /// The trial's server, to which they go, or from which they come.
    pub server: SocketAddr,
    /// Whether they come from the server.
    pub is_reply: bool,
}

/// Makes a device for packets of `mtu` bytes, and routes into it.
pub fn open(taken: &Taken, mtu: usize) -> Result<TunFile, EndpointError> {
    let name = format!("masque{}", taken.server.port());
    let mtu = u32::try_from(mtu.min(MOST)).expect("65,535 is a number");
    let file = tun::open(&name, mtu).map_err(EndpointError::io("making a TUN device"))?;
    route(taken, &name).map_err(EndpointError::io("routing into the TUN device"))?;
    Ok(TunFile::new(file))
}

fn route(taken: &Taken, name: &str) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    netlink.set_up_silent(name)?;
    let from = netlink.device_to(taken.from)?;
    let rule = Interception {
        device: netlink.name_of(from)?,
        port: taken.server.port(),
        is_reply: taken.is_reply,
        is_tcp: false,
        everything: Prefix::everything(taken.server.ip()),
        table: free_table(&mut netlink, taken, name)?,
    };
    netlink.intercept(&rule)
}

/// Routes everything to the device in a table that no other flow has.
fn free_table(netlink: &mut Netlink, taken: &Taken, name: &str) -> io::Result<u8> {
    let everything = Prefix::everything(taken.server.ip());
    for table in TABLES {
        match netlink.add_device_route_in(table, everything, name) {
            Ok(()) => return Ok(table),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("all tables of routes are taken"))
}
