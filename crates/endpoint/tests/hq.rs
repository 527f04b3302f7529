//! Requests and replies over a stack that is made of maps.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bentpipe_endpoint::contract::Hello;
use bentpipe_endpoint::hq::{Application, REFUSED};
use bentpipe_endpoint::{
    Closing, ConnectionKey, EndpointError, Event, Options, Read, Received, Resume, Setup, Stack,
    StreamEnd, StreamKey, TestCase, Transmit,
};
use bytes::Bytes;

const CONNECTION: ConnectionKey = ConnectionKey(0);

/// One side, with everything that it was asked to do.
#[derive(Default)]
struct Fake {
    /// How each connection was started.
    connections: Vec<Resume>,
    streams_allowed: u64,
    opened: u64,
    /// How many bytes the next writes take.
    room: usize,
    sent: BTreeMap<StreamKey, Vec<u8>>,
    finished: Vec<StreamKey>,
    resets: Vec<(StreamKey, u32)>,
    closed: Option<u32>,
    /// What can be read, and how it goes on.
    incoming: BTreeMap<StreamKey, (VecDeque<Bytes>, Result<Read, StreamEnd>)>,
}

impl Stack for Fake {
    const NAME: &'static str = "fake";
    const VERSION: &'static str = "fake 1";
    const TEST_CASES: &'static [TestCase] = &TestCase::ALL;

    fn new(_: &Setup, _: &mut Options) -> Result<Self, EndpointError> {
        Ok(Self {
            room: usize::MAX,
            ..Self::default()
        })
    }
    fn connect(
        &mut self,
        _: Duration,
        _: SocketAddr,
        resume: Resume,
    ) -> Result<ConnectionKey, EndpointError> {
        self.connections.push(resume);
        self.opened = 0;
        Ok(ConnectionKey(self.connections.len() - 1))
    }
    fn handle_datagram(&mut self, _: Duration, _: Received) {}
    fn next_timeout(&mut self) -> Option<Duration> {
        None
    }
    fn handle_timeout(&mut self, _: Duration) {}
    fn poll_transmit(&mut self, _: Duration, _: usize, _: &mut Vec<u8>) -> Option<Transmit> {
        None
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn open(&mut self, _: ConnectionKey) -> Option<StreamKey> {
        let more = self.opened < self.streams_allowed;
        self.opened += u64::from(more);
        more.then(|| StreamKey(4 * (self.opened - 1)))
    }
    fn write(
        &mut self,
        _: ConnectionKey,
        stream: StreamKey,
        data: &mut Bytes,
    ) -> Result<(), StreamEnd> {
        let written = data.split_to(data.len().min(self.room));
        self.room -= written.len();
        self.sent
            .entry(stream)
            .or_default()
            .extend_from_slice(&written);
        Ok(())
    }
    fn finish(&mut self, _: ConnectionKey, stream: StreamKey) -> Result<(), StreamEnd> {
        self.finished.push(stream);
        Ok(())
    }
    fn reset(&mut self, _: ConnectionKey, stream: StreamKey, code: u32) {
        self.resets.push((stream, code));
    }
    fn stop(&mut self, _: ConnectionKey, _: StreamKey, _: u32) {}
    fn read(
        &mut self,
        _: ConnectionKey,
        stream: StreamKey,
        sink: &mut dyn FnMut(Bytes),
    ) -> Result<Read, StreamEnd> {
        let (chunks, then) = self.incoming.get_mut(&stream).ok_or(StreamEnd::NotOpen)?;
        chunks.drain(..).for_each(sink);
        *then
    }
    fn close(&mut self, _: Duration, _: ConnectionKey, code: u32) {
        self.closed = Some(code);
    }
}

/// An application, its stack, and a clock that counts calls in milliseconds.
struct Side {
    application: Application,
    stack: Fake,
    now: Duration,
}

impl Side {
    fn new(role: &str, folder: &Path, requests: &[&str]) -> Result<Self, EndpointError> {
        Self::of("transfer", role, folder, requests)
    }

    fn of(
        testcase: &str,
        role: &str,
        folder: &Path,
        requests: &[&str],
    ) -> Result<Self, EndpointError> {
        let setup = Setup::from_hello(Hello {
            contract: 1,
            role: role.into(),
            testcase: testcase.into(),
            requests: requests
                .iter()
                .map(|path| format!("https://server:443{path}"))
                .collect(),
            options: BTreeMap::new(),
            seed: "0".into(),
            epoch_unix_s: 946_684_800,
            local: "192.0.2.1:1".into(),
            remote: "192.0.2.2:2".into(),
            www: Some(folder.to_owned()),
            downloads: Some(folder.to_owned()),
            certs: folder.to_owned(),
            keylog: None,
            qlog: None,
        })?;
        let mut application = Application::new(&setup)?;
        let mut stack = Fake::new(&setup, &mut Options::new(BTreeMap::new()))?;
        stack.streams_allowed = 100;
        application.start(&mut stack, Duration::ZERO)?;
        Ok(Self {
            application,
            stack,
            now: Duration::ZERO,
        })
    }

    fn tell(&mut self, event: &Event) {
        self.now += Duration::from_millis(1);
        self.application
            .handle(&mut self.stack, self.now, event)
            .unwrap();
    }

    fn arrive(&mut self, stream: StreamKey, bytes: &'static [u8], then: Result<Read, StreamEnd>) {
        let chunks = [Bytes::from_static(bytes)]
            .into_iter()
            .filter(|bytes| !bytes.is_empty());
        self.stack.incoming.insert(stream, (chunks.collect(), then));
    }
}

const FIRST: StreamKey = StreamKey(0);
const SECOND: StreamKey = StreamKey(4);

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
    let questions: [&'static [u8]; 4] = [
        b"GET /absent\r\n",
        b"GET /../x\r\n",
        b"HEAD /\r\n",
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
}

#[test]
fn a_server_is_done_when_all_its_connections_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut side = Side::new("server", folder.path(), &[]).unwrap();
    assert!(!side.application.is_done());
    let other = ConnectionKey(1);
    side.tell(&Event::Connected(CONNECTION));
    side.tell(&Event::Connected(other));
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
    side.tell(&Event::Closed(other, wrong));
    assert!(side.application.is_done());
    let error = side.application.finish().unwrap().error.unwrap();
    assert_eq!(error, "closed by peer: application error 9, bored");
}
