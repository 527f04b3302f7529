//! TCP connections of crafted captures, translated to QUIC's terms.

mod segments;

use bentpipe_analysis::connection::{Connection, Fate, Frame, Protocol, Vantage};
use bentpipe_wire::quic::End;
use segments::{ACK, At, FIN, MS, RST, SYN, Segment, Trace, data};

const C: End = End::Client;
const S: End = End::Server;

/// SYN, SYN-ACK and ACK of a path of 10 ms; the client begins with 1000 and the server with 5000.
fn handshake(trace: &mut Trace) {
    let syn = Segment::of(C, SYN, 1000, 0).window(65_535);
    trace.passes(
        &syn.clone().options(&[2, 4, 5, 180, 3, 3, 7, 1]),
        At(0, Some(5)),
    );
    let syn = Segment::of(S, SYN | ACK, 5000, 1001).window(65_535);
    trace.passes(&syn.options(&[2, 4, 5, 180, 3, 3, 2, 1]), At(5, Some(10)));
    trace.passes(
        &Segment::of(C, ACK, 1001, 5001).window(512),
        At(10, Some(15)),
    );
}

/// A SACK option of these blocks.
fn sack(blocks: &[(u32, u32)]) -> Vec<u8> {
    let length = u8::try_from(2 + 8 * blocks.len()).unwrap();
    let mut option = vec![1, 1, 5, length];
    for (left, right) in blocks {
        option.extend(left.to_be_bytes());
        option.extend(right.to_be_bytes());
    }
    option
}

fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    [
        &[1, 1, 8, 10][..],
        &value.to_be_bytes(),
        &echo.to_be_bytes(),
    ]
    .concat()
}

/// The ranges of the ACK frames of `sender`, packet by packet.
fn acks(connection: &Connection, sender: End) -> Vec<Vec<(u64, u64)>> {
    let own = connection.packets.iter().filter(|it| it.sender == sender);
    own.flat_map(|packet| connection.frames(packet))
        .filter_map(|frame| match frame {
            Frame::Ack { ranges, .. } => Some(connection.ranges(ranges).to_vec()),
            _ => None,
        })
        .collect()
}

fn streams(connection: &Connection, sender: End) -> Vec<(u64, u32, bool)> {
    let own = connection.packets.iter().filter(|it| it.sender == sender);
    own.flat_map(|packet| connection.frames(packet))
        .filter_map(|frame| match frame {
            Frame::Stream {
                offset,
                length,
                fin,
                ..
            } => Some((*offset, *length, *fin)),
            _ => None,
        })
        .collect()
}

fn credits(connection: &Connection, sender: End) -> Vec<u64> {
    let own = connection.packets.iter().filter(|it| it.sender == sender);
    own.flat_map(|packet| connection.frames(packet))
        .filter_map(|frame| match frame {
            Frame::MaxStreamData { maximum, .. } => Some(*maximum),
            _ => None,
        })
        .collect()
}

fn has(connection: &Connection, sender: End, name: &str) -> Vec<u64> {
    let own = connection.packets.iter().filter(|it| it.sender == sender);
    own.filter(|packet| connection.frames(packet).iter().any(|it| it.name() == name))
        .map(|packet| packet.number.unwrap())
        .collect()
}

/// RTT samples in milliseconds, by the segment that brought them to `receiver`.
fn samples(connection: &Connection, receiver: End) -> Vec<(u64, i64)> {
    let ledger = connection.ledger();
    let packets = connection.packets.iter().zip(&ledger);
    packets
        .filter(|(packet, _)| packet.sender != receiver)
        .filter_map(|(packet, entry)| Some((packet.number.unwrap(), entry.rtt.nanos()? / MS)))
        .collect()
}

