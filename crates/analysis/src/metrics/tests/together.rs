//! Connections of TCP that are measured together.

use super::*;
use crate::metrics::together::{in_flight, on_one_axis};

/// A handshake, a request and a reply of 2000 bytes, `wait` after the request has come, of a
/// connection that begins at `start`.
fn connection(start: u64, wait: Nanos) -> Maker {
    let mut maker = Maker::new(Vantage::Both);
    let syn = [Frame::Other("SYN")];
    let kind = PacketType::OneRtt;
    maker.packet(End::Client, kind, 0, &syn);
    maker.packet(End::Server, kind, 300, &syn);
    maker.ack(600, 0, 0);
    maker.packet(End::Client, kind, 602, &[stream(0, 0, true)]);
    maker.data(902 + wait, 0);
    let last = [stream(0, 1000, true)];
    maker.packet(End::Server, kind, 904 + wait, &last);
    maker.ack(1210 + wait, 1, 2);
    maker.0.protocol = Protocol::Tcp;
    maker.0.start = start * MS.cast_unsigned();
    for packet in &mut maker.0.packets {
        packet.kind = Kind::Tcp;
    }
    maker
}

fn measure(makers: &[Maker]) -> Metrics {
    let ledgers: Vec<_> = makers.iter().map(|it| it.0.ledger()).collect();
    Metrics::of_all(&measured(makers, &ledgers), &LinkFacts::default())
}

fn measured<'a>(makers: &'a [Maker], ledgers: &'a [Vec<LedgerEntry>]) -> Vec<Measured<'a>> {
    let all = makers.iter().zip(ledgers);
    all.map(|(maker, entries)| Measured {
        connection: &maker.0,
        entries,
    })
    .collect()
}

#[test]
fn times_span_all_connections_and_counts_are_sums() {
    let both = measure(&[connection(70, 1000), connection(20, 0)]);
    let second = measure(&[connection(20, 0)]);
    assert_eq!(both.handshake_s, Some(0.6), "of that which began first");
    assert_eq!(both.ttfb_s, Some(1.202));
    assert_eq!(both.completion_s, Some(2.254), "50 ms later, and a wait");
    assert_eq!(both.transfer_s, Some(2.254 - 1.202));
    assert_eq!(both.goodput_bps, Some(32_000.0 / (2.254 - 1.202)));
    assert_eq!(
        (both.stream_bytes, both.upload_bytes),
        (Some(4000), Some(2000))
    );
    let counts = |one_way: &OneWay| [one_way.packets, one_way.ip_bytes, one_way.acks_sent];
    for (sum, one) in [(&both.forward, &second.forward), (&both.back, &second.back)] {
        assert_eq!(counts(sum), counts(one).map(|count| 2 * count));
        assert_eq!(sum.mean_datagram_bytes, one.mean_datagram_bytes);
    }
    // After the first packet with data: three more of the replies, and none that came before.
    let rate = 8.0 * 3.0 * 1228.0 / (2.254 - 1.202);
    assert!((both.forward.mean_rate_bps.unwrap() - rate).abs() < 1.0);
}

#[test]
fn a_reply_that_is_not_whole_leaves_the_transfer_open() {
    let mut cut = connection(0, 0);
    let last = cut.0.packets.len() - 2;
    cut.0.packets[last].fate = Fate::Loss;
    cut.0.packets[last].seen[0] = None;
    let both = measure(&[cut, connection(0, 0)]);
    assert_eq!((both.completion_s, both.transfer_s), (None, None));
    assert_eq!((both.ttfb_s, both.stream_bytes), (Some(1.202), Some(3000)));
}

#[test]
fn in_flight_is_the_most_at_one_time() {
    let most = |start, wait| {
        let both = measure(&[connection(0, 0), connection(start, wait)]);
        both.in_flight_max_bytes
    };
    assert_eq!(most(0, 0), Some(4 * 1200));
    // The acknowledgement of the first reply arrives at 1510.
    assert_eq!(most(0, 607), Some(3 * 1200));
    assert_eq!(most(0, 608), Some(2 * 1200), "what arrives comes first");
    assert_eq!(most(2000, 0), Some(2 * 1200));
}

#[test]
fn of_one_connection_in_flight_is_what_its_ledger_says() {
    let one = [connection(0, 0)];
    let ledgers = [one[0].0.ledger()];
    let axis = on_one_axis(&measured(&one, &ledgers));
    let most = in_flight(&axis, &LinkFacts::default());
    assert_eq!(most, measure(&one).in_flight_max_bytes);
}

#[test]
fn of_several_connections_of_quic_nothing_in_flight_is_said() {
    let both = measure(&[
        Maker::transfer(Vantage::Both),
        Maker::transfer(Vantage::Both),
    ]);
    assert_eq!(both.in_flight_max_bytes, None);
    assert_eq!(both.completion_s, Some(1.9));
}
