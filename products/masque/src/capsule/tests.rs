use proptest::prelude::*;

use super::*;

/// The payloads in bytes that come in these pieces, and how the stream ends.
fn read_all(bytes: &[u8], piece: usize) -> (Vec<Bytes>, Result<(), CapsuleError>) {
    let mut reader = CapsuleReader::default();
    let mut payloads = Vec::new();
    for bytes in bytes.chunks(piece.max(1)) {
        let read = reader.read(bytes, |capsule| {
            match capsule {
                Capsule::Payload(payload) => payloads.push(payload),
                Capsule::Addressing(_) | Capsule::Cid(_) => panic!("of UDP there is none"),
            }
            Ok(())
        });
        if let Err(error) = read {
            return (payloads, Err(error));
        }
        assert!(reader.kept.len() <= MOST_UDP_PAYLOAD + MOST_INTEGER);
    }
    (payloads, reader.finish())
}

fn capsule(kind: u32, length: u64, value: &[u8]) -> Vec<u8> {
    let mut buffer = BytesMut::new();
    VarInt::from_u32(kind).encode(&mut buffer);
    VarInt::from_u64(length).unwrap().encode(&mut buffer);
    buffer.put_slice(value);
    buffer.to_vec()
}

#[test]
fn a_datagram_is_the_bytes_of_the_rfc() {
    let mut buffer = BytesMut::new();
    put_datagram(&mut buffer, b"abc");
    // Type DATAGRAM, four bytes, context 0.
    assert_eq!(buffer[..], [0, 4, 0, b'a', b'b', b'c']);
}

#[test]
fn other_capsules_and_contexts_are_skipped() {
    let mut bytes = capsule(0x2b, 5, b"hello");
    bytes.extend(capsule(0, 3, &[2, 1, 1]));
    bytes.extend(capsule(0, 0, b""));
    bytes.extend(capsule(0, 2, &[0, 7]));
    let (payloads, end) = read_all(&bytes, 3);
    assert_eq!(
        (&payloads[..], end),
        (&[Bytes::from_static(&[7])][..], Ok(()))
    );
}

#[test]
fn what_is_too_long_for_udp_is_an_error_before_it_comes() {
    let most = MOST_UDP_PAYLOAD as u64;
    let (_, end) = read_all(&capsule(0, 1 << 60, b""), 1);
    assert_eq!(
        end,
        Err(CapsuleError::TooLong(
            1 << 60,
            MOST_UDP_PAYLOAD + MOST_INTEGER
        ))
    );
    let (payloads, end) = read_all(
        &capsule(0, most + 1, &vec![0; MOST_UDP_PAYLOAD + 1]),
        1 << 20,
    );
    assert_eq!((payloads.len(), end), (1, Ok(())));
    let (_, end) = read_all(
        &capsule(0, most + 2, &vec![0; MOST_UDP_PAYLOAD + 2]),
        1 << 20,
    );
    assert_eq!(end, Err(CapsuleError::TooLong(most + 1, MOST_UDP_PAYLOAD)));
}

/// The same of a request for IP: its packets, what is said of addresses, and how it ends.
fn read_ip(bytes: &[u8], piece: usize) -> (Vec<Capsule>, Result<(), CapsuleError>) {
    let mut reader = CapsuleReader::of(Content::Ip);
    let mut found = Vec::new();
    for bytes in bytes.chunks(piece.max(1)) {
        let read = reader.read(bytes, |capsule| {
            found.push(capsule);
            Ok(())
        });
        if let Err(error) = read {
            return (found, Err(error));
        }
        assert!(reader.kept.len() <= MOST_PACKET + MOST_INTEGER);
    }
    (found, reader.finish())
}

#[test]
fn what_is_said_of_addresses_is_for_ip_alone_and_has_an_end() {
    let none = capsule(1, 0, b"");
    assert_eq!(read_all(&none, 1), (Vec::new(), Ok(())));
    let assign = Capsule::Addressing(Addressing::Assign(Vec::new()));
    assert_eq!(read_ip(&none, 1), (vec![assign], Ok(())));
    let long = capsule(3, MOST_ADDRESSING as u64 + 1, b"");
    let too_long = CapsuleError::TooLong(MOST_ADDRESSING as u64 + 1, MOST_ADDRESSING);
    assert_eq!(read_ip(&long, 1).1, Err(too_long));
    assert_eq!(
        read_all(&long, 1).1,
        Err(CapsuleError::Truncated),
        "it is skipped"
    );
    let wrong = capsule(1, 1, &[0]);
    let malformed = CapsuleError::Malformed(Malformed::Truncated);
    assert_eq!(read_ip(&wrong, 1).1, Err(malformed));
}

#[test]
fn what_is_skipped_may_be_of_any_length() {
    let (_, end) = read_all(&capsule(9, 1 << 61, &[0; 100]), 7);
    assert_eq!(end, Err(CapsuleError::Truncated));
}

proptest! {
    #[test]
    fn payloads_come_out_as_they_went_in(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
        piece in 1_usize..400,
        cut in any::<prop::sample::Index>(),
    ) {
        let mut buffer = BytesMut::new();
        let mut ends = vec![0];
        for payload in &payloads {
            put_datagram(&mut buffer, payload);
            ends.push(buffer.len());
        }
        let (found, end) = read_all(&buffer, piece);
        prop_assert_eq!(end, Ok(()));
        prop_assert!(found.iter().map(|it| &it[..]).eq(payloads.iter().map(|it| &it[..])));
        let cut = cut.index(buffer.len() + 1);
        let (_, end) = read_all(&buffer[..cut], piece);
        prop_assert_eq!(end.is_ok(), ends.contains(&cut));
    }

    #[test]
    fn any_bytes_are_read_or_refused_in_bounded_memory(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        piece in 1_usize..600,
    ) {
        let whole = read_all(&bytes, usize::MAX);
        prop_assert_eq!(read_all(&bytes, piece), whole);
        prop_assert_eq!(read_ip(&bytes, piece), read_ip(&bytes, usize::MAX));
    }
}
