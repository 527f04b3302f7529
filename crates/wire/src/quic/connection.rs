//! An observer's knowledge of a connection: connection IDs, keys and packet numbers.
//!
//! Source: RFC 9001 section 4.1 (levels), 5.2 (Initial keys), RFC 9000 section 5.1 (connection
//! IDs).

use std::collections::HashMap;

use crate::keylog::SecretKind;

use super::crypto_stream::CryptoStream;
use super::decoded::Reason;
use super::header::{PacketType, Space};
use super::keys::{Secret, Suite};
use super::midway::Joined;
use super::protection::{Form, Keys, Opened, Protected, Scratch};
use super::secrets::Secrets;
use super::version::Version;
use super::{ClientHello, ConnectionId, End, Frame, Frames, Handshake, TransportParameters, tls};

/// A packet with what its header tells of how to open it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sealed<'a> {
    pub(super) packet: Protected<'a>,
    pub(super) kind: PacketType,
    /// The version in packets with a long header.
    pub(super) version: Option<Version>,
    pub(super) destination: ConnectionId,
}

/// The Initial keys of both ends.
#[derive(Debug)]
struct InitialKeys {
    version: Version,
    destination: ConnectionId,
    keys: [Keys; 2],
}

impl InitialKeys {
    fn new(version: Version, destination: ConnectionId) -> Self {
        let keys = [End::Client, End::Server]
            .map(|end| Keys::new(Secret::initial(version, &destination, end)));
        Self {
            version,
            destination,
            keys,
        }
    }
}

/// A connection, as one observer sees it. Arrays of two are indexed by [`End`].
#[derive(Debug)]
pub(super) struct Connection {
    version: Version,
    /// The connection IDs that each end has issued: those of the packets to it.
    issued: [Vec<ConnectionId>; 2],
    initial: Vec<InitialKeys>,
    hello: [CryptoStream; 2],
    /// The CRYPTO stream of the server's Handshake packets.
    server_handshake: CryptoStream,
    shown: Handshake,
    client_hello: ClientHello,
    parameters: [Option<TransportParameters>; 2],
    client_random: Option<[u8; 32]>,
    cipher_suite: Option<u16>,
    early: Option<Keys>,
    handshake: [Option<Keys>; 2],
    application: [Option<Keys>; 2],
    /// Per end and packet number space.
    largest: [[Option<u64>; 3]; 2],
    /// The paths beside the first that connection IDs of packets to each end belong to
    /// (draft-ietf-quic-multipath-20 section 3.2).
    paths: [HashMap<ConnectionId, u32>; 2],
    /// The largest packet number of each end on each of these paths.
    largest_on_path: [HashMap<u32, u64>; 2],
}

impl Connection {
    /// A connection whose client has sent an Initial packet to `destination`.
    pub(super) fn new(version: Version, destination: ConnectionId) -> Self {
        Self {
            issued: [Vec::new(), vec![destination]],
            initial: vec![InitialKeys::new(version, destination)],
            ..Self::unknown(version)
        }
    }

    /// The version of the newest packet that tells its own.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// A connection of which the beginning was not seen.
    pub(super) fn midway(version: Version, client_random: [u8; 32]) -> Self {
        Self {
            client_random: Some(client_random),
            ..Self::unknown(version)
        }
    }

    fn unknown(version: Version) -> Self {
        Self {
            version,
            issued: Default::default(),
            initial: Vec::new(),
            hello: Default::default(),
            server_handshake: CryptoStream::default(),
            shown: Handshake::default(),
            client_hello: ClientHello::default(),
            parameters: [None; 2],
            client_random: None,
            cipher_suite: None,
            early: None,
            handshake: [None, None],
            application: [None, None],
            largest: [[None; 3]; 2],
            paths: Default::default(),
            largest_on_path: Default::default(),
        }
    }

