//! The behaviour of a client.

use std::fs;

use bentpipe_endpoint::{Closing, Event, Read, Resume, StreamEnd};

use crate::fake::{CONNECTION, FIRST, OTHER, SECOND, Side};

#[test]
fn a_client_asks_for_all_at_once_and_closes_when_all_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut side = Side::new("client", folder.path(), &["/a", "/deep/b"]).unwrap();
    side.tell(&Event::Connected(CONNECTION));
    assert_eq!(side.stack.sent[&FIRST], b"GET /a\r\n");
    assert_eq!(side.stack.sent[&SECOND], b"GET /deep/b\r\n");
    assert_eq!(side.stack.finished, [FIRST, SECOND]);

    side.arrive(FIRST, b"one ", Ok(Read::Blocked));
    side.tell(&Event::Readable(CONNECTION, FIRST));
    side.arrive(FIRST, b"two", Ok(Read::Finished));
    side.tell(&Event::Readable(CONNECTION, FIRST));
    assert!(!side.application.is_done() && side.stack.closed.is_none());
    side.arrive(SECOND, b"", Err(StreamEnd::ByPeer(7)));
    side.tell(&Event::Readable(CONNECTION, SECOND));
    assert!(side.application.is_done());
    assert_eq!(side.stack.closed, Some(0));

    let bye = side.application.finish().unwrap();
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"one two");
    assert!(!folder.path().join("deep/b").exists());
    assert_eq!(
        bye.error.as_deref(),
        Some("/deep/b: reset by the server with code 7")
    );
    assert_eq!(bye.handshake_ns, Some(1_000_000));
    let first = &bye.requests[0];
    assert_eq!(
        (first.bytes, first.first_byte_ns, first.last_byte_ns),
        (7, Some(2_000_000), Some(3_000_000))
    );
    assert_eq!(
        (bye.requests[1].bytes, bye.requests[1].first_byte_ns),
        (0, None)
    );
}

#[test]
fn a_client_waits_for_streams_and_for_room() {
    let folder = tempfile::tempdir().unwrap();
    let mut side = Side::new("client", folder.path(), &["/a", "/b"]).unwrap();
    (side.stack.streams_allowed, side.stack.room) = (1, 5);
    side.tell(&Event::Connected(CONNECTION));
    assert_eq!(side.stack.sent[&FIRST], b"GET /");
    assert!(side.stack.finished.is_empty());
    (side.stack.streams_allowed, side.stack.room) = (2, 100);
    side.tell(&Event::Writable(CONNECTION, FIRST));
    side.tell(&Event::MoreStreams(CONNECTION));
    assert_eq!(side.stack.sent[&FIRST], b"GET /a\r\n");
    assert_eq!(side.stack.sent[&SECOND], b"GET /b\r\n");
    assert_eq!(side.stack.finished, [FIRST, SECOND]);
}

#[test]
fn a_client_whose_connection_ends_is_done_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let mut side = Side::new("client", folder.path(), &["/a"]).unwrap();
    side.tell(&Event::Connected(CONNECTION));
    side.tell(&Event::Closed(CONNECTION, Closing::IdleTimeout));
    assert!(side.application.is_done());
    assert_eq!(
        side.application.finish().unwrap().error.as_deref(),
        Some("idle timeout")
    );
}

#[test]
fn a_client_does_not_write_outside_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    for path in ["/../a", "/", "", "//etc/a", "/a/../../b"] {
        let error = Side::new("client", folder.path(), &[path])
            .err()
            .expect(path);
        assert!(error.to_string().starts_with("requests = "), "{error}");
    }
}

#[test]
fn a_resuming_client_waits_for_reply_and_ticket_and_goes_on_at_once() {
    for ticket_first in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["/a", "/b", "/c"];
        let mut side = Side::of("resumption", "client", folder.path(), &paths).unwrap();
        side.tell(&Event::Connected(CONNECTION));
        assert_eq!(side.stack.finished, [FIRST]);
        side.arrive(FIRST, b"one", Ok(Read::Finished));
        let mut events = [
            Event::Ticket(CONNECTION),
            Event::Readable(CONNECTION, FIRST),
        ];
        if !ticket_first {
            events.reverse();
        }
        side.tell(&events[0]);
        assert_eq!((side.stack.closed, side.stack.connections.len()), (None, 1));
        side.tell(&events[1]);
        assert_eq!(side.stack.closed.take(), Some(0));
        assert_eq!(
            side.stack.connections,
            [Resume::Nothing, Resume::Session],
            "at once"
        );
        assert!(!side.application.is_done());

        side.stack.sent.clear();
        let closed = Event::Closed(CONNECTION, Closing::IdleTimeout);
        side.tell(&closed);
        assert!(side.stack.sent.is_empty(), "nothing before the handshake");
        side.tell(&Event::Connected(OTHER));
        assert_eq!(side.stack.sent[&FIRST], b"GET /b\r\n");
        assert_eq!(side.stack.sent[&SECOND], b"GET /c\r\n");
        for stream in [FIRST, SECOND] {
            side.arrive(stream, b"more", Ok(Read::Finished));
            side.tell(&Event::Readable(OTHER, stream));
        }
        assert!(side.application.is_done() && side.stack.closed == Some(0));
        let bye = side.application.finish().unwrap();
        assert_eq!((bye.handshake_ns, bye.error), (Some(1_000_000), None));
        let bytes: Vec<_> = bye.requests.iter().map(|request| request.bytes).collect();
        assert_eq!(bytes, [3, 4, 4]);
    }
}

