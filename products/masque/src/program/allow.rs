//! The targets that a proxy lets its clients reach.
//!
//! A rule is `HOSTS:PORTS`. What is called public here is what the IANA registries of special
//! purpose addresses (RFC 6890) do not set apart.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use bentpipe_masque::{AddressSet, Prefix, Service, Target};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A rule: these hosts may be reached at these ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    text: String,
    hosts: Hosts,
    ports: RangeInclusive<u16>,
}

const ALL_PORTS: RangeInclusive<u16> = 1..=u16::MAX;

/// The hosts of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    /// All public addresses.
    Public,
    /// The addresses of a network.
    Network(Network),
    /// A name, with whatever addresses it has.
    Name(String),
    /// All names that end with this, which begins with a dot.
    Below(String),
}

/// A network: an address, and how many of its first bits all have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u32,
}

/// The judgement on a target before its name is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It is allowed: this is its address.
    Address(SocketAddr),
    /// The addresses of its name decide, or say where it is.
    Name,
    /// It is not allowed.
    Refused,
}

/// Judges a target by its name or address.
pub fn judge(rules: &[Rule], target: &Target) -> Judgement {
    if let Ok(address) = target.host.parse::<IpAddr>() {
        let allowed = is_allowed(rules, address, target.port);
        return if allowed {
            Judgement::Address((address.to_canonical(), target.port).into())
        } else {
            Judgement::Refused
        };
    }
    let may_be = |rule: &Rule| {
        rule.ports.contains(&target.port)
            && match &rule.hosts {
                Hosts::Public | Hosts::Network(_) => true,
                Hosts::Name(_) | Hosts::Below(_) => rule.is_of_name(&target.host),
            }
    };
    if rules.iter().any(may_be) {
        Judgement::Name
    } else {
        Judgement::Refused
    }
}

/// The addresses of a target's name that are allowed, in their order: all, where the name is; else
/// those that are allowed themselves, so that no name leads to what is not.
pub fn choose(rules: &[Rule], target: &Target, addresses: &[IpAddr]) -> Vec<SocketAddr> {
    let by_name = |rule: &Rule| rule.ports.contains(&target.port) && rule.is_of_name(&target.host);
    let is_named = rules.iter().any(by_name);
    let is_one = |it: &&IpAddr| is_named || is_allowed(rules, **it, target.port);
    let chosen = addresses.iter().filter(is_one);
    chosen
        .map(|it| (it.to_canonical(), target.port).into())
        .collect()
}

/// Whether a target may be an address of the proxy's machine: `public` alone does not allow that,
/// since what listens there may trust its own machine.
pub fn may_be_own(rules: &[Rule], target: &Target, address: SocketAddr) -> bool {
    rules.iter().any(|rule| {
        let is_of_it = match rule.hosts {
            Hosts::Network(network) => network.contains(address.ip()),
            Hosts::Public | Hosts::Name(_) | Hosts::Below(_) => rule.is_of_name(&target.host),
        };
        rule.ports.contains(&address.port()) && is_of_it
    })
}

/// Judges an IP packet by where it goes, and whether that is an address of the proxy's machine. A
/// rule for a name is of no packet, and one for ports of ICMP, too.
pub fn allows_packet(rules: &[Rule], to: IpAddr, service: Service, is_own: bool) -> bool {
    rules.iter().any(|rule| {
        let is_of_it = match rule.hosts {
            Hosts::Public => !is_own && is_public(to),
            Hosts::Network(network) => network.contains(to),
            Hosts::Name(_) | Hosts::Below(_) => false,
        };
        let is_port = match service {
            Service::Port(port) => rule.ports.contains(&port) || rule.has_all_ports(),
            Service::Icmp | Service::Fragment => true,
            Service::Other => rule.has_all_ports(),
        };
        is_of_it && is_port
    })
}

/// The addresses that a rule allows; none of one for a name.
pub fn addresses(rule: &Rule) -> AddressSet {
    let prefixes = |networks: &[(IpAddr, u32)]| -> AddressSet {
        let prefixes = networks.iter().map(|&(address, bits)| {
            let length = u8::try_from(bits).expect("128 at most");
            Prefix::new(address, length).expect("a network begins with its first address")
        });
        AddressSet::of(&prefixes.collect::<Vec<_>>())
    };
    match rule.hosts {
        Hosts::Network(Network { address, bits }) => prefixes(&[(address, bits)]),
        Hosts::Public => {
            let everything = [
                (Ipv4Addr::UNSPECIFIED.into(), 0),
                (GLOBAL_IPV6.0.into(), GLOBAL_IPV6.1),
            ];
            let mut set = prefixes(&everything);
            set.remove_all(&prefixes(&SPECIAL_IPV4.map(|(it, bits)| (it.into(), bits))));
            set.remove_all(&prefixes(&SPECIAL_IPV6.map(|(it, bits)| (it.into(), bits))));
            set
        }
        Hosts::Name(_) | Hosts::Below(_) => AddressSet::default(),
    }
}

