//! Several paths of a connection: draft-ietf-quic-multipath-20.

use proptest::prelude::*;

use super::*;

/// A connection ID of packets to the server on path 1.
const ON_PATH_1: [u8; 8] = [0x61; 8];
/// The varint of 0x3e78.
const PATH_NEW_CONNECTION_ID: [u8; 2] = [0x7e, 0x78];

/// The server's packet with a connection ID for path 1.
fn issued() -> Vec<u8> {
    issued_for(&[1])
}

/// The server's packet with that connection ID for the path of this varint.
fn issued_for(path_id: &[u8]) -> Vec<u8> {
    let rest = [&[0, 0, 8], &ON_PATH_1[..], &[7; 16]].concat();
    let frame = [&PATH_NEW_CONNECTION_ID[..], path_id, &rest].concat();
    Sealer::of(APPLICATION).short(&CLIENT_ID, 0, &frame)
}

fn from_elsewhere() -> Path {
    Path {
        source: "192.0.2.2:50000".parse().unwrap(),
        ..to_server()
    }
}

/// The client's packet to that connection ID, protected as one of a path.
fn on_path(path_id: u32, number: u32, payload: &[u8]) -> (Path, Vec<u8>) {
    let header = [&[0x40], &ON_PATH_1[..]].concat();
    let packet = Sealer::of(APPLICATION).seal_on(path_id, Form::Short, &header, (number, payload));
    (from_elsewhere(), packet)
}

#[test]
fn the_path_of_a_connection_id_is_part_of_the_nonce() {
    let begun = vec![(to_server(), hello()), (to_server().reversed(), issued())];
    let with = |packet| Observed::of(&[begun.clone(), vec![packet]].concat());
    // PATH_ACK of path 0: packet 5 alone.
    let path_ack = [0x3e, 0, 5, 0, 0, 0];
    let observed = with(on_path(1, 0, &path_ack));
    assert_eq!(observed.undecoded, []);
    assert_eq!(observed.connections, [vec![1, 2, 3]]);
    let frames: Vec<_> = Frames::new(&observed.payload).map(Result::unwrap).collect();
    assert!(matches!(
        frames[..],
        [Frame::PathAck { path_id: 0, ranges, .. }] if ranges.largest() == 5
    ));
    assert_eq!(
        with(on_path(0, 0, &path_ack)).undecoded,
        [Reason::NotAuthentic]
    );
    assert_eq!(
        with(on_path(2, 0, &path_ack)).undecoded,
        [Reason::NotAuthentic]
    );
}

#[test]
fn a_path_identifier_has_32_bits() {
    let after = |path_id: &[u8], packet| {
        let issued = (to_server().reversed(), issued_for(path_id));
        Observed::of(&[(to_server(), hello()), issued, packet]).undecoded
    };
    let largest = [0xc0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(after(&largest, on_path(u32::MAX, 0, &[0x01])), []);
    let beyond = [0xc0, 0, 0, 1, 0, 0, 0, 0];
    let undecoded = after(&beyond, on_path(0, 0, &[0x01]));
    assert_eq!(undecoded, [Reason::NoConnection]);
}

#[test]
fn each_path_counts_its_own_packets() {
    // Numbers of four bytes that differ so much would not be told in one packet number space.
    let late = 0xffff_fff0;
    let header = [&[0x40], &SERVER_ID[..]].concat();
    let first = Sealer::of(APPLICATION).seal(Form::Short, &header, late, &[0x01]);
    let again = Sealer::of(APPLICATION).seal(Form::Short, &header, late + 1, &[0x01]);
    let observed = Observed::of(&[
        (to_server(), hello()),
        (to_server(), first),
        (to_server().reversed(), issued()),
        on_path(1, 0, &[0x01]),
        on_path(1, 1, &[0x01]),
        (to_server(), again),
    ]);
    assert_eq!(observed.undecoded, []);
    assert_eq!(observed.connections, [vec![1, 2, 3, 4, 5, 6]]);
}

#[test]
fn a_key_update_reaches_paths_one_after_the_other() {
    let sealed = |updates: u8, path_id: u32, id: &[u8], number: u32| {
        let mut secret = Secret::new(Suite::Aes128Gcm, Version::V1, &[APPLICATION; 32]);
        let header = secret.header_key();
        for _ in 0..updates {
            secret = secret.updated();
        }
        let key = secret.packet_key();
        let phase = 0x40 | (updates % 2) << 2;
        let sealer = Sealer { header, key };
        let head = [&[phase], id].concat();
        sealer.seal_on(path_id, Form::Short, &head, (number, &[0x01]))
    };
    let first = |updates, number| (to_server(), sealed(updates, 0, &SERVER_ID, number));
    let other = |updates, number| (from_elsewhere(), sealed(updates, 1, &ON_PATH_1, number));
    let observed = Observed::of(&[
        (to_server(), hello()),
        (to_server().reversed(), issued()),
        first(0, 0),
        first(1, 1),
        // Sent before the update, though the numbers are larger.
        other(0, 500),
        other(1, 501),
        first(2, 2),
        other(1, 502),
        other(2, 503),
    ]);
    assert_eq!(observed.undecoded, []);
    assert_eq!(observed.connections, [(1..=9).collect::<Vec<_>>()]);
}

#[test]
fn frames_of_several_paths_have_their_names() {
    let payload = [
        &[0x3f, 1, 5, 0, 0, 0, 1, 2, 3][..], // PATH_ACK with ECN counts
        &[0x7e, 0x75, 1, 9],
        &[0x7e, 0x76, 1, 2],
        &[0x7e, 0x77, 1, 3],
        &[0x7e, 0x79, 1, 0],
        &[0x7e, 0x7a, 4],
        &[0x7e, 0x7b, 4],
        &[0x7e, 0x7c, 2, 0],
        &[0x01],
    ]
    .concat();
    let names: Vec<_> = Frames::new(&payload).map(|it| it.unwrap().name()).collect();
    let expected = [
        "PATH_ACK",
        "PATH_ABANDON",
        "PATH_STATUS_BACKUP",
        "PATH_STATUS_AVAILABLE",
        "PATH_RETIRE_CONNECTION_ID",
        "MAX_PATH_ID",
        "PATHS_BLOCKED",
        "PATH_CIDS_BLOCKED",
        "PING",
    ];
    assert_eq!(names, expected);
}

proptest! {
    #[test]
    fn no_bytes_behind_a_type_make_it_panic(kind in 0x75_u8..=0x7c, rest: Vec<u8>) {
        for head in [vec![0x3e], vec![0x3f], vec![0x7e, kind]] {
            let payload = [head, rest.clone()].concat();
            prop_assert!(Frames::new(&payload).count() >= 1);
        }
    }
}
