//! Interception: packets of connections to a port come to the proxy, whoever they are addressed to.
//!
//! Rules of routing have the kernel take them as the host's own: from the client's side those to the
//! port, from the server's side those from it. All other traffic is routed as before.

use std::io;
use std::net::IpAddr;

use bentpipe_netlink::{Interception, Netlink, Prefix};

use crate::options::ProxyOptions;

/// The number of a table of routes that nobody else uses here.
const TABLE: u8 = 80;

/// The intercepted connections: they come from where `client` is, and go to `port`, on the way to `server`.
#[derive(Debug, Clone, Copy)]
pub struct Intercepted {
    pub client: IpAddr,
    pub server: IpAddr,
    pub port: u16,
}

impl Intercepted {
    /// Sets up rules, and the initial windows of both sides.
    pub fn set_up(self, options: &ProxyOptions) -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        let [client, server] = [self.client, self.server].map(|it| netlink.device_to(it));
        let (client, server) = (client?, server?);
        match netlink.add_local_route(Prefix::everything(self.client), TABLE) {
            // Of another flow's proxy on this host.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result?,
        }
        for (device, is_reply) in [(client, false), (server, true)] {
            let device = netlink.name_of(device)?;
            netlink.intercept(&Interception {
                device,
                port: self.port,
                is_reply,
                everything: Prefix::everything(self.client),
                table: TABLE,
            })?;
        }
        let sides = [
            (client, &options.client_side),
            (server, &options.server_side),
        ];
        for (device, side) in sides {
            if let Some(packets) = side.initial_window {
                netlink.set_initial_window(Some(device), packets)?;
            }
        }
        Ok(())
    }
}
