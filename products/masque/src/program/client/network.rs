//! The addresses and routes of a client's TUN device: those that the proxy says, as far as this
//! machine wants them.
//!
//! They go with the device when the client ends. While the proxy is away they stay, so that packets
//! which should go through the tunnel do not leave beside it.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use bentpipe_masque::{AddressSet, Network, Prefix};
use bentpipe_netlink::Netlink;
use rustix::io::Errno;
use tracing::{info, warn};

/// The least packet of a link with IPv6 (RFC 8200, section 5).
const LEAST_OF_IPV6: usize = 1280;
/// The routes that a device takes: a proxy could say any number.
const MOST_ROUTES: usize = 1024;

/// A device's addresses and routes.
pub struct Interface {
    name: String,
    netlink: Netlink,
    /// Bytes of its largest packet.
    mtu: usize,
    /// The proxy, to which no route may lead through its own tunnel.
    proxy: IpAddr,
    /// Where packets may go through the tunnel; `None`: wherever the proxy carries them.
    wanted: Option<AddressSet>,
    addresses: BTreeSet<IpAddr>,
    routes: BTreeSet<Prefix>,
}

/// Which routes a device has, and how many more it would have.
#[derive(Debug, Default, PartialEq, Eq)]
struct Chosen {
    routes: BTreeSet<Prefix>,
    left_out: usize,
    /// Whether the proxy carries less than is wanted.
    is_less: bool,
}

/// Changes of routes that failed: how many, and the first.
#[derive(Debug, Default)]
struct Failed {
    count: usize,
    first: Option<(Prefix, io::Error)>,
}

impl Interface {
    /// A device that has none.
    pub fn new(
        name: &str,
        mtu: usize,
        proxy: IpAddr,
        wanted: Option<&[Prefix]>,
    ) -> io::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            netlink: Netlink::open()?,
            mtu,
            proxy,
            wanted: wanted.map(AddressSet::of),
            addresses: BTreeSet::new(),
            routes: BTreeSet::new(),
        })
    }

    /// Gives the device what the proxy says, in place of what it had.
    pub fn apply(&mut self, network: &Network) {
        let addresses: BTreeSet<IpAddr> = network.addresses.iter().copied().collect();
        let (addresses, left): (BTreeSet<_>, BTreeSet<_>) = addresses
            .into_iter()
            .partition(|it| it.is_ipv4() || self.mtu >= LEAST_OF_IPV6);
        if let Some(address) = left.first() {
            let why = "IPv6 needs packets of 1280 bytes: set tunnel.mtu to 1320 or more";
            warn!(%address, why, "address-left-out");
        }
        let chosen = self.choose(&addresses, network);
        // The new ones first: without any address the kernel forgets all routes.
        for address in addresses.difference(&self.addresses.clone()) {
            let prefix = Prefix::of(*address);
            let added = self.netlink.add_address(&self.name, plain(prefix));
            if note("address-failed", prefix, &added) {
                self.addresses.insert(*address);
            }
        }
        for address in self.addresses.clone().difference(&addresses) {
            let prefix = Prefix::of(*address);
            let removed = self.netlink.remove_address(&self.name, plain(prefix));
            if note("address-failed", prefix, &gone(removed)) {
                self.addresses.remove(address);
            }
        }
        self.route(&chosen);
        let addresses: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
        info!(
            ?addresses,
            routes = self.routes.len(),
            device = self.name,
            "assigned"
        );
    }

    /// Gives the device routes in place of those that it had. Those that fail it does not have, and
    /// they are tried again with what the proxy says next.
    fn route(&mut self, chosen: &Chosen) {
        let mut failed = Failed::default();
        for prefix in self.routes.clone().difference(&chosen.routes) {
            let removed = self.netlink.remove_device_route(plain(*prefix), &self.name);
            if failed.has_not(*prefix, gone(removed)) {
                self.routes.remove(prefix);
            }
        }
        for prefix in chosen.routes.difference(&self.routes.clone()) {
            let added = self.netlink.add_device_route(plain(*prefix), &self.name);
            if failed.has_not(*prefix, added) {
                self.routes.insert(*prefix);
            }
        }
        failed.log();
        if chosen.left_out > 0 {
            let why = "a device has 1024 routes at most: set tun.routes to what you need";
            warn!(left_out = chosen.left_out, why, "routes-left-out");
        }
        if chosen.is_less {
            let why = "tun.routes: the proxy does not carry packets to all of that";
            warn!(why, "routes-left-out");
        }
    }

    /// The routes of the versions of IP that the device has addresses of.
    fn choose(&self, addresses: &BTreeSet<IpAddr>, network: &Network) -> Chosen {
        let mut set = AddressSet::default();
        for route in &network.routes {
            let [start, _] = route.ends();
            if addresses.iter().any(|it| it.is_ipv4() == start.is_ipv4()) {
                set.add(route.ends());
            }
        }
        let mut is_less = false;
        if let Some(wanted) = &self.wanted {
            let common = set.common(wanted);
            is_less = common != *wanted;
            set = common;
        }
        set.remove_all(&AddressSet::unroutable());
        set.remove(Prefix::of(self.proxy));
        let prefixes = set.prefixes();
        Chosen {
            left_out: prefixes.len().saturating_sub(MOST_ROUTES),
            routes: prefixes.into_iter().take(MOST_ROUTES).collect(),
            is_less,
        }
    }
}