fn is_allowed(rules: &[Rule], address: IpAddr, port: u16) -> bool {
    let address = address.to_canonical();
    rules.iter().any(|rule| {
        rule.ports.contains(&port)
            && match rule.hosts {
                Hosts::Public => is_public(address),
                Hosts::Network(network) => network.contains(address),
                Hosts::Name(_) | Hosts::Below(_) => false,
            }
    })
}

/// Whether an address is one of the public Internet's.
fn is_public(address: IpAddr) -> bool {
    let is_in = |networks: &[(IpAddr, u32)]| {
        networks.iter().any(|&(network, bits)| {
            Network {
                address: network,
                bits,
            }
            .contains(address)
        })
    };
    match address {
        IpAddr::V4(_) => !is_in(&SPECIAL_IPV4.map(|(it, bits)| (it.into(), bits))),
        IpAddr::V6(_) => {
            is_in(&[(GLOBAL_IPV6.0.into(), GLOBAL_IPV6.1)])
                && !is_in(&SPECIAL_IPV6.map(|(it, bits)| (it.into(), bits)))
        }
    }
}

const fn v4(a: u8, b: u8, c: u8) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, 0)
}

const SPECIAL_IPV4: [(Ipv4Addr, u32); 15] = [
    (v4(0, 0, 0), 8),       // this network
    (v4(10, 0, 0), 8),      // private
    (v4(100, 64, 0), 10),   // shared by carriers
    (v4(127, 0, 0), 8),     // loopback
    (v4(169, 254, 0), 16),  // link-local
    (v4(172, 16, 0), 12),   // private
    (v4(192, 0, 0), 24),    // protocol assignments
    (v4(192, 0, 2), 24),    // documentation
    (v4(192, 88, 99), 24),  // relays of 6to4
    (v4(192, 168, 0), 16),  // private
    (v4(198, 18, 0), 15),   // benchmarks
    (v4(198, 51, 100), 24), // documentation
    (v4(203, 0, 113), 24),  // documentation
    (v4(224, 0, 0), 4),     // multicast
    (v4(240, 0, 0), 4),     // reserved, and broadcast
];

/// Global unicast.
const GLOBAL_IPV6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const SPECIAL_IPV6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, Teredo
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4: any IPv4 address may be in it
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differ = own.to_bits() ^ other.to_bits();
                differ.leading_zeros() >= self.bits
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differ = own.to_bits() ^ other.to_bits();
                differ.leading_zeros() >= self.bits
            }
            _ => false,
        }
    }

    /// Refuses what would match something else than its text seems to say.
    fn check(self, text: &str) -> Result<(), String> {
        let Self { address, bits } = self;
        if address.to_canonical() != address {
            return Err(format!(
                "{text:?}: an IPv4 address within IPv6 is judged as that of IPv4; write it so, \
                 as in \"10.0.0.0/8:443\""
            ));
        }
        let first: IpAddr = match address {
            IpAddr::V4(it) => {
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                Ipv4Addr::from(it.to_bits() & mask).into()
            }
            IpAddr::V6(it) => {
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                Ipv6Addr::from(it.to_bits() & mask).into()
            }
        };
        if first == address {
            return Ok(());
        }
        Err(format!(
            "{text:?}: the address is not the first of its network; write {first}/{bits}, or leave \
             out /{bits} for this address alone"
        ))
    }
}

impl Rule {
    /// Whether it is about more than some ports of TCP and UDP.
    pub fn has_all_ports(&self) -> bool {
        self.ports == ALL_PORTS
    }

    fn is_of_name(&self, name: &str) -> bool {
        match &self.hosts {
            Hosts::Name(own) => own == name,
            Hosts::Below(suffix) => name.len() > suffix.len() && name.ends_with(suffix.as_str()),
            Hosts::Public | Hosts::Network(_) => false,
        }
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let split = text.rsplit_once(':');
        let parsed = split.and_then(|(hosts, ports)| Some((hosts_of(hosts)?, ports_of(ports)?)));
        let (hosts, ports) = parsed.ok_or_else(|| {
            format!(
                "{text:?} is no HOSTS:PORTS; write one such as \"public:443\", \
                 \"10.1.0.0/16:1024-65535\", \"[2001:db8::]/32:*\", \"www.example.org:443\" or \
                 \"*.example.org:443\""
            )
        })?;
        if let Hosts::Network(network) = hosts {
            network.check(text)?;
        }
        Ok(Self {
            text: text.to_owned(),
            hosts,
            ports,
        })
    }
}

