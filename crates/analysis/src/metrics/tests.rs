//! Connections made by hand. Times are milliseconds; the way from one end to the other takes 300.

use super::*;
use crate::connection::{Codepoint, Fate, Frame, Kind, Packet, Protocol, Vantage, WireImage};
use bentpipe_wire::quic::PacketType;

mod ecn;
mod paths;
mod together;
mod upload;

const MS: Nanos = 1_000_000;
const WAY: Nanos = 300;

/// A connection while it is made.
struct Maker(Connection);

impl Maker {
    fn new(vantage: Vantage) -> Self {
        Self(Connection {
            protocol: Protocol::Quic(1),
            ends: ["192.0.2.1:50000", "198.51.100.1:443"].map(|end| end.parse().unwrap()),
            initial_credit: [None; 2],
            handshake: bentpipe_wire::quic::Handshake::default(),
            wire_image: WireImage::default(),
            tls: None,
            subflow: None,
            vantage,
            start: 0,
            clock_ahead: 0,
            packets: Vec::new(),
            frames: Vec::new(),
            ranges: Vec::new(),
        })
    }

    /// A packet of 1200 bytes that arrives.
    fn packet(
        &mut self,
        sender: End,
        kind: PacketType,
        sent: Nanos,
        frames: &[Frame],
    ) -> &mut Packet {
        let packets = &mut self.0.packets;
        let kind = Kind::Quic(kind);
        let number = packets
            .iter()
            .filter(|it| it.sender == sender && it.kind == kind)
            .count();
        let start = u32::try_from(self.0.frames.len()).unwrap();
        self.0.frames.extend_from_slice(frames);
        let mut seen = [Some(sent * MS); 2];
        seen[sender.other() as usize] = Some((sent + WAY) * MS);
        packets.push(Packet {
            sender,
            kind,
            number: Some(u64::try_from(number).unwrap()),
            path_id: 0,
            size: 1200,
            first_byte: 0x40,
            ip_size: Some(1228),
            seen,
            ecn: [Some(Codepoint::NotEct); 2],
            fate: Fate::Delivered,
            copy: false,
            decoded: true,
            frames: start..u32::try_from(self.0.frames.len()).unwrap(),
        });
        packets.last_mut().unwrap()
    }

    fn handshake(&mut self) {
        let crypto = [Frame::Crypto {
            offset: 0,
            length: 300,
        }];
        self.packet(End::Client, PacketType::Initial, 0, &crypto);
        self.packet(End::Server, PacketType::Initial, 300, &crypto);
        self.packet(End::Client, PacketType::Initial, 600, &[]);
        self.packet(End::Client, PacketType::Handshake, 601, &crypto);
    }

    /// A packet of the server with 1000 bytes of stream 0 from `offset`.
    fn data(&mut self, sent: Nanos, offset: u64) -> &mut Packet {
        self.packet(
            End::Server,
            PacketType::OneRtt,
            sent,
            &[stream(0, offset, false)],
        )
    }

    fn ack(&mut self, sent: Nanos, first: u64, last: u64) {
        let start = u32::try_from(self.0.ranges.len()).unwrap();
        self.0.ranges.push((first, last));
        let frame = Frame::Ack {
            path_id: None,
            ranges: start..start + 1,
            delay_us: None,
            ecn: None,
        };
        self.packet(End::Client, PacketType::OneRtt, sent, &[frame]);
    }

    fn request(&mut self) {
        self.packet(End::Client, PacketType::OneRtt, 602, &[stream(0, 0, true)]);
    }

    /// A handshake, a request, and a reply of 3000 bytes of which the second packet is lost and
    /// sent again.
    fn transfer(vantage: Vantage) -> Self {
        let mut maker = Self::new(vantage);
        maker.handshake();
        maker.request();
        maker.data(902, 0);
        let lost = maker.data(903, 1000);
        lost.fate = Fate::QueueDrop;
        lost.seen[0] = None;
        maker.packet(
            End::Server,
            PacketType::OneRtt,
            904,
            &[stream(0, 2000, true)],
        );
        maker.ack(1210, 0, 0);
        maker.data(1600, 1000);
        maker
    }

    /// The connection as captured at one end only.
    fn only_at(mut self, here: End) -> Self {
        self.0.vantage = Vantage::At(here);
        let packets = &mut self.0.packets;
        packets.retain(|packet| packet.seen[here as usize].is_some());
        for packet in packets {
            packet.seen[here.other() as usize] = None;
            if packet.sender == here {
                packet.fate = Fate::Unknown;
            }
        }
        self
    }

    fn measure(&self) -> Metrics {
        self.measure_with(&LinkFacts::default())
    }

    fn measure_with(&self, facts: &LinkFacts) -> Metrics {
        Metrics::of(&self.0, &self.0.ledger(), facts)
    }
}

