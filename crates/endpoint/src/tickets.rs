//! The session tickets of a client whose TLS is rustls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// The state that a connection takes over from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// Nothing: a full handshake.
    Nothing,
    /// The session, by its latest ticket; no early data.
    Session,
    /// The session, and streams can be opened and written before the handshake, in 0-RTT packets.
    /// Where the ticket does not allow that, [`Stack::open`](crate::Stack::open) says `None` until
    /// the handshake is complete.
    EarlyData,
}

/// The tickets of the one server that there is; clones share them.
///
/// rustls' own store does not tell when a ticket comes.
#[derive(Debug, Clone, Default)]
pub struct Tickets {
    store: Arc<Mutex<Store>>,
    /// Beside the lock, as it is asked for after every datagram.
    news: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Store {
    tickets: Vec<Tls13ClientSessionValue>,
    group: Option<NamedGroup>,
}

impl Tickets {
    /// Whether a ticket has come since this was asked last.
    #[must_use]
    pub fn any_new(&self) -> bool {
        self.news.load(Ordering::Acquire) && self.news.swap(false, Ordering::AcqRel)
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.lock().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().group
    }

    // QUIC has no TLS 1.2 (RFC 9001, section 4.2).
    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.lock().tickets.push(ticket);
        self.news.store(true, Ordering::Release);
    }

    /// The latest; each is used once (RFC 8446, appendix C.4).
    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.lock().tickets.pop()
    }
}
