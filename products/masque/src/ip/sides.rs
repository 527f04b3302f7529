//! The addresses on both sides of a tunnel, and the packets that may pass between them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use super::addressing::{Addressing, Numbered};
use super::network::{Prefix, Route, is_icmp};
use super::packet::{Header, PacketError};
use super::scope::Scope;

/// The addresses that a proxy lets clients have and reach.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The addresses that it assigns. A client that asks for a part of one gets that part.
    pub clients: Vec<Prefix>,
    /// Where it carries packets.
    pub routes: Vec<Route>,
}

/// The side towards which a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Towards {
    /// The client and those behind it.
    Clients,
    /// The proxy's routes.
    Servers,
}

/// The reason for which a packet does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// It is no packet that could be forwarded.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// Its address on the client's side is none that was assigned.
    #[error("{0} is not assigned to the client")]
    Unassigned(IpAddr),
    /// Its address on the other side, or its protocol, is none that the proxy carries.
    #[error("there is no route for {0}, protocol {1}")]
    NoRoute(IpAddr, u8),
    /// It may not leave its link.
    #[error("{0} is of one link alone")]
    LinkLocal(IpAddr),
}

/// The two sides of a request, as one of its ends knows them.
#[derive(Debug, Clone)]
pub struct Sides {
    /// The addresses that a proxy can assign; `None`: this end is the client.
    access: Option<Vec<Prefix>>,
    /// The addresses that the client has.
    clients: Vec<Prefix>,
    /// The addresses that a client asks for; `None`: any.
    wanted: Option<Vec<Prefix>>,
    /// Where the proxy carries packets; `None`: it has not said so.
    servers: Option<Vec<Route>>,
    /// The limits of the request.
    scope: Scope,
    /// How often the proxy has said something.
    changes: u64,
}

/// The addresses that a proxy has assigned to a client, and where it carries packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// The routes.
    pub routes: Vec<Route>,
}

/// The addresses that a client takes which asks for any; further ones it leaves.
const MOST_ADDRESSES: usize = 16;

impl Sides {
    /// A client's, for those behind it: until the proxy has said otherwise, packets of these pass
    /// to wherever they go (RFC 9484, section 7.1).
    #[must_use]
    pub fn of_client(wanted: Vec<Prefix>) -> Self {
        Self {
            access: None,
            clients: wanted.clone(),
            wanted: Some(wanted),
            servers: None,
            scope: Scope::default(),
            changes: 0,
        }
    }

    /// A client's that takes the addresses which the proxy assigns: before that nothing passes.
    #[must_use]
    pub fn of_any_client() -> Self {
        Self {
            wanted: None,
            ..Self::of_client(Vec::new())
        }
    }

    /// A proxy's, for a request with this scope; `None`: nothing of it is allowed.
    #[must_use]
    pub fn of_proxy(access: &Access, scope: Scope) -> Option<Self> {
        let routes = within(&access.routes, scope);
        (!routes.is_empty()).then(|| Self {
            access: Some(access.clients.clone()),
            clients: access.clients.clone(),
            wanted: None,
            servers: Some(routes),
            scope,
            changes: 0,
        })
    }

    /// Has a proxy carry packets elsewhere; the capsule that says so, if that is new.
    pub fn reroute(&mut self, routes: &[Route]) -> Option<Addressing> {
        let routes = within(routes, self.scope);
        if self.servers.as_ref() == Some(&routes) {
            return None;
        }
        self.servers = Some(routes.clone());
        Some(Addressing::Routes(routes))
    }

    /// The addresses and routes that a proxy has said, and how often it has said something; `None`:
    /// it has not said both.
    #[must_use]
    pub fn network(&self) -> Option<(u64, Network)> {
        let routes = self.servers.clone()?;
        let addresses = self.clients.iter().map(|it| it.address()).collect();
        (!self.clients.is_empty()).then_some((self.changes, Network { addresses, routes }))
    }

    /// The capsules with which this end begins.
    #[must_use]
    pub fn greeting(&self) -> Vec<Addressing> {
        if self.access.is_some() {
            let routes = self.servers.clone().unwrap_or_default();
            return vec![self.assignment(Vec::new()), Addressing::Routes(routes)];
        }
        let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        let wanted = self.wanted.clone();
        let wanted = wanted.unwrap_or_else(|| any.map(Prefix::of).to_vec());
        let wanted: Vec<_> = (1..)
            .zip(wanted)
            .map(|(request, prefix)| Numbered { request, prefix })
            .collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        vec![Addressing::Request(wanted)]
    }