    /// The path that packets with this destination belong to: 0 is the first.
    pub(super) fn path_of(&self, receiver: End, destination: &ConnectionId) -> u32 {
        let known = self.paths[receiver as usize].get(destination);
        known.copied().unwrap_or(0)
    }

    /// Goes on with what was found out from a packet in the middle. Keys that are known already are
    /// kept.
    pub(super) fn join(&mut self, joined: Joined) {
        let sender = joined.sender as usize;
        self.application[sender].get_or_insert(joined.keys);
        self.largest[sender][Space::Application as usize].get_or_insert(joined.number);
    }

    /// The random that a key log knows it by, if it was seen.
    pub(super) fn client_random(&self) -> Option<[u8; 32]> {
        self.client_random
    }

    /// The connection ID that the client's first Initial packet went to, if it was seen.
    pub(super) fn original_destination(&self) -> Option<&ConnectionId> {
        self.initial.first().map(|initial| &initial.destination)
    }

    /// The transport parameters of an end, if its handshake was seen.
    pub(super) fn parameters(&self, end: End) -> Option<&TransportParameters> {
        self.parameters[end as usize].as_ref()
    }

    /// Whether an end marks losses in its short headers: draft-ferrieuxhamchaoui-quic-lossbits-03
    /// section 5.1 lets it if it said that it would, and its peer that it understands. None if the
    /// handshake of either was not seen.
    pub(super) fn marks_losses(&self, sender: End) -> Option<bool> {
        let (own, peer) = (self.parameters(sender)?, self.parameters(sender.other())?);
        Some(own.loss_bits == Some(1) && peer.loss_bits.is_some())
    }

    /// The server's part of the handshake, as far as it was seen so far.
    pub(super) fn shown(&self) -> Handshake {
        self.shown
    }

    /// The client's hello message, as far as it was seen so far.
    pub(super) fn client_hello(&self) -> &ClientHello {
        &self.client_hello
    }

    /// The connection IDs of packets to `receiver`.
    pub(super) fn issued_by(&self, receiver: End) -> &[ConnectionId] {
        &self.issued[receiver as usize]
    }

    /// Notes a connection ID of packets to `end`. False if it is known.
    pub(super) fn issue(&mut self, end: End, id: ConnectionId) -> bool {
        let issued = &mut self.issued[end as usize];
        let is_new = !issued.contains(&id);
        if is_new {
            issued.push(id);
        }
        is_new
    }

    /// Decrypts a packet of `sender` into `scratch`.
    pub(super) fn open(
        &mut self,
        sender: End,
        sealed: &Sealed<'_>,
        secrets: &Secrets<'_>,
        scratch: &mut Scratch,
    ) -> Result<Opened, Reason> {
        let space = sealed.kind.space().expect("the packet is protected") as usize;
        let path_id = sealed.packet.path_id;
        let largest = match path_id {
            0 => self.largest[sender as usize][space],
            _ => self.largest_on_path[sender as usize].get(&path_id).copied(),
        };
        let opened = if sealed.kind == PacketType::Initial {
            let version = sealed.version.unwrap_or(self.version);
            self.open_initial(sender, sealed, version, largest, scratch)
                .ok_or(Reason::NotAuthentic)
        } else {
            self.open_with_secret(sender, sealed, secrets, largest, scratch)
        }?;
        let newest = largest.max(Some(opened.number));
        match path_id {
            0 => self.largest[sender as usize][space] = newest,
            _ => {
                self.largest_on_path[sender as usize].extend(newest.map(|it| (path_id, it)));
            }
        }
        if let Some(version) = sealed.version {
            self.version = version;
        }
        Ok(opened)
    }