#[test]
fn a_lost_segment_is_sent_again() {
    let mut trace = Trace::default();
    handshake(&mut trace);
    trace.passes(&data(C, 1001, 5001, 10).window(512), At(11, Some(16)));
    for (number, sequence) in (0_u32..4).zip((5001_u32..).step_by(1000)) {
        let arrival = (number != 1).then_some(22 + number);
        trace.passes(&data(S, sequence, 1011, 1000), At(17 + number, arrival));
    }
    let answer = |ack: u32| Segment::of(C, ACK, 1011, ack).window(512);
    trace.passes(&answer(6001), At(22, Some(27)));
    trace.passes(
        &answer(6001).options(&sack(&[(7001, 8001)])),
        At(24, Some(29)),
    );
    trace.passes(&answer(6001).options(&sack(&[(7001, 9001)])), At(25, None));
    trace.passes(
        &data(S, 6001, 1011, 1000).identification(2),
        At(30, Some(35)),
    );
    trace.passes(&answer(9001), At(35, Some(40)));
    trace.passes(&Segment::of(S, FIN | ACK, 9001, 1011), At(41, Some(46)));
    trace.passes(
        &Segment::of(C, FIN | ACK, 1011, 9002).window(512),
        At(46, Some(51)),
    );
    let connection = trace.only_connection();

    assert_eq!(connection.protocol, Protocol::Tcp);
    assert_eq!(connection.vantage, Vantage::Both);
    let expected = [0, 1000, 2000, 3000, 1000].map(|offset| (offset, 1000, false));
    assert_eq!(
        streams(&connection, S),
        [&expected[..], &[(4000, 0, true)]].concat()
    );
    assert_eq!(streams(&connection, C), [(0, 10, false), (10, 0, true)]);
    // Server's numbers: 0 SYN, 1–4 data, of which 2 is lost, 5 the same bytes again, 6 FIN
    let client_acks = acks(&connection, C);
    assert_eq!(
        client_acks,
        [
            vec![(0, 0)],
            vec![(0, 1)],
            vec![(3, 3)],
            vec![(3, 4)], // lost, so 4 is still news for the next one
            vec![(3, 5)],
            vec![(3, 6)],
        ]
    );
    let ledger = connection.ledger();
    let of_server = connection.packets.iter().zip(&ledger);
    let of_server: Vec<_> = of_server.filter(|(it, _)| it.sender == S).collect();
    let (lost, entry) = of_server[2];
    assert_eq!(lost.fate, Fate::NotReceived);
    assert_eq!(entry.acked.nanos(), None);
    assert_eq!(
        entry.declared_lost.nanos(),
        Some(40 * MS),
        "three numbers below the fifth"
    );
    assert_eq!(of_server[5].1.retransmitted, 1000);
    assert_eq!(of_server[5].1.acked.nanos(), Some(40 * MS));
    // 22 + 5 − 17; that of segment 3; none of the ACK that covers what was sent twice; that of the
    // FIN
    assert_eq!(
        samples(&connection, S),
        [(1, 10), (3, 10), (4, 10), (7, 10)]
    );
    let in_flight: Vec<_> = of_server
        .iter()
        .map(|(_, it)| it.in_flight.count())
        .collect();
    assert_eq!(
        in_flight.last(),
        Some(&Some(20)),
        "all but the FIN is settled"
    );
    // The SYN's window is not scaled; all others of the client are, with 2^7.
    let credits = credits(&connection, C);
    assert_eq!(credits[..2], [65_535, 512 << 7]);
    assert_eq!(credits.last(), Some(&(4001 + (512 << 7))));
}

#[test]
fn a_timestamp_tells_which_copy_was_answered() {
    let mut trace = Trace::default();
    handshake(&mut trace);
    let sent = |value: u32| data(S, 5001, 1001, 100).options(&timestamps(value, 1));
    trace.passes(&sent(20), At(20, Some(25)));
    trace.passes(&sent(40), At(40, Some(45)));
    let answer = Segment::of(C, ACK, 1001, 5101).options(&timestamps(9, 20));
    trace.passes(&answer, At(50, Some(55)));
    let connection = trace.only_connection();
    assert_eq!(samples(&connection, S), [(1, 10), (2, 35)]);
    assert_eq!(acks(&connection, C)[1], [(0, 2)], "both copies had arrived");
}

#[test]
fn what_one_side_saw_is_told_by_it() {
    let mut trace = Trace::default();
    handshake(&mut trace);
    trace.passes(&data(S, 5001, 1001, 100), At(20, None));
    trace.passes(
        &data(S, 5001, 1001, 100).identification(77),
        At(40, Some(45)),
    );
    trace.passes(&Segment::of(C, ACK, 1001, 5101), At(46, Some(51)));
    let sender = trace.only_connection_of("server");
    assert_eq!(sender.vantage, Vantage::At(S));
    assert_eq!(
        acks(&sender, C)[1],
        [(0, 2)],
        "it cannot know which copy arrived"
    );
    assert_eq!(
        samples(&sender, S),
        [(1, 10)],
        "and takes no sample of either"
    );
    let receiver = trace.only_connection_of("client");
    assert_eq!(acks(&receiver, C)[1], [(0, 1)], "it counts what arrived");
}

#[test]
fn sequence_numbers_wrap() {
    let mut trace = Trace::default();
    let first = u32::MAX - 1499;
    trace.passes(&Segment::of(C, SYN, 7, 0), At(0, Some(1)));
    trace.passes(&Segment::of(S, SYN | ACK, first - 1, 8), At(1, Some(2)));
    let mut sequence = first;
    // 6 GiB in steps of 1 GiB, of which only the first bytes are sent
    for step in 0..7_u32 {
        trace.passes(
            &data(S, sequence, 8, 1000),
            At(10 * step + 10, Some(10 * step + 11)),
        );
        let answer = Segment::of(C, ACK, 8, sequence.wrapping_add(1000));
        trace.passes(&answer, At(10 * step + 11, Some(10 * step + 12)));
        sequence = sequence.wrapping_add(1 << 30);
    }
    let connection = trace.only_connection();
    let expected: Vec<_> = (0..7).map(|step| (step << 30, 1000, false)).collect();
    assert_eq!(streams(&connection, S), expected);
    assert_eq!(credits(&connection, C)[1..], {
        let credit = (0..7).map(|step: u64| (step << 30) + 1000 + 1024);
        credit.collect::<Vec<_>>()
    });
}

