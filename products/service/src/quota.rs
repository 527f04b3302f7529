//! How many connections of clients there are, over all proxies that share this table: in total, and
//! of each client.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bits of an IPv6 address that one client has for itself (RFC 6177): it can take any address below
/// them.
const CLIENTS_OWN_BITS: u32 = 64;

/// The count of clients' connections that are there, in total and by client.
#[derive(Debug, Default)]
pub struct ConnectionQuota {
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    total: usize,
    /// Only those that have any.
    of_client: HashMap<IpAddr, usize>,
}

/// The number of connections that there may be.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// In all.
    pub total: usize,
    /// The limit of one client.
    pub of_client: usize,
}

/// The limit that a connection would be beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverLimit {
    /// The limit of all connections.
    Connections,
    /// The limit of its client's connections.
    ConnectionsOfClient,
}

/// The permit of one connection; dropped, it can be given to another.
#[derive(Debug)]
pub struct ConnectionPermit {
    quota: Arc<ConnectionQuota>,
    client: IpAddr,
}

impl ConnectionQuota {
    /// A permit for a connection of `client`, if the limits allow one more.
    pub fn acquire(
        self: &Arc<Self>,
        client: IpAddr,
        limits: ConnectionLimits,
    ) -> Result<ConnectionPermit, OverLimit> {
        let client = client_prefix(client);
        let mut used = self.lock();
        if used.total >= limits.total {
            return Err(OverLimit::Connections);
        }
        let of_client = used.of_client.get(&client).copied().unwrap_or(0);
        if of_client >= limits.of_client {
            return Err(OverLimit::ConnectionsOfClient);
        }
        used.total += 1;
        used.of_client.insert(client, of_client + 1);
        drop(used);
        Ok(ConnectionPermit {
            quota: self.clone(),
            client,
        })
    }

    /// The number of permits that are out.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().total
    }

    /// Whether half of all permits are out, or half of those that `client` may have.
    #[must_use]
    pub fn is_half_used(&self, client: IpAddr, limits: ConnectionLimits) -> bool {
        let used = self.lock();
        let of_client = used.of_client.get(&client_prefix(client));
        2 * used.total >= limits.total || 2 * of_client.copied().unwrap_or(0) >= limits.of_client
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut used = self.quota.lock();
        used.total -= 1;
        let left = used.of_client.get_mut(&self.client).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            used.of_client.remove(&self.client);
        }
    }
}

/// The address by which a client is known.
fn client_prefix(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = address.to_bits() >> CLIENTS_OWN_BITS << CLIENTS_OWN_BITS;
            Ipv6Addr::from_bits(prefix).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(total: usize, of_client: usize) -> ConnectionLimits {
        ConnectionLimits { total, of_client }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn permits_are_given_and_returned() {
        let quota = Arc::new(ConnectionQuota::default());
        let limits = limits(3, 2);
        let first = quota.acquire(ip("192.0.2.1"), limits).unwrap();
        let _second = quota.acquire(ip("::ffff:192.0.2.1"), limits).unwrap();
        let third = quota.acquire(ip("192.0.2.1"), limits);
        assert_eq!(third.unwrap_err(), OverLimit::ConnectionsOfClient);
        let _third = quota.acquire(ip("192.0.2.2"), limits).unwrap();
        let fourth = quota.acquire(ip("192.0.2.3"), limits);
        assert_eq!(fourth.unwrap_err(), OverLimit::Connections);
        drop(first);
        assert_eq!(quota.count(), 2);
        drop(quota.acquire(ip("192.0.2.1"), limits).unwrap());
        assert_eq!(quota.lock().of_client.len(), 2);
    }

    #[test]
    fn half_of_the_permits_are_noticed() {
        let quota = Arc::new(ConnectionQuota::default());
        let limits = limits(4, 2);
        assert!(!quota.is_half_used(ip("192.0.2.1"), limits));
        let _first = quota.acquire(ip("192.0.2.1"), limits).unwrap();
        assert!(quota.is_half_used(ip("192.0.2.1"), limits));
        assert!(!quota.is_half_used(ip("192.0.2.2"), limits));
        let _second = quota.acquire(ip("192.0.2.2"), limits).unwrap();
        assert!(quota.is_half_used(ip("192.0.2.3"), limits));
    }

    #[test]
    fn all_addresses_of_a_network_are_one_client() {
        let quota = Arc::new(ConnectionQuota::default());
        let limits = limits(10, 1);
        let _one = quota.acquire(ip("2001:db8::1"), limits).unwrap();
        assert!(quota.acquire(ip("2001:db8::2"), limits).is_err());
        assert!(quota.acquire(ip("2001:db8:0:1::1"), limits).is_ok());
    }
}
