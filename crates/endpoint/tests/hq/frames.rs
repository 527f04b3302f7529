//! Frames with deadlines: what a publisher sends when, and what a viewer takes.

use std::fs;

use bentpipe_endpoint::contract::Bye;
use bentpipe_endpoint::{Carrier, Event, FrameStream, Read, StreamEnd, StreamKey};
use bytes::Bytes;
use tempfile::TempDir;

use crate::fake::{CONNECTION, FIRST, SECOND, Side};

const QUESTION: &[u8] = b"GET /frames\r\n";
/// Time zero, in nanoseconds since 1970.
const EPOCH_NS: u64 = 946_684_800_000_000_000;
const MS: u64 = 1_000_000;
/// The error code of what is too late.
const EXPIRED: u32 = 1;
/// The error code of what nobody asked for.
const REFUSED: u32 = 2;

fn stream(over: Carrier) -> FrameStream {
    FrameStream {
        interval_us: 40_000,
        deadline_ms: 100,
        over,
    }
}

/// The header of a part of a frame that was made `made_ms` milliseconds after time zero, and its
/// bytes.
fn part(number: u32, made_ms: u64, size: u32, offset: u32, bytes: &[u8]) -> Vec<u8> {
    let mut part = number.to_le_bytes().to_vec();
    part.extend((EPOCH_NS + made_ms * MS).to_le_bytes());
    part.extend(size.to_le_bytes());
    part.extend(offset.to_le_bytes());
    part.extend(bytes);
    part
}

/// A server of two frames that has been asked for them 2 ms after the start.
fn publisher(over: Carrier) -> (Side, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "frame").unwrap();
    fs::write(folder.path().join("b"), "other frame").unwrap();
    let told = Some(stream(over));
    let mut side = Side::told("frames", "server", folder.path(), &["/a", "/b"], told).unwrap();
    side.stack.one_way = [100, 0];
    side.stack.largest = Some(26);
    side.tell(&Event::Connected(CONNECTION));
    side.arrive(FIRST, QUESTION, Ok(Read::Finished));
    (side, folder)
}

fn ask(side: &mut Side) {
    side.tell(&Event::Opened(CONNECTION, FIRST));
}

#[test]
fn frames_are_made_when_they_are_due_and_given_up_at_their_deadline() {
    let (mut side, _folder) = publisher(Carrier::Streams);
    ask(&mut side);
    let [one, other] = [3, 7].map(StreamKey);
    assert_eq!(side.stack.sent[&one], part(0, 2, 5, 0, b"frame"));
    side.wait_until(41);
    assert!(!side.stack.sent.contains_key(&other));
    side.wait_until(42);
    assert_eq!(side.stack.sent[&other], part(1, 42, 11, 0, b"other frame"));
    assert_eq!(side.stack.priorities, [(one, 0), (other, -1)]);
    assert_eq!(side.stack.finished, [one, other]);
    side.wait_until(101);
    assert_eq!(side.stack.resets, []);
    side.wait_until(141);
    assert_eq!(side.stack.resets, [(one, EXPIRED)]);
    side.wait_until(142);
    assert_eq!(side.stack.resets, [(one, EXPIRED), (other, EXPIRED)]);
    assert_eq!(side.stack.finished, [one, other, FIRST]);
    assert_eq!(side.application.next_wake(), None);
}

#[test]
fn a_frame_without_a_stream_waits_until_its_deadline() {
    let (mut side, _folder) = publisher(Carrier::Streams);
    side.stack.one_way = [0, 0];
    ask(&mut side);
    side.wait_until(60);
    side.stack.one_way = [2, 0];
    side.wait_until(101);
    assert!(
        side.stack.sent.is_empty(),
        "nobody said that there are streams"
    );
    side.tell(&Event::MoreStreams(CONNECTION));
    assert_eq!(
        side.stack.one_way,
        [2, 1],
        "the first frame is too old by then"
    );
    assert_eq!(
        side.stack.sent[&StreamKey(3)],
        part(1, 42, 11, 0, b"other frame")
    );
}

#[test]
fn a_frame_is_cut_into_parts_and_the_end_waits_for_the_last() {
    let (mut side, _folder) = publisher(Carrier::Datagrams);
    ask(&mut side);
    side.stack.is_full = true;
    side.wait_until(142);
    let parts = [
        part(0, 2, 5, 0, b"frame"),
        part(1, 42, 11, 0, b"other "),
        part(1, 42, 11, 6, b"frame"),
    ];
    assert_eq!(side.stack.datagram_frames, parts);
    assert_eq!(side.stack.finished, []);
    side.wait_until(500);
    assert_eq!(side.stack.finished, [], "parts still wait");
    side.stack.is_full = false;
    side.wait_until(510);
    assert_eq!(side.stack.finished, [FIRST]);
    assert_eq!(side.stack.resets, []);
}

