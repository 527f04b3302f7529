//! Datagrams behind each link layer and inside tunnels. That tshark reads these headers in the same
//! way, `tests/python/test_link_layers.py` shows.

use bentpipe_wire::capture::CapturedPacket;
use bentpipe_wire::tcp::Segment;
use bentpipe_wire::{Datagram, DecapsulationError, Endpoints, IpHeader, IpLayer, encapsulate};

fn of_version(version: u8) -> Endpoints {
    let [source, destination] = match version {
        4 => ["192.0.2.1:50000", "198.51.100.1:443"],
        _ => ["[2001:db8:1::1]:50000", "[2001:db8:2::1]:443"],
    };
    Endpoints {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    }
}

fn ip_packet(version: u8) -> Vec<u8> {
    let mut packet = Vec::new();
    encapsulate(&mut packet, of_version(version), 0, 1, b"payload");
    packet
}

/// A packet between two ends of a tunnel.
fn between(version: u8, protocol: u8, content: &[u8]) -> Vec<u8> {
    let [source, destination] = match version {
        4 => ["203.0.113.1", "203.0.113.2"],
        _ => ["2001:db8:f::1", "2001:db8:f::2"],
    };
    let header = IpHeader {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        ecn: 0,
        identification: 1,
        protocol,
    };
    let mut packet = Vec::new();
    header.write(&mut packet, content);
    packet
}

fn captured(link_type: u16, bytes: &[u8]) -> CapturedPacket<'_> {
    CapturedPacket {
        interface: 0,
        time: None,
        link_type,
        bytes,
        comment: None,
    }
}

fn datagram(link_type: u16, bytes: &[u8]) -> Result<Datagram<'_>, DecapsulationError> {
    Datagram::of(&captured(link_type, bytes))
}

/// Behind this head, the datagram is found in the whole packet and in a part of it, every part
/// without its header ends in an error, and no byte that is changed does harm.
fn is_found(link_type: u16, head: &[u8], version: u8) {
    let ip = ip_packet(version);
    // Ethernet fills short packets up.
    let packet = [head, &ip, &[0; 9]].concat();
    let found = datagram(link_type, &packet).unwrap_or_else(|error| {
        panic!("link type {link_type}, {head:02x?}: {error}");
    });
    assert_eq!((found.payload, found.length), (&b"payload"[..], 7));
    assert_eq!(found.path.source, of_version(version).source);
    assert_eq!(found.path.destination, of_version(version).destination);
    assert_eq!(found.ip_size() as usize, ip.len());
    let cut = datagram(link_type, &packet[..head.len() + ip.len() - 3]).unwrap();
    assert_eq!((cut.payload, cut.length), (&b"payl"[..], 7));
    for length in 0..head.len() + ip.len() - 7 {
        assert!(datagram(link_type, &packet[..length]).is_err());
    }
    any_change_ends_well(link_type, &packet);
}

fn any_change_ends_well(link_type: u16, packet: &[u8]) {
    let mut changed = packet.to_vec();
    for at in 0..packet.len() {
        for byte in 0..=u8::MAX {
            changed[at] = byte;
            let _ = datagram(link_type, &changed);
            let _ = Segment::of(&captured(link_type, &changed));
        }
        changed[at] = packet[at];
    }
}

fn ethernet(tags: &[u8], version: u8) -> Vec<u8> {
    let of_type: &[u8] = if version == 4 {
        &[0x08, 0]
    } else {
        &[0x86, 0xdd]
    };
    [&[2; 12], tags, of_type].concat()
}

/// The header in which PPP over Ethernet has its session, and a PPP frame begins.
const PPPOE: [u8; 8] = [0x11, 0, 0, 1, 0, 37, 0, 0x21];

#[test]
fn datagrams_behind_each_link_layer() {
    let ethernet = |tags: &[u8]| ethernet(tags, 4);
    let mpls = [&[2; 12][..], &[0x88, 0x47, 0, 0, 0x10, 64, 0, 0, 0x21, 64]].concat();
    for (link_type, head) in [
        (0, vec![2, 0, 0, 0]),
        (0, vec![0, 0, 0, 2]),
        (108, vec![0, 0, 0, 2]),
        (1, ethernet(&[])),
        (1, ethernet(&[0x81, 0, 0, 5])),
        (1, ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6])),
        (1, ethernet(&[0, 43, 0xaa, 0xaa, 3, 0, 0, 0])),
        (1, [&[2; 12][..], &[0x88, 0x64], &PPPOE].concat()),
        (1, mpls),
        (9, vec![0, 0x21]),
        (9, vec![0x21]),
        (9, vec![0xff, 3, 0, 0x21]),
        (9, vec![0xff, 3, 0x21]),
        (9, vec![2, 0x81, 0, 0, 0x21, 64]),
        (50, vec![0xff, 3, 0, 0x21]),
        (51, PPPOE.to_vec()),
        (166, vec![1, 3, 0, 0x21]),
        (204, vec![0, 0xff, 3, 0, 0x21]),
        (204, vec![1, 0x21]),
        (104, vec![0x0f, 0, 0x08, 0]),
        (12, vec![]),
        (101, vec![]),
        (113, [&[0; 14][..], &[0x08, 0]].concat()),
        (228, vec![]),
        (276, [&[0x08, 0][..], &[0; 18]].concat()),
    ] {
        is_found(link_type, &head, 4);
    }
    for (link_type, head) in [
        (0, vec![0, 0, 0, 30]),
        (0, vec![24, 0, 0, 0]),
        (9, vec![0, 0x57]),
        (9, vec![0x57]),
        (229, vec![]),
    ] {
        is_found(link_type, &head, 6);
    }
}

