//! Who has which address, and which way packets go.
//!
//! ```text
//! client ──192.0.2.0/24── terminal ──203.0.113.0/24── gateway ──198.51.100.0/24── server
//! ```
//!
//! A shell that is started on the client of another lies *inside* it: what would be its server is
//! the outer client, through which its packets go on. Its addresses come from a [`Block`] of
//! 10.0.0.0/8, which leads from everywhere to the client, whose blocks inside are each a sixteenth,
//! so that four lie in each other.

use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use bentpipe_link::{HostName, SegmentName};

use bentpipe_netlink::Prefix;

/// Addresses for shells inside this one. In IPv6, 10.1.2.3 has the counterpart
/// `2001:db8:a01:203::1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    first: Ipv4Addr,
    length: u8,
}

impl Block {
    /// All there are.
    pub const ALL: Self = Self {
        first: Ipv4Addr::new(10, 0, 0, 0),
        length: 8,
    };
    /// The number of parts of a block.
    const PARTS: u32 = 16;
    /// Its parts are still large enough for the addresses of a topology.
    const LONGEST: u8 = 24;

    /// The blocks for shells inside; none if this one is too small for that.
    pub fn inside(self) -> Vec<Self> {
        if self.length == Self::LONGEST {
            return Vec::new();
        }
        (1..Self::PARTS).map(|part| self.part(part)).collect()
    }

    fn part(self, part: u32) -> Self {
        let length = self.length + 4;
        let first = Ipv4Addr::from(u32::from(self.first) + (part << (32 - length)));
        Self { first, length }
    }

    /// One of its own addresses, with a prefix of four.
    fn own(self, number: u32) -> [Prefix; 2] {
        let address = Ipv4Addr::from(u32::from(self.first) + number);
        both(address, 30)
    }

    fn prefixes(self) -> [Prefix; 2] {
        both(self.first, self.length)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

impl FromStr for Block {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (first, length) = text.split_once('/').ok_or(())?;
        let first = first.parse().map_err(|_| ())?;
        let length = length.parse().map_err(|_| ())?;
        if (8..=Self::LONGEST).contains(&length) {
            Ok(Self { first, length })
        } else {
            Err(())
        }
    }
}

fn both(address: Ipv4Addr, length: u8) -> [Prefix; 2] {
    let [a, b, c, d] = address.octets();
    let [high, low] = [[a, b], [c, d]].map(u16::from_be_bytes);
    let six = Ipv6Addr::new(0x2001, 0xdb8, high, low, 0, 0, 0, 1);
    [
        Prefix {
            address: address.into(),
            length,
        },
        Prefix {
            address: six.into(),
            length: length + 32,
        },
    ]
}

/// One end of a segment.
#[derive(Debug, Clone)]
pub(crate) struct SegmentEnd {
    pub host: HostName,
    /// IPv4 and IPv6.
    pub addresses: [Prefix; 2],
}

/// A segment: its end towards the client, and the one towards the server.
#[derive(Debug, Clone)]
pub(crate) struct SegmentAddresses {
    pub name: SegmentName,
    pub ends: [SegmentEnd; 2],
}

/// A way that is not that to a neighbour.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub host: HostName,
    pub destination: Prefix,
    pub via: IpAddr,
}

/// Addresses and routes of a topology.
#[derive(Debug, Clone)]
pub(crate) struct AddressPlan {
    pub hops: [SegmentAddresses; 3],
    pub routes: Vec<Route>,
    /// The block for shells inside.
    pub block: Block,
}

const OUTER: [[(&str, &str); 2]; 3] = [
    [
        ("192.0.2.1", "2001:db8:1::1"),
        ("192.0.2.254", "2001:db8:1::fe"),
    ],
    [
        ("203.0.113.1", "2001:db8:3::1"),
        ("203.0.113.2", "2001:db8:3::2"),
    ],
    [
        ("198.51.100.254", "2001:db8:2::fe"),
        ("198.51.100.1", "2001:db8:2::1"),
    ],
];

fn outer_addresses(hop: usize, end: usize) -> [Prefix; 2] {
    let prefix = |text: &str, length| Prefix {
        address: text.parse().expect("an address of the table"),
        length,
    };
    let (four, six) = OUTER[hop][end];
    [prefix(four, 24), prefix(six, 64)]
}

/// The client's addresses on a path, IPv4 and IPv6: on the first, that of the table, then those
/// behind it.
pub(crate) fn client_addresses(path: usize) -> [IpAddr; 2] {
    let path = u8::try_from(path).expect("a few paths");
    outer_addresses(0, 0).map(|first| match first.address {
        IpAddr::V4(it) => Ipv4Addr::from(u32::from(it) + u32::from(path)).into(),
        IpAddr::V6(it) => Ipv6Addr::from(u128::from(it) + u128::from(path)).into(),
    })
}

/// The server's addresses, IPv4 and IPv6.
pub(crate) fn server_addresses() -> [IpAddr; 2] {
    outer_addresses(2, 1).map(|it| it.address)
}

const HOPS: [(SegmentName, [HostName; 2]); 3] = [
    (SegmentName::Access, [HostName::Client, HostName::Terminal]),
    (
        SegmentName::Satellite,
        [HostName::Terminal, HostName::Gateway],
    ),
    (SegmentName::Ground, [HostName::Gateway, HostName::Server]),
];

