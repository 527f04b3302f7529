//! TLS 1.3 over TCP, as somebody who holds the secrets reads it: which bytes of a stream are
//! application data, and how the handshake went.
//!
//! Source: RFC 8446 sections 5 (records), 4.5 (end of early data), 4.6.3 (key updates) and 7.3
//! (keys).

use std::collections::BTreeMap;
use std::ops::Range;

use crate::keylog::{KeyLog, SecretKind};
use crate::quic::keys::{PacketKey, Secret, Suite};
use crate::quic::tls::{cipher_suite, client_random, message_types};
use crate::quic::{ClientHello, End, Handshake};

const HEADER: usize = 5;
/// RFC 8446 section 5.2.
const LARGEST_RECORD: usize = (1 << 14) + 256;
/// Bytes behind a gap that are kept until it is filled.
const MOST_AHEAD: usize = 64 << 20;
/// Bytes without a gap that are kept until the other end's hello has come.
const MOST_WAITING: usize = 1 << 20;
/// Bytes of handshake messages in the clear, and of those that are protected, certificates among
/// them.
const MOST_HELLO: usize = 1 << 15;
const MOST_MESSAGES: usize = 1 << 18;

/// Types of records, RFC 8446 section 5.1.
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// Types of messages, RFC 8446 section 4.
const END_OF_EARLY_DATA: u8 = 5;
const FINISHED: u8 = 20;
const KEY_UPDATE: u8 = 24;

/// The records of a connection, as far as they could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsRecords {
    /// The application data in the streams of client and server, as offsets, without what records
    /// add.
    pub application: [Vec<Range<u64>>; 2],
    /// The offsets up to which the streams of client and server were read; nothing is known of what
    /// lies behind.
    pub read_to: [u64; 2],
    /// The offset behind the client's Finished.
    pub client_finished: Option<u64>,
    /// The server's part of the handshake, as far as it was seen.
    pub handshake: Handshake,
    /// The names that the client said in the clear.
    pub client_hello: ClientHello,
    /// Bytes of application data that the client sent as early data (RFC 8446 section 4.2.10).
    pub early_bytes: u64,
    /// Whether both streams could be decrypted, up to where they were read, beyond the handshake.
    pub readable: bool,
}

/// The reader of a connection's two streams, whose bytes may come in any order.
#[derive(Debug)]
pub struct TlsReader<'k> {
    secrets: &'k KeyLog,
    client_random: Option<[u8; 32]>,
    suite: Option<Suite>,
    handshake: Handshake,
    client_hello: Option<ClientHello>,
    sides: [Side; 2],
}

/// The keys that protect the records of a side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Plain,
    Early,
    Handshake,
    Application,
}

/// The stream of one end.
#[derive(Debug, Default)]
struct Side {
    /// The offset of the first of `bytes`.
    offset: u64,
    /// Without a gap, and not yet read.
    bytes: Vec<u8>,
    /// Bytes behind a gap, by their offsets.
    ahead: BTreeMap<u64, Vec<u8>>,
    ahead_bytes: usize,
    phase: Phase,
    protection: Option<Protection>,
    /// Handshake messages in the clear, and those that were protected as such.
    hello: Vec<u8>,
    rest: Vec<u8>,
    application: Vec<Range<u64>>,
    /// How many of these were early data.
    early: usize,
    finished: Option<u64>,
    /// The stream is no TLS, or cannot be decrypted.
    failed: bool,
}

#[derive(Debug)]
struct Protection {
    secret: Secret,
    key: PacketKey,
    sequence: u64,
}

impl Protection {
    fn new(secret: Secret) -> Self {
        Self {
            key: secret.packet_key(),
            secret,
            sequence: 0,
        }
    }
}

impl<'k> TlsReader<'k> {
    /// A reader that has seen nothing.
    #[must_use]
    pub fn new(secrets: &'k KeyLog) -> Self {
        Self {
            secrets,
            client_random: None,
            suite: None,
            handshake: Handshake::default(),
            client_hello: None,
            sides: [Side::default(), Side::default()],
        }
    }

    /// Reads bytes of `sender`'s stream that begin at `offset`.
    pub fn read(&mut self, sender: End, offset: u64, bytes: &[u8]) {
        if self.sides[sender as usize].add(offset, bytes) {
            self.read_records(sender);
            self.read_records(sender.other()); // which may have waited for what this end said
        }
    }

