//! A written capture is read back, and the datagram in it is found behind any link layer.

use std::net::{IpAddr, SocketAddr};

use bentpipe_wire::capture::{CapturedPacket, Item, Reader};
use bentpipe_wire::{Datagram, DecapsulationError, Endpoints, Writer, encapsulate};

fn ip_packet() -> Vec<u8> {
    let ends = Endpoints {
        source: "192.0.2.1:50000".parse().unwrap(),
        destination: "198.51.100.1:443".parse().unwrap(),
    };
    let mut packet = Vec::new();
    encapsulate(&mut packet, ends, 0, 1, b"payload");
    packet
}

fn datagram(link_type: u16, bytes: &[u8]) -> Result<Datagram<'_>, DecapsulationError> {
    Datagram::of(&CapturedPacket {
        interface: 0,
        time: None,
        link_type,
        bytes,
        comment: None,
    })
}

#[test]
fn a_trace_is_read_as_it_was_written() {
    let packet = ip_packet();
    let mut writer = Writer::new(Vec::new(), "test").unwrap();
    let client = writer.interface("client").unwrap();
    let server = writer.interface("server").unwrap();
    writer.tls_secrets(b"CLIENT_RANDOM 00 11\n").unwrap();
    let times = [946_684_800_000_000_001, u64::MAX];
    let comments = [None, Some("queue drop")];
    for (interface, packet) in [(client, &packet[..]), (server, b"")] {
        let number = usize::from(interface == server);
        writer
            .packet(interface, times[number], packet, comments[number])
            .unwrap();
    }
    let file = writer.finish().unwrap();

    let mut reader = Reader::new(&file).unwrap();
    let secrets = Item::TlsSecrets(b"CLIENT_RANDOM 00 11\n");
    assert_eq!(reader.next(), Some(Ok(secrets)));
    for (interface, bytes) in [&packet[..], b""].into_iter().enumerate() {
        let read = Item::Packet(CapturedPacket {
            interface,
            time: Some(times[interface]),
            link_type: 101,
            bytes,
            comment: comments[interface].map(str::as_bytes),
        });
        assert_eq!(reader.next(), Some(Ok(read)));
    }
    assert_eq!(reader.next(), None);
    let names = reader.interfaces().iter();
    let names: Vec<_> = names.map(|interface| interface.name.as_deref()).collect();
    assert_eq!(names, [Some("client"), Some("server")]);
}

#[test]
fn a_file_can_be_read_in_pieces_of_any_size() {
    let mut writer = Writer::new(Vec::new(), "test").unwrap();
    let interface = writer.interface("client").unwrap();
    for packet in [&b"a"[..], b"of two sections", b"third"] {
        writer.packet(interface, 7, packet, None).unwrap();
    }
    let pcapng = writer.finish().unwrap().repeat(2);
    let words: [u32; 6] = [0xa1b2_c3d4, 0x0002_0004, 0, 0, 65535, 101];
    let record: [u32; 5] = [2, 5, 4, 4, 0x0102_0304];
    let words = [&words[..], &record, &record].concat();
    let pcap: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    for file in [pcapng, pcap] {
        let whole: Vec<_> = Reader::new(&file).unwrap().map(Result::unwrap).collect();
        for size in 1..file.len() {
            let mut found = Vec::new();
            let mut reader = Reader::new(&file[..size.max(32)]).unwrap();
            let mut end = size.max(32);
            loop {
                found.extend(reader.by_ref().map_while(Result::ok));
                if reader.position() == file.len() {
                    break;
                }
                end = (end + size).min(file.len());
                let from = reader.position();
                reader = reader.resume(&file[from..end]);
            }
            assert_eq!(found, whole, "in pieces of {size} bytes");
        }
    }
}

#[test]
fn ipv6_with_extension_headers() {
    let source: IpAddr = "2001:db8::1".parse().unwrap();
    let IpAddr::V6(address) = source else {
        unreachable!()
    };
    let udp = [&[0, 7, 0, 9, 0, 11, 0, 0][..], b"abc"].concat();
    let packet = |next: u8, extensions: &[u8]| {
        let head = [0x60, 0, 0, 0, 0, 0, next, 64];
        let addresses = [address.octets(), address.octets()].concat();
        [&head, &addresses[..], extensions, &udp].concat()
    };
    let hop_by_hop_then_options = [&[60, 0][..], &[0; 6], &[17, 1], &[0; 14]].concat();
    for (next, extensions) in [
        (17, &[][..]),
        (0, &hop_by_hop_then_options),
        (44, &[17, 0, 0, 0, 0, 0, 0, 1]), // a fragment that is the whole packet
    ] {
        let packet = packet(next, extensions);
        let found = datagram(229, &packet).unwrap();
        assert_eq!(found.payload, b"abc");
        assert_eq!(found.path.source, SocketAddr::new(source, 7));
    }
    let fragment = packet(44, &[17, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(datagram(101, &fragment), Err(DecapsulationError::Fragment));
    assert_eq!(
        datagram(101, &packet(6, &[])),
        Err(DecapsulationError::NotUdp)
    );
}
