//! Streams of frames whose wire is made up: ten of 1000 bytes, one in 100 ms, from 10 s on; the
//! path takes 300 ms.

use bentpipe_analysis::Establishment;
use bentpipe_analysis::connection::{Connection, Kind, Protocol, Vantage, WireImage};
use bentpipe_wire::quic::{Handshake, PacketType};

use super::*;

const COUNT: usize = 10;
const BEGAN_MS: u64 = 10_000;

fn stream(over: Carrier) -> FrameStream {
    FrameStream {
        interval_us: 100_000,
        deadline_ms: 400,
        over,
    }
}

/// A packet's sender, the time when it is sent, in milliseconds, and the frame in it.
struct Sent(End, u64, Frame);

/// A connection of these packets, which began at 9 s.
fn seen(all: Vec<Sent>) -> DecodedConnection {
    let zero_ms = 9000;
    let packet = |(number, sent): (u32, &Sent)| {
        let at = i64::try_from(sent.1 - zero_ms).expect("a time") * 1_000_000;
        let times = [at, at + 300_000_000].map(Some);
        Packet {
            path_id: 0,
            sender: sent.0,
            kind: Kind::Quic(PacketType::OneRtt),
            number: Some(number.into()),
            size: 1200,
            first_byte: 0x40,
            ip_size: Some(1228),
            seen: match sent.0 {
                End::Client => times,
                End::Server => [times[1], times[0]],
            },
            ecn: [None; 2],
            fate: Fate::Delivered,
            copy: false,
            decoded: true,
            frames: number..number + 1,
        }
    };
    DecodedConnection {
        epoch_unix_ns: 0,
        connection: Connection {
            protocol: Protocol::Quic(1),
            ends: ["192.0.2.1:50000", "198.51.100.1:443"]
                .map(|end| end.parse().expect("an address")),
            initial_credit: [None; 2],
            handshake: Handshake::default(),
            wire_image: WireImage::default(),
            tls: None,
            subflow: None,
            vantage: Vantage::Both,
            start: zero_ms * 1_000_000,
            clock_ahead: 0,
            packets: (0..).zip(&all).map(packet).collect(),
            frames: all.into_iter().map(|sent| sent.2).collect(),
            ranges: Vec::new(),
        },
        entries: Vec::new(),
        establishment: Establishment {
            complete: true,
            retry: false,
            client_hellos: 1,
            resumed: Some(false),
            certificate: Some(true),
            zero_rtt_bytes: Some(0),
            zero_rtt_accepted: None,
        },
    }
}

fn made_ms(number: usize) -> u64 {
    BEGAN_MS + 100 * number as u64
}

fn of_stream(id: u64, length: u32, fin: bool) -> Frame {
    Frame::Stream {
        id,
        offset: 0,
        length,
        fin,
    }
}

/// A stream of frames as it should be.
fn honest(over: Carrier) -> Vec<Sent> {
    let mut all = vec![Sent(End::Client, BEGAN_MS - 300, of_stream(0, 13, true))];
    for number in 0..COUNT {
        let frame = match over {
            Carrier::Streams => of_stream(4 * number as u64 + 3, 1020, true),
            Carrier::Datagrams => Frame::Datagram { length: 1020 },
        };
        all.push(Sent(End::Server, made_ms(number), frame));
    }
    let end = made_ms(COUNT - 1) + 400;
    all.push(Sent(End::Server, end, of_stream(0, 0, true)));
    all
}

/// The report of an honest client.
fn said() -> Vec<RequestReport> {
    let frame = |number| RequestReport {
        asked_ns: Some(made_ms(number) * 1_000_000),
        bytes: 1000,
        last_byte_ns: Some((made_ms(number) + 300) * 1_000_000),
        ..RequestReport::default()
    };
    (0..COUNT).map(frame).collect()
}

fn wrong(over: Carrier, all: Vec<Sent>, said: &[RequestReport]) -> String {
    let (stream, seen) = (stream(over), seen(all));
    let wire = Wire::new(&stream, COUNT, said);
    let wrong = wire.wrong(&seen).or_else(|| wire.outlived(&seen));
    wrong.unwrap_or_default()
}