#[test]
fn a_client_with_early_data_asks_before_the_handshake_and_again_if_that_is_rejected() {
    for rejected in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["/a", "/b", "/c"];
        let mut side = Side::of("zerortt", "client", folder.path(), &paths).unwrap();
        side.tell(&Event::Connected(CONNECTION));
        side.tell(&Event::Ticket(CONNECTION));
        side.arrive(FIRST, b"one", Ok(Read::Finished));
        side.stack.sent.clear();
        side.stack.finished.clear();
        side.tell(&Event::Readable(CONNECTION, FIRST));
        assert_eq!(side.stack.connections, [Resume::Nothing, Resume::EarlyData]);
        assert_eq!(side.stack.finished, [FIRST, SECOND]);
        if rejected {
            side.stack.sent.clear();
            side.stack.opened = 0;
            side.tell(&Event::EarlyDataRejected(OTHER));
            assert!(side.stack.sent.is_empty());
        }
        side.tell(&Event::Connected(OTHER));
        let asked = if rejected { 4 } else { 2 };
        assert_eq!(side.stack.finished.len(), asked);
        assert_eq!(side.stack.sent[&FIRST], b"GET /b\r\n");
        assert_eq!(side.stack.sent[&SECOND], b"GET /c\r\n");
        for stream in [FIRST, SECOND] {
            side.arrive(stream, b"more", Ok(Read::Finished));
            side.tell(&Event::Readable(OTHER, stream));
        }
        assert!(side.application.is_done());
        assert_eq!(side.application.finish().unwrap().error, None);
    }
}

#[test]
fn an_uploading_client_sends_the_file_as_there_is_room_and_waits_for_fin() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "0123456789").unwrap();
    let mut side = Side::of("upload", "client", folder.path(), &["/a"]).unwrap();
    side.stack.room = 12;
    side.tell(&Event::Connected(CONNECTION));
    assert_eq!(side.stack.sent[&FIRST], b"PUT /a\r\n0123");
    assert!(side.stack.finished.is_empty());
    side.stack.room = 100;
    side.tell(&Event::Writable(CONNECTION, FIRST));
    assert_eq!(side.stack.sent[&FIRST], b"PUT /a\r\n0123456789");
    assert_eq!(side.stack.finished, [FIRST]);
    side.arrive(FIRST, b"", Ok(Read::Blocked));
    side.tell(&Event::Readable(CONNECTION, FIRST));
    assert!(!side.application.is_done());
    side.arrive(FIRST, b"", Ok(Read::Finished));
    side.tell(&Event::Readable(CONNECTION, FIRST));
    assert!(side.application.is_done());
    let bye = side.application.finish().unwrap();
    let request = &bye.requests[0];
    assert_eq!(
        (request.bytes, request.first_byte_ns, request.last_byte_ns),
        (10, Some(1_000_000), Some(4_000_000))
    );
    assert_eq!(bye.error, None);
}

#[test]
fn an_uploading_client_says_what_the_server_did_wrong() {
    let finished = Ok(Read::Finished);
    for (room, answer, then, words) in [
        (12, &b""[..], finished, "before it had the file"),
        (100, b"thanks", finished, "with 6 bytes"),
        (12, b"", Err(StreamEnd::ByPeer(1)), "reset by the server"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "0123456789").unwrap();
        let mut side = Side::of("upload", "client", folder.path(), &["/a"]).unwrap();
        side.stack.room = room;
        side.tell(&Event::Connected(CONNECTION));
        side.arrive(FIRST, answer, then);
        side.tell(&Event::Readable(CONNECTION, FIRST));
        assert!(side.application.is_done());
        let error = side.application.finish().unwrap().error.unwrap();
        assert!(error.contains(words), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let absent = Side::of("upload", "client", folder.path(), &["/a"]).err();
    assert!(absent.unwrap().to_string().contains("within the www"));
}
