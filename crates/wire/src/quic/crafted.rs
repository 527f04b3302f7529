//! Packets made by hand, and what an observer tells of them.

mod extensions;
mod midway;
mod paths;

use ring::aead::quic::HeaderProtectionKey;

use super::keys::{PacketKey, Secret, Suite, TAG};
use super::protection::Form;
use super::version::Version;
use super::{ConnectionId, End, Frame, Frames, Observer, Reason};
use crate::datagram::Datagram;
use crate::ip_layer::Path;
use crate::keylog::KeyLog;

const CLIENT_ID: [u8; 4] = [0xc1; 4];
const SERVER_ID: [u8; 8] = [0x5e; 8];
const RANDOM: u8 = 0x33;
const LATER: u8 = 0x34;
const HANDSHAKE: u8 = 0x44;
const APPLICATION: u8 = 0x55;
const INITIAL_TYPE: u8 = 0;
const HANDSHAKE_TYPE: u8 = 2;

/// The keys of a sender.
struct Sealer {
    header: HeaderProtectionKey,
    key: PacketKey,
}

impl Sealer {
    fn new(secret: &Secret) -> Self {
        Self {
            header: secret.header_key(),
            key: secret.packet_key(),
        }
    }

    /// With a secret of 32 equal bytes.
    fn of(byte: u8) -> Self {
        Self::new(&Secret::new(Suite::Aes128Gcm, Version::V1, &[byte; 32]))
    }

    /// `header` ends where the packet number begins, which takes four bytes.
    fn seal(&self, form: Form, header: &[u8], number: u32, payload: &[u8]) -> Vec<u8> {
        self.seal_on(0, form, header, (number, payload))
    }

    /// The same on a path.
    fn seal_on(
        &self,
        path_id: u32,
        form: Form,
        header: &[u8],
        (number, payload): (u32, &[u8]),
    ) -> Vec<u8> {
        let at = header.len();
        let mut packet = [header, &number.to_be_bytes()].concat();
        packet[0] |= 3;
        let mut body = payload.to_vec();
        self.key.seal(path_id, number.into(), &packet, &mut body);
        packet.extend(body);
        let mask = self.header.new_mask(&packet[at + 4..at + 4 + TAG]);
        let mask = mask.expect("a sample");
        packet[0] ^= mask[0] & form.protected_bits();
        for (byte, mask) in packet[at..at + 4].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
        packet
    }

    fn long(&self, kind: u8, ids: [&[u8]; 2], payload: &[u8]) -> Vec<u8> {
        let mut header = vec![0xc0 | kind << 4, 0, 0, 0, 1];
        for id in ids {
            header.push(u8::try_from(id.len()).unwrap());
            header.extend(id);
        }
        if kind == INITIAL_TYPE {
            header.push(0); // no token
        }
        let length = u16::try_from(4 + payload.len() + TAG).unwrap();
        header.extend((0x4000 | length).to_be_bytes());
        self.seal(Form::Long, &header, 0, payload)
    }

    fn short(&self, id: &[u8], number: u32, payload: &[u8]) -> Vec<u8> {
        self.seal(Form::Short, &[&[0x40], id].concat(), number, payload)
    }
}

fn to_server() -> Path {
    Path {
        source: "192.0.2.1:50000".parse().unwrap(),
        destination: "198.51.100.1:443".parse().unwrap(),
    }
}

/// A CRYPTO frame at offset 0.
fn crypto(message: &[u8]) -> Vec<u8> {
    let length = u8::try_from(message.len()).unwrap();
    [&[0x06, 0, 0x40, length], message].concat()
}

/// The client's first packet: as much of a `ClientHello` as names the connection.
fn hello() -> Vec<u8> {
    hello_of([&SERVER_ID, &CLIENT_ID], RANDOM)
}

/// The hello of a connection with these IDs, the server's first, and a random of equal bytes.
fn hello_of(ids: [&[u8]; 2], random: u8) -> Vec<u8> {
    let destination = ConnectionId::new(ids[0]).unwrap();
    let sealer = Sealer::new(&Secret::initial(Version::V1, &destination, End::Client));
    let hello = [&[1, 0, 0, 200, 3, 3][..], &[random; 32]].concat();
    sealer.long(INITIAL_TYPE, ids, &crypto(&hello))
}

