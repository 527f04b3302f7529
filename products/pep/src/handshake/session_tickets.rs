//! The TLS sessions that connections to next hops resume, and how often they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::NamedGroup;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;

/// Server names of which tickets are kept.
const NAMES: usize = 256;

/// The session tickets that next hops have given, by server name; clones share them.
#[derive(Debug, Clone)]
pub struct SessionTickets {
    cache: Arc<ClientSessionMemoryCache>,
    taken: Arc<AtomicU64>,
}

impl Default for SessionTickets {
    fn default() -> Self {
        Self {
            cache: Arc::new(ClientSessionMemoryCache::new(NAMES)),
            taken: Arc::default(),
        }
    }
}

impl SessionTickets {
    /// Connections that were begun with a ticket.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

impl ClientSessionStore for SessionTickets {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.cache.set_kx_hint(name, group);
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.cache.kx_hint(name)
    }

    // QUIC has no TLS 1.2 (RFC 9001, section 4.2).
    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.cache.insert_tls13_ticket(name, ticket);
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let ticket = self.cache.take_tls13_ticket(name)?;
        self.taken.fetch_add(1, Ordering::Relaxed);
        Some(ticket)
    }
}
