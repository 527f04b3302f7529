//! How many connections of clients there are, over all proxies that share this table: in total, and of each client.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::proxy::event::Refusal;

/// Bits of an IPv6 address that one client has for itself (RFC 6177): it can take any address below them.
const CLIENTS_OWN_BITS: u32 = 64;

/// See the module.
#[derive(Debug, Default)]
pub struct Seats {
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    /// Only those that have any.
    of_client: HashMap<IpAddr, usize>,
}

/// How many there may be.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// In all.
    pub total: usize,
    /// Of one client.
    pub of_client: usize,
}

/// A connection's place; dropped, it is free again.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    client: IpAddr,
}

impl Seats {
    /// Takes a place for a connection of `client`, if the limits allow one more.
    pub fn take(self: &Arc<Self>, client: IpAddr, most: Most) -> Result<Seat, Refusal> {
        let client = of_one(client);
        let mut taken = self.lock();
        if taken.total >= most.total {
            return Err(Refusal::Connections);
        }
        let of_client = taken.of_client.get(&client).copied().unwrap_or(0);
        if of_client >= most.of_client {
            return Err(Refusal::ConnectionsOfClient);
        }
        taken.total += 1;
        taken.of_client.insert(client, of_client + 1);
        drop(taken);
        Ok(Seat {
            seats: self.clone(),
            client,
        })
    }

    /// Places that are taken.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().total
    }

    /// Whether half of all places are taken, or half of those that `client` may take.
    #[must_use]
    pub fn are_scarce(&self, client: IpAddr, most: Most) -> bool {
        let taken = self.lock();
        let of_client = taken.of_client.get(&of_one(client)).copied().unwrap_or(0);
        2 * taken.total >= most.total || 2 * of_client >= most.of_client
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        taken.total -= 1;
        let left = taken.of_client.get_mut(&self.client).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            taken.of_client.remove(&self.client);
        }
    }
}

/// The address by which a client is known.
fn of_one(client: IpAddr) -> IpAddr {
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

    fn most(total: usize, of_client: usize) -> Most {
        Most { total, of_client }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn places_are_taken_and_given_back() {
        let seats = Arc::new(Seats::default());
        let most = most(3, 2);
        let first = seats.take(ip("192.0.2.1"), most).unwrap();
        let _second = seats.take(ip("::ffff:192.0.2.1"), most).unwrap();
        let third = seats.take(ip("192.0.2.1"), most);
        assert_eq!(third.unwrap_err(), Refusal::ConnectionsOfClient);
        let _third = seats.take(ip("192.0.2.2"), most).unwrap();
        let fourth = seats.take(ip("192.0.2.3"), most);
        assert_eq!(fourth.unwrap_err(), Refusal::Connections);
        drop(first);
        assert_eq!(seats.count(), 2);
        drop(seats.take(ip("192.0.2.1"), most).unwrap());
        assert_eq!(seats.lock().of_client.len(), 2);
    }

    #[test]
    fn places_are_scarce_when_half_of_them_are_taken() {
        let seats = Arc::new(Seats::default());
        let most = most(4, 2);
        assert!(!seats.are_scarce(ip("192.0.2.1"), most));
        let _first = seats.take(ip("192.0.2.1"), most).unwrap();
        assert!(seats.are_scarce(ip("192.0.2.1"), most));
        assert!(!seats.are_scarce(ip("192.0.2.2"), most));
        let _second = seats.take(ip("192.0.2.2"), most).unwrap();
        assert!(seats.are_scarce(ip("192.0.2.3"), most));
    }

    #[test]
    fn all_addresses_of_a_network_are_one_client() {
        let seats = Arc::new(Seats::default());
        let most = most(10, 1);
        let _one = seats.take(ip("2001:db8::1"), most).unwrap();
        assert!(seats.take(ip("2001:db8::2"), most).is_err());
        assert!(seats.take(ip("2001:db8:0:1::1"), most).is_ok());
    }
}
