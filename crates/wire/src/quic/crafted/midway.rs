//! Connections of which the beginning was not captured.

use super::*;

const TO_SERVER: u8 = 0x61;
const TO_CLIENT: u8 = 0x62;
const PING: [u8; 1] = [0x01];

/// The secrets of two connections.
fn two_connections() -> String {
    let mut lines = line("CLIENT_TRAFFIC_SECRET_0", RANDOM, TO_SERVER);
    lines += &line("SERVER_TRAFFIC_SECRET_0", RANDOM, TO_CLIENT);
    lines += &line("CLIENT_TRAFFIC_SECRET_0", LATER, TO_SERVER + 0x10);
    lines + &line("SERVER_TRAFFIC_SECRET_0", LATER, TO_CLIENT + 0x10)
}

/// Packets of client and server in turn, with these connection IDs, of the first connection or of
/// the later one.
fn passing(is_later: bool, ids: [&[u8]; 2], first: u32) -> Vec<(Path, Vec<u8>)> {
    let more = if is_later { 0x10 } else { 0 };
    let [client, server] = [TO_SERVER + more, TO_CLIENT + more].map(Sealer::of);
    let both = (first..first + 3).map(|number| {
        let forth = client.short(ids[0], number, &PING);
        let back = server.short(ids[1], number, &PING);
        [(to_server(), forth), (to_server().reversed(), back)]
    });
    both.flatten().collect()
}

fn seen(datagrams: &[(Path, Vec<u8>)]) -> Observed {
    Observed::with(&two_connections(), datagrams)
}

#[test]
fn connection_ids_of_every_length_are_learnt_in_both_directions() {
    for length in 0..=ConnectionId::LONGEST {
        for first in [0, 70_000] {
            let (long, short) = (vec![0xc4; length], vec![0xc5; 20 - length]);
            let observed = seen(&passing(false, [&long, &short], first));
            assert_eq!(observed.undecoded, []);
            assert_eq!(observed.connections, [vec![1, 2, 3, 4, 5, 6]]);
        }
    }
}

#[test]
fn one_direction_is_enough() {
    let all = passing(true, [&[0xc4; 8], &[]], 5);
    for (end, count) in [(to_server(), 3), (to_server().reversed(), 3)] {
        let one: Vec<_> = all
            .iter()
            .filter(|(path, _)| *path == end)
            .cloned()
            .collect();
        let observed = seen(&one);
        assert_eq!(observed.undecoded, []);
        assert_eq!(observed.connections[0].len(), count);
    }
}

/// Two connections between the same addresses, whose clients have no connection IDs.
#[test]
fn two_connections_on_a_path_are_told_apart() {
    let first = passing(false, [&[0xc4; 8], &[]], 5);
    let later = passing(true, [&[0xc5; 8], &[]], 9);
    let turns: Vec<_> = first
        .into_iter()
        .zip(later)
        .flat_map(|(one, two)| [one, two])
        .collect();
    let observed = seen(&turns);
    assert_eq!(observed.undecoded, []);
    let odd: Vec<_> = (1..12).step_by(2).collect();
    let even: Vec<_> = (2..13).step_by(2).collect();
    assert_eq!(observed.connections, [odd, even]);
}

/// A NAT gives the client another port, and the client goes on with the same connection IDs or with
/// new ones, which nobody saw issued.
#[test]
fn a_client_that_moves_is_followed() {
    let moved = Path {
        source: "192.0.2.1:50001".parse().unwrap(),
        ..to_server()
    };
    for (id, new_id) in [([0xc4; 8], [0xc4; 8]), ([0xc4; 8], [0xc6; 8])] {
        let mut datagrams = passing(false, [&id, &[]], 5);
        for (path, packet) in passing(false, [&new_id, &[]], 8) {
            let is_to_server = path == to_server();
            datagrams.push((
                if is_to_server {
                    moved
                } else {
                    moved.reversed()
                },
                packet,
            ));
        }
        let observed = seen(&datagrams);
        assert_eq!(observed.undecoded, []);
        assert_eq!(observed.connections, [(1..=12).collect::<Vec<_>>()]);
    }
}

#[test]
fn a_capture_may_begin_behind_key_updates() {
    let secret = Secret::new(Suite::Aes128Gcm, Version::V1, &[TO_SERVER; 32]);
    let header = Sealer::new(&secret).header;
    let mut updated = secret;
    let mut sealer = Sealer::of(TO_SERVER);
    sealer.header = header;
    for update in 1..=4 {
        updated = updated.updated();
        sealer.key = updated.packet_key();
        let phase = if update % 2 == 1 { 0x44 } else { 0x40 };
        let packet = sealer.seal(Form::Short, &[phase, 9, 9, 9, 9], 700, &PING);
        let observed = seen(&[(to_server(), packet)]);
        let expected: &[Reason] = if update <= 3 {
            &[]
        } else {
            &[Reason::NoConnection]
        };
        assert_eq!(observed.undecoded, expected, "{update} updates");
    }
}

/// A packet of no connection in the key log stays undecoded, and so does one of those when too many
/// before it were not.
#[test]
fn trying_has_an_end() {
    let stray = |number| (to_server(), Sealer::of(0x77).short(&[7; 8], number, &PING));
    let strays: Vec<_> = (0..8).map(stray).collect();
    let own = passing(false, [&[0xc4; 8], &[]], 5).swap_remove(0);
    let mut few = strays[1..].to_vec();
    few.push(own.clone());
    assert_eq!(seen(&few).connections, [vec![8]]);
    let many = [strays, vec![own]].concat();
    let observed = seen(&many);
    assert_eq!(observed.undecoded, [Reason::NoConnection; 9]);
}
