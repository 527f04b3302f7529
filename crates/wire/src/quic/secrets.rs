//! The TLS secrets that an observer has.

use crate::keylog::{KeyLog, SecretKind};

/// The secrets that all observers have, and those of one of them.
#[derive(Debug)]
pub(super) struct Secrets<'k> {
    shared: &'k KeyLog,
    own: KeyLog,
}

impl<'k> Secrets<'k> {
    pub(super) fn new(shared: &'k KeyLog) -> Self {
        Self {
            shared,
            own: KeyLog::default(),
        }
    }

    /// Adds those that become known on the way.
    pub(super) fn add(&mut self, text: &[u8]) {
        self.own.add(text);
    }

    /// The randoms of all connections, in an order that does not change from run to run.
    pub(super) fn connections(&self) -> Vec<[u8; 32]> {
        let both = self
            .shared
            .client_randoms()
            .chain(self.own.client_randoms());
        let mut randoms: Vec<_> = both.copied().collect();
        randoms.sort_unstable();
        randoms.dedup();
        randoms
    }

    pub(super) fn find(&self, client_random: &[u8; 32], kind: SecretKind) -> Option<&[u8]> {
        let shared = self.shared.secret(client_random, kind);
        shared.or_else(|| self.own.secret(client_random, kind))
    }
}
