//! Extensions that change the first byte of packets.

use super::*;

/// Both ends' transport parameters that offer loss bits with these values, or do not.
fn handshake(client: Option<u8>, server: Option<u8>) -> Vec<(Path, Vec<u8>)> {
    let parameters = |value: Option<u8>| match value {
        Some(value) => vec![0x50, 0x57, 1, value],
        None => vec![0x0e, 1, 2],
    };
    vec![
        (to_server(), hello_with(&parameters(client))),
        (to_server().reversed(), answer(&parameters(server))),
    ]
}

/// 16 packets of an end, on whose masks the two bits are of all values, with these in their place.
fn packets(sender: End, form: Form, bits: u8) -> Vec<(Path, Vec<u8>)> {
    let (path, id) = match sender {
        End::Client => (to_server(), &SERVER_ID[..]),
        End::Server => (to_server().reversed(), &CLIENT_ID[..]),
    };
    let header = [&[0x40 | bits], id].concat();
    let sealer = Sealer::of(APPLICATION);
    let packets = (0..16).map(|number| sealer.seal(form, &header, number, &[0x01]));
    packets.map(|packet| (path, packet)).collect()
}

/// draft-ferrieuxhamchaoui-quic-lossbits-03 section 5.1: an end that says 1 marks losses if its
/// peer says anything.
#[test]
fn loss_bits_are_read_from_an_end_that_sends_them_to_one_that_knows_them() {
    let offers = [None, Some(0), Some(1)];
    let settings = offers.map(|client| offers.map(|server| (client, server)));
    for (client, server) in settings.into_iter().flatten() {
        for (sender, own, peer) in [(End::Client, client, server), (End::Server, server, client)] {
            let marks = own == Some(1) && peer.is_some();
            let opened_with = |form: Form, bits| {
                let sent = [handshake(client, server), packets(sender, form, bits)].concat();
                let undecoded = Observed::of(&sent).undecoded.len();
                16 - undecoded
            };
            let context = format!("{sender:?} of {client:?}, {server:?}");
            for bits in [0, 0x08, 0x10, 0x18] {
                let opened = opened_with(Form::of_short(marks), bits);
                assert_eq!(opened, 16, "{context} with {bits:#x}");
            }
            let opened = opened_with(Form::of_short(!marks), 0);
            assert!(
                (1..16).contains(&opened),
                "{context}, against what was agreed"
            );
        }
    }
}

/// Where the server's part of the handshake was not seen, nobody knows what was agreed.
#[test]
fn without_the_handshake_both_ways_of_reading_are_tried() {
    for form in [Form::Short, Form::ShortWithLossBits] {
        let mut sent = handshake(Some(1), Some(1));
        sent.pop();
        sent.extend(packets(End::Client, form, 0));
        assert_eq!(Observed::of(&sent).undecoded, [], "{form:?}");
    }
}

/// RFC 9287 section 3: the QUIC bit may have any value, also where the packet is the first under a
/// connection ID that nobody was seen to issue.
#[test]
fn the_quic_bit_is_not_asked_for() {
    let unseen = [0xee; 8];
    for id in [SERVER_ID, unseen] {
        let header = [&[0x00], &id[..]].concat();
        let greased = Sealer::of(APPLICATION).seal(Form::Short, &header, 3, &[0x01]);
        let observed = Observed::of(&[(to_server(), hello()), (to_server(), greased)]);
        assert_eq!(observed.undecoded, [], "{id:02x?}");
        assert_eq!(observed.connections, [vec![1, 2]]);
    }
}
