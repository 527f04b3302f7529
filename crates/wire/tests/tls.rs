//! Reads the records of rustls at both ends, in whatever pieces and order they come.

use std::fmt;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use bentpipe_wire::quic::End;
use bentpipe_wire::{KeyLog, TlsReader, TlsRecords};
use proptest::prelude::*;
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
};

/// The secrets of all connections, as a file would hold them.
#[derive(Debug, Default)]
struct Secrets(Mutex<String>);

impl rustls::KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(String::new(), |text, it| format!("{text}{it:02x}"))
        };
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        self.0.lock().unwrap().push_str(&line);
    }
}

/// Both ends, which keep tickets from one connection to the next.
struct Laboratory {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    secrets: Arc<Secrets>,
}

/// The data that both ends sent: by sender, in order.
type Sent = [Vec<u8>; 2];

impl Laboratory {
    fn new() -> Self {
        let identity = rcgen::generate_simple_self_signed(["server".to_owned()]).unwrap();
        let chain = vec![identity.cert.der().clone()];
        let key = identity.signing_key.serialize_der().try_into().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(chain[0].clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        server.max_early_data_size = 1 << 16;
        let secrets = Arc::<Secrets>::default();
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.enable_early_data = true;
        client.key_log = secrets.clone();
        Self {
            client: Arc::new(client),
            server: Arc::new(server),
            secrets,
        }
    }

    /// A request, early if it may be, and an answer of `answer` bytes.
    fn connection(&self, answer: usize) -> Sent {
        let name = ServerName::try_from("server").unwrap();
        let mut client = ClientConnection::new(self.client.clone(), name).unwrap();
        let early = client
            .early_data()
            .map(|mut it| it.write(b"GET /early\r\n").unwrap());
        let mut server = ServerConnection::new(self.server.clone()).unwrap();
        let mut sent = Sent::default();
        if early.is_none() {
            client.writer().write_all(b"GET /later\r\n").unwrap();
        }
        server.writer().write_all(&vec![7; answer]).unwrap();
        let (mut client, mut server) = (client.into(), Connection::from(server));
        while pass(&mut client, &mut server, &mut sent[0])
            | pass(&mut server, &mut client, &mut sent[1])
        {}
        for end in [&mut client, &mut server] {
            end.send_close_notify();
        }
        pass(&mut client, &mut server, &mut sent[0]);
        pass(&mut server, &mut client, &mut sent[1]);
        sent
    }

    fn key_log(&self) -> KeyLog {
        let mut secrets = KeyLog::default();
        secrets.add(self.secrets.0.lock().unwrap().as_bytes());
        secrets
    }
}

impl fmt::Debug for Laboratory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Laboratory")
    }
}

/// Brings what one end has to send to the other; whether there was anything.
fn pass(from: &mut Connection, to: &mut Connection, sent: &mut Vec<u8>) -> bool {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        to.process_new_packets().unwrap();
        let _ = to.reader().read_to_end(&mut Vec::new());
    }
    sent.extend_from_slice(&bytes);
    !bytes.is_empty()
}

fn read(secrets: &KeyLog, sent: &Sent) -> TlsRecords {
    let mut reader = TlsReader::new(secrets);
    for end in [End::Client, End::Server] {
        reader.read(end, 0, &sent[end as usize]);
    }
    reader.finish().expect("it is TLS")
}

fn bytes_of(records: &TlsRecords) -> [u64; 2] {
    [0, 1].map(|end: usize| {
        let ranges = records.application[end].iter();
        ranges.map(|it| it.end - it.start).sum()
    })
}

#[test]
fn a_handshake_and_one_with_its_ticket() {
    let laboratory = Laboratory::new();
    let (first, second) = (laboratory.connection(40_000), laboratory.connection(40_000));
    let secrets = laboratory.key_log();
    let records = read(&secrets, &first);
    assert!(records.readable);
    assert_eq!(bytes_of(&records), [12, 40_000]);
    let handshake = records.handshake;
    assert_eq!(
        (handshake.took_ticket, handshake.certificate),
        (Some(false), Some(true))
    );
    let finished = records.client_finished.unwrap();
    assert!(finished <= records.application[0][0].start);
    let records = read(&secrets, &second);
    assert!(records.readable);
    assert_eq!(bytes_of(&records), [12, 40_000]);
    let handshake = records.handshake;
    assert_eq!(
        (handshake.took_ticket, handshake.certificate),
        (Some(true), Some(false))
    );
    assert_eq!(
        (handshake.early_data, records.early_bytes),
        (Some(true), 12)
    );
    let early = &records.application[0][0];
    assert!(
        early.end < records.client_finished.unwrap(),
        "early data come first"
    );
}

