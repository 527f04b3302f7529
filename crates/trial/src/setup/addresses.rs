//! The addresses of trials: for documentation (RFC 5737, RFC 3849), so they are nobody's, also in
//! traces. Clients and servers have separate hosts, proxies ports. In IPv4 all three networks for
//! documentation are taken, so that what is in a tunnel has addresses for benchmarks (RFC 2544).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bentpipe_wire::IpVersion;

/// A network of a trial, that of one segment.
#[derive(Debug, Clone, Copy)]
pub enum Network {
    /// Between client and terminal.
    Access,
    /// Between terminal and gateway.
    Satellite,
    /// Between gateway and server.
    Ground,
    /// In a tunnel.
    Tunnel,
}

/// The address of the host with that number in a network.
#[must_use]
pub fn address(version: IpVersion, network: Network, number: u8) -> IpAddr {
    match version {
        IpVersion::V4 => {
            let [a, b, c] = match network {
                Network::Access => [192, 0, 2],
                Network::Satellite => [203, 0, 113],
                Network::Ground => [198, 51, 100],
                Network::Tunnel => [198, 18, 0],
            };
            Ipv4Addr::new(a, b, c, number).into()
        }
        IpVersion::V6 => {
            let network = match network {
                Network::Access => 1,
                Network::Satellite => 3,
                Network::Ground => 2,
                Network::Tunnel => 4,
            };
            Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, u16::from(number)).into()
        }
    }
}
