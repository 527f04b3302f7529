//! The addresses that a proxy has for its clients, of which each gets its own.
//!
//! A client has one address of each version of IP that the pool has. The first address of each
//! prefix is the proxy's; the others are given out in turn, so that what is under way to a client
//! that has gone away does not reach the next.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_service::quota::{ConnectionLimits, ConnectionPermit, ConnectionQuota};

use super::network::{Prefix, address_of, bits_of};

/// The longest prefixes of which clients can have something: the proxy and one client.
const LONGEST: [u8; 2] = [30, 126];

/// A pool, which all threads of a proxy share.
#[derive(Debug)]
pub struct Pool {
    parts: Vec<Part>,
    quota: Arc<ConnectionQuota>,
    taken: Mutex<Taken>,
}

/// The addresses of a prefix.
#[derive(Debug)]
struct Part {
    prefix: Prefix,
    /// The proxy's.
    own: IpAddr,
    /// The first of the clients' and the last, as numbers.
    first: u128,
    last: u128,
}

#[derive(Debug, Default)]
struct Taken {
    /// The thread of each client's address.
    by_address: BTreeMap<IpAddr, usize>,
    /// Of each part the number to begin with, and how many are taken.
    next: Vec<u128>,
    used: Vec<u128>,
}

/// The addresses of a client; dropped, they can be given to another.
#[derive(Debug)]
pub struct Lease {
    pool: Arc<Pool>,
    addresses: Vec<IpAddr>,
    _permit: ConnectionPermit,
}

impl Pool {
    /// One of these prefixes; an error says why it cannot be.
    pub fn new(prefixes: &[Prefix]) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        for prefix in prefixes {
            let other = parts
                .iter()
                .find(|it| it.prefix.covers(*prefix) || prefix.covers(it.prefix));
            if let Some(other) = other {
                return Err(format!("{prefix} and {} overlap", other.prefix));
            }
            parts.push(Part::of(*prefix)?);
        }
        let taken = Taken {
            by_address: BTreeMap::new(),
            next: parts.iter().map(|it| it.first).collect(),
            used: vec![0; parts.len()],
        };
        Ok(Self {
            parts,
            quota: Arc::default(),
            taken: Mutex::new(taken),
        })
    }

    /// The proxy's own address of each prefix, and the prefix.
    pub fn own(&self) -> impl Iterator<Item = (IpAddr, Prefix)> + '_ {
        self.parts.iter().map(|it| (it.own, it.prefix))
    }

    /// The proxy's own address of a version of IP, if it has one.
    pub fn own_of(&self, is_v4: bool) -> Option<IpAddr> {
        let mut own = self.parts.iter().map(|it| it.own);
        own.find(|it| it.is_ipv4() == is_v4)
    }

    /// Addresses for a client at `client`, which may have so many leases, for a thread to serve;
    /// `None`: there are none, or it has too many.
    pub fn lease(
        self: &Arc<Self>,
        thread: usize,
        client: IpAddr,
        most_of_client: usize,
    ) -> Option<Lease> {
        let limits = ConnectionLimits {
            total: usize::MAX,
            of_client: most_of_client,
        };
        let permit = self.quota.acquire(client, limits).ok()?;
        let mut addresses = Vec::new();
        let mut taken = self.lock();
        for is_v4 in [true, false] {
            let parts = || {
                let all = self.parts.iter().enumerate();
                all.filter(move |(_, it)| it.own.is_ipv4() == is_v4)
            };
            if parts().next().is_none() {
                continue;
            }
            addresses.push(parts().find_map(|(number, part)| taken.find(number, part))?);
        }
        for address in &addresses {
            taken.by_address.insert(*address, thread);
            taken.used[self.part_of(*address)] += 1;
        }
        drop(taken);
        Some(Lease {
            pool: self.clone(),
            addresses,
            _permit: permit,
        })
    }

    /// The thread of the client that has an address.
    pub fn thread_of(&self, address: IpAddr) -> Option<usize> {
        self.lock().by_address.get(&address).copied()
    }

    /// The addresses that clients have.
    pub fn count(&self) -> usize {
        self.lock().by_address.len()
    }

    fn part_of(&self, address: IpAddr) -> usize {
        let found = self.parts.iter().position(|it| it.prefix.contains(address));
        found.expect("an address that was given out is one of the pool")
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    fn of(prefix: Prefix) -> Result<Self, String> {
        let [first, last] = prefix.ends();
        let is_v4 = first.is_ipv4();
        let longest = LONGEST[usize::from(!is_v4)];
        if prefix.length() > longest {
            return Err(format!(
                "{prefix} has no address for clients: /{longest} has one at least"
            ));
        }
        let is_special = |it: IpAddr| it.is_multicast() || it.is_loopback() || it.is_unspecified();
        if is_special(first) || is_special(last) {
            return Err(format!("{prefix} has addresses that no host may have"));
        }
        let at = bits_of(first);
        Ok(Self {
            prefix,
            // The first address is that of the network, or of all its routers.
            own: address_of(at + 1, first),
            first: at + 2,
            // The last one of IPv4 is that of all hosts.
            last: bits_of(last) - u128::from(is_v4),
        })
    }
}

impl Taken {
    /// A free address of a part, if there is one.
    fn find(&mut self, number: usize, part: &Part) -> Option<IpAddr> {
        if self.used[number] > part.last - part.first {
            return None;
        }
        let start = self.next[number];
        let is_free = |it: &u128| !self.by_address.contains_key(&address_of(*it, part.own));
        let mut all = (start..=part.last).chain(part.first..start);
        let found = all.find(is_free)?;
        self.next[number] = if found == part.last {
            part.first
        } else {
            found + 1
        };
        Some(address_of(found, part.own))
    }
}