/// The extension with these transport parameters, alone in the list of extensions.
fn only_extension(parameters: &[u8]) -> Vec<u8> {
    let length = u8::try_from(parameters.len()).unwrap();
    [&[0, length + 4, 0, 0x39, 0, length][..], parameters].concat()
}

/// The client's first packet with all of a `ClientHello`, which has these transport parameters.
fn hello_with(parameters: &[u8]) -> Vec<u8> {
    let destination = ConnectionId::new(&SERVER_ID).unwrap();
    let sealer = Sealer::new(&Secret::initial(Version::V1, &destination, End::Client));
    // No session ID, one cipher suite, no compression.
    let choices = [0, 0, 2, 0x13, 0x01, 1, 0];
    let body = [
        &[3, 3][..],
        &[RANDOM; 32],
        &choices,
        &only_extension(parameters),
    ];
    let body = body.concat();
    let message = [&[1, 0, 0, u8::try_from(body.len()).unwrap()][..], &body].concat();
    sealer.long(INITIAL_TYPE, [&SERVER_ID, &CLIENT_ID], &crypto(&message))
}

/// The server's packet with `EncryptedExtensions`, which have these transport parameters.
fn answer(parameters: &[u8]) -> Vec<u8> {
    let body = only_extension(parameters);
    let message = [&[8, 0, 0, u8::try_from(body.len()).unwrap()][..], &body].concat();
    Sealer::of(HANDSHAKE).long(HANDSHAKE_TYPE, [&CLIENT_ID, &SERVER_ID], &crypto(&message))
}

/// A line of a key log, whose random and secret are of equal bytes.
fn line(label: &str, random: u8, secret: u8) -> String {
    let hex = |byte: u8| format!("{byte:02x}").repeat(32);
    format!("{label} {} {}\n", hex(random), hex(secret))
}

fn key_log() -> String {
    let mut lines = line("SERVER_HANDSHAKE_TRAFFIC_SECRET", RANDOM, HANDSHAKE);
    lines += &line("CLIENT_TRAFFIC_SECRET_0", RANDOM, APPLICATION);
    lines += &line("SERVER_TRAFFIC_SECRET_0", RANDOM, APPLICATION);
    lines += &line("SERVER_TRAFFIC_SECRET_0", LATER, LATER);
    // With this many connections, none is found by trial.
    for other in 0x80..0x90 {
        lines += &line("CLIENT_TRAFFIC_SECRET_0", other, other);
    }
    lines
}

/// An observer's results for datagrams.
#[derive(Debug, Default)]
struct Observed {
    /// The datagrams of each connection, counted from 1.
    connections: Vec<Vec<usize>>,
    /// Why packets were not decoded.
    undecoded: Vec<Reason>,
    /// The payload of the last packet.
    payload: Vec<u8>,
}

impl Observed {
    fn of(datagrams: &[(Path, Vec<u8>)]) -> Self {
        Self::with(&key_log(), datagrams)
    }

    fn with(key_log: &str, datagrams: &[(Path, Vec<u8>)]) -> Self {
        let mut secrets = KeyLog::default();
        secrets.add(key_log.as_bytes());
        let mut observer = Observer::new(&secrets);
        let mut result = Self::default();
        for (number, (path, payload)) in (1..).zip(datagrams) {
            let datagram = Datagram {
                path: *path,
                payload,
                length: payload.len(),
            };
            observer.datagram(&datagram, |seen| match seen {
                Ok(packet) => {
                    result.passed(packet.connection, number);
                    result.payload = packet.payload.to_vec();
                }
                Err(undecoded) => {
                    result.passed(undecoded.known.map(|(connection, ..)| connection), number);
                    result.undecoded.push(undecoded.reason);
                }
            });
        }
        observer.finish(|seen| panic!("{seen:?} had to wait"));
        result
    }

    fn passed(&mut self, connection: Option<usize>, datagram: usize) {
        let Some(connection) = connection else { return };
        let count = self.connections.len().max(connection + 1);
        self.connections.resize(count, Vec::new());
        self.connections[connection].push(datagram);
    }
}

