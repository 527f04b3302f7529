//! The sample packets of RFC 9001 and RFC 9369, appendix A of each.

use bentpipe_wire::quic::{End, Frame, Observer, Packet, PacketType, Reason};
use bentpipe_wire::{Datagram, KeyLog, Path};

macro_rules! vector {
    ($name:literal) => {
        bytes(include_str!(concat!("vectors/", $name, ".hex")))
    };
}

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(char::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap())
        .collect()
}

fn to_server() -> Path {
    Path {
        source: "[2001:db8::1]:50000".parse().unwrap(),
        destination: "[2001:db8::2]:443".parse().unwrap(),
    }
}

/// Shows a datagram of one packet to the observer.
fn show<T>(
    observer: &mut Observer<'_>,
    path: Path,
    payload: &[u8],
    check: impl FnOnce(Result<Packet<'_>, Reason>) -> T,
) -> T {
    let length = payload.len();
    let datagram = Datagram {
        path,
        payload,
        length,
    };
    let (mut check, mut result) = (Some(check), None);
    observer.datagram(&datagram, |seen| {
        let check = check.take().expect("the datagram holds one packet");
        result = Some(check(seen.map_err(|undecoded| undecoded.reason)));
    });
    result.expect("the datagram holds one packet")
}

fn initial_packets(client: &[u8], server: &[u8]) {
    let secrets = KeyLog::default();
    let mut observer = Observer::new(&secrets);
    show(&mut observer, to_server(), client, |packet| {
        let packet = packet.unwrap();
        assert_eq!(packet.kind, PacketType::Initial);
        assert_eq!((packet.sender, packet.number), (End::Client, Some(2)));
        assert_eq!(packet.size, 1200);
        let payload = vector!("client-initial-payload");
        assert_eq!(packet.payload[..payload.len()], payload);
        let frames: Vec<_> = packet.frames().collect::<Result<_, _>>().unwrap();
        let [Frame::Crypto { offset: 0, data }, Frame::Padding { length }] = frames[..] else {
            panic!("{frames:?}");
        };
        assert_eq!((data.len(), length), (241, 917));
    });
    show(&mut observer, to_server().reversed(), server, |packet| {
        let packet = packet.unwrap();
        assert_eq!(packet.connection, Some(0));
        assert_eq!((packet.sender, packet.number), (End::Server, Some(1)));
        assert_eq!(packet.payload, vector!("server-initial-payload"));
        let frames: Vec<_> = packet.frames().collect::<Result<_, _>>().unwrap();
        let [Frame::Ack { ranges, .. }, Frame::Crypto { data, .. }] = frames[..] else {
            panic!("{frames:?}");
        };
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [0..=0]);
        assert_eq!(data.len(), 90);
    });
}

#[test]
fn initial_packets_of_version_1() {
    initial_packets(&vector!("client-initial-v1"), &vector!("server-initial-v1"));
}

#[test]
fn initial_packets_of_version_2() {
    initial_packets(&vector!("client-initial-v2"), &vector!("server-initial-v2"));
}

#[test]
fn a_server_may_answer_in_another_version() {
    initial_packets(&vector!("client-initial-v1"), &vector!("server-initial-v2"));
}

#[test]
fn retry_packets_of_both_versions() {
    let secrets = KeyLog::default();
    for (client, retry) in [
        (vector!("client-initial-v1"), vector!("retry-v1")),
        (vector!("client-initial-v2"), vector!("retry-v2")),
    ] {
        let mut observer = Observer::new(&secrets);
        show(&mut observer, to_server(), &client, |packet| {
            assert_eq!(packet.map(|packet| packet.number), Ok(Some(2)));
        });
        show(&mut observer, to_server().reversed(), &retry, |packet| {
            let packet = packet.unwrap();
            assert_eq!(packet.kind, PacketType::Retry);
            assert_eq!((packet.sender, packet.number), (End::Server, None));
            assert_eq!(packet.connection, Some(0));
        });
        let mut forged = retry.clone();
        forged[20] ^= 1;
        for forged in [&forged, &retry[..30]] {
            show(&mut observer, to_server().reversed(), forged, |packet| {
                assert_eq!(packet.unwrap_err(), Reason::RetryIntegrity);
            });
        }
    }
}

#[test]
fn a_forged_packet_begins_no_connection() {
    let secrets = KeyLog::default();
    let mut observer = Observer::new(&secrets);
    let mut client = vector!("client-initial-v1");
    *client.last_mut().unwrap() ^= 1;
    let reason = show(&mut observer, to_server(), &client, |packet| {
        packet.map(|_| ()).unwrap_err()
    });
    assert_eq!(reason, Reason::NoConnection);
    let server = vector!("server-initial-v1");
    let reason = show(&mut observer, to_server().reversed(), &server, |packet| {
        packet.map(|_| ()).unwrap_err()
    });
    assert_eq!(reason, Reason::NoConnection);
}
