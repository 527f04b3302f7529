//! Tells connections apart, and decodes the packets of each datagram.
//!
//! Source: RFC 9000 section 5.2 (matching packets to connections), 12.2 (coalesced packets), 17.3.1
//! (a short header does not say how long its connection ID is: only who knows those that were
//! issued can tell).

use std::collections::{HashMap, VecDeque};

use crate::datagram::Datagram;
use crate::ip_layer::Path;
use crate::keylog::KeyLog;

use super::connection::{Connection, Sealed};
use super::decoded::{Decoded, Packet, Reason, Undecoded, identity};
use super::header::{LongHeader, PacketType};
use super::keys::retry_is_authentic;
use super::midway::{self, Attempts, OnPath};
use super::protection::{Form, Opened, Protected, Scratch};
use super::secrets::Secrets;
use super::{ClientHello, ConnectionId, End, Handshake, InitialCredit};

/// The most 0-RTT packets that an observer keeps of those that come before the `ClientHello`.
pub const MOST_WAITING: usize = 32;

/// A connection ID of fewer bytes may be there by chance.
const DISTINCTIVE: usize = 4;

/// How many connections between the same addresses are told apart by their keys alone.
const MOST_WITHOUT_IDS: usize = 4;

/// A 0-RTT packet whose `ClientHello` is not complete, or did not come yet.
#[derive(Debug)]
struct Waiting {
    since: u64,
    path: Path,
    bytes: Box<[u8]>,
}

/// A place on the wire that sees the datagrams of any number of connections go by.
#[derive(Debug)]
pub struct Observer<'k> {
    secrets: Secrets<'k>,
    connections: Vec<Connection>,
    /// The connection, and its receiving end, of packets to a connection ID.
    by_id: HashMap<ConnectionId, Receiver>,
    /// The same by addresses, for connections without IDs; and quicker.
    by_path: HashMap<Path, Receiver>,
    /// The latest connections whose packets on a path have no connection ID.
    without_ids: HashMap<Path, VecDeque<usize>>,
    /// The latest entry of `by_path` that was used for each receiving end: most packets go the way
    /// of the one before.
    recent: [Option<(Path, Receiver)>; 2],
    /// Bit n: there is a connection ID of n bytes.
    lengths: u32,
    scratch: Scratch,
    /// Attempts to join connections midway.
    attempts: Attempts,
    /// How many datagrams have passed.
    datagrams: u64,
    /// By age.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Receiver {
    connection: usize,
    end: End,
}