impl Lease {
    /// The client's addresses.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut taken = self.pool.lock();
        for address in &self.addresses {
            taken.by_address.remove(address);
            taken.used[self.pool.part_of(*address)] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const MANY: usize = 1000;

    fn pool(prefixes: &[&str]) -> Result<Arc<Pool>, String> {
        let prefixes: Vec<Prefix> = prefixes.iter().map(|it| it.parse().unwrap()).collect();
        Pool::new(&prefixes).map(Arc::new)
    }

    fn client(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn texts(lease: &Lease) -> Vec<String> {
        lease.addresses().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_client_has_an_address_of_each_version_and_the_proxy_the_first() {
        let pool = pool(&["10.9.0.0/29", "fd00:9::/64"]).unwrap();
        let own: Vec<_> = pool.own().map(|(it, _)| it.to_string()).collect();
        assert_eq!(own, ["10.9.0.1", "fd00:9::1"]);
        let first = pool.lease(3, client(1), MANY).unwrap();
        let second = pool.lease(4, client(1), MANY).unwrap();
        assert_eq!(texts(&first), ["10.9.0.2", "fd00:9::2"]);
        assert_eq!(texts(&second), ["10.9.0.3", "fd00:9::3"]);
        assert_eq!(pool.thread_of(second.addresses()[1]), Some(4));
        assert_eq!((pool.thread_of(client(9)), pool.count()), (None, 4));
        drop(second);
        let third = pool.lease(4, client(1), MANY).unwrap();
        assert_eq!(texts(&third)[0], "10.9.0.4", "in turn");
        // One prefix of 29 bits has six hosts, of which one is the proxy.
        let rest: Vec<_> = (0..9)
            .filter_map(|_| pool.lease(0, client(2), MANY))
            .collect();
        let rest: Vec<_> = rest.iter().map(|it| texts(it)[0].clone()).collect();
        assert_eq!(rest, ["10.9.0.5", "10.9.0.6", "10.9.0.3"]);
        drop(first);
        assert_eq!(
            texts(&pool.lease(0, client(1), MANY).unwrap())[0],
            "10.9.0.2"
        );
    }

    #[test]
    fn prefixes_of_a_version_follow_one_another() {
        let pool = pool(&["10.9.0.0/30", "10.8.0.0/30"]).unwrap();
        let leases: Vec<_> = (0..3)
            .filter_map(|_| pool.lease(0, client(1), MANY))
            .collect();
        let all: Vec<_> = leases.iter().flat_map(texts).collect();
        assert_eq!(all, ["10.9.0.2", "10.8.0.2"]);
        drop(leases);
        assert_eq!(pool.count(), 0, "all are free again");
    }

    #[test]
    fn one_client_address_does_not_get_all() {
        let pool = pool(&["10.9.0.0/24"]).unwrap();
        let leases: Vec<_> = (0..9).filter_map(|_| pool.lease(0, client(1), 2)).collect();
        assert_eq!(leases.len(), 2);
        assert!(pool.lease(0, client(2), 2).is_some());
        drop(leases);
        assert!(pool.lease(0, client(1), 2).is_some());
    }

    #[test]
    fn a_version_that_is_used_up_leaves_nothing_of_the_other_taken() {
        let pool = pool(&["10.9.0.0/24", "fd00:9::/126"]).unwrap();
        let leases: Vec<_> = (0..9)
            .filter_map(|_| pool.lease(0, client(1), MANY))
            .collect();
        assert_eq!((leases.len(), pool.count()), (2, 4), "::2 and ::3");
        drop(leases);
        assert_eq!(pool.count(), 0);
        assert!(
            pool.lease(0, client(1), MANY).is_some(),
            "and no permit is lost"
        );
    }

    #[test]
    fn what_cannot_be_a_pool_is_refused_with_words() {
        for (prefixes, words) in [
            (&["10.9.0.0/31"][..], "/30 has one at least"),
            (&["fd00::/127"], "/126 has one at least"),
            (&["10.9.0.0/24", "10.9.0.128/25"], "overlap"),
            (&["10.9.0.128/25", "10.9.0.0/24"], "overlap"),
            (&["127.0.0.0/8"], "no host may have"),
            (&["224.0.0.0/24"], "no host may have"),
            (&["::/64"], "no host may have"),
        ] {
            let said = pool(prefixes).unwrap_err();
            assert!(said.contains(words), "{prefixes:?}: {said}");
        }
    }

    proptest! {
        #[test]
        fn no_two_clients_ever_have_the_same_address(
            steps in prop::collection::vec((any::<bool>(), 0_usize..20), 0..60),
        ) {
            let pool = pool(&["10.9.0.0/28", "fd00:9::/124"]).unwrap();
            let mut leases: Vec<Lease> = Vec::new();
            for (takes, at) in steps {
                if takes {
                    leases.extend(pool.lease(at, client(1), MANY));
                } else if at < leases.len() {
                    leases.swap_remove(at);
                }
                let all = leases.iter().flat_map(Lease::addresses);
                let different: BTreeSet<_> = all.clone().collect();
                prop_assert_eq!(different.len(), all.count());
                prop_assert_eq!(different.len(), pool.count());
                prop_assert!(pool.own().all(|(own, _)| !different.contains(&own)));
            }
        }
    }
}