    /// Tries the keys that are known, then those that may have replaced them: a client that was
    /// sent a Retry makes its keys anew from the connection ID in it (RFC 9001 section 5.2), and a
    /// server may answer in another version, with keys from the same connection ID (RFC 9369
    /// section 4.1).
    fn open_initial(
        &mut self,
        sender: End,
        sealed: &Sealed<'_>,
        version: Version,
        largest: Option<u64>,
        scratch: &mut Scratch,
    ) -> Option<Opened> {
        let mut attempt = |initial: &mut InitialKeys| {
            initial.keys[sender as usize].open(sealed.packet, largest, scratch)
        };
        let known = self.initial.iter_mut().rev();
        let mut known = known.filter(|initial| initial.version == version);
        if let Some(opened) = known.find_map(&mut attempt) {
            return Some(opened);
        }
        let destination = match sender {
            End::Client => sealed.destination,
            End::Server => self.initial.last()?.destination,
        };
        let mut initial = InitialKeys::new(version, destination);
        let opened = attempt(&mut initial)?;
        self.initial.push(initial);
        if sender == End::Client {
            // The handshake begins anew, with some stacks under another random.
            self.hello = Default::default();
            self.client_random = None;
            self.parameters = [None; 2];
        }
        Some(opened)
    }

    fn open_with_secret(
        &mut self,
        sender: End,
        sealed: &Sealed<'_>,
        secrets: &Secrets<'_>,
        largest: Option<u64>,
        scratch: &mut Scratch,
    ) -> Result<Opened, Reason> {
        let kind = secret_kind(sealed.kind, sender).ok_or(Reason::NotAuthentic)?;
        let mut packets = self.readings(sender, sealed.packet);
        if let Some(keys) = self.slot(kind) {
            let opened = packets.find_map(|it| keys.open(it, largest, scratch));
            return opened.ok_or(Reason::NotAuthentic);
        }
        let random = self.client_random.ok_or(Reason::NoClientHello)?;
        let secret = secrets.find(&random, kind);
        let secret = secret.ok_or(Reason::NoSecret(sealed.kind))?;
        let version = sealed.version.unwrap_or(self.version);
        for suite in self.suites(kind, secret)? {
            let mut keys = Keys::new(Secret::new(suite, version, secret));
            let opened = packets
                .clone()
                .find_map(|it| keys.open(it, largest, scratch));
            if let Some(opened) = opened {
                *self.slot(kind) = Some(keys);
                return Ok(opened);
            }
        }
        Err(Reason::NotAuthentic)
    }