    /// The records that were read; None if it is no TLS.
    #[must_use]
    pub fn finish(self) -> Option<TlsRecords> {
        self.client_random?;
        let [mut client, server] = self.sides;
        let early = client.application[..client.early].iter();
        let early_bytes = early.map(|it| it.end - it.start).sum();
        if self.handshake.early_data == Some(false) {
            // Nobody took it: it is sent again.
            client.application.drain(..client.early);
        }
        let is_read = |side: &Side| !side.failed && side.phase == Phase::Application;
        Some(TlsRecords {
            readable: is_read(&client) && is_read(&server),
            read_to: [client.offset, server.offset],
            application: [client.application, server.application],
            client_finished: client.finished,
            early_bytes,
            handshake: self.handshake,
            client_hello: self.client_hello.unwrap_or_default(),
        })
    }

    /// Reads the records that are there as a whole.
    fn read_records(&mut self, sender: End) {
        let bytes = std::mem::take(&mut self.sides[sender as usize].bytes);
        let mut read = 0;
        while let Some(record) = self.record(sender, &bytes[read..]) {
            let start = self.sides[sender as usize].offset + read as u64;
            if !self.take(sender, &bytes[read..read + record], start) {
                break;
            }
            read += record;
        }
        let side = &mut self.sides[sender as usize];
        side.offset += read as u64;
        side.bytes = bytes;
        side.bytes.drain(..read);
        if side.bytes.len() > MOST_WAITING {
            side.failed = true; // the other end's hello does not come
        }
        if side.failed {
            side.forget();
        }
    }

    /// The length of the record at the front, if it is there as a whole.
    fn record(&mut self, sender: End, bytes: &[u8]) -> Option<usize> {
        let header = bytes.first_chunk::<HEADER>()?;
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let is_known = (CHANGE_CIPHER_SPEC..=APPLICATION_DATA).contains(&header[0]);
        if !is_known || header[1] != 3 || length > LARGEST_RECORD {
            self.sides[sender as usize].failed = true;
            return None;
        }
        (bytes.len() >= HEADER + length).then_some(HEADER + length)
    }

    /// Takes in a record that begins at `start`; whether it could be read.
    fn take(&mut self, sender: End, record: &[u8], start: u64) -> bool {
        let payload = &record[HEADER..];
        let side = &mut self.sides[sender as usize];
        match record[0] {
            // After a HelloRetryRequest a client that began with early data says hello again.
            HANDSHAKE if side.phase < Phase::Handshake => {
                side.hello.extend_from_slice(payload);
                self.hello(sender);
                !self.sides[sender as usize].failed
            }
            CHANGE_CIPHER_SPEC | ALERT => true,
            APPLICATION_DATA => self.protected(sender, record, start),
            _ => {
                side.failed = true;
                false
            }
        }
    }

    fn hello(&mut self, sender: End) {
        let side = &mut self.sides[sender as usize];
        match sender {
            End::Client if self.client_hello.is_none() => {
                self.client_random = client_random(&side.hello);
                self.client_hello = ClientHello::read(&side.hello);
            }
            End::Server if self.handshake.took_ticket.is_none() => {
                let number = cipher_suite(&side.hello);
                self.suite = number.and_then(Suite::from_tls);
                // Of TLS 1.2, or no TLS.
                side.failed |= number.is_some() && self.suite.is_none();
                self.handshake.read_hello(&side.hello);
            }
            _ => {}
        }
        side.failed |= side.hello.len() > MOST_HELLO;
    }

    /// Takes in a record that is protected; whether it could be read now.
    fn protected(&mut self, sender: End, record: &[u8], start: u64) -> bool {
        if self.suite.is_none() || self.client_random.is_none() {
            return false; // a hello is still to come
        }
        let Some(plain) = self.open(sender, record) else {
            self.sides[sender as usize].failed = true;
            return false;
        };
        let Some(end) = plain.iter().rposition(|byte| *byte != 0) else {
            self.sides[sender as usize].failed = true;
            return false;
        };
        let (content, of_type) = (&plain[..end], plain[end]);
        if of_type == APPLICATION_DATA && !content.is_empty() {
            let first = start + HEADER as u64;
            let side = &mut self.sides[sender as usize];
            side.application.push(first..first + content.len() as u64);
            if side.phase == Phase::Early {
                side.early += 1;
            }
        } else if of_type == HANDSHAKE {
            self.message(sender, content, start + record.len() as u64);
        }
        true
    }