#[test]
fn what_is_as_it_should_be_is_proved() {
    for over in [Carrier::Streams, Carrier::Datagrams] {
        assert_eq!(wrong(over, honest(over), &said()), "");
        // Nothing came, so that the client says nothing.
        let silent = vec![RequestReport::default(); COUNT];
        assert_eq!(wrong(over, honest(over), &silent), "");
    }
}

#[test]
fn frames_are_carried_by_what_the_workload_says() {
    let words = wrong(Carrier::Streams, honest(Carrier::Datagrams), &said());
    let expected = "expected unidirectional streams alone from the server, saw DATAGRAM frames";
    assert_eq!(words, expected);
    let words = wrong(Carrier::Datagrams, honest(Carrier::Streams), &said());
    let expected = "expected DATAGRAM frames alone from the server, saw unidirectional streams";
    assert_eq!(words, expected);
}

#[test]
fn nothing_is_sent_before_it_is_made() {
    let ahead = |ms: u64| {
        let mut said = said();
        for it in &mut said {
            it.asked_ns = it.asked_ns.map(|at| at + ms * 1_000_000);
        }
        let mut all = honest(Carrier::Streams);
        all.last_mut().expect("its end").1 += ms;
        wrong(Carrier::Streams, all, &said)
    };
    assert_eq!(ahead(1), "");
    let words = "the server sent of its first frame 2 ms before it was made by the frames' headers";
    assert_eq!(ahead(2), words);
}

#[test]
fn a_server_goes_on_to_the_last_deadline() {
    let cut = |by_ms: u64, said: &[RequestReport]| {
        let mut all = honest(Carrier::Datagrams);
        all.last_mut().expect("its end").1 -= by_ms;
        wrong(Carrier::Datagrams, all, said)
    };
    assert_eq!(cut(1, &said()), "");
    let early = "the server ended the stream of the question 2 ms before the time of the last of \
                 10 frames was over";
    assert_eq!(cut(2, &said()), early);
    // Of what never came nobody says when it was made: the question left 300 ms before.
    let silent = vec![RequestReport::default(); COUNT];
    assert_eq!(cut(300, &silent), "");
    assert!(cut(302, &silent).contains("2 ms before the time"));
    let mut endless = honest(Carrier::Streams);
    endless.pop();
    let words = wrong(Carrier::Streams, endless, &said());
    assert_eq!(words, "the server did not end the stream of the question");
}

#[test]
fn nothing_is_reported_before_it_arrived() {
    for over in [Carrier::Streams, Carrier::Datagrams] {
        let young = |ms: u64| {
            let mut said = said();
            said[4].last_byte_ns = said[4].last_byte_ns.map(|at| at - ms * 1_000_000);
            wrong(over, honest(over), &said)
        };
        assert_eq!(young(1), "");
        // It is among the four that had arrived by then.
        assert!(young(2).starts_with("the client reports whole frames of 5100 bytes"));
        let mut lost = honest(over);
        lost.remove(5);
        assert!(wrong(over, lost, &said()).ends_with("4080 bytes had arrived"));
    }
}

#[test]
fn a_frame_whose_time_is_over_is_given_up() {
    let late = |ms: u64, skipped: usize| {
        let mut all = honest(Carrier::Streams);
        all.drain(COUNT + 1 - skipped..=COUNT);
        all.insert(
            2,
            Sent(End::Server, made_ms(0) + ms, of_stream(3, 20, false)),
        );
        let (stream, said) = (stream(Carrier::Streams), said());
        Wire::new(&stream, COUNT, &said).outlived(&seen(all))
    };
    assert_eq!(late(1400, 0), None);
    let words = "the server sent of stream 3 1.001 s after the time of its frame was over";
    assert_eq!(late(1401, 0).as_deref(), Some(words));
    // Its frame may be the third one, if the first two had no stream.
    assert_eq!(late(1600, 2), None);
    assert!(late(1601, 2).is_some());
}