#[test]
fn early_data_that_the_server_does_not_take_is_counted_and_is_no_data() {
    let mut laboratory = Laboratory::new();
    laboratory.connection(1000);
    let mut refusing = (*laboratory.server).clone();
    refusing.max_early_data_size = 0;
    laboratory.server = Arc::new(refusing);
    let sent = laboratory.connection(1000);
    let records = read(&laboratory.key_log(), &sent);
    assert_eq!(records.handshake.took_ticket, Some(true));
    assert_eq!(
        (records.handshake.early_data, records.early_bytes),
        (Some(false), 12)
    );
    assert_eq!(bytes_of(&records), [0, 1000], "it was not sent again");
}

#[test]
fn without_secrets_the_hello_can_be_read_and_no_more() {
    let laboratory = Laboratory::new();
    let sent = laboratory.connection(1000);
    let records = read(&KeyLog::default(), &sent);
    assert!(!records.readable);
    assert_eq!(records.handshake.took_ticket, Some(false));
    assert_eq!(
        (records.handshake.certificate, bytes_of(&records)),
        (None, [0, 0])
    );
}

#[test]
fn behind_a_gap_nothing_is_read_and_that_is_said() {
    let laboratory = Laboratory::new();
    let sent = laboratory.connection(40_000);
    let secrets = laboratory.key_log();
    let whole = read(&secrets, &sent);
    let server = &sent[1];
    assert_eq!(whole.read_to, [sent[0].len() as u64, server.len() as u64]);
    let mut reader = TlsReader::new(&secrets);
    reader.read(End::Client, 0, &sent[0]);
    reader.read(End::Server, 0, &server[..20_000]);
    reader.read(End::Server, 21_000, &server[21_000..]);
    let records = reader.finish().unwrap();
    assert!(
        records.readable && records.read_to[1] <= 20_000,
        "{:?}",
        records.read_to
    );
    let last = records.application[1].last().unwrap();
    assert!(last.end <= records.read_to[1]);
}

#[test]
fn many_messages_are_given_up() {
    let secrets = KeyLog::default();
    let mut reader = TlsReader::new(&secrets);
    let record = [22, 3, 3, 0, 4, 0, 0, 0, 0];
    reader.read(End::Server, 0, &record.repeat(200_000));
    assert_eq!(reader.finish(), None);
}

#[test]
fn what_is_no_tls_is_none() {
    let secrets = KeyLog::default();
    let mut reader = TlsReader::new(&secrets);
    reader.read(End::Client, 0, b"GET /file\r\n");
    reader.read(End::Server, 0, &[0; 100]);
    assert_eq!(reader.finish(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn pieces_may_come_in_any_order_and_twice(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), any::<bool>()),
            0..60),
    ) {
        let laboratory = Laboratory::new();
        let sent = laboratory.connection(30_000);
        let secrets = laboratory.key_log();
        let mut pieces = Vec::new();
        for end in [End::Client, End::Server] {
            let stream = &sent[end as usize];
            let mut at: Vec<usize> = cuts.iter().map(|(cut, ..)| cut.index(stream.len())).collect();
            at.extend([0, stream.len()]);
            at.sort_unstable();
            pieces.extend(at.windows(2).map(|it| (end, it[0]..it[1])));
        }
        let (mut order, mut again) = (Vec::new(), Vec::new());
        for (number, piece) in pieces.into_iter().enumerate() {
            let (rank, twice) = cuts.get(number % cuts.len().max(1)).map_or((0, false), |it| (it.1,
                it.2));
            order.push((rank, piece.clone()));
            again.extend(twice.then_some(piece));
        }
        order.sort_by_key(|(rank, _)| *rank);
        let mut reader = TlsReader::new(&secrets);
        for (end, range) in order.into_iter().map(|(_, piece)| piece).chain(again) {
            reader.read(end, range.start as u64, &sent[end as usize][range]);
        }
        prop_assert_eq!(reader.finish(), Some(read(&secrets, &sent)));
    }

    #[test]
    fn nonsense_does_no_harm(
        pieces in prop::collection::vec((any::<bool>(), 0u64..400,
            prop::collection::vec(any::<u8>(), 0..200)), 0..20),
    ) {
        let secrets = KeyLog::default();
        let mut reader = TlsReader::new(&secrets);
        for (is_client, offset, bytes) in pieces {
            reader.read(if is_client { End::Client } else { End::Server }, offset, &bytes);
        }
        let _ = reader.finish();
    }
}