fn stream(id: u64, offset: u64, fin: bool) -> Frame {
    Frame::Stream {
        id,
        offset,
        length: 1000,
        fin,
    }
}

#[test]
fn a_transfer_is_measured_at_the_client() {
    let metrics = Maker::transfer(Vantage::Both).measure();
    assert_eq!(metrics.handshake_s, Some(0.601));
    assert_eq!(metrics.ttfb_s, Some(1.202));
    assert_eq!(metrics.completion_s, Some(1.9));
    assert_eq!(metrics.transfer_s, Some(0.698));
    assert_eq!(metrics.stream_bytes, Some(3000));
    assert_eq!(metrics.upload_bytes, Some(1000));
    assert_eq!(metrics.goodput_bps, Some(24_000.0 / 0.698));
}

#[test]
fn goodput_beyond_the_path_is_none() {
    let goodput = |rate| {
        let facts = LinkFacts {
            forward_rate_bps: Some(rate),
            ..LinkFacts::default()
        };
        Maker::transfer(Vantage::Both)
            .measure_with(&facts)
            .goodput_bps
    };
    assert_eq!(goodput(34_000), None);
    assert!(goodput(35_000).is_some());
    let mut one_packet = Maker::new(Vantage::Both);
    one_packet.handshake();
    one_packet.packet(End::Server, PacketType::OneRtt, 902, &[stream(0, 0, true)]);
    let metrics = one_packet.measure();
    assert_eq!((metrics.transfer_s, metrics.goodput_bps), (Some(0.0), None));
}

#[test]
fn the_interop_runner_counts_from_the_first_1_rtt_packet_to_the_last() {
    let span = |maker: &Maker| {
        [End::Client, End::Server].map(|end| one_rtt_span(&maker.0, end).map(|it| it / MS))
    };
    let mut maker = Maker::new(Vantage::Both);
    maker.handshake();
    assert_eq!(span(&maker), [None, None]);
    maker
        .packet(End::Server, PacketType::OneRtt, 880, &[])
        .decoded = false;
    maker.request();
    assert_eq!(span(&maker), [Some(0), Some(0)]);
    maker.data(902, 0);
    maker.data(1600, 1000);
    maker.packet(End::Server, PacketType::Handshake, 1700, &[]);
    let lost = maker.data(1800, 1000);
    (lost.fate, lost.seen[0]) = (Fate::Loss, None);
    assert_eq!(span(&maker), [Some(0), Some(1600 - 880)]);
}

#[test]
fn a_spurious_retransmission_after_the_last_byte_changes_nothing() {
    let mut maker = Maker::transfer(Vantage::Both);
    let before = maker.measure();
    maker.data(2000, 1000);
    let after = maker.measure();
    assert_eq!(after.completion_s, before.completion_s);
    assert_eq!(after.stream_bytes, Some(3000));
    assert_eq!(after.forward.retransmitted_bytes, Some(2000));
}

#[test]
fn only_a_whole_reply_is_complete() {
    let incomplete = |maker: &Maker| {
        let metrics = maker.measure();
        assert_eq!(metrics.ttfb_s, Some(1.202));
        assert_eq!(metrics.completion_s, None);
        assert_eq!((metrics.transfer_s, metrics.goodput_bps), (None, None));
        metrics.forward.mean_rate_bps
    };
    let mut gap = Maker::transfer(Vantage::Both);
    gap.0.packets.pop();
    // As far as the capture goes: 1228 bytes, 2 ms after the first packet with data.
    assert_eq!(incomplete(&gap), Some(8.0 * 1228.0 / 0.002));
    let mut no_fin = Maker::new(Vantage::Both);
    no_fin.handshake();
    no_fin.request();
    no_fin.data(902, 0);
    incomplete(&no_fin);
    let mut second_request = Maker::transfer(Vantage::Both);
    second_request.packet(End::Client, PacketType::OneRtt, 1500, &[stream(4, 0, true)]);
    incomplete(&second_request);
}

#[test]
fn streams_of_the_server_count_only_if_there_is_no_reply_on_the_clients() {
    let mut http3 = Maker::new(Vantage::Both);
    http3.handshake();
    http3.packet(End::Server, PacketType::OneRtt, 301, &[stream(3, 0, false)]);
    http3.packet(End::Server, PacketType::OneRtt, 902, &[stream(0, 0, true)]);
    let metrics = http3.measure();
    assert_eq!(
        (metrics.ttfb_s, metrics.completion_s),
        (Some(1.202), Some(1.202))
    );
    assert_eq!(
        (metrics.stream_bytes, metrics.forward.stream_bytes),
        (Some(1000), Some(2000))
    );

    let mut pushed = Maker::new(Vantage::Both);
    pushed.handshake();
    pushed.request();
    pushed.packet(End::Server, PacketType::OneRtt, 301, &[stream(3, 0, true)]);
    let metrics = pushed.measure();
    assert_eq!(
        (metrics.ttfb_s, metrics.completion_s),
        (Some(0.601), Some(0.601))
    );
}