#[test]
fn a_packet_of_a_known_connection_is_opened() {
    let payload = [0x01, 0x52, 0x34, 9, 9, 9];
    let packet = Sealer::of(APPLICATION).short(&SERVER_ID, 0, &payload);
    let observed = Observed::of(&[(to_server(), hello()), (to_server(), packet)]);
    assert_eq!(observed.undecoded, []);
    assert_eq!(observed.payload, payload);
    let frames: Vec<_> = Frames::new(&observed.payload).map(Result::unwrap).collect();
    assert_eq!(frames[0], Frame::Ping);
    assert!(matches!(
        frames[1],
        Frame::Unknown {
            frame_type: 0x1234,
            ..
        }
    ));
    assert_eq!(frames.len(), 2);
}

#[test]
fn a_bdp_frame_is_read_up_to_its_end() {
    let payload = [0x80, 0, 0xeb, 0xd9, 5, 0x47, 0xd0, 7, 2, 8, 9, 0x01];
    let frames: Vec<_> = Frames::new(&payload).map(Result::unwrap).collect();
    let bdp = Frame::Bdp {
        lifetime: 5,
        capacity: 2000,
        rtt: 7,
        token: &[8, 9],
    };
    assert_eq!(frames, [bdp, Frame::Ping]);
    for end in 4..payload.len() - 1 {
        assert!(Frames::new(&payload[..end]).any(|frame| frame.is_err()));
    }
}

/// A client that goes on to the server's preferred address is known by the connection ID that came
/// with that address.
#[test]
fn the_preferred_address_leads_to_its_connection() {
    let preferred = [0xaa; 5];
    let parameter = [&[0x0d, 46][..], &[0; 24], &[5], &preferred, &[9; 16]].concat();
    let handshake = answer(&parameter);
    let elsewhere = Path {
        destination: "203.0.113.9:4433".parse().unwrap(),
        ..to_server()
    };
    let to_preferred = Sealer::of(APPLICATION).short(&preferred, 0, &[0x01]);
    let mut datagrams = vec![
        (to_server(), hello()),
        (to_server().reversed(), handshake),
        (elsewhere, to_preferred),
    ];
    let observed = Observed::of(&datagrams);
    assert_eq!(observed.undecoded, []);
    assert_eq!(observed.connections, [vec![1, 2, 3]]);
    datagrams.remove(1);
    assert_eq!(
        Observed::of(&datagrams).undecoded.len(),
        1,
        "nothing else told it"
    );
}

/// Two connections between the same addresses, whose client has no connection IDs: keys alone tell
/// whose a packet is, also when one of the first comes late.
#[test]
fn connections_without_ids_are_told_apart_by_their_keys() {
    let ids = |server: u8| [server; 8];
    let to_client = |secret: u8, number| {
        let packet = Sealer::of(secret).short(&[], number, &[0x01]);
        (to_server().reversed(), packet)
    };
    let observed = Observed::of(&[
        (to_server(), hello_of([&ids(0x5e), &[]], RANDOM)),
        to_client(APPLICATION, 0),
        (to_server(), hello_of([&ids(0x5f), &[]], LATER)),
        to_client(LATER, 0),
        to_client(APPLICATION, 1),
        to_client(LATER, 1),
        to_client(APPLICATION, 2),
    ]);
    assert_eq!(observed.undecoded, []);
    assert_eq!(observed.connections, [vec![1, 2, 5, 7], vec![3, 4, 6]]);
}

/// A packet that is for neither changes nothing: it counts for the newer one, and is noted as not
/// authentic.
#[test]
fn a_stray_packet_without_id_belongs_to_the_newest_connection() {
    let stray = Sealer::of(0x77).short(&[], 9, &[0x01]);
    let observed = Observed::of(&[
        (to_server(), hello_of([&[0x5e; 8], &[]], RANDOM)),
        (to_server(), hello_of([&[0x5f; 8], &[]], LATER)),
        (to_server().reversed(), stray),
    ]);
    assert_eq!(observed.undecoded, [Reason::NotAuthentic]);
    assert_eq!(observed.connections, [vec![1], vec![2, 3]]);
}