impl AddressPlan {
    /// The addresses of a topology that stands alone.
    pub fn outer() -> Self {
        Self::new(Block::ALL, outer_addresses)
    }

    /// The addresses of one inside another.
    pub fn inner(block: Block) -> Self {
        const NUMBERS: [[u32; 2]; 3] = [[1, 2], [5, 6], [9, 10]];
        Self::new(block, |hop, end| block.own(NUMBERS[hop][end]))
    }

    fn new(block: Block, addresses: impl Fn(usize, usize) -> [Prefix; 2]) -> Self {
        let hops = [0, 1, 2].map(|hop| {
            let (name, hosts) = HOPS[hop];
            let end = |end: usize| SegmentEnd {
                host: hosts[end],
                addresses: addresses(hop, end),
            };
            SegmentAddresses {
                name,
                ends: [end(0), end(1)],
            }
        });
        let routes = (0..2)
            .flat_map(|version| routes(&hops, block, version))
            .collect();
        Self {
            hops,
            routes,
            block,
        }
    }

    /// The text of `/etc/hosts`. Inside another topology, the server is that of the outermost one.
    pub fn hosts_file(&self) -> String {
        let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
        for host in HostName::ALL {
            for address in self.addresses(host) {
                writeln!(text, "{} {host}", address.address).expect("a string takes all");
            }
        }
        text
    }

    /// The addresses of a host as others know it.
    fn addresses(&self, host: HostName) -> [Prefix; 2] {
        let [access, _, ground] = &self.hops;
        match host {
            HostName::Client => access.ends[0].addresses,
            HostName::Terminal => access.ends[1].addresses,
            HostName::Gateway => ground.ends[0].addresses,
            HostName::Server => outer_addresses(2, 1),
        }
    }
}

/// The routes of IPv4 (`version` 0) or IPv6 (1): away from the client everything, towards it what
/// is there.
fn routes(hops: &[SegmentAddresses; 3], block: Block, version: usize) -> Vec<Route> {
    let [access, satellite, ground] = hops;
    let at = |end: &SegmentEnd| end.addresses[version].address;
    let everything = Prefix {
        address: at(&access.ends[0]),
        length: 0,
    };
    let clients = access.ends[0].addresses[version];
    let inside = block.prefixes()[version];
    let mut routes = Vec::new();
    let mut add = |host, destination, via: &SegmentEnd| {
        routes.push(Route {
            host,
            destination,
            via: at(via),
        });
    };
    add(HostName::Client, everything, &access.ends[1]);
    add(HostName::Terminal, everything, &satellite.ends[1]);
    add(HostName::Terminal, inside, &access.ends[0]);
    add(HostName::Gateway, inside, &satellite.ends[0]);
    if block == Block::ALL {
        add(HostName::Gateway, clients, &satellite.ends[0]);
        add(HostName::Server, everything, &ground.ends[0]);
    } else {
        add(HostName::Gateway, everything, &ground.ends[1]);
        add(HostName::Server, inside, &ground.ends[0]);
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_as_they_are_written() {
        for block in Block::ALL.inside() {
            assert_eq!(block.to_string().parse(), Ok(block));
        }
        for wrong in ["", "10.0.0.0", "10.0.0.0/7", "10.0.0.0/25", "x/8"] {
            assert_eq!(wrong.parse::<Block>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn four_topologies_lie_in_each_other() {
        let mut block = Block::ALL;
        let mut written = Vec::new();
        while let Some(inside) = block.inside().last() {
            block = *inside;
            written.push(block.to_string());
        }
        assert_eq!(
            written,
            [
                "10.240.0.0/12",
                "10.255.0.0/16",
                "10.255.240.0/20",
                "10.255.255.0/24"
            ]
        );
    }

    #[test]
    fn no_address_of_a_topology_lies_in_a_block_inside_it() {
        let outer = Block::ALL.inside()[0];
        let plan = AddressPlan::inner(outer);
        assert_eq!(plan.hosts_file().lines().nth(2), Some("10.16.0.1 client"));
        for end in plan.hops.iter().flat_map(|hop| &hop.ends) {
            let IpAddr::V4(address) = end.addresses[0].address else {
                panic!("IPv4 comes first")
            };
            for inside in outer.inside() {
                let part = u32::from(address) >> (32 - inside.length);
                assert_ne!(
                    part,
                    u32::from(inside.first) >> (32 - inside.length),
                    "{address}"
                );
            }
        }
    }

    #[test]
    fn the_counterpart_in_ipv6_has_the_same_bits() {
        let [four, six] = Block::ALL.inside()[0].own(9);
        assert_eq!(four.address.to_string(), "10.16.0.9");
        assert_eq!(
            (six.address.to_string(), six.length),
            ("2001:db8:a10:9::1".to_owned(), 62)
        );
    }

    #[test]
    fn the_server_is_the_outermost_one() {
        let inner = AddressPlan::inner(Block::ALL.inside()[3]);
        for plan in [AddressPlan::outer(), inner] {
            assert!(
                plan.hosts_file()
                    .contains("\n198.51.100.1 server\n2001:db8:2::1 server\n")
            );
        }
    }
}
