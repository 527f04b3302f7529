//! Nothing that a file or a packet holds makes the decoder panic, and a capture that is cut short
//! or damaged still gives what stands before the damage.

use bentpipe_wire::capture::{Item, Reader};
use bentpipe_wire::quic::{Frames, Observer};
use bentpipe_wire::{Datagram, KeyLog, Path, Writer};
use proptest::collection::vec;
use proptest::prelude::*;

/// A sample packet of RFC 9001, so that what follows it meets a connection.
fn client_initial() -> Vec<u8> {
    let text = include_str!("vectors/client-initial-v1.hex");
    let digits: Vec<char> = text.chars().filter(char::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap())
        .collect()
}

fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "test").unwrap();
    let interface = writer.interface("client").unwrap();
    for packet in packets {
        writer.packet(interface, 7, packet, None).unwrap();
    }
    writer.finish().unwrap()
}

/// The packets before the first error, and whether there was one.
fn packets(file: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let (mut found, mut failed) = (Vec::new(), false);
    let Ok(reader) = Reader::new(file) else {
        return (found, true);
    };
    for item in reader {
        assert!(!failed, "an error ends the file");
        match item {
            Ok(Item::Packet(packet)) => {
                let _ = Datagram::of(&packet);
                found.push(packet.bytes.to_vec());
            }
            Ok(Item::TlsSecrets(text)) => KeyLog::default().add(text),
            Err(_) => failed = true,
        }
    }
    (found, failed)
}

proptest! {
    #[test]
    fn frames_of_arbitrary_bytes(payload in vec(any::<u8>(), 0..200)) {
        let mut frames = Frames::new(&payload);
        prop_assert!(frames.by_ref().count() <= payload.len());
        prop_assert!(frames.next().is_none());
    }

    #[test]
    fn ack_ranges_do_not_overlap(rest in vec(0_u8..64, 0..20), largest in 0_u8..64) {
        let count = u8::try_from(rest.len() / 2).unwrap();
        let payload = [&[2, largest, 0, count][..], &rest].concat();
        if let Some(Ok(bentpipe_wire::quic::Frame::Ack { ranges, .. })) =
            Frames::new(&payload).next()
        {
            let ranges: Vec<_> = ranges.iter().collect();
            prop_assert_eq!(ranges.len(), usize::from(count) + 1);
            prop_assert!(ranges.windows(2).all(|pair| pair[1].end() + 1 < *pair[0].start()));
        }
    }

    #[test]
    fn datagrams_of_arbitrary_bytes(payloads in vec(vec(any::<u8>(), 0..100), 0..8), known: bool) {
        let secrets = KeyLog::default();
        let mut observer = Observer::new(&secrets);
        let path = Path {
            source: "192.0.2.1:1".parse().unwrap(),
            destination: "192.0.2.2:2".parse().unwrap(),
        };
        let first = known.then(client_initial);
        for payload in first.iter().chain(&payloads) {
            for path in [path, path.reversed()] {
                let datagram = Datagram { path, payload, length: payload.len() };
                observer.datagram(&datagram, |_| {});
            }
        }
    }

    #[test]
    fn packets_of_arbitrary_bytes(packet in vec(any::<u8>(), 0..100), link_type: u8) {
        let mut file = capture(&[packet]);
        // The link type stands behind the section header and the head of the interface's block.
        let section = usize::from(file[4]);
        file[section + 8] = link_type;
        packets(&file);
    }

    #[test]
    fn files_of_arbitrary_bytes(tail in vec(any::<u8>(), 0..200), magic in 0_usize..4) {
        let magic: &[u8] = [
            &[][..],
            &[0x0a, 0x0d, 0x0d, 0x0a],
            &[0xd4, 0xc3, 0xb2, 0xa1],
            &[0xa1, 0xb2, 0x3c, 0x4d],
        ][magic];
        packets(&[magic, &tail].concat());
    }

    #[test]
    fn a_damaged_file_gives_what_stands_before(
        contents in vec(vec(any::<u8>(), 1..50), 1..6),
        damage: prop::sample::Index,
        flip in 1_u8..,
        cut: bool,
    ) {
        let mut file = capture(&contents);
        let at = damage.index(file.len());
        if cut {
            file.truncate(at);
        } else {
            file[at] ^= flip;
        }
        let (found, _) = packets(&file);
        for (number, content) in contents.iter().enumerate() {
            let end = capture(&contents[..=number]).len();
            if end <= at {
                prop_assert_eq!(found.get(number), Some(content));
            }
        }
    }
}