    /// Takes what the other end says; the answer, if it wants one.
    pub fn hear(&mut self, said: Addressing) -> Option<Addressing> {
        match (said, &self.access) {
            (Addressing::Request(wanted), Some(access)) => {
                let answers = wanted.iter().map(|it| answer(access, *it)).collect();
                Some(self.assignment(answers))
            }
            // A client has no addresses to assign.
            (Addressing::Request(wanted), None) => {
                let answers = wanted.iter().map(|it| answer(&[], *it));
                Some(Addressing::Assign(answers.collect()))
            }
            (Addressing::Assign(prefixes), None) => {
                let prefixes = prefixes.into_iter().map(|it| it.prefix);
                let assigned: Vec<_> = prefixes.filter(|it| *it != it.none_like()).collect();
                self.clients = self.wanted_of(&assigned);
                self.changes += 1;
                None
            }
            (Addressing::Routes(routes), None) => {
                self.servers = Some(routes);
                self.changes += 1;
                None
            }
            // A proxy has no use for a client's addresses and routes.
            (Addressing::Assign(_) | Addressing::Routes(_), Some(_)) => None,
        }
    }

    /// The part of these addresses that it asked for: a proxy gives none beyond, else it could send
    /// packets to whomever the client reaches.
    fn wanted_of(&self, assigned: &[Prefix]) -> Vec<Prefix> {
        let Some(wanted) = &self.wanted else {
            let hosts = assigned.iter().filter_map(|it| host(*it));
            return hosts.take(MOST_ADDRESSES).collect();
        };
        let is_in = |it: &&Prefix, others: &[Prefix]| others.iter().any(|other| other.covers(**it));
        let parts = assigned.iter().filter(|it| is_in(it, wanted));
        let whole = wanted.iter().filter(|it| is_in(it, assigned));
        parts.chain(whole).copied().collect()
    }

    /// All that is assigned: answers, and what none of them has.
    fn assignment(&self, mut all: Vec<Numbered>) -> Addressing {
        for prefix in &self.clients {
            if !all.iter().any(|it| it.prefix == *prefix) {
                all.push(Numbered {
                    request: 0,
                    prefix: *prefix,
                });
            }
        }
        Addressing::Assign(all)
    }

    /// Whether an address is on the client's side.
    #[must_use]
    pub fn has_client(&self, address: IpAddr) -> bool {
        self.clients.iter().any(|it| it.contains(address))
    }

    /// Says whether a packet may pass, or why not.
    pub fn judge(&self, packet: &[u8], towards: Towards) -> Result<(), Refused> {
        let header = Header::read(packet)?;
        let (client, server) = match towards {
            Towards::Servers => (header.source, header.destination),
            Towards::Clients => (header.destination, header.source),
        };
        if let Some(local) = [client, server].into_iter().find(|it| is_link_local(*it)) {
            return Err(Refused::LinkLocal(local));
        }
        if !self.has_client(client) {
            return Err(Refused::Unassigned(client));
        }
        // Errors come from routers, too (RFC 9484, section 7.2.1).
        let is_from_router = towards == Towards::Clients && is_icmp(header.protocol);
        let Some(routes) = self.servers.as_ref().filter(|_| !is_from_router) else {
            return Ok(());
        };
        let is_carried = |it: &Route| it.carries(server, header.protocol);
        if !routes.iter().any(is_carried) {
            return Err(Refused::NoRoute(server, header.protocol));
        }
        Ok(())
    }
}

/// The parts of routes that a request is limited to.
fn within(routes: &[Route], scope: Scope) -> Vec<Route> {
    let parts = routes.iter();
    parts
        .filter_map(|it| it.within(scope.target, scope.protocol))
        .collect()
}

/// The address for a client among those that it is assigned; `None`: what its machine has already,
/// or shares with others, is not for a proxy to assign.
fn host(assigned: Prefix) -> Option<Prefix> {
    let [first, last] = assigned.ends();
    let is_shared = |it: IpAddr| it.is_multicast() || is_link_local(it) || is_broadcast(it);
    let is_special = |it: IpAddr| it.is_unspecified() || it.is_loopback() || is_shared(it);
    let host = assigned.host();
    let is_one = [first, last, host.address()]
        .into_iter()
        .all(|it| !is_special(it));
    is_one.then_some(host)
}