#[test]
fn the_end_does_not_wait_for_ever() {
    let (mut side, _folder) = publisher(Carrier::Datagrams);
    ask(&mut side);
    side.stack.is_full = true;
    side.wait_until(10_141);
    assert_eq!(side.stack.finished, []);
    side.wait_until(10_142);
    assert_eq!(side.stack.finished, [FIRST]);
    assert_eq!(side.application.next_wake(), None);
}

#[test]
fn a_client_without_datagram_frames_is_left() {
    for largest in [None, Some(20)] {
        let (mut side, _folder) = publisher(Carrier::Datagrams);
        side.stack.largest = largest;
        ask(&mut side);
        assert_eq!(side.stack.closed, Some(REFUSED));
        assert!(side.application.is_done());
        let error = side.application.finish().unwrap().error;
        assert_eq!(
            error.as_deref(),
            Some("the client takes no DATAGRAM frames, or too small ones")
        );
    }
}

#[test]
fn there_is_one_question_and_it_is_the_right_one() {
    let (mut side, _folder) = publisher(Carrier::Streams);
    side.arrive(SECOND, b"GET /other\r\n", Ok(Read::Finished));
    side.tell(&Event::Opened(CONNECTION, SECOND));
    ask(&mut side);
    let third = StreamKey(8);
    side.arrive(third, QUESTION, Ok(Read::Finished));
    side.tell(&Event::Opened(CONNECTION, third));
    let refused = [(SECOND, REFUSED), (third, REFUSED)];
    assert_eq!(
        (&side.stack.resets[..], &side.stack.stops[..]),
        (&refused[..], &refused[..])
    );
    assert_eq!(side.stack.one_way[1], 1);
}

#[test]
fn a_side_without_requests_or_deadline_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let told = |requests: &[&str], stream| {
        let side = Side::told("frames", "server", folder.path(), requests, Some(stream));
        side.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let error = told(&[], stream(Carrier::Streams));
    assert!(error.contains("a request for each frame"), "{error}");
    let never = FrameStream {
        deadline_ms: 0,
        ..stream(Carrier::Streams)
    };
    assert!(told(&["/a"], never).contains("deadline_ms: it is 1 to"));
    fs::write(folder.path().join("a"), "").unwrap();
    let error = told(&["/a"], stream(Carrier::Streams));
    assert!(error.contains("a file in www with bytes"), "{error}");
}

/// A client of two frames that has asked for them.
fn viewer(over: Carrier) -> (Side, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let told = Some(stream(over));
    let mut side = Side::told("frames", "client", folder.path(), &["/a", "/b"], told).unwrap();
    side.tell(&Event::Connected(CONNECTION));
    assert_eq!(side.stack.sent[&FIRST], QUESTION);
    assert_eq!(side.stack.finished, [FIRST]);
    (side, folder)
}

/// Gives the client a stream, or what came on it.
fn give(side: &mut Side, stream: u64, bytes: &[u8], then: Result<Read, StreamEnd>) {
    let stream = StreamKey(stream);
    side.arrive(stream, bytes, then);
    side.tell(&Event::OpenedOneWay(CONNECTION, stream));
}

fn give_part(side: &mut Side, bytes: Vec<u8>) {
    side.tell(&Event::DatagramFrame(CONNECTION, Bytes::from(bytes)));
}

/// The client's BYE when the server has ended the stream of the request.
fn bye(mut side: Side) -> Bye {
    side.arrive(FIRST, b"", Ok(Read::Finished));
    side.tell(&Event::Readable(CONNECTION, FIRST));
    assert!(side.application.is_done());
    assert_eq!(side.stack.closed, Some(0));
    side.application.finish().unwrap()
}