impl<'k> Observer<'k> {
    /// An observer that has seen nothing.
    #[must_use]
    pub fn new(secrets: &'k KeyLog) -> Self {
        Self {
            secrets: Secrets::new(secrets),
            connections: Vec::new(),
            by_id: HashMap::new(),
            by_path: HashMap::new(),
            without_ids: HashMap::new(),
            recent: [None; 2],
            lengths: 0,
            scratch: Scratch::default(),
            attempts: Attempts::default(),
            datagrams: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Tells secrets that become known at this point, as they may stand in a capture between
    /// packets.
    pub fn add_secrets(&mut self, text: &[u8]) {
        self.secrets.add(text);
    }

    /// Exchanges the memory that packets are decrypted in, so that observers of the same packets
    /// use one in turns: see [`Scratch::shared`].
    pub fn exchange_scratch(&mut self, scratch: &mut Scratch) {
        std::mem::swap(&mut self.scratch, scratch);
    }

    /// Decodes the packets of the next datagram, and tells `sink` of each in turn.
    ///
    /// 0-RTT packets that come before the `ClientHello` that names their secret wait for it, up to
    /// [`MOST_WAITING`]. They are reported behind the packets of the datagram that completes it;
    /// `waited_since` says where they belong.
    pub fn datagram(&mut self, datagram: &Datagram<'_>, mut sink: impl FnMut(Decoded<'_>)) {
        self.packets(datagram, &mut sink);
        self.datagrams += 1;
        if !self.waiting.is_empty() {
            self.try_waiting(&mut sink, Reason::can_change);
        }
    }

    /// Tells of the packets that still wait when there are no more datagrams.
    pub fn finish(&mut self, mut sink: impl FnMut(Decoded<'_>)) {
        self.try_waiting(&mut sink, |_| false);
    }

    /// The datagrams that packets wait of, counted from 0, the oldest first.
    #[must_use]
    pub fn waiting(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.waiting.iter().map(|waiting| waiting.since)
    }

    fn packets(&mut self, datagram: &Datagram<'_>, sink: &mut impl FnMut(Decoded<'_>)) {
        let mut rest = datagram.payload;
        // Some stacks fill a datagram up with zeros behind its last packet.
        while rest.iter().any(|byte| *byte != 0) {
            if rest[0] & 0x80 == 0 {
                let found = self.find_short(datagram.path, &rest[1..]);
                let is_whole = datagram.payload.len() == datagram.length;
                let found =
                    found.or_else(|| is_whole.then(|| self.join(datagram.path, rest)).flatten());
                // An ID that was issued in a packet which nobody could read is not known; the
                // addresses are.
                let to = found.map(|(to, _)| to);
                let to = to.or_else(|| self.by_path.get(&datagram.path).copied());
                let known = to.map(|to| (to.connection, to.end.other(), PacketType::OneRtt));
                let seen = self.short(datagram, rest, found);
                let reason = |reason| match known {
                    Some((.., kind)) if reason == Reason::NoConnection => Reason::NoSecret(kind),
                    None if reason == Reason::NoConnection => Reason::of_unknown(rest),
                    _ => reason,
                };
                return sink(seen.map_err(|it| Undecoded::new(rest, known, reason(it))));
            }
            let header = match LongHeader::parse(rest) {
                Ok(header) => header,
                Err(error) => {
                    let reason = Reason::of(error, datagram);
                    return sink(Err(Undecoded::new(rest, None, reason)));
                }
            };
            let (packet, behind) = rest.split_at(header.length);
            rest = behind;
            let known = self.known(datagram.path, &header);
            match self.long(datagram.path, header, packet) {
                Err(reason) if header.kind == PacketType::ZeroRtt && reason.can_change() => {
                    self.wait(datagram.path, packet, sink);
                }
                seen => sink(seen.map_err(|reason| Undecoded::new(packet, known, reason))),
            }
        }
    }

    /// Keeps a 0-RTT packet, and tells of the oldest if there are too many.
    fn wait(&mut self, path: Path, bytes: &[u8], sink: &mut impl FnMut(Decoded<'_>)) {
        if self.waiting.len() == MOST_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.try_again(&oldest, sink, |_| false);
        }
        self.waiting.push_back(Waiting {
            since: self.datagrams,
            path,
            bytes: bytes.into(),
        });
    }

    fn try_waiting(
        &mut self,
        sink: &mut impl FnMut(Decoded<'_>),
        may_wait: impl Fn(Reason) -> bool,
    ) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|waiting| self.try_again(waiting, sink, &may_wait));
        self.waiting = waiting;
    }

