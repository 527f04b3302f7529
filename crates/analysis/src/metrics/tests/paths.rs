//! Connections of QUIC whose packets took several paths.

use super::*;
use bentpipe_wire::quic::{EcnCounts, Frames};

/// A packet of the server with data on a path, whose packet number space has `number` for it.
fn on_path(maker: &mut Maker, path_id: u32, number: u64, sent: Nanos) {
    let packet = maker.data(sent, 1000 * number);
    (packet.path_id, packet.number) = (path_id, Some(number));
}

/// The client's ACK of packets of a path: a `PATH_ACK`, or one without a path.
fn ack(maker: &mut Maker, path_id: Option<u32>, sent: Nanos, last: u64) -> &mut Packet {
    ack_with(maker, path_id, sent, (last, None))
}

/// The same, with a CE count.
fn ack_with(
    maker: &mut Maker,
    path_id: Option<u32>,
    sent: Nanos,
    (last, ce): (u64, Option<u64>),
) -> &mut Packet {
    let start = u32::try_from(maker.0.ranges.len()).unwrap();
    maker.0.ranges.push((0, last));
    let counts = |ce| EcnCounts {
        ect0: last + 1 - ce,
        ect1: 0,
        ce,
    };
    let frame = Frame::Ack {
        path_id,
        ranges: start..start + 1,
        delay_us: None,
        ecn: ce.map(|ce| Box::new(counts(ce))),
    };
    maker.packet(End::Client, PacketType::OneRtt, sent, &[frame])
}

/// When the server's packets of a path were acknowledged, in milliseconds.
fn acked(maker: &Maker, path_id: u32) -> Vec<Option<Nanos>> {
    let entries = maker.0.ledger();
    let own = maker.0.packets.iter().zip(&entries);
    let own = own.filter(|(it, _)| it.sender == End::Server && it.path_id == path_id);
    own.map(|(_, entry)| entry.acked.nanos().map(|at| at / MS))
        .collect()
}

#[test]
fn any_path_identifier_is_one() {
    let mut maker = Maker::new(Vantage::Both);
    on_path(&mut maker, 0, 0, 10);
    on_path(&mut maker, u32::MAX, 0, 20);
    ack(&mut maker, Some(u32::MAX), 400, 0);
    ack(&mut maker, Some(u32::MAX - 1), 410, 0);
    assert_eq!(acked(&maker, 0), [None]);
    assert_eq!(acked(&maker, u32::MAX), [Some(700)]);
    assert_eq!(maker.measure().forward.packets, 2);
}

#[test]
fn an_ack_is_about_the_first_path_wherever_it_came_from() {
    let mut maker = Maker::new(Vantage::Both);
    on_path(&mut maker, 0, 0, 10);
    on_path(&mut maker, 1, 0, 20);
    ack(&mut maker, None, 400, 0).path_id = 1;
    assert_eq!(acked(&maker, 0), [Some(700)]);
    assert_eq!(acked(&maker, 1), [None]);
    ack(&mut maker, Some(1), 410, 0);
    assert_eq!(acked(&maker, 1), [Some(710)]);
}

#[test]
fn an_ack_of_a_path_beyond_32_bits_is_of_none() {
    let kept = |path_id: u64| {
        let path_id = (path_id | 3 << 62).to_be_bytes();
        let payload = [&[0x3e], &path_id[..], &[0; 4]].concat();
        let frame = Frames::new(&payload).next().unwrap().unwrap();
        let mut ranges = Vec::new();
        let kept = Frame::without_data(&frame, None, &mut ranges);
        (kept, ranges.len())
    };
    let beyond = 1 << 32;
    assert_eq!(kept(beyond), (Frame::Other("PATH_ACK"), 0));
    assert!(!kept(beyond).0.is_ack_eliciting());
    let (last, ranges) = kept(beyond - 1);
    assert!(matches!(
        last,
        Frame::Ack {
            path_id: Some(u32::MAX),
            ..
        }
    ));
    assert_eq!(ranges, 1);
}

#[test]
fn each_path_counts_its_own_marks() {
    let mut maker = Maker::new(Vantage::Both);
    maker.handshake();
    maker.request();
    for number in 0..4 {
        on_path(&mut maker, 0, number, 902 + 2 * number.cast_signed());
        on_path(&mut maker, 1, number, 903 + 2 * number.cast_signed());
    }
    ack_with(&mut maker, Some(0), 1300, (3, Some(3)));
    ack_with(&mut maker, Some(1), 1301, (3, Some(2)));
    // That of path 1 goes up by one, and does not reach the first path's.
    ack_with(&mut maker, Some(1), 2400, (3, Some(3)));
    let forward = maker.measure().forward.ecn;
    assert_eq!(forward.ce_echoed, Some(6));
    let rounds = crate::marks::Marks::of(&maker.0, &maker.0.ledger(), End::Server).rounds;
    let marks: u64 = rounds.unwrap().iter().map(|it| it.marks).sum();
    assert_eq!(marks, 6);
}

#[test]
fn a_path_loses_packets_by_its_own_round_trip() {
    let mut maker = Maker::new(Vantage::Both);
    // The first path's ACKs take 600 ms, those of path 1 50 ms; two packets of the first are under
    // way when path 1's are acknowledged, and its ACK comes out of order.
    on_path(&mut maker, 0, 0, 0);
    ack(&mut maker, Some(0), 300, 0);
    on_path(&mut maker, 0, 1, 610);
    on_path(&mut maker, 0, 2, 611);
    for number in 0..8_u64 {
        let sent = 700 + 60 * number.cast_signed();
        on_path(&mut maker, 1, number, sent);
        let answer = ack(&mut maker, Some(1), sent + 25, number);
        answer.seen = [Some((sent + 25) * MS), Some((sent + 50) * MS)];
    }
    let start = u32::try_from(maker.0.ranges.len()).unwrap();
    maker.0.ranges.push((2, 2));
    let frame = Frame::Ack {
        path_id: Some(0),
        ranges: start..start + 1,
        delay_us: None,
        ecn: None,
    };
    maker.packet(End::Client, PacketType::OneRtt, 911, &[frame]);
    let entries = maker.0.ledger();
    let lost = entries.iter().filter(|it| it.declared_lost.is_some());
    assert_eq!(lost.count(), 0);
    assert_eq!(acked(&maker, 0), [Some(600), None, Some(1211)]);
}
