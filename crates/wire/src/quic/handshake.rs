//! The outcome of a TLS handshake, by the server's messages.

use super::tls;

/// The answers of the server in a handshake. None: that part of it was not seen, or could not be
/// decrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Handshake {
    /// Whether it took a ticket of the client: `pre_shared_key` in its `ServerHello`, which
    /// everybody can read.
    pub took_ticket: Option<bool>,
    /// Whether it sent a Certificate.
    pub certificate: Option<bool>,
    /// Whether it said that it accepts early data: `early_data` in its `EncryptedExtensions`.
    pub early_data: Option<bool>,
}

impl Handshake {
    /// The handshake as one place saw it, completed by what another did.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            took_ticket: self.took_ticket.or(other.took_ticket),
            certificate: self.certificate.or(other.certificate),
            early_data: self.early_data.or(other.early_data),
        }
    }

    /// Whether there is nothing more to learn from Initial packets.
    pub(super) fn knows_hello(self) -> bool {
        self.took_ticket.is_some()
    }

    /// Whether there is nothing more to learn from Handshake packets.
    pub(super) fn knows_rest(self) -> bool {
        self.certificate.is_some() && self.early_data.is_some()
    }

    /// Reads the CRYPTO stream of the server's Initial packets, as far as it is there.
    pub(crate) fn read_hello(&mut self, stream: &[u8]) {
        self.took_ticket = tls::takes_ticket(stream);
    }

    /// Reads that of its Handshake packets.
    pub(crate) fn read_rest(&mut self, stream: &[u8]) {
        self.certificate = tls::sends_certificate(stream);
        self.early_data = tls::accepts_early_data(stream);
    }
}