    /// Tells of a packet that waits. True if it goes on waiting instead.
    fn try_again(
        &mut self,
        waiting: &Waiting,
        sink: &mut impl FnMut(Decoded<'_>),
        may_wait: impl Fn(Reason) -> bool,
    ) -> bool {
        let waited_since = Some(waiting.since);
        let header = LongHeader::parse(&waiting.bytes).expect("it was parsed before");
        let known = self.known(waiting.path, &header);
        match self.long(waiting.path, header, &waiting.bytes) {
            Err(reason) if may_wait(reason) => return true,
            Err(reason) => sink(Err(Undecoded {
                waited_since,
                ..Undecoded::new(&waiting.bytes, known, reason)
            })),
            Ok(packet) => sink(Ok(Packet {
                waited_since,
                ..packet
            })),
        }
        false
    }

    fn known(&self, path: Path, header: &LongHeader) -> Option<(usize, End, PacketType)> {
        let receiver = self.find(path, &header.destination)?;
        Some((receiver.connection, receiver.end.other(), header.kind))
    }

    /// The number of connections that were seen so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The version of QUIC that a connection speaks, as far as it was seen.
    #[must_use]
    pub fn version(&self, connection: usize) -> u32 {
        self.connections[connection].version().number()
    }

    /// The credit that an end of a connection gave in its transport parameters, if these were seen.
    #[must_use]
    pub fn initial_credit(&self, connection: usize, giver: End) -> Option<InitialCredit> {
        let parameters = self.connections[connection].parameters(giver)?;
        Some(parameters.credit)
    }

    /// The server's part of a connection's handshake, as far as it was seen.
    #[must_use]
    pub fn handshake(&self, connection: usize) -> Handshake {
        self.connections[connection].shown()
    }

    /// The client's hello message, as far as it was seen.
    #[must_use]
    pub fn client_hello(&self, connection: usize) -> &ClientHello {
        self.connections[connection].client_hello()
    }

    /// The connection IDs of packets to an end, in the order in which they became known.
    #[must_use]
    pub fn connection_ids(&self, connection: usize, end: End) -> &[ConnectionId] {
        self.connections[connection].issued_by(end)
    }

    fn long(&mut self, path: Path, header: LongHeader, bytes: &[u8]) -> Result<Packet<'_>, Reason> {
        let receiver = self.find(path, &header.destination);
        let (Some(version), Some(_)) = (header.version, header.kind.space()) else {
            return self.unprotected(receiver, &header, bytes);
        };
        let sealed = Sealed {
            packet: Protected {
                bytes,
                number_offset: header.number_offset,
                form: Form::Long,
                path_id: 0,
            },
            kind: header.kind,
            version: Some(version),
            destination: header.destination,
        };
        let (receiver, opened) = if let Some(receiver) = receiver {
            self.open(path, receiver, &sealed)?
        } else if header.kind == PacketType::Initial {
            let mut connection = Connection::new(version, header.destination);
            let opened = connection
                .open(End::Client, &sealed, &self.secrets, &mut self.scratch)
                .map_err(|_| Reason::NoConnection)?;
            (self.begin(connection, header.destination), opened)
        } else {
            return Err(Reason::NoConnection);
        };
        let sender = receiver.end.other();
        // RFC 9000 section 7.2: the source connection ID is for packets in return.
        if self.connections[receiver.connection].issue(sender, header.source) {
            self.route(header.source, receiver.connection, sender);
            if header.source.is_empty() {
                self.share(path.reversed(), receiver.connection);
            }
        }
        self.seen_on(path, receiver);
        Ok(self.packet(receiver, &sealed, &opened))
    }