fn is_broadcast(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(it) if it.is_broadcast())
}

/// The assignment for a request: the part that is asked for, all if any will do, or nothing.
fn answer(access: &[Prefix], wanted: Numbered) -> Numbered {
    let is_any = wanted.prefix.address().is_unspecified();
    let mut same_version = access
        .iter()
        .filter(|it| it.address().is_ipv4() == wanted.prefix.address().is_ipv4());
    let found = if is_any {
        same_version.next().copied()
    } else {
        same_version
            .any(|it| it.covers(wanted.prefix))
            .then_some(wanted.prefix)
    };
    Numbered {
        prefix: found.unwrap_or(wanted.prefix.none_like()),
        ..wanted
    }
}

/// Whether a packet is of one link alone, as those with which a host of IPv6 looks for neighbours.
#[must_use]
pub fn is_of_link(packet: &[u8]) -> bool {
    let header = Header::read(packet);
    header.is_ok_and(|it| is_link_local(it.source) || is_link_local(it.destination))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.is_link_local() || it.octets()[..3] == [224, 0, 0],
        IpAddr::V6(it) => {
            it.is_unicast_link_local() || it.is_multicast() && it.octets()[1] & 0xf <= 2
        }
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_wire::{IpHeader, TCP, UDP};

    use super::*;

    fn prefix(address: &str, length: u8) -> Prefix {
        Prefix::new(address.parse().unwrap(), length).unwrap()
    }

    fn access() -> Access {
        Access {
            clients: vec![prefix("192.0.2.0", 24)],
            routes: vec![Route::to(prefix("198.51.100.1", 32))],
        }
    }

    fn judge(
        sides: &Sides,
        from: &str,
        to: &str,
        protocol: u8,
        way: Towards,
    ) -> Result<(), Refused> {
        let header = IpHeader {
            source: from.parse().unwrap(),
            destination: to.parse().unwrap(),
            ecn: 0,
            identification: 0,
            protocol,
        };
        let mut packet = Vec::new();
        header.write(&mut packet, &[0; 8]);
        sides.judge(&packet, way)
    }

    #[test]
    fn packets_pass_between_what_is_assigned_and_what_is_carried() {
        use Towards::{Clients, Servers};
        let scope = Scope {
            target: None,
            protocol: Some(TCP),
        };
        let sides = Sides::of_proxy(&access(), scope).unwrap();
        for (from, to, protocol, way, passes) in [
            ("192.0.2.9", "198.51.100.1", TCP, Servers, true),
            ("192.0.2.9", "198.51.100.1", UDP, Servers, false),
            ("192.0.2.9", "198.51.100.1", 1, Servers, true),
            ("192.0.3.9", "198.51.100.1", TCP, Servers, false),
            ("192.0.2.9", "198.51.100.2", TCP, Servers, false),
            ("198.51.100.1", "192.0.2.9", TCP, Clients, true),
            ("198.51.100.9", "192.0.2.9", TCP, Clients, false),
            ("198.51.100.9", "192.0.2.9", 1, Clients, true),
            ("198.51.100.1", "203.0.113.1", TCP, Clients, false),
            ("2001:db8::1", "2001:db8::2", TCP, Servers, false),
            ("192.0.2.9", "224.0.0.1", TCP, Servers, false),
        ] {
            let found = judge(&sides, from, to, protocol, way);
            assert_eq!(found.is_ok(), passes, "{from} {to} {protocol}: {found:?}");
        }
    }

    #[test]
    fn a_client_sends_what_it_may_until_it_is_told_otherwise() {
        use Towards::Servers;
        let mut client = Sides::of_client(vec![prefix("192.0.2.1", 32)]);
        let to = |sides: &Sides, to| judge(sides, "192.0.2.1", to, TCP, Servers).is_ok();
        assert!(to(&client, "203.0.113.1"));
        assert!(judge(&client, "192.0.2.2", "203.0.113.1", TCP, Servers).is_err());
        let proxy = Sides::of_proxy(&access(), Scope::default()).unwrap();
        for said in proxy.greeting() {
            assert_eq!(client.hear(said), None);
        }
        assert!(to(&client, "198.51.100.1") && !to(&client, "203.0.113.1"));
        assert_eq!(client.hear(Addressing::Assign(Vec::new())), None);
        assert!(!to(&client, "198.51.100.1"), "all is taken back");
    }

    #[test]
    fn requests_for_addresses_are_answered_each_with_its_number() {
        let mut proxy = Sides::of_proxy(&access(), Scope::default()).unwrap();
        let number = |request, address, length| Numbered {
            request,
            prefix: prefix(address, length),
        };
        let wanted = Addressing::Request(vec![
            number(1, "192.0.2.128", 25),
            number(2, "0.0.0.0", 32),
            number(3, "203.0.113.1", 32),
            number(4, "::", 128),
        ]);
        let answered = Addressing::Assign(vec![
            number(1, "192.0.2.128", 25),
            number(2, "192.0.2.0", 24),
            number(3, "0.0.0.0", 32),
            number(4, "::", 128),
        ]);
        assert_eq!(proxy.hear(wanted.clone()), Some(answered));
        let mut client = Sides::of_client(Vec::new());
        let Some(Addressing::Assign(none)) = client.hear(wanted) else {
            panic!("an answer");
        };
        assert!(none.iter().all(|it| it.prefix == it.prefix.none_like()));
        assert_eq!(client.greeting(), []);
    }

    #[test]
    fn a_client_of_any_address_takes_what_hosts_may_have_and_no_more() {
        let mut client = Sides::of_any_client();
        let [Addressing::Request(wanted)] = &client.greeting()[..] else {
            panic!("it asks");
        };
        let any = [prefix("0.0.0.0", 32), prefix("::", 128)];
        assert_eq!(wanted.iter().map(|it| it.prefix).collect::<Vec<_>>(), any);
        let assign = |prefixes: &[&str]| {
            let numbered = |text: &&str| Numbered {
                request: 0,
                prefix: text.parse().unwrap(),
            };
            Addressing::Assign(prefixes.iter().map(numbered).collect())
        };
        let taken = |client: &Sides| client.clients.iter().map(ToString::to_string).collect();
        client.hear(assign(&[
            "127.0.0.1",
            "0.0.0.0/1",
            "224.0.0.0/8",
            "fe80::1",
            "::",
            "::1",
        ]));
        assert_eq!(taken(&client), [""; 0].map(String::from).to_vec());
        assert_eq!(client.network(), None);
        client.hear(assign(&[
            "10.9.0.2",
            "10.8.0.0/24",
            "fd00:9::2",
            "fd00:8::/64",
        ]));
        let hosts: Vec<String> = taken(&client);
        assert_eq!(
            hosts,
            [
                "10.9.0.2/32",
                "10.8.0.1/32",
                "fd00:9::2/128",
                "fd00:8::1/128"
            ]
        );
        assert_eq!(client.network(), None, "no route is known");
        client.hear(Addressing::Routes(vec![Route::to(prefix(
            "198.51.100.0",
            24,
        ))]));
        let (changes, network) = client.network().unwrap();
        assert_eq!(
            (changes, network.addresses.len(), network.routes.len()),
            (3, 4, 1)
        );
        let many: Vec<String> = (1..99).map(|it| format!("10.9.0.{it}")).collect();
        client.hear(assign(&many.iter().map(String::as_str).collect::<Vec<_>>()));
        assert_eq!(client.clients.len(), MOST_ADDRESSES);
    }

    #[test]
    fn a_proxy_that_carries_packets_elsewhere_says_so_once_within_the_scope() {
        let scope = Scope {
            target: None,
            protocol: Some(TCP),
        };
        let mut proxy = Sides::of_proxy(&access(), scope).unwrap();
        assert_eq!(proxy.reroute(&access().routes), None);
        let other = Route::to(prefix("203.0.113.0", 24));
        let said = proxy.reroute(&[other]);
        let of_tcp = other.within(None, Some(TCP)).unwrap();
        assert_eq!(said, Some(Addressing::Routes(vec![of_tcp])));
        let to = |to| judge(&proxy, "192.0.2.9", to, TCP, Towards::Servers).is_ok();
        assert!(to("203.0.113.1") && !to("198.51.100.1"));
    }

    #[test]
    fn a_scope_without_a_route_is_none() {
        let scope = Scope {
            target: Some(prefix("203.0.113.0", 24)),
            protocol: None,
        };
        assert!(Sides::of_proxy(&access(), scope).is_none());
    }
}