    /// Takes in a piece of a protected handshake message; `end` is behind its record.
    fn message(&mut self, sender: End, content: &[u8], end: u64) {
        let side = &mut self.sides[sender as usize];
        match side.phase {
            Phase::Early if content.first() == Some(&END_OF_EARLY_DATA) => {
                self.enter(sender, Phase::Handshake);
            }
            Phase::Plain | Phase::Early => {}
            Phase::Handshake => {
                side.rest.extend_from_slice(content);
                side.failed |= side.rest.len() > MOST_MESSAGES;
                if sender == End::Server {
                    self.handshake.read_rest(&side.rest);
                }
                if message_types(&side.rest).any(|it| it == FINISHED) {
                    side.finished = Some(end);
                    self.enter(sender, Phase::Application);
                }
            }
            Phase::Application => {
                if let (Some(&KEY_UPDATE), Some(protection)) =
                    (content.first(), &mut side.protection)
                {
                    *protection = Protection::new(protection.secret.updated());
                }
            }
        }
    }

    /// Decrypts a record with the keys that hold now, or the next ones.
    fn open(&mut self, sender: End, record: &[u8]) -> Option<Vec<u8>> {
        if self.sides[sender as usize].phase == Phase::Plain {
            // Only a client sends early data, and not if it has no ticket.
            self.enter(sender, Phase::Early);
        }
        loop {
            let side = &mut self.sides[sender as usize];
            if let Some(protection) = &mut side.protection {
                let mut payload = record[HEADER..].to_vec();
                let opened =
                    protection
                        .key
                        .open(0, protection.sequence, &record[..HEADER], &mut payload);
                if let Some(length) = opened {
                    protection.sequence += 1;
                    payload.truncate(length);
                    return Some(payload);
                }
            }
            if side.phase >= Phase::Handshake {
                return None;
            }
            self.enter(sender, Phase::Handshake);
        }
    }

    fn enter(&mut self, sender: End, phase: Phase) {
        let kind = match (phase, sender) {
            (Phase::Early, End::Client) => Some(SecretKind::ClientEarly),
            (Phase::Handshake, End::Client) => Some(SecretKind::ClientHandshake),
            (Phase::Handshake, End::Server) => Some(SecretKind::ServerHandshake),
            (Phase::Application, End::Client) => Some(SecretKind::ClientApplication),
            (Phase::Application, End::Server) => Some(SecretKind::ServerApplication),
            (Phase::Plain, _) | (Phase::Early, End::Server) => None,
        };
        let secret = kind.and_then(|kind| self.secrets.secret(self.client_random.as_ref()?, kind));
        let side = &mut self.sides[sender as usize];
        side.phase = phase;
        side.protection = self
            .suite
            .zip(secret)
            .map(|(suite, secret)| Protection::new(Secret::of_records(suite, secret)));
    }
}

impl Side {
    /// Adds bytes that begin at `offset`; whether there is something new to read.
    fn add(&mut self, offset: u64, bytes: &[u8]) -> bool {
        if self.failed || bytes.is_empty() {
            return false;
        }
        let behind = |side: &Self| side.offset + side.bytes.len() as u64;
        if offset > behind(self) {
            let there = self.ahead.entry(offset).or_default();
            if there.len() < bytes.len() {
                self.ahead_bytes += bytes.len() - there.len();
                *there = bytes.to_vec();
            }
            if self.ahead_bytes > MOST_AHEAD {
                self.failed = true;
                self.forget();
            }
            return false;
        }
        let mut is_new = self.append(offset, bytes);
        while self
            .ahead
            .first_key_value()
            .is_some_and(|(at, _)| *at <= behind(self))
            && let Some((offset, bytes)) = self.ahead.pop_first()
        {
            self.ahead_bytes -= bytes.len();
            is_new |= self.append(offset, &bytes);
        }
        is_new
    }

    fn forget(&mut self) {
        self.bytes = Vec::new();
        self.ahead.clear();
        self.ahead_bytes = 0;
    }

    /// Appends what of bytes that begin at `offset`, which leave no gap, was not there yet.
    fn append(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let there = self.offset + self.bytes.len() as u64 - offset;
        let known = usize::try_from(there)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        self.bytes.extend_from_slice(&bytes[known..]);
        known < bytes.len()
    }
}
