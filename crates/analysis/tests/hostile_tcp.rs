//! Nothing that TCP segments hold makes the reader panic, and what it tells of them keeps to what
//! they say. Segments are those of `corpus-tcp`, an IP packet per line, with bytes changed, left
//! out, repeated and in another order.

use bentpipe_analysis::connection::{Connection, Frame};
use bentpipe_analysis::{CaptureFile, Captured};
use bentpipe_wire::capture::Input;
use bentpipe_wire::{KeyLog, Writer};
use proptest::collection::vec;
use proptest::prelude::*;

const CORPUS: [&str; 5] = [
    include_str!("corpus-tcp/handshake.hex"),
    include_str!("corpus-tcp/headers.hex"),
    include_str!("corpus-tcp/jumps.hex"),
    include_str!("corpus-tcp/offload.hex"),
    include_str!("corpus-tcp/options.hex"),
];

fn bytes(line: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
    (0..line.len()).step_by(2).map(digit).collect()
}

fn packets() -> Vec<Vec<u8>> {
    CORPUS.iter().flat_map(|it| it.lines()).map(bytes).collect()
}

/// Reads captures of one or two places, a packet per microsecond.
fn read(places: &[(&str, Vec<Vec<u8>>)]) -> Captured {
    let files: Vec<_> = places
        .iter()
        .map(|(name, packets)| {
            let mut writer = Writer::new(Vec::new(), "test").unwrap();
            let interface = writer.interface(name).unwrap();
            for (time, packet) in (0..).step_by(1000).zip(packets) {
                writer.packet(interface, time, packet, None).unwrap();
            }
            writer.finish().unwrap()
        })
        .collect();
    let files: Vec<_> = places
        .iter()
        .zip(&files)
        .map(|((name, _), bytes)| {
            let input = Input::Memory(bytes.into());
            CaptureFile { name, input }
        })
        .collect();
    Captured::read(&files, KeyLog::default(), &|_| {})
}

/// ACKs name segments that their receiver sent, in order; no segment is left as it was captured.
fn check(connection: &Connection) {
    for packet in &connection.packets {
        let others = connection
            .packets
            .iter()
            .filter(|it| it.sender != packet.sender);
        let numbers: Vec<_> = others.filter_map(|it| it.number).collect();
        for frame in connection.frames(packet) {
            match frame {
                Frame::Ack { ranges, .. } => {
                    let ranges = connection.ranges(ranges);
                    assert!(ranges.iter().all(|(first, last)| first <= last));
                    assert!(ranges.windows(2).all(|pair| pair[1].1 < pair[0].0));
                    for (first, last) in ranges {
                        assert!(numbers.contains(first) && numbers.contains(last));
                    }
                }
                Frame::Segment(_) => panic!("{packet:?} was not told"),
                Frame::Stream { offset, length, .. } => {
                    assert!(offset.checked_add(u64::from(*length)).is_some());
                }
                _ => {}
            }
        }
    }
    assert_eq!(connection.ledger().len(), connection.packets.len());
}

#[test]
fn the_corpus_as_it_is() {
    for (text, connections) in CORPUS.iter().zip([1, 2, 2, 2, 1]) {
        let packets: Vec<_> = text.lines().map(bytes).collect();
        let captured = read(&[("client", packets)]);
        assert_eq!(captured.connections.len(), connections, "{text}");
        captured.connections.iter().for_each(check);
    }
}

/// A packet of the corpus, cut, and some of its bytes changed.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let changes = vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let which = prop::sample::select(packets());
    let cut = prop::option::weighted(0.1, any::<prop::sample::Index>());
    (which, changes, cut).prop_map(|(mut packet, changes, cut)| {
        for (at, value) in changes {
            let at = at.index(packet.len());
            packet[at] = value;
        }
        if let Some(cut) = cut {
            packet.truncate(cut.index(packet.len()));
        }
        packet
    })
}

proptest! {
    #[test]
    fn at_one_place(packets in vec(packet(), 0..30), name in 0_usize..3) {
        let name = ["client", "server", "wire"][name];
        read(&[(name, packets)]).connections.iter().for_each(check);
    }

    #[test]
    fn at_two_places(packets in vec((packet(), 0..4_u8), 0..30)) {
        let seen = |at: u8| {
            let seen = packets.iter().filter(|(_, places)| *places != at);
            seen.map(|(packet, _)| packet.clone()).collect::<Vec<_>>()
        };
        let captured = read(&[("client", seen(0)), ("server", seen(1))]);
        captured.connections.iter().for_each(check);
    }
}