fn hosts_of(text: &str) -> Option<Hosts> {
    if text == "public" {
        return Some(Hosts::Public);
    }
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
        None => (text, None),
    };
    let inner = address
        .strip_prefix('[')
        .and_then(|it| it.strip_suffix(']'));
    if let Ok(address) = inner.unwrap_or(address).parse::<IpAddr>() {
        // An address of IPv6 stands in brackets, so that its end can be told from the port.
        if address.is_ipv6() != inner.is_some() {
            return None;
        }
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        let network = Network { address, bits };
        return (bits <= most).then_some(Hosts::Network(network));
    }
    let below = text.strip_prefix("*.");
    // A target's name is what a rule's must be.
    let name = Target::new(below.unwrap_or(text), "1").ok()?.host;
    Some(match below {
        Some(_) => Hosts::Below(format!(".{name}")),
        None => Hosts::Name(name),
    })
}

fn ports_of(text: &str) -> Option<RangeInclusive<u16>> {
    if text == "*" {
        return Some(ALL_PORTS);
    }
    let port = |text: &str| text.parse::<u16>().ok().filter(|it| *it > 0);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = port(first)?..=port(last)?;
    (!range.is_empty()).then_some(range)
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules(texts: &[&str]) -> Vec<Rule> {
        texts.iter().map(|it| it.parse().unwrap()).collect()
    }

    fn target(text: &str) -> Target {
        text.parse().unwrap()
    }

    #[test]
    fn public_is_what_no_registry_sets_apart() {
        let rules = rules(&["public:*"]);
        for (text, allowed) in [
            ("8.8.8.8:443", true),
            ("[2a00:1450::1]:443", true),
            ("127.0.0.1:443", false),
            ("[::1]:443", false),
            ("[::ffff:127.0.0.1]:443", false),
            ("[::ffff:8.8.8.8]:443", true),
            ("10.255.255.255:443", false),
            ("11.0.0.0:443", true),
            ("172.31.255.255:443", false),
            ("172.32.0.0:443", true),
            ("100.64.0.1:443", false),
            ("169.254.169.254:80", false),
            ("192.168.1.1:53", false),
            ("192.88.99.1:53", false),
            ("224.0.0.251:5353", false),
            ("255.255.255.255:9", false),
            ("0.0.0.0:443", false),
            ("[fe80::1]:443", false),
            ("[fc00::1]:443", false),
            ("[ff02::1]:443", false),
            ("[64:ff9b::7f00:1]:443", false),
            ("[2002:7f00:1::]:443", false),
        ] {
            let verdict = judge(&rules, &target(text));
            let is_address = matches!(verdict, Judgement::Address(_));
            assert_eq!(is_address, allowed, "{text}");
        }
    }

    #[test]
    fn networks_names_and_ports_are_told_apart() {
        let rules = rules(&[
            "10.1.0.0/16:1000-2000",
            "[2001:db8::]/32:53",
            "192.0.2.7:9",
            "www.example.org:443",
            "*.example.net:443",
        ]);
        for (text, allowed) in [
            ("10.1.255.1:1000", true),
            ("10.1.255.1:999", false),
            ("10.2.0.1:1500", false),
            ("[2001:db8:ffff::1]:53", true),
            ("[2001:db9::1]:53", false),
            ("192.0.2.7:9", true),
            ("192.0.2.7:10", false),
            ("192.0.2.8:9", false),
            ("www.example.org:443", true),
            ("WWW.example.ORG:443", true),
            ("www.example.org:80", false),
            ("example.org:443", false),
            ("a.b.example.net:443", true),
            ("example.net:443", false),
            ("badexample.net:443", false),
        ] {
            let allowed_now = judge(&rules, &target(text)) != Judgement::Refused;
            assert_eq!(allowed_now, allowed, "{text}");
        }
    }

    #[test]
    fn a_name_leads_to_what_is_allowed_alone_unless_it_is_itself() {
        let addresses = ["127.0.0.1", "8.8.8.8"].map(|it| it.parse().unwrap());
        let name = target("evil.example:443");
        let public = rules(&["public:443"]);
        assert_eq!(judge(&public, &name), Judgement::Name);
        let chosen = choose(&public, &name, &addresses);
        assert_eq!(chosen, ["8.8.8.8:443".parse().unwrap()]);
        assert_eq!(choose(&public, &name, &addresses[..1]), []);
        let named = rules(&["evil.example:443"]);
        let chosen = choose(&named, &name, &addresses);
        let both = ["127.0.0.1:443", "8.8.8.8:443"].map(|it| it.parse().unwrap());
        assert_eq!(chosen, both);
        assert_eq!(judge(&rules(&["public:53"]), &name), Judgement::Refused);
        assert_eq!(judge(&[], &name), Judgement::Refused);
    }

    #[test]
    fn an_address_of_the_proxys_machine_is_allowed_by_network_or_name_alone() {
        let own = "8.8.8.8:443".parse().unwrap();
        for (rule, allowed) in [
            ("public:443", false),
            ("8.8.8.0/24:443", true),
            ("8.8.8.0/24:53", false),
            ("here.example:443", true),
            ("*.example:443", true),
            ("there.example:443", false),
        ] {
            let target = target("here.example:443");
            assert_eq!(may_be_own(&rules(&[rule]), &target, own), allowed, "{rule}");
        }
    }

    #[test]
    fn packets_are_judged_by_address_port_and_protocol() {
        let all = [
            "public:443",
            "10.1.0.0/16:*",
            "10.2.0.0/16:53",
            "www.example.org:*",
        ];
        let rules = rules(&all);
        let own: IpAddr = "8.8.4.4".parse().unwrap();
        for (to, service, allowed) in [
            ("8.8.8.8", Service::Port(443), true),
            ("8.8.8.8", Service::Port(53), false),
            ("8.8.8.8", Service::Icmp, true),
            ("8.8.8.8", Service::Fragment, true),
            ("8.8.8.8", Service::Other, false),
            ("8.8.4.4", Service::Port(443), false),
            ("10.1.2.3", Service::Port(0), true),
            ("10.1.2.3", Service::Other, true),
            ("10.2.2.3", Service::Port(53), true),
            ("10.2.2.3", Service::Port(443), false),
            ("10.3.2.3", Service::Icmp, false),
            ("2a00:1450::1", Service::Port(443), true),
            ("fd00::1", Service::Port(443), false),
        ] {
            let to: IpAddr = to.parse().unwrap();
            let found = allows_packet(&rules, to, service, to == own);
            assert_eq!(found, allowed, "{to} {service:?}");
        }
    }

    #[test]
    fn a_network_that_would_match_something_else_is_refused_with_a_hint() {
        for (text, hint) in [
            ("10.1.2.3/16:*", "10.1.0.0/16"),
            ("10.1.2.3/0:*", "0.0.0.0/0"),
            ("[2001:db8::1]/32:*", "2001:db8::/32"),
            ("[::ffff:10.0.0.0]/104:*", "as in \"10.0.0.0/8:443\""),
            ("[::ffff:10.0.0.1]:*", "as in \"10.0.0.0/8:443\""),
        ] {
            let said = text.parse::<Rule>().unwrap_err();
            assert!(said.contains(hint), "{text}: {said}");
        }
    }

    #[test]
    fn what_is_no_rule_is_refused_with_words() {
        for text in [
            "",
            "public",
            "public:",
            "public:0",
            "public:2-1",
            "public:70000",
            "10.0.0.0/33:1",
            "::1:443",
            "[10.0.0.1]:1",
            "[::1]/129:1",
            "*:443",
            "*.:443",
            "a b:1",
            "a:1:",
        ] {
            let said = text.parse::<Rule>().unwrap_err();
            assert!(said.contains("HOSTS:PORTS"), "{text}: {said}");
        }
    }

    proptest! {
        #[test]
        fn any_rule_is_read_or_refused(text in "[ -~]{0,40}", bytes: [u8; 16], port: u16) {
            if let Ok(rule) = text.parse::<Rule>() {
                let again = rule.to_string().parse::<Rule>();
                prop_assert_eq!(again.as_ref(), Ok(&rule));
                let target = Target { host: IpAddr::from(bytes).to_string(), port };
                judge(&[rule], &target);
            }
        }

        #[test]
        fn the_addresses_of_a_rule_are_those_that_it_allows(v4: [u8; 4], v6: [u8; 16]) {
            for text in ["public:443", "128.0.0.0/1:443", "[2000::]/4:443"] {
                let rule: Rule = text.parse().unwrap();
                let set = addresses(&rule);
                for address in [IpAddr::from(v4), IpAddr::from(v6)] {
                    let service = Service::Port(443);
                    let rules = std::slice::from_ref(&rule);
                    let allowed = allows_packet(rules, address, service, false);
                    prop_assert_eq!(set.contains(address), allowed, "{} {}", text, address);
                }
            }
        }

        #[test]
        fn an_address_is_of_the_networks_of_its_first_bits(bytes: [u8; 4], bits in 0..=32_u32) {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            let address = Ipv4Addr::from(u32::from_be_bytes(bytes) & mask);
            let rule: Rule = format!("{address}/{bits}:*").parse().unwrap();
            let target = |it: u32| Target { host: Ipv4Addr::from(it).to_string(), port: 9 };
            let is_in = |it| judge(std::slice::from_ref(&rule), &target(it)) != Judgement::Refused;
            prop_assert!(is_in(address.to_bits()));
            for bit in 0..32 {
                let other = address.to_bits() ^ (1 << (31 - bit));
                prop_assert_eq!(is_in(other), bit >= bits);
            }
        }
    }
}
