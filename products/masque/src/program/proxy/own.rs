//! The addresses of the proxy's machine, which clients reach only where a network is allowed.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use bentpipe_masque::{AddressSet, Prefix};
use bentpipe_netlink::{Netlink, OwnWatch};
use bentpipe_service::Failure;
use bentpipe_service::supervisor::failed;
use tracing::{error, info};

/// After an error: the time until the addresses are read again.
const PAUSE: Duration = Duration::from_secs(1);

/// The addresses that the machine's kernel takes for its own, kept up to date: broadcast and
/// anycast ones and those of local routes, too. While they are not known, every address may be one.
#[derive(Debug, Clone, Default)]
pub struct OwnAddresses(Arc<RwLock<Option<AddressSet>>>);

/// The sockets for news of them, and for reading them.
struct Sockets {
    news: OwnWatch,
    netlink: Netlink,
}

impl OwnAddresses {
    /// Reads them, and again whenever they change.
    pub fn watch() -> Result<Self, Failure> {
        let own = Self::default();
        let sockets = own.open();
        let sockets = sockets.map_err(failed("reading this machine's addresses (AF_NETLINK)"))?;
        let watched = own.clone();
        thread::Builder::new()
            .name("addresses".into())
            .spawn(move || watched.keep(sockets))
            .map_err(failed("starting a thread"))?;
        Ok(own)
    }

    /// Whether an address is one of them, as far as is known.
    pub fn contains(&self, address: IpAddr) -> bool {
        let own = self.0.read().unwrap_or_else(PoisonError::into_inner);
        own.as_ref().is_none_or(|own| own.contains(address))
    }

    /// Opens sockets, and reads them. What changes while they are read is read again.
    fn open(&self) -> io::Result<Sockets> {
        let news = OwnWatch::open()?;
        let netlink = Netlink::open()?;
        let mut sockets = Sockets { news, netlink };
        self.read(&mut sockets.netlink)?;
        Ok(sockets)
    }

    fn read(&self, netlink: &mut Netlink) -> io::Result<()> {
        let found = netlink.own_networks()?;
        let prefixes = found.iter().map(|it| Prefix::new(it.address, it.length));
        let prefixes: Option<Vec<_>> = prefixes.collect();
        let prefixes = prefixes.ok_or_else(|| io::Error::other("a route to no prefix"))?;
        self.set(Some(AddressSet::of(&prefixes)));
        Ok(())
    }

    fn set(&self, known: Option<AddressSet>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known;
    }

    fn keep(&self, mut sockets: Sockets) {
        loop {
            let changed = sockets.news.wait();
            if let Err(error) = changed.and_then(|()| self.read(&mut sockets.netlink)) {
                self.set(None);
                error!(why = %error, "addresses-unknown");
                sockets = self.open_again();
                info!("addresses-known");
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this thread has nothing else to do"
    )]
    fn open_again(&self) -> Sockets {
        loop {
            thread::sleep(PAUSE);
            if let Ok(sockets) = self.open() {
                return sockets;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_of_a_local_route_is_the_machines_own() {
        let own = OwnAddresses::watch().unwrap();
        for (address, is_own) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("127.255.255.255", true),
            ("198.51.100.7", false),
            ("2001:db8::7", false),
        ] {
            assert_eq!(own.contains(address.parse().unwrap()), is_own, "{address}");
        }
    }

    #[test]
    fn while_nothing_is_known_every_address_may_be_the_machines_own() {
        let own = OwnAddresses::default();
        assert!(own.contains([198, 51, 100, 7].into()));
        own.set(Some(AddressSet::default()));
        assert!(!own.contains([198, 51, 100, 7].into()));
    }
}
