//! The behaviour of a server.

use std::fs;

use bentpipe_endpoint::hq::REFUSED;
use bentpipe_endpoint::{Closing, Event, Read, StreamKey};

use crate::fake::{CONNECTION, FIRST, OTHER, SECOND, Side};

#[test]
fn a_server_answers_with_the_file_as_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "0123456789").unwrap();
    let mut side = Side::new("server", folder.path(), &[]).unwrap();
    side.tell(&Event::Connected(CONNECTION));
    side.stack.room = 4;
    side.arrive(FIRST, b"GET /", Ok(Read::Blocked));
    side.tell(&Event::Opened(CONNECTION, FIRST));
    assert!(side.stack.sent.is_empty());
    side.arrive(FIRST, b"a\r\n", Ok(Read::Finished));
    side.tell(&Event::Readable(CONNECTION, FIRST));
    assert_eq!(side.stack.sent[&FIRST], b"0123");
    assert!(side.stack.finished.is_empty());
    side.stack.room = 100;
    side.tell(&Event::Writable(CONNECTION, FIRST));
    assert_eq!(side.stack.sent[&FIRST], b"0123456789");
    assert_eq!(side.stack.finished, [FIRST]);
}

#[test]
fn a_server_resets_what_it_cannot_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut side = Side::new("server", folder.path(), &[]).unwrap();
    let questions: [&'static [u8]; 5] = [
        b"GET /absent\r\n",
        b"GET /../x\r\n",
        b"HEAD /\r\n",
        b"PUT /b\r\nbytes",
        &[b'x'; 5000],
    ];
    for (index, question) in (0..).zip(questions) {
        let stream = StreamKey(4 * index);
        let then = if question.len() > 4096 {
            Read::Blocked
        } else {
            Read::Finished
        };
        side.arrive(stream, question, Ok(then));
        side.tell(&Event::Opened(CONNECTION, stream));
        assert_eq!(side.stack.resets.last(), Some(&(stream, REFUSED)));
    }
    assert!(side.stack.sent.is_empty());
    assert!(!folder.path().join("b").exists());
}

#[test]
fn a_server_is_done_when_all_its_connections_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut side = Side::new("server", folder.path(), &[]).unwrap();
    assert!(!side.application.is_done());
    side.tell(&Event::Connected(CONNECTION));
    side.tell(&Event::Connected(OTHER));
    let regular = Closing::Application {
        code: 0,
        reason: String::new(),
    };
    side.tell(&Event::Closed(CONNECTION, regular));
    assert!(!side.application.is_done());
    let wrong = Closing::Application {
        code: 9,
        reason: "bored".into(),
    };
    side.tell(&Event::Closed(OTHER, wrong));
    assert!(side.application.is_done());
    let error = side.application.finish().unwrap().error.unwrap();
    assert_eq!(error, "closed by peer: application error 9, bored");
}

#[test]
fn a_server_stores_what_it_is_sent_and_answers_with_fin() {
    let folder = tempfile::tempdir().unwrap();
    let mut side = Side::of("upload", "server", folder.path(), &[]).unwrap();
    side.arrive(FIRST, b"PUT /a\r\n01", Ok(Read::Blocked));
    side.tell(&Event::Opened(CONNECTION, FIRST));
    side.arrive(FIRST, b"23", Ok(Read::Blocked));
    side.tell(&Event::Readable(CONNECTION, FIRST));
    assert!(side.stack.finished.is_empty());
    side.arrive(FIRST, b"", Ok(Read::Finished));
    side.tell(&Event::Readable(CONNECTION, FIRST));
    assert_eq!(side.stack.finished, [FIRST]);
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"0123");
    for wrong in [&b"PUT /../b\r\nbytes"[..], b"GET /a\r\n"] {
        side.arrive(SECOND, wrong, Ok(Read::Blocked));
        side.tell(&Event::Opened(CONNECTION, SECOND));
        assert_eq!(side.stack.resets.pop(), Some((SECOND, REFUSED)));
    }
    assert!(side.stack.sent.is_empty());
}