    fn short(
        &mut self,
        datagram: &Datagram<'_>,
        bytes: &[u8],
        found: Option<(Receiver, ConnectionId)>,
    ) -> Result<Packet<'_>, Reason> {
        let (receiver, destination) = found.ok_or(Reason::NoConnection)?;
        if datagram.payload.len() < datagram.length {
            return Err(Reason::CutShort);
        }
        let sealed = Sealed {
            packet: Protected {
                bytes,
                number_offset: 1 + destination.len(),
                form: Form::Short,
                path_id: self.connections[receiver.connection].path_of(receiver.end, &destination),
            },
            kind: PacketType::OneRtt,
            version: None,
            destination,
        };
        let (receiver, opened) = match self.open(datagram.path, receiver, &sealed) {
            Err(reason @ Reason::NoSecret(_)) => {
                self.follow(datagram.path, receiver, &destination);
                return Err(reason);
            }
            opened => opened?,
        };
        self.seen_on(datagram.path, receiver);
        Ok(self.packet(receiver, &sealed, &opened))
    }

    /// Takes a path for one of a connection since a packet on it has a connection ID of that,
    /// though nobody can tell whether it is authentic: without secrets, what comes back has nothing
    /// else to be told by.
    fn follow(&mut self, path: Path, receiver: Receiver, destination: &ConnectionId) {
        if destination.len() < DISTINCTIVE || self.by_path.contains_key(&path) {
            return;
        }
        let back = Receiver {
            end: receiver.end.other(),
            ..receiver
        };
        self.by_path.insert(path, receiver);
        self.by_path.entry(path.reversed()).or_insert(back);
    }

    /// Retry and Version Negotiation, which only servers send.
    fn unprotected(
        &mut self,
        receiver: Option<Receiver>,
        header: &LongHeader,
        bytes: &[u8],
    ) -> Result<Packet<'static>, Reason> {
        let receiver = receiver.filter(|receiver| receiver.end == End::Client);
        if let (Some(receiver), PacketType::Retry) = (receiver, header.kind) {
            let connection = &mut self.connections[receiver.connection];
            let version = header.version.expect("Retry has a version");
            let original = connection.original_destination();
            if !original.is_some_and(|original| retry_is_authentic(version, original, bytes)) {
                return Err(Reason::RetryIntegrity);
            }
            if connection.issue(End::Server, header.source) {
                self.route(header.source, receiver.connection, End::Server);
            }
        }
        Ok(Packet {
            connection: receiver.map(|receiver| receiver.connection),
            sender: End::Server,
            kind: header.kind,
            number: None,
            path_id: 0,
            size: bytes.len(),
            first_byte: bytes[0],
            identity: identity(bytes),
            payload: &[],
            parameters: None,
            waited_since: None,
        })
    }

    /// Decrypts a packet for `receiver`. Without a connection ID, it may be for another connection
    /// between the same addresses, one that has ended or has just begun: the keys tell. It may be
    /// one whose beginning was not seen.
    fn open(
        &mut self,
        path: Path,
        receiver: Receiver,
        sealed: &Sealed<'_>,
    ) -> Result<(Receiver, Opened), Reason> {
        let opened = self.open_as(receiver, sealed);
        if opened.is_ok() || !sealed.destination.is_empty() {
            return Ok((receiver, opened?));
        }
        for connection in self.without_ids(path) {
            let other = Receiver {
                connection,
                ..receiver
            };
            if other != receiver
                && let Ok(opened) = self.open_as(other, sealed)
            {
                return Ok((other, opened));
            }
        }
        if sealed.kind == PacketType::OneRtt
            && let Some((other, _)) = self.join(path, sealed.packet.bytes)
            && other != receiver
        {
            return Ok((other, self.open_as(other, sealed)?));
        }
        Ok((receiver, opened?))
    }

    fn open_as(&mut self, receiver: Receiver, sealed: &Sealed<'_>) -> Result<Opened, Reason> {
        let connection = &mut self.connections[receiver.connection];
        connection.open(
            receiver.end.other(),
            sealed,
            &self.secrets,
            &mut self.scratch,
        )
    }

    /// The connections with packets on `path` that have no connection ID, the newest first.
    fn without_ids(&self, path: Path) -> Vec<usize> {
        let shared = self.without_ids.get(&path);
        shared.map_or_else(Vec::new, |all| all.iter().rev().copied().collect())
    }

    /// Learns from a packet that was opened, and describes it.
    fn packet(&mut self, receiver: Receiver, sealed: &Sealed<'_>, opened: &Opened) -> Packet<'_> {
        let sender = receiver.end.other();
        let connection = &mut self.connections[receiver.connection];
        let payload = self.scratch.payload(opened);
        let (by_id, lengths) = (&mut self.by_id, &mut self.lengths);
        connection.learn(sender, sealed.kind, payload, |id| {
            let connection = receiver.connection;
            by_id.insert(
                id,
                Receiver {
                    connection,
                    end: sender,
                },
            );
            *lengths |= 1 << id.len();
        });
        Packet {
            connection: Some(receiver.connection),
            sender,
            kind: sealed.kind,
            number: Some(opened.number),
            path_id: sealed.packet.path_id,
            size: sealed.packet.bytes.len(),
            first_byte: sealed.packet.bytes[0],
            identity: identity(sealed.packet.bytes),
            payload,
            parameters: self.connections[receiver.connection].parameters(sender),
            waited_since: None,
        }
    }

    fn begin(&mut self, connection: Connection, destination: ConnectionId) -> Receiver {
        let number = self.connections.len();
        self.connections.push(connection);
        self.route(destination, number, End::Server);
        Receiver {
            connection: number,
            end: End::Server,
        }
    }

    /// Packets to `id` are for `end` of a connection. Without an ID, addresses alone can tell.
    fn route(&mut self, id: ConnectionId, connection: usize, end: End) {
        if !id.is_empty() {
            self.by_id.insert(id, Receiver { connection, end });
            self.lengths |= 1 << id.len();
        }
    }

    /// Notes that packets of a connection on `path` have no ID.
    fn share(&mut self, path: Path, connection: usize) {
        let shared = self.without_ids.entry(path).or_default();
        if shared.contains(&connection) {
            return;
        }
        if shared.len() == MOST_WITHOUT_IDS {
            shared.pop_front();
        }
        shared.push_back(connection);
    }

    /// Notes the addresses of an authentic packet: they change when an end migrates, RFC 9000
    /// section 9.
    fn seen_on(&mut self, path: Path, receiver: Receiver) {
        let entry = Some((path, receiver));
        if self.recent[receiver.end as usize] == entry {
            return;
        }
        let known = self.by_path.get(&path);
        if known.is_none_or(|known| known.connection != receiver.connection) {
            let back = Receiver {
                end: receiver.end.other(),
                ..receiver
            };
            self.by_path.insert(path, receiver);
            self.by_path.insert(path.reversed(), back);
            self.recent = [None; 2];
        }
        self.recent[receiver.end as usize] = entry;
    }

    fn on_path(&self, path: Path) -> Option<Receiver> {
        let mut recent = self.recent.iter().flatten();
        let recent = recent.find(|(known, _)| *known == path);
        let known = recent.map(|(_, receiver)| receiver);
        known.or_else(|| self.by_path.get(&path)).copied()
    }

    fn find(&self, path: Path, destination: &ConnectionId) -> Option<Receiver> {
        let on_path = self.on_path(path);
        let on_path = on_path.filter(|on_path| self.issued(*on_path).contains(destination));
        on_path.or_else(|| self.by_id.get(destination).copied())
    }

    /// The receiver of a packet with a short header, and the connection ID at the front of
    /// `behind_first`.
    fn find_short(&self, path: Path, behind_first: &[u8]) -> Option<(Receiver, ConnectionId)> {
        if let Some(receiver) = self.on_path(path) {
            // The newest first: it is most likely in use.
            let mut issued = self.issued(receiver).iter().rev();
            let fits = |id: &&ConnectionId| behind_first.starts_with(id.as_bytes());
            if let Some(id) = issued.find(fits) {
                return Some((receiver, *id));
            }
        }
        (1..=ConnectionId::LONGEST)
            .rev()
            .filter(|length| self.lengths & 1 << length != 0)
            .find_map(|length| {
                let id = ConnectionId::new(behind_first.get(..length)?)?;
                Some((*self.by_id.get(&id)?, id))
            })
    }

    /// Tries to find the connection of a packet with a short header and a connection ID that is not
    /// known.
    fn join(&mut self, path: Path, bytes: &[u8]) -> Option<(Receiver, ConnectionId)> {
        if !self.attempts.may_try(&path) {
            return None;
        }
        let on_path = self.on_path(path).and_then(|receiver| {
            let connection = &self.connections[receiver.connection];
            let sender = receiver.end.other();
            let marks = connection.marks_losses(sender).unwrap_or(false);
            Some(OnPath {
                client_random: connection.client_random()?,
                sender,
                form: Form::of_short(marks),
            })
        });
        let mut joined = midway::join(bytes, &self.secrets, on_path);
        if joined.is_none() && on_path.is_some() {
            // It may be of another connection between the same addresses.
            joined = midway::join(bytes, &self.secrets, None);
        }
        let Some(joined) = joined else {
            self.attempts.failed(path);
            return None;
        };
        let random = Some(joined.client_random);
        let mut known = self.connections.iter();
        let known = known.rposition(|connection| connection.client_random() == random);
        let number = known.unwrap_or_else(|| {
            let connection = Connection::midway(joined.version, joined.client_random);
            self.connections.push(connection);
            self.connections.len() - 1
        });
        let (end, destination) = (joined.sender.other(), joined.destination);
        self.connections[number].issue(end, destination);
        self.connections[number].join(joined);
        self.route(destination, number, end);
        if destination.is_empty() {
            self.share(path, number);
        }
        let receiver = Receiver {
            connection: number,
            end,
        };
        Some((receiver, destination))
    }

    fn issued(&self, receiver: Receiver) -> &[ConnectionId] {
        self.connections[receiver.connection].issued_by(receiver.end)
    }
}