#[test]
fn a_syn_with_another_number_begins_another_connection() {
    let mut trace = Trace::default();
    handshake(&mut trace);
    trace.passes(&Segment::of(C, RST, 1001, 0), At(20, Some(25)));
    trace.passes(&Segment::of(C, SYN, 900_000, 0), At(30, None));
    trace.passes(
        &Segment::of(C, SYN, 900_000, 0).identification(5),
        At(60, Some(65)),
    );
    trace.passes(&Segment::of(S, RST | ACK, 0, 900_001), At(65, Some(70)));
    let connections = trace.connections(&["client", "server"]);
    assert_eq!(connections.len(), 2);
    assert_eq!(has(&connections[0], C, "RST"), [2]);
    assert_eq!(has(&connections[1], C, "SYN"), [0, 1]);
    assert_eq!(has(&connections[1], S, "RST"), [0]);
    assert_eq!(
        acks(&connections[1], S),
        [[(1, 1)]],
        "the first SYN was lost"
    );
}

#[test]
fn a_capture_that_begins_in_between_counts_from_its_first_byte() {
    let mut trace = Trace::default();
    // Port 443 is lower than the other's.
    trace.passes(&data(S, 80_000, 300, 500), At(0, Some(5)));
    trace.passes(&Segment::of(C, ACK, 300, 80_500), At(5, Some(10)));
    trace.passes(&data(S, 79_000, 300, 500), At(6, Some(11)));
    let connection = trace.only_connection();
    assert_eq!(connection.ends[1].port(), 443);
    assert_eq!(
        streams(&connection, S),
        [(1000, 500, false), (0, 500, false)]
    );
    assert_eq!(acks(&connection, C), [[(0, 0)]]);
    assert!(
        credits(&connection, C).is_empty(),
        "the window scale is not known"
    );
}

#[test]
fn keep_alives_probes_and_duplicates_are_named() {
    let mut trace = Trace::default();
    handshake(&mut trace);
    let closed = Segment::of(C, ACK, 1001, 5101).window(0);
    trace.passes(&data(S, 5001, 1001, 100), At(20, Some(25)));
    trace.passes(&closed, At(25, Some(30)));
    trace.passes(&data(S, 5101, 1001, 1), At(100, Some(105)));
    trace.passes(&closed.clone().identification(8), At(105, Some(110)));
    trace.passes(&Segment::of(S, ACK, 5101, 1001), At(200, Some(205)));
    let duplicate = Segment::of(C, ACK, 1001, 5102).options(&sack(&[(5001, 5101)]));
    trace.passes(&duplicate, At(205, Some(210)));
    let connection = trace.only_connection();
    assert_eq!(has(&connection, S, "ZERO_WINDOW_PROBE"), [2]);
    assert_eq!(has(&connection, S, "KEEP_ALIVE"), [3]);
    assert_eq!(has(&connection, C, "DSACK"), [4]);
    assert_eq!(credits(&connection, C)[2], 100, "a closed window");
}

#[test]
fn a_segment_for_the_network_card_is_what_is_on_the_wire() {
    let mut trace = Trace::default();
    handshake(&mut trace);
    // The MSS is 1460.
    trace.only("server", &data(S, 5001, 1001, 3000).identification(9), 20);
    trace.only("client", &data(S, 5001, 1001, 1460).identification(9), 25);
    trace.only("client", &data(S, 6461, 1001, 1540).identification(10), 26);
    let connection = trace.only_connection();
    let expected = [(0, 1460, false), (1460, 1460, false), (2920, 80, false)];
    assert_eq!(streams(&connection, S), expected);
    let mut segments = connection.packets.iter().filter(|it| it.sender == S);
    assert!(segments.all(|it| it.fate == Fate::Delivered));
    let sizes = connection.packets.iter().map(|it| it.ip_size.unwrap());
    assert_eq!(sizes.sum::<u32>(), 48 + 48 + 40 + 3000 + 3 * 40);
}

#[test]
fn a_real_transfer_over_a_lossy_link() {
    let connections = segments::read(&[
        ("client", include_bytes!("captures-tcp/client.pcap")),
        ("server", include_bytes!("captures-tcp/server.pcap")),
    ]);
    let [connection] = &connections[..] else {
        panic!("{} connections", connections.len());
    };
    let ledger = connection.ledger();
    let packets = connection.packets.iter().zip(&ledger);
    let of_server: Vec<_> = packets.filter(|(it, _)| it.sender == S).collect();
    let new = |it: &bentpipe_analysis::LedgerEntry| it.stream_bytes - it.retransmitted;
    assert_eq!(
        of_server.iter().map(|(_, it)| new(it)).sum::<u32>(),
        330_000
    );
    for (packet, entry) in &of_server {
        if packet.fate == Fate::NotReceived {
            assert_eq!(entry.acked.nanos(), None, "{packet:?}");
        } else if entry.stream_bytes > 0 {
            assert!(entry.acked.is_some(), "{packet:?}");
        }
    }
    // The link takes 30 ms each way and holds 150 ms.
    let samples = samples(connection, S);
    assert!(samples.len() > 100);
    assert!(
        samples.iter().all(|(_, rtt)| (60..260).contains(rtt)),
        "{samples:?}"
    );
}