#[test]
fn directions_are_counted() {
    let metrics = Maker::transfer(Vantage::Both).measure();
    let forward = &metrics.forward;
    assert_eq!(
        (forward.packets, forward.datagrams, forward.ip_bytes),
        (5, 5, 5 * 1228)
    );
    assert_eq!(
        (forward.stream_bytes, forward.retransmitted_bytes),
        (Some(4000), Some(1000))
    );
    assert_eq!(forward.retransmitted_share, Some(0.25));
    assert_eq!(
        (forward.lost_packets, forward.lost_share),
        (Some(1), Some(0.2))
    );
    assert_eq!(
        (forward.reordered_packets, forward.duplicates),
        (Some(0), 0)
    );
    assert_eq!(forward.one_way_delay_min_ms, Some(300.0));
    assert_eq!(forward.one_way_delay_max_ms, Some(300.0));
    assert_eq!(forward.mean_datagram_bytes, Some(1228.0));
    assert_eq!(forward.largest_datagram_bytes, Some(1228));
    assert_eq!(forward.acks_per_data_packet, Some(0.25));
    // Two more packets within the transfer after its first one.
    let rate = forward.mean_rate_bps.unwrap();
    assert!((rate - 2.0 * 1228.0 * 8.0 / 0.698).abs() < 1e-6, "{rate}");
    assert_eq!(
        (metrics.back.acks_sent, metrics.back.stream_bytes),
        (1, Some(1000))
    );
    assert_eq!(metrics.back.acks_per_data_packet, Some(0.0));
}

#[test]
fn coalesced_packets_count_one_datagram() {
    let mut maker = Maker::transfer(Vantage::Both);
    maker.data(1600, 3000).ip_size = None;
    let forward = maker.measure().forward;
    assert_eq!((forward.packets, forward.datagrams), (6, 5));
    assert_eq!(forward.mean_datagram_bytes, Some(1228.0));
}

#[test]
fn reordered_and_repeated_packets_are_told_apart() {
    let mut maker = Maker::transfer(Vantage::Both);
    // Numbers 4 to 7 of the server's 1-RTT packets: 4 arrives after 5, 5 once more.
    maker.data(1700, 3000).seen[0] = Some(2100 * MS);
    maker.data(1701, 4000).seen[0] = Some(2050 * MS);
    maker.data(1701, 4000).number = Some(5);
    let copy = maker.0.packets.last_mut().unwrap();
    copy.seen[0] = Some(2200 * MS);
    copy.copy = true;
    let forward = maker.measure().forward;
    assert_eq!(
        (forward.reordered_packets, forward.duplicates),
        (Some(1), 1)
    );
}

#[test]
fn what_one_side_cannot_know_is_none() {
    let whole = || Maker::transfer(Vantage::Both);
    let client = whole().only_at(End::Client).measure();
    assert_eq!(client.completion_s, Some(1.9));
    assert_eq!(client.forward.packets, 4);
    assert_eq!(
        (client.forward.lost_packets, client.back.lost_share),
        (None, None)
    );
    assert_eq!(client.forward.one_way_delay_median_ms, None);
    assert_eq!(
        (
            client.forward.reordered_packets,
            client.back.reordered_packets
        ),
        (Some(0), None)
    );
    assert_eq!(client.in_flight_max_bytes, None); // the server's, which sent more
    assert_eq!(client.rtt_min_ms, None);

    let server = whole().only_at(End::Server).measure();
    // The lost packet was not reported, so that its first transmission counts.
    assert_eq!(server.transfer_s, Some(0.002));
    assert_eq!(server.completion_s, Some(0.604));
    assert_eq!(server.in_flight_max_bytes, Some(4800));
    assert_eq!(
        (server.rtt_min_ms, server.rtt_max_ms),
        (Some(608.0), Some(608.0))
    );

    let between = Maker::transfer(Vantage::Between).measure();
    assert_eq!(between.forward.lost_packets, None);
    assert_eq!(between.forward.one_way_delay_min_ms, None);
}

#[test]
fn at_the_server_data_counts_when_it_was_sent_for_good() {
    let mut maker = Maker::transfer(Vantage::Both);
    maker.ack(1900, 2, 3); // so that number 1 counts as lost
    let metrics = maker.only_at(End::Server).measure();
    assert_eq!(metrics.stream_bytes, Some(3000));
    assert_eq!(metrics.transfer_s, Some(0.698));
    assert_eq!(metrics.completion_s, Some(1.3));
}