#[test]
fn a_viewer_stores_what_comes_whole_and_says_when() {
    let (mut side, folder) = viewer(Carrier::Streams);
    side.wait_until(49);
    let whole = part(0, 20, 5, 0, b"frame");
    let stream = StreamKey(3);
    side.arrive(stream, &whole[..22], Ok(Read::Blocked));
    side.tell(&Event::OpenedOneWay(CONNECTION, stream));
    side.arrive(stream, &whole[22..], Ok(Read::Finished));
    side.tell(&Event::Readable(CONNECTION, stream));
    give(
        &mut side,
        7,
        &part(1, 60, 11, 0, b"oth"),
        Err(StreamEnd::ByPeer(EXPIRED.into())),
    );
    let bye = bye(side);
    assert_eq!(bye.error, None);
    let [one, other] = &bye.requests[..] else {
        panic!("two frames");
    };
    assert_eq!((one.asked_ns, one.bytes), (Some(20 * MS), 5));
    assert_eq!(
        (one.first_byte_ns, one.last_byte_ns),
        (Some(50 * MS), Some(51 * MS))
    );
    assert_eq!(
        (other.asked_ns, other.bytes, other.last_byte_ns),
        (Some(60 * MS), 3, None)
    );
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"frame");
    assert!(!folder.path().join("b").exists());
}

#[test]
fn what_comes_twice_in_datagram_frames_counts_once() {
    let (mut side, folder) = viewer(Carrier::Datagrams);
    let [first, last] = [part(1, 42, 11, 0, b"other "), part(1, 42, 11, 6, b"frame")];
    for part in [&last, &last, &first, &first, &last] {
        give_part(&mut side, part.clone());
    }
    let bye = bye(side);
    assert_eq!(bye.error, None);
    let other = &bye.requests[1];
    assert_eq!((other.bytes, other.asked_ns), (11, Some(42 * MS)));
    assert_eq!(other.last_byte_ns, Some(4 * MS), "with the third of them");
    assert_eq!(fs::read(folder.path().join("b")).unwrap(), b"other frame");
}

#[test]
fn what_is_no_frame_is_named() {
    let whole = part(0, 2, 5, 0, b"frame");
    let on_streams: [(&[Vec<u8>], &str); 5] = [
        (
            &[whole.clone(), whole.clone()],
            "frame 0 came on two streams",
        ),
        (
            &[whole[..19].to_vec()],
            "a stream ended within the header of its frame",
        ),
        (&[part(2, 2, 5, 0, b"frame")], "frame 2 came, of 2 from 0"),
        (
            &[part(0, 2, 5, 0, b"fram")],
            "frame 0: 4 of 5 bytes, and FIN",
        ),
        (
            &[part(0, 2, 5, 0, b"frames")],
            "frame 0: bytes up to 6 came of one of 5",
        ),
    ];
    for (given, expected) in on_streams {
        let (mut side, _folder) = viewer(Carrier::Streams);
        for (number, bytes) in (0..).zip(given) {
            give(&mut side, 4 * number + 3, bytes, Ok(Read::Finished));
        }
        let error = bye(side).error.unwrap_or_default();
        assert!(error.starts_with(expected), "{error}");
    }
    let in_datagrams = [
        (
            vec![whole[..19].to_vec()],
            "a part of a frame has no header",
        ),
        (
            vec![part(0, 2, 5, 3, b"ame")],
            "frame 0: bytes up to 6 came of one of 5",
        ),
        (
            vec![part(0, 2, 5, 0, b"fr"), part(0, 3, 5, 2, b"ame")],
            "frame 0 has two headers",
        ),
        (
            vec![part(0, 2, 5, 0, b"fr"), part(0, 2, 6, 2, b"ame")],
            "frame 0 has two headers",
        ),
        (
            vec![part(0, 2, 1 << 25, 0, b"fr")],
            "frame 0: bytes up to 2 came of one of 33554432",
        ),
    ];
    for (given, expected) in in_datagrams {
        let (mut side, _folder) = viewer(Carrier::Datagrams);
        for bytes in given {
            give_part(&mut side, bytes);
        }
        let error = bye(side).error.unwrap_or_default();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn frames_come_over_one_carrier() {
    let whole = part(0, 2, 5, 0, b"frame");
    let (mut side, folder) = viewer(Carrier::Streams);
    give_part(&mut side, whole.clone());
    assert_eq!(
        bye(side).error.as_deref(),
        Some("a frame came in a DATAGRAM frame, not on a stream")
    );
    assert!(!folder.path().join("a").exists());
    let (mut side, folder) = viewer(Carrier::Datagrams);
    give(&mut side, 3, &whole, Ok(Read::Finished));
    assert_eq!(side.stack.stops, [(StreamKey(3), REFUSED)]);
    assert_eq!(
        bye(side).error.as_deref(),
        Some("a frame came on a stream, not in DATAGRAM frames")
    );
    assert!(!folder.path().join("a").exists());
}
