//! A stack that is made of maps, and one side on top of it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bentpipe_endpoint::contract::{Hello, hq_interop};
use bentpipe_endpoint::{
    Application, ConnectionKey, EndpointError, Event, FrameStream, Options, Read, Received, Resume,
    Setup, Stack, StreamEnd, StreamKey, TestCase, Transmit,
};
use bytes::Bytes;

pub const CONNECTION: ConnectionKey = ConnectionKey(0);

/// One side, with everything that it was asked to do.
#[derive(Default)]
pub struct Fake {
    /// How each connection was started.
    pub connections: Vec<Resume>,
    pub streams_allowed: u64,
    pub opened: u64,
    /// How many bytes the next writes take.
    pub room: usize,
    pub sent: BTreeMap<StreamKey, Vec<u8>>,
    pub finished: Vec<StreamKey>,
    pub resets: Vec<(StreamKey, u32)>,
    pub stops: Vec<(StreamKey, u32)>,
    /// How many unidirectional streams may be opened, and how many were.
    pub one_way: [u64; 2],
    /// The priorities of streams, in the order in which they were set.
    pub priorities: Vec<(StreamKey, i32)>,
    /// The most bytes that a DATAGRAM frame carries; `None`: there are none.
    pub largest: Option<usize>,
    pub datagram_frames: Vec<Bytes>,
    /// They wait.
    pub is_full: bool,
    pub closed: Option<u32>,
    /// Data that can be read, and the result of reading on.
    incoming: BTreeMap<StreamKey, (VecDeque<Bytes>, Result<Read, StreamEnd>)>,
}

impl Stack for Fake {
    const NAME: &'static str = "fake";
    const VERSION: &'static str = "fake 1";
    const TEST_CASES: &'static [TestCase] = &TestCase::OF_FILES;

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
    fn open_one_way(&mut self, _: ConnectionKey) -> Option<StreamKey> {
        let [allowed, opened] = &mut self.one_way;
        let more = opened < allowed;
        *opened += u64::from(more);
        more.then(|| StreamKey(4 * (*opened - 1) + 3))
    }
    fn set_priority(&mut self, _: ConnectionKey, stream: StreamKey, priority: i32) {
        self.priorities.push((stream, priority));
    }
    fn largest_datagram_frame(&mut self, _: ConnectionKey) -> Option<usize> {
        self.largest
    }
    fn send_datagram_frame(&mut self, _: ConnectionKey, data: Bytes) {
        self.datagram_frames.push(data);
    }
    fn has_waiting_datagram_frames(&mut self, _: ConnectionKey) -> bool {
        self.is_full
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
    fn stop(&mut self, _: ConnectionKey, stream: StreamKey, code: u32) {
        self.stops.push((stream, code));
    }
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
pub struct Side {
    pub application: Application,
    pub stack: Fake,
    now: Duration,
}

impl Side {
    pub fn new(role: &str, folder: &Path, requests: &[&str]) -> Result<Self, EndpointError> {
        Self::of("transfer", role, folder, requests)
    }

    pub fn of(
        testcase: &str,
        role: &str,
        folder: &Path,
        requests: &[&str],
    ) -> Result<Self, EndpointError> {
        Self::told(testcase, role, folder, requests, None)
    }

    /// One whose HELLO has a stream of frames, if there is one.
    pub fn told(
        testcase: &str,
        role: &str,
        folder: &Path,
        requests: &[&str],
        frames: Option<FrameStream>,
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
            alpn: hq_interop(),
            page: Vec::new(),
            live: None,
            frames,
            shared_memory: None,
            paths: Vec::new(),
        })?;
        let mut options = Options::new(BTreeMap::new());
        let mut application = Application::new(&setup, &mut options)?;
        let mut stack = Fake::new(&setup, &mut options)?;
        stack.streams_allowed = 100;
        application.start(&mut stack, Duration::ZERO)?;
        Ok(Self {
            application,
            stack,
            now: Duration::ZERO,
        })
    }

    pub fn tell(&mut self, event: &Event) {
        self.now += Duration::from_millis(1);
        self.application
            .handle(&mut self.stack, self.now, event)
            .unwrap();
    }

    /// Lets time pass until `ms` milliseconds after the start.
    pub fn wait_until(&mut self, ms: u64) {
        let end = Duration::from_millis(ms);
        while let Some(next) = self.application.next_wake().filter(|it| *it <= end) {
            self.now = self.now.max(next);
            self.application.wake(&mut self.stack, self.now).unwrap();
        }
        self.now = end;
    }

    pub fn arrive(&mut self, stream: StreamKey, bytes: &[u8], then: Result<Read, StreamEnd>) {
        let chunks = [Bytes::copy_from_slice(bytes)]
            .into_iter()
            .filter(|bytes| !bytes.is_empty());
        self.stack.incoming.insert(stream, (chunks.collect(), then));
    }
}

/// Its second connection.
pub const OTHER: ConnectionKey = ConnectionKey(1);
pub const FIRST: StreamKey = StreamKey(0);
pub const SECOND: StreamKey = StreamKey(4);