#[test]
fn what_is_no_ip_is_no_datagram() {
    let ip = ip_packet(4);
    for (link_type, head) in [
        (0, &[7, 0, 0, 0][..]),
        (9, &[0xc0, 0x21]),
        (
            1,
            &[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 40, 0x42, 0x42, 3],
        ),
        (101, &[0x10]),
    ] {
        let packet = [head, &ip].concat();
        assert_eq!(
            datagram(link_type, &packet),
            Err(DecapsulationError::NotUdp)
        );
    }
    let error = datagram(105, &ip).unwrap_err();
    assert_eq!(error, DecapsulationError::LinkType(105));
    let says = "link type 105 (802.11, as a monitor sees it) is not read (hint: capture with";
    assert!(error.to_string().starts_with(says), "{error}");
}

/// The head of a GRE packet, up to what the tunnel carries.
fn gre(fields: &[u8], carried: u8) -> Vec<u8> {
    let content = ip_packet(carried);
    let packet = between(4, 47, &[fields, &content].concat());
    packet[..packet.len() - content.len()].to_vec()
}

#[test]
fn datagrams_in_tunnels() {
    for (outer, inner) in [(4, 4), (4, 6), (6, 4), (6, 6)] {
        let protocol = if inner == 4 { 4 } else { 41 };
        let content = ip_packet(inner);
        let packet = between(outer, protocol, &content);
        is_found(101, &packet[..packet.len() - content.len()], inner);
    }
    for fields in [
        &[0, 0, 0x08, 0][..],
        &[0x80, 0, 0x08, 0, 1, 2, 0, 0],
        &[0x20, 0, 0x08, 0, 1, 2, 3, 4],
        &[0xb0, 0, 0x08, 0, 1, 2, 0, 0, 1, 2, 3, 4, 0, 0, 0, 9],
        &[
            0x30, 0x81, 0x88, 0x0b, 0, 37, 0, 1, 0, 0, 0, 9, 0, 0, 0, 8, 0xff, 3, 0, 0x21,
        ],
        &[&[0, 0, 0x65, 0x58][..], &ethernet(&[], 4)].concat(),
        &[0, 0, 0x88, 0x47, 0, 0, 0x11, 64],
    ] {
        is_found(101, &gre(fields, 4), 4);
    }
    is_found(101, &gre(&[0, 0, 0x86, 0xdd], 6), 6);
}

/// The head of a VXLAN packet to a port, up to the IP packet in it.
fn vxlan(port: u16, header: [u8; 8]) -> Vec<u8> {
    let content = ip_packet(4);
    let ends = Endpoints {
        source: "203.0.113.1:61000".parse().unwrap(),
        destination: format!("203.0.113.2:{port}").parse().unwrap(),
    };
    let payload = [&header[..], &ethernet(&[], 4), &content].concat();
    let mut packet = Vec::new();
    encapsulate(&mut packet, ends, 0, 1, &payload);
    packet[..packet.len() - content.len()].to_vec()
}

const VXLAN: [u8; 8] = [8, 0, 0, 0, 0, 0, 42, 0];

/// A part of a VXLAN packet without its inner IP header is taken for what UDP carries.
#[test]
fn vxlan_is_a_tunnel_at_its_ports_and_with_its_header_alone() {
    for port in [4789, 8472] {
        let head = vxlan(port, VXLAN);
        let packet = [&head[..], &ip_packet(4)].concat();
        let found = datagram(101, &packet).unwrap();
        assert_eq!(found.payload, b"payload");
        assert_eq!(found.path.source, of_version(4).source);
        for length in 0..packet.len() {
            let _ = datagram(101, &packet[..length]);
        }
        any_change_ends_well(101, &packet);
    }
    let quic_flags = [0x48, 0, 0, 0, 0, 0, 42, 0];
    for (port, header) in [
        (4789, quic_flags),
        (443, VXLAN),
        (4789, [8, 0, 0, 0, 0, 0, 42, 1]),
    ] {
        let packet = [&vxlan(port, header)[..], &ip_packet(4)].concat();
        let found = datagram(101, &packet).unwrap();
        assert_eq!(found.path.destination.port(), port);
        assert!(found.payload.starts_with(&header));
    }
}

#[test]
fn so_many_tunnels_may_be_one_in_the_other() {
    let mut packet = ip_packet(4);
    for _ in 0..8 {
        packet = between(4, 4, &packet);
        assert_eq!(datagram(101, &packet).unwrap().payload, b"payload");
    }
    packet = between(4, 4, &packet);
    assert_eq!(datagram(101, &packet), Err(DecapsulationError::Nested));
}

/// An ICMP error quotes the packet that it is about, which then was not seen once more.
#[test]
fn what_icmp_quotes_is_no_datagram() {
    let quote = |version| [&[3, 4, 0, 0, 0, 0, 5, 0][..], &ip_packet(version)].concat();
    for (version, protocol) in [(4, 1), (6, 58)] {
        let icmp = between(version, protocol, &quote(version));
        let in_tunnel = between(4, if version == 4 { 4 } else { 41 }, &icmp);
        for packet in [&icmp, &in_tunnel] {
            let captured = captured(101, packet);
            assert_eq!(Datagram::of(&captured), Err(DecapsulationError::NotUdp));
            let segment = Segment::of(&captured);
            assert_eq!(segment.unwrap_err(), DecapsulationError::NotTcp);
            let layer = IpLayer::of(&captured).unwrap().unwrap();
            assert_eq!((layer.protocol, layer.path()), (protocol, None));
        }
    }
}
