//! Files that go from the client to the server.

use super::*;

/// A handshake, and 3000 bytes from the client of which the second packet is lost and sent again;
/// without an answer.
fn unanswered() -> Maker {
    let mut maker = Maker::new(Vantage::Both);
    maker.handshake();
    for (sent, offset) in [(602, 0), (603, 1000), (604, 2000), (1600, 1000)] {
        let data = [stream(0, offset, offset == 2000)];
        let packet = maker.packet(End::Client, PacketType::OneRtt, sent, &data);
        if sent == 603 {
            packet.fate = Fate::QueueDrop;
            packet.seen[1] = None;
        }
    }
    maker
}

fn of_client(size_bytes: Option<u64>) -> LinkFacts {
    LinkFacts {
        sender: Some(End::Client),
        size_bytes,
        ..LinkFacts::default()
    }
}

#[test]
fn an_upload_is_measured_where_it_arrives_and_complete_with_the_answer() {
    let mut maker = unanswered();
    let end = Frame::Stream {
        id: 0,
        offset: 0,
        length: 0,
        fin: true,
    };
    maker.packet(End::Server, PacketType::OneRtt, 1910, &[end]);
    let metrics = maker.measure_with(&of_client(Some(2500)));
    assert_eq!(metrics.handshake_s, Some(0.601));
    assert_eq!(metrics.ttfb_s, None);
    assert_eq!(metrics.transfer_s, Some(0.998)); // from 902 to 1900
    assert_eq!(metrics.completion_s, Some(2.21));
    assert_eq!(metrics.goodput_bps, Some(20_000.0 / 0.998));
    assert_eq!(metrics.upload_bytes, Some(3000));
    // Taken for a download, it has no reply.
    let metrics = maker.measure();
    assert_eq!((metrics.transfer_s, metrics.completion_s), (None, None));
}

#[test]
fn an_upload_without_its_answer_is_not_complete() {
    let metrics = unanswered().measure_with(&of_client(None));
    assert_eq!(metrics.transfer_s, Some(0.998));
    assert_eq!(metrics.completion_s, None);
}

#[test]
fn the_sender_of_the_files_is_judged_whoever_sent_more() {
    let rtt = |sender| {
        let mut maker = Maker::new(Vantage::Both);
        maker.handshake();
        maker.request(); // 1000 bytes, more than the reply
        let start = u32::try_from(maker.0.ranges.len()).unwrap();
        maker.0.ranges.push((0, 0));
        let ack = Frame::Ack {
            path_id: None,
            ranges: start..start + 1,
            delay_us: None,
            ecn: None,
        };
        maker.packet(End::Server, PacketType::OneRtt, 950, &[ack]);
        let facts = LinkFacts {
            sender,
            ..LinkFacts::default()
        };
        maker.measure_with(&facts).rtt_min_ms
    };
    assert_eq!(rtt(None), Some(648.0)); // from 602 to 1250, the client's
    assert_eq!(rtt(Some(End::Client)), Some(648.0));
    assert_eq!(rtt(Some(End::Server)), None);
}
