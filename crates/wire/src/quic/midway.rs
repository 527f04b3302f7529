//! Joins connections of which the beginning was not seen: a capture that was started during a
//! transfer.
//!
//! A packet with a short header tells neither its connection, nor how long its connection ID is,
//! nor more of its number than the last bytes (RFC 9000 section 17.3.1). If the key log holds few
//! connections, all of that can be tried out, as the authentication tag says when it is right. A
//! known connection is joined in the same way when it goes on under a connection ID that nobody was
//! seen to issue.
//!
//! A draft looks like version 1 here, and is taken for it.
//!
//! Trying takes time, and most packets that belong to nothing known are no QUIC packets at all, so
//! it has limits: the connections in the key log, the packets on one path and on all, the packet
//! numbers and the key updates.

use std::collections::HashMap;

use crate::ip_layer::Path;
use crate::keylog::SecretKind;

use super::keys::{Secret, Suite};
use super::protection::{Form, Keys, Protected, Scratch};
use super::secrets::Secrets;
use super::version::Version;
use super::{ConnectionId, End};

/// With more connections than this in the key log none is tried.
const MOST_CONNECTIONS: usize = 8;
/// Packets that may be tried in vain on one path, and on all together.
const MOST_ON_PATH: u32 = 8;
const MOST_IN_ALL: u32 = 64;

/// The numbers of attempts that were in vain.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    on_path: HashMap<Path, u32>,
    in_all: u32,
}

impl Attempts {
    /// Whether there is still a chance for packets of a path.
    pub(super) fn may_try(&self, path: &Path) -> bool {
        let on_path = self.on_path.get(path).copied().unwrap_or(0);
        on_path < MOST_ON_PATH && self.in_all < MOST_IN_ALL
    }

    pub(super) fn failed(&mut self, path: Path) {
        *self.on_path.entry(path).or_default() += 1;
        self.in_all += 1;
    }
}

/// The connection and the sender of a packet, and its keys.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) client_random: [u8; 32],
    pub(super) sender: End,
    pub(super) destination: ConnectionId,
    pub(super) number: u64,
    pub(super) version: Version,
    pub(super) keys: Keys,
}

/// The connection and the sender that a packet must have, where its addresses tell that.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnPath {
    pub(super) client_random: [u8; 32],
    pub(super) sender: End,
    pub(super) form: Form,
}

/// Finds out whose packet with a short header this is.
///
/// Where nothing is known of it, it must have the QUIC bit, which RFC 9287 lets ends clear, and no
/// loss bits.
pub(super) fn join(bytes: &[u8], secrets: &Secrets<'_>, among: Option<OnPath>) -> Option<Joined> {
    let connections = match among {
        Some(known) => vec![known.client_random],
        None => secrets.connections(),
    };
    let has_quic_bit = bytes[0] & 0x40 != 0;
    if (among.is_none() && !has_quic_bit) || connections.len() > MOST_CONNECTIONS {
        return None;
    }
    let form = among.map_or(Form::Short, |known| known.form);
    for client_random in connections {
        for sender in [End::Client, End::Server] {
            if among.is_some_and(|known| known.sender != sender) {
                continue;
            }
            let kind = match sender {
                End::Client => SecretKind::ClientApplication,
                End::Server => SecretKind::ServerApplication,
            };
            let Some(secret) = secrets.find(&client_random, kind) else {
                continue;
            };
            if let Some((destination, version, keys, number)) = try_secret(bytes, form, secret) {
                return Some(Joined {
                    client_random,
                    sender,
                    destination,
                    number,
                    version,
                    keys,
                });
            }
        }
    }
    None
}

/// Tries a secret with every cipher, version and length of the connection ID.
fn try_secret(
    bytes: &[u8],
    form: Form,
    secret: &[u8],
) -> Option<(ConnectionId, Version, Keys, u64)> {
    let mut scratch = Scratch::default();
    for version in [Version::V1, Version::V2] {
        for suite in Suite::of_secret_length(secret.len()) {
            let mut keys = Keys::new(Secret::new(*suite, version, secret));
            for length in 0..=ConnectionId::LONGEST {
                let packet = Protected {
                    bytes,
                    number_offset: 1 + length,
                    form,
                    path_id: 0,
                };
                if let Some(opened) = keys.open_midway(packet, &mut scratch) {
                    let destination = ConnectionId::new(bytes.get(1..1 + length)?)?;
                    return Some((destination, version, keys, opened.number));
                }
            }
        }
    }
    None
}