#[test]
fn an_upload_is_measured_by_its_sender() {
    let mut maker = Maker::new(Vantage::Both);
    maker.handshake();
    for offset in 0..10 {
        maker.packet(
            End::Client,
            PacketType::OneRtt,
            602,
            &[stream(0, 1000 * offset, offset == 9)],
        );
    }
    let metrics = maker.measure();
    assert_eq!(
        (metrics.upload_bytes, metrics.stream_bytes),
        (Some(10_000), Some(0))
    );
    assert_eq!((metrics.ttfb_s, metrics.completion_s), (None, None));
    // With the Initial and Handshake packets that nobody acknowledged.
    assert_eq!(metrics.in_flight_max_bytes, Some(12 * 1200));
}

#[test]
fn a_capture_that_begins_later_has_no_start() {
    let mut maker = Maker::transfer(Vantage::Both);
    maker
        .0
        .packets
        .retain(|packet| packet.kind == Kind::Quic(PacketType::OneRtt));
    let metrics = maker.measure();
    assert_eq!(
        (metrics.handshake_s, metrics.ttfb_s, metrics.completion_s),
        (None, None, None)
    );
    assert_eq!(metrics.transfer_s, Some(0.698));
}

#[test]
fn without_secrets_the_first_short_header_ends_the_handshake() {
    let mut maker = Maker::transfer(Vantage::Both);
    for packet in &mut maker.0.packets {
        if packet.kind != Kind::Quic(PacketType::Initial) {
            (packet.number, packet.decoded, packet.frames) = (None, false, 0..0);
        }
    }
    let metrics = maker.measure();
    assert_eq!(metrics.handshake_s, Some(0.602));
    assert_eq!((metrics.ttfb_s, metrics.stream_bytes), (None, None));
    assert_eq!(metrics.forward.lost_packets, Some(1));
    // Two of 1228 bytes, the last 698 ms after the first.
    let rate = metrics.forward.mean_rate_bps.unwrap();
    assert!((rate - 8.0 * 2.0 * 1228.0 / 0.698).abs() < 1e-6, "{rate}");
}

#[test]
fn where_many_packets_are_not_decoded_nothing_is_measured_of_the_content() {
    let with_sealed = |sealed: usize| {
        let mut maker = Maker::transfer(Vantage::Both);
        let own = maker.0.packets.iter_mut();
        let own =
            own.filter(|it| it.sender == End::Server && it.kind == Kind::Quic(PacketType::OneRtt));
        for packet in own.take(sealed) {
            (packet.number, packet.decoded, packet.frames) = (None, false, 0..0);
        }
        maker.measure()
    };
    let one = with_sealed(1);
    assert_eq!(
        (one.stream_bytes, one.completion_s),
        (Some(2000), None),
        "it may be no packet"
    );
    let two = with_sealed(2);
    assert_eq!((two.handshake_s, two.ttfb_s), (Some(0.601), None));
    assert_eq!(
        (two.stream_bytes, two.upload_bytes, two.rtt_min_ms),
        (None, None, None)
    );
    assert_eq!(
        (
            two.forward.retransmitted_bytes,
            two.forward.acks_per_data_packet
        ),
        (None, None)
    );
    assert_eq!(
        (two.forward.packets, two.forward.lost_packets),
        (5, Some(1))
    );
}

/// How long the handshake of TCP takes whose client answers the server's SYN by `frames`.
fn handshake_of_tcp(frames: &[Frame]) -> Option<f64> {
    let mut maker = Maker::new(Vantage::Both);
    maker.0.protocol = Protocol::Tcp;
    let syn = [Frame::Other("SYN")];
    maker.packet(End::Client, PacketType::Initial, 0, &syn);
    maker.packet(End::Server, PacketType::Initial, 300, &syn);
    maker.packet(End::Client, PacketType::Initial, 600, frames);
    for packet in &mut maker.0.packets {
        packet.kind = Kind::Tcp;
    }
    maker.measure().handshake_s
}

#[test]
fn tcp_is_complete_with_the_answer_to_the_servers_syn() {
    assert_eq!(handshake_of_tcp(&[]), Some(0.6));
}

/// A browser gives up a connection that it has begun and answers the SYN by a reset.
#[test]
fn tcp_that_is_reset_has_no_handshake() {
    assert_eq!(handshake_of_tcp(&[Frame::Other("RST")]), None);
}

#[test]
fn the_middle_of_an_even_number_lies_between() {
    assert_eq!(spread_ms(&mut []), [None; 3]);
    assert_eq!(spread_ms(&mut [7 * MS]), [Some(7.0); 3]);
    assert_eq!(
        spread_ms(&mut [9 * MS, MS, 4 * MS]),
        [Some(1.0), Some(4.0), Some(9.0)]
    );
    assert_eq!(
        spread_ms(&mut [9 * MS, MS, 4 * MS, 5 * MS]),
        [Some(1.0), Some(4.5), Some(9.0)]
    );
}
