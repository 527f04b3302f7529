//! Marks, their reports and answers.

use super::*;
use bentpipe_wire::quic::EcnCounts;

/// An ACK of all packets from 0 on with ECN counts, none if `ce` is none.
fn report(maker: &mut Maker, sent: Nanos, last: u64, ce: Option<u64>) {
    let start = u32::try_from(maker.0.ranges.len()).unwrap();
    maker.0.ranges.push((0, last));
    let counts = ce.map(|ce| {
        Box::new(EcnCounts {
            ect0: last + 1 - ce,
            ect1: 0,
            ce,
        })
    });
    let frame = Frame::Ack {
        path_id: None,
        ranges: start..start + 1,
        delay_us: None,
        ecn: counts,
    };
    maker.packet(End::Client, PacketType::OneRtt, sent, &[frame]);
}

/// Packets of the server with data at these times, all with ECT(0); those of these numbers arrive
/// marked.
fn send(maker: &mut Maker, times: &[Nanos], marked: &[u64]) {
    for time in times {
        let packet = maker.data(*time, 0);
        let number = packet.number.unwrap();
        let frame = packet.frames.start as usize;
        packet.ecn = [Some(Codepoint::Ect0); 2];
        if marked.contains(&number) {
            packet.ecn[End::Client as usize] = Some(Codepoint::Ce);
        }
        maker.0.frames[frame] = stream(0, number * 1000, false);
    }
}

/// Ten packets in flight, of which two arrive marked; then five; in the round trip after the next
/// mark six; then no marks are reported.
fn marked(counts: bool) -> Maker {
    let mut maker = Maker::new(Vantage::Both);
    maker.handshake();
    maker.request();
    let told = |ce| counts.then_some(ce);
    send(
        &mut maker,
        &[902, 903, 904, 905, 906, 907, 908, 909, 910, 911],
        &[3, 4],
    );
    report(&mut maker, 1212, 9, told(2)); // heard at 1512
    send(&mut maker, &[1513, 1600, 1700, 1850, 2000], &[12]);
    report(&mut maker, 2310, 14, told(3)); // heard at 2610, with the ACK of 1513
    send(&mut maker, &[2611, 2700, 2800, 2900, 3000, 3220], &[]);
    report(&mut maker, 3520, 20, told(3)); // heard at 3820
    send(&mut maker, &[3821], &[]);
    maker.0.packets.sort_by_key(Packet::time);
    maker
}

#[test]
fn marks_that_were_reported_and_answered() {
    let forward = marked(true).measure().forward.ecn;
    let expected = EcnUse {
        codepoint: Some("ECT(0)"),
        capable_share: Some(1.0),
        ce_arrived: Some(3),
        ce_echoed: Some(3),
        // At 1512 twelve kB were in flight, and six later; at 2610 six, and seven later.
        ce_rounds: Some(2),
        ce_answered: Some(1),
    };
    assert_eq!(forward, expected);
    let back = marked(true).measure().back.ecn;
    assert_eq!(back.codepoint, Some("none"));
    assert_eq!((back.ce_arrived, back.ce_echoed), (Some(0), Some(0)));
}

#[test]
fn acks_without_counts_report_nothing() {
    let forward = marked(false).measure().forward.ecn;
    assert_eq!((forward.ce_arrived, forward.ce_echoed), (Some(3), Some(0)));
    assert_eq!((forward.ce_rounds, forward.ce_answered), (Some(0), Some(0)));
}

#[test]
fn the_round_in_which_the_data_end_is_not_judged() {
    let mut maker = marked(true);
    let last = maker
        .0
        .packets
        .iter()
        .rposition(|it| it.sent() == Some(3821 * MS));
    maker.0.packets.remove(last.unwrap());
    let forward = maker.measure().forward.ecn;
    assert_eq!((forward.ce_rounds, forward.ce_answered), (Some(1), Some(1)));
}

#[test]
fn one_side_tells_its_part() {
    let of = |end| marked(true).only_at(end).measure().forward.ecn;
    let (client, server) = (of(End::Client), of(End::Server));
    assert_eq!((client.codepoint, server.codepoint), (None, Some("ECT(0)")));
    assert_eq!((client.ce_arrived, server.ce_arrived), (Some(3), None));
    assert_eq!((client.ce_echoed, server.ce_echoed), (Some(3), Some(3)));
    assert_eq!((client.ce_answered, server.ce_answered), (None, Some(1)));
}

#[test]
fn of_several_spaces_counts_are_summed() {
    let mut maker = marked(true);
    let counts = EcnCounts {
        ect0: 1,
        ect1: 0,
        ce: 2,
    };
    let ack = Frame::Ack {
        path_id: None,
        ranges: 0..1,
        delay_us: None,
        ecn: Some(Box::new(counts)),
    };
    maker.packet(End::Client, PacketType::Initial, 610, &[ack]);
    maker.0.packets.sort_by_key(Packet::time);
    assert_eq!(maker.measure().forward.ecn.ce_echoed, Some(5));
}