fn plain(prefix: Prefix) -> bentpipe_netlink::Prefix {
    bentpipe_netlink::Prefix {
        address: prefix.address(),
        length: prefix.length(),
    }
}

/// Removing what is not there has done what was wanted: without its address a device has lost its
/// routes, too.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    let absent = [Errno::SRCH, Errno::ADDRNOTAVAIL];
    removed.or_else(|error| match Errno::from_io_error(&error) {
        Some(errno) if absent.contains(&errno) => Ok(()),
        _ => Err(error),
    })
}

/// Whether it is done; logged if not.
fn note(event: &'static str, what: Prefix, done: &io::Result<()>) -> bool {
    if let Err(error) = done {
        warn!(%what, why = %error, "{event}");
    }
    done.is_ok()
}

impl Failed {
    /// Whether it is done.
    fn has_not(&mut self, prefix: Prefix, done: io::Result<()>) -> bool {
        let is_done = done.is_ok();
        if let Err(error) = done {
            self.count += 1;
            self.first.get_or_insert((prefix, error));
        }
        is_done
    }

    fn log(self) {
        if let Some((first, error)) = self.first {
            warn!(count = self.count, %first, why = %error, "routes-failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_masque::Route;

    use super::*;

    fn chosen(advertised: &[&str], wanted: Option<&[&str]>, addresses: &[&str]) -> Chosen {
        let prefix = |text: &&str| text.parse::<Prefix>().unwrap();
        let wanted = wanted.map(|it| it.iter().map(prefix).collect::<Vec<_>>());
        let proxy = [203, 0, 113, 9].into();
        let interface = Interface::new("none", 1412, proxy, wanted.as_deref()).unwrap();
        let network = Network {
            addresses: Vec::new(),
            routes: advertised.iter().map(prefix).map(Route::to).collect(),
        };
        let addresses = addresses.iter().map(|it| it.parse().unwrap()).collect();
        interface.choose(&addresses, &network)
    }

    fn texts(chosen: &Chosen) -> Vec<String> {
        chosen.routes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn routes_are_what_is_advertised_and_wanted() {
        let both = ["10.9.0.2", "fd00:9::2"];
        let advertised = ["198.51.100.0/24", "192.0.2.0/24", "2001:db8::/32"];
        let all = chosen(&advertised, None, &both);
        assert_eq!(
            texts(&all),
            ["192.0.2.0/24", "198.51.100.0/24", "2001:db8::/32"]
        );
        assert!(!all.is_less);
        let some = chosen(&advertised, Some(&["198.51.100.128/25"]), &both);
        assert_eq!(texts(&some), ["198.51.100.128/25"]);
        assert!(!some.is_less);
        let less = chosen(&advertised, Some(&["198.51.100.0/23"]), &both);
        assert_eq!(texts(&less), ["198.51.100.0/24"]);
        assert!(less.is_less);
        let v4 = chosen(&advertised, None, &both[..1]);
        assert_eq!(
            v4.routes.len(),
            2,
            "there is no address to send from to IPv6"
        );
    }

    #[test]
    fn no_route_leads_to_the_proxy_or_into_this_machine() {
        let all = chosen(&["0.0.0.0/0"], None, &["10.9.0.2"]);
        let covers = |text: &str| {
            let address = text.parse().unwrap();
            all.routes.iter().any(|it| it.contains(address))
        };
        assert!(covers("203.0.113.8") && covers("8.8.8.8") && covers("10.0.0.1"));
        assert!(!covers("203.0.113.9") && !covers("127.0.0.1") && !covers("224.0.0.1"));
        assert!(
            all.routes.iter().all(|it| it.length() > 0),
            "beside the default route"
        );
    }

    #[test]
    fn a_proxy_cannot_make_any_number_of_routes() {
        let many = (0..1100).map(|it| format!("10.{}.{}.0/25", it / 250, it % 250));
        let many: Vec<_> = many.collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let chosen = chosen(&many, None, &["10.9.0.2"]);
        assert_eq!((chosen.routes.len(), chosen.left_out), (1024, 76));
    }
}
