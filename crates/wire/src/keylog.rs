//! TLS secrets in the key log format of NSS: a line each of label, client random and secret, in
//! hexadecimal.
//!
//! Source: draft-ietf-tls-keylogfile. Lines of other labels (TLS 1.2, exporters) and damaged lines
//! say nothing about QUIC packets and are passed over; [`KeyLog::damaged_lines`] counts the latter.

use std::collections::HashMap;

/// The kind of a secret: what it protects, and who sends that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// The client's 0-RTT packets.
    ClientEarly,
    /// The client's Handshake packets.
    ClientHandshake,
    /// The server's Handshake packets.
    ServerHandshake,
    /// The client's 1-RTT packets, before any key update.
    ClientApplication,
    /// The server's 1-RTT packets, before any key update.
    ServerApplication,
}

impl SecretKind {
    fn from_label(label: &str) -> Option<Self> {
        Some(match label {
            "CLIENT_EARLY_TRAFFIC_SECRET" => Self::ClientEarly,
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Self::ClientHandshake,
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Self::ServerHandshake,
            "CLIENT_TRAFFIC_SECRET_0" => Self::ClientApplication,
            "SERVER_TRAFFIC_SECRET_0" => Self::ServerApplication,
            _ => return None,
        })
    }
}

/// The secrets of a connection, by their kind.
type Secrets = [Option<Box<[u8]>>; 5];

/// The TLS secrets of any number of connections.
#[derive(Debug, Clone, Default)]
pub struct KeyLog {
    connections: HashMap<[u8; 32], Secrets>,
    damaged_lines: usize,
}

impl KeyLog {
    /// Adds the secrets of `text`. A secret that is there already is kept.
    pub fn add(&mut self, text: &[u8]) {
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            if !line.is_empty() && line[0] != b'#' && self.add_line(line).is_none() {
                self.damaged_lines += 1;
            }
        }
    }

    fn add_line(&mut self, line: &[u8]) -> Option<()> {
        if let LogLine::Secret {
            random,
            kind,
            secret,
        } = LogLine::read(line)?
        {
            self.connections.entry(random).or_default()[kind as usize]
                .get_or_insert_with(|| secret.into_boxed_slice());
        }
        Some(())
    }

    /// Whether `text` has a secret that is not there.
    #[must_use]
    pub fn lacks(&self, text: &[u8]) -> bool {
        let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        lines.any(|line| {
            matches!(LogLine::read(line), Some(LogLine::Secret { random, kind, .. })
                if self.secret(&random, kind).is_none())
        })
    }

    /// The secret of the connection whose `ClientHello` had `client_random`.
    #[must_use]
    pub fn secret(&self, client_random: &[u8; 32], kind: SecretKind) -> Option<&[u8]> {
        self.connections.get(client_random)?[kind as usize].as_deref()
    }

    /// The randoms of all connections.
    pub(crate) fn client_randoms(&self) -> impl Iterator<Item = &[u8; 32]> {
        self.connections.keys()
    }

    /// The number of connections of which there are secrets.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The number of connections of which both ends' streams can be read.
    #[must_use]
    pub fn readable_connections(&self) -> usize {
        let kinds = [SecretKind::ClientApplication, SecretKind::ServerApplication];
        let is_readable = |it: &&Secrets| kinds.iter().all(|kind| it[*kind as usize].is_some());
        self.connections.values().filter(is_readable).count()
    }

    /// The number of lines that could not be read.
    #[must_use]
    pub fn damaged_lines(&self) -> usize {
        self.damaged_lines
    }
}

/// A line of a key log.
enum LogLine {
    Secret {
        random: [u8; 32],
        kind: SecretKind,
        secret: Vec<u8>,
    },
    /// It has none of the secrets that are kept.
    Other,
}

impl LogLine {
    /// None if the line is damaged.
    fn read(line: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        let (label, random, secret) = (words.next()?, words.next()?, words.next()?);
        let Some(kind) = SecretKind::from_label(label) else {
            return Some(Self::Other);
        };
        Some(Self::Secret {
            random: from_hex(random)?.try_into().ok()?,
            kind,
            secret: from_hex(secret).filter(|secret| matches!(secret.len(), 32 | 48))?,
        })
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, odd) = text.as_bytes().as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_kinds_are_passed_over() {
        let random = "11".repeat(32);
        let mut log = KeyLog::default();
        log.add(
            format!(
                "# comment\r\n\nCLIENT_RANDOM {random} 00\nEXPORTER_SECRET {random} 00\n\
                 SERVER_TRAFFIC_SECRET_0 {random} {}\r\n\
                 CLIENT_TRAFFIC_SECRET_0 {random} 0\nCLIENT_TRAFFIC_SECRET_0 {random}\n\u{ff}",
                "ab".repeat(48)
            )
            .as_bytes(),
        );
        assert_eq!(log.connections(), 1);
        assert_eq!(log.damaged_lines(), 3);
        let secret = |kind| log.secret(&[0x11; 32], kind);
        assert_eq!(secret(SecretKind::ServerApplication), Some(&[0xab; 48][..]));
        assert_eq!(secret(SecretKind::ClientApplication), None);
        assert_eq!(log.secret(&[0; 32], SecretKind::ServerApplication), None);
    }

    #[test]
    fn a_connection_is_readable_by_the_secrets_of_both_ends() {
        let mut log = KeyLog::default();
        let mut add = |end: &str, random: &str| {
            let (random, secret) = (random.repeat(32), "ab".repeat(32));
            log.add(format!("{end}_TRAFFIC_SECRET_0 {random} {secret}\n").as_bytes());
            (log.connections(), log.readable_connections())
        };
        assert_eq!(add("CLIENT", "11"), (1, 0));
        assert_eq!(add("SERVER", "22"), (2, 0));
        assert_eq!(add("SERVER", "11"), (2, 1));
        assert_eq!(add("SERVER", "11"), (2, 1), "a line that is there twice");
    }
}