    /// A packet as it may have to be read: where it is not known whether a short header has loss
    /// bits, without and then with them.
    fn readings<'a>(
        &self,
        sender: End,
        packet: Protected<'a>,
    ) -> impl Iterator<Item = Protected<'a>> + Clone + use<'a> {
        let marks = self.marks_losses(sender);
        let forms = match (packet.form, marks) {
            (Form::Short, Some(marks)) => [Some(Form::of_short(marks)), None],
            (Form::Short, None) => [Some(Form::Short), Some(Form::ShortWithLossBits)],
            (form, _) => [Some(form), None],
        };
        let forms = forms.into_iter().flatten();
        forms.map(move |form| Protected { form, ..packet })
    }

    fn slot(&mut self, kind: SecretKind) -> &mut Option<Keys> {
        match kind {
            SecretKind::ClientEarly => &mut self.early,
            SecretKind::ClientHandshake => &mut self.handshake[End::Client as usize],
            SecretKind::ServerHandshake => &mut self.handshake[End::Server as usize],
            SecretKind::ClientApplication => &mut self.application[End::Client as usize],
            SecretKind::ServerApplication => &mut self.application[End::Server as usize],
        }
    }

    /// The suites that may be in use. Without a `ServerHello`, and for 0-RTT, which has the suite
    /// of an earlier connection, it is one of those with secrets of this length.
    fn suites(
        &self,
        kind: SecretKind,
        secret: &[u8],
    ) -> Result<impl Iterator<Item = Suite> + use<>, Reason> {
        let chosen = self.cipher_suite;
        let chosen = chosen.filter(|_| kind != SecretKind::ClientEarly);
        let suite = match chosen {
            Some(number) => Some(Suite::from_tls(number).ok_or(Reason::CipherSuite(number))?),
            None => None,
        };
        let of_length = Suite::of_secret_length(secret.len());
        let fits = move |candidate: &Suite| suite.is_none_or(|suite| suite == *candidate);
        Ok(of_length.iter().copied().filter(fits))
    }

    /// Learns from the frames of a packet: the hello messages, and connection IDs, which are passed
    /// to `issued`, too.
    pub(super) fn learn(
        &mut self,
        sender: End,
        kind: PacketType,
        payload: &[u8],
        mut issued: impl FnMut(ConnectionId),
    ) {
        for frame in Frames::new(payload).map_while(Result::ok) {
            match (kind, frame) {
                (PacketType::Initial, Frame::Crypto { offset, data }) => {
                    self.learn_hello(sender, offset, data);
                }
                (PacketType::Handshake, Frame::Crypto { offset, data })
                    if sender == End::Server && !self.shown.knows_rest() =>
                {
                    self.learn_server_handshake(offset, data, &mut issued);
                }
                (_, Frame::NewConnectionId { connection_id, .. })
                    if self.issue(sender, connection_id) =>
                {
                    issued(connection_id);
                }
                (
                    _,
                    Frame::PathNewConnectionId {
                        path_id,
                        connection_id,
                        ..
                    },
                ) => {
                    // A path identifier has 32 bits: with more, the frame is no valid one.
                    if let Ok(path_id) = u32::try_from(path_id)
                        && self.issue(sender, connection_id)
                    {
                        self.paths[sender as usize].insert(connection_id, path_id);
                        issued(connection_id);
                    }
                }
                _ => {}
            }
        }
    }

    fn learn_server_handshake(
        &mut self,
        offset: u64,
        data: &[u8],
        issued: &mut impl FnMut(ConnectionId),
    ) {
        self.server_handshake.add(offset, data);
        let stream = self.server_handshake.contiguous();
        self.shown.read_rest(stream);
        if self.parameters(End::Server).is_none() {
            let parameters = tls::server_parameters(stream);
            self.parameters[End::Server as usize] = parameters;
            let id = parameters.and_then(|known| known.preferred_address);
            if let Some(id) = id.filter(|id| self.issue(End::Server, *id)) {
                issued(id);
            }
        }
    }

    fn learn_hello(&mut self, sender: End, offset: u64, data: &[u8]) {
        let hello = &mut self.hello[sender as usize];
        match sender {
            End::Client if self.parameters[End::Client as usize].is_none() => {
                hello.add(offset, data);
                if let Some(read) = ClientHello::read(hello.contiguous()) {
                    self.client_hello = read;
                }
                self.client_random = tls::client_random(hello.contiguous());
                self.parameters[End::Client as usize] = tls::client_parameters(hello.contiguous());
            }
            End::Server if self.cipher_suite.is_none() || !self.shown.knows_hello() => {
                hello.add(offset, data);
                self.cipher_suite = tls::cipher_suite(hello.contiguous());
                self.shown.read_hello(hello.contiguous());
            }
            _ => {}
        }
    }
}

/// The secret that protects packets of this type from `sender`. None for 0-RTT packets of a server:
/// there are none.
fn secret_kind(kind: PacketType, sender: End) -> Option<SecretKind> {
    match (kind, sender) {
        (PacketType::ZeroRtt, End::Client) => Some(SecretKind::ClientEarly),
        (PacketType::Handshake, End::Client) => Some(SecretKind::ClientHandshake),
        (PacketType::Handshake, End::Server) => Some(SecretKind::ServerHandshake),
        (PacketType::OneRtt, End::Client) => Some(SecretKind::ClientApplication),
        (PacketType::OneRtt, End::Server) => Some(SecretKind::ServerApplication),
        _ => None,
    }
}
