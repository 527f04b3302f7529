//! The client: stores each frame that comes whole, and says when.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use super::header::Header;
use super::{Carrier, FrameStream, QUESTION, REFUSED};
use crate::contract::{Bye, RequestReport, Statistics};
use crate::error::EndpointError;
use crate::files::Download;
use crate::reassembly::{Reassembly, ReassemblyError};
use crate::setup::Setup;
use crate::stack::{Closing, ConnectionKey, Event, Read, Stack, StreamKey};
use crate::tickets::Resume;
use crate::words::{describe, missing, nanos};

/// A larger frame is none.
const LARGEST: u32 = 1 << 24;

/// A viewer of frames.
#[derive(Debug)]
pub struct Viewer {
    remote: SocketAddr,
    over: Carrier,
    /// The trial's time zero, since 1970.
    zero: Duration,
    connection: Option<ConnectionKey>,
    /// The stream of its question; `None`: it was not asked yet.
    question: Option<StreamKey>,
    frames: Vec<Frame>,
    /// Streams of frames that are not whole.
    streams: BTreeMap<StreamKey, Incoming>,
    connected_at: Option<Duration>,
    error: Option<String>,
    is_done: bool,
}

/// A frame that is waited for.
#[derive(Debug)]
struct Frame {
    download: Download,
    report: RequestReport,
    /// The header of its first part.
    header: Option<Header>,
    /// Its parts, where they come in DATAGRAM frames.
    parts: Reassembly,
}

/// A stream that a frame comes on.
#[derive(Debug, Default)]
struct Incoming {
    /// The bytes received so far, the header first.
    bytes: Vec<u8>,
    /// The frame knows of it.
    is_known: bool,
}

impl Frame {
    /// The frame of a request.
    fn new(folder: &Path, url: &str) -> Result<Self, EndpointError> {
        let (path, download) = Download::of_url(folder, url)?;
        let report = RequestReport {
            path: path.to_owned(),
            ..RequestReport::default()
        };
        Ok(Self {
            download,
            report,
            header: None,
            parts: Reassembly::default(),
        })
    }

    /// Takes the header of a part: all of them say the same of the frame, whose time is counted
    /// from `zero`. The error says what differs.
    fn meet(&mut self, header: Header, zero: Duration) -> Result<(), String> {
        let first = *self.header.get_or_insert(header);
        if (first.made_ns, first.size) != (header.made_ns, header.size) {
            return Err(format!("frame {} has two headers", header.number));
        }
        let made = Duration::from_nanos(header.made_ns).saturating_sub(zero);
        self.report.asked_ns = Some(nanos(made));
        Ok(())
    }

    /// Stores the whole frame.
    fn complete(&mut self, now: Duration, body: &[Bytes]) -> Result<(), EndpointError> {
        self.report.last_byte_ns = Some(nanos(now));
        for bytes in body {
            self.download.write(bytes)?;
        }
        self.download.complete()
    }
}

impl Viewer {
    /// A viewer of the frames of `stream` that `setup.requests` name.
    pub fn new(setup: &Setup, stream: &FrameStream) -> Result<Self, EndpointError> {
        let folder = setup.downloads.as_deref();
        let folder = folder.ok_or_else(|| missing("downloads"))?;
        let frames = setup.requests.iter().map(|url| Frame::new(folder, url));
        Ok(Self {
            remote: setup.remote.ok_or_else(|| missing("remote"))?,
            over: stream.over,
            zero: setup.clock.start_unix(),
            connection: None,
            question: None,
            frames: frames.collect::<Result<_, EndpointError>>()?,
            streams: BTreeMap::new(),
            connected_at: None,
            error: None,
            is_done: false,
        })
    }

    /// Opens the connection.
    pub fn start(&mut self, stack: &mut impl Stack, now: Duration) -> Result<(), EndpointError> {
        self.connection = Some(stack.connect(now, self.remote, Resume::Nothing)?);
        Ok(())
    }

    /// Tells it what happened at `now`.
    pub fn handle(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        event: &Event,
    ) -> Result<(), EndpointError> {
        match *event {
            Event::Connected(connection) => {
                self.connected_at.get_or_insert(now);
                self.ask(stack, connection);
            }
            Event::MoreStreams(connection) => self.ask(stack, connection),
            Event::Readable(connection, stream) if self.question == Some(stream) => {
                self.hear(stack, now, connection, stream);
            }
            Event::OpenedOneWay(connection, stream) if self.over == Carrier::Streams => {
                self.streams.insert(stream, Incoming::default());
                self.read(stack, now, connection, stream)?;
            }
            Event::OpenedOneWay(connection, stream) => {
                stack.stop(connection, stream, REFUSED);
                self.fail("a frame came on a stream, not in DATAGRAM frames".to_owned());
            }
            Event::Readable(connection, stream) => self.read(stack, now, connection, stream)?,
            Event::DatagramFrame(_, ref bytes) if self.over == Carrier::Datagrams => {
                self.take_part(now, bytes)?;
            }
            Event::DatagramFrame(..) => {
                self.fail("a frame came in a DATAGRAM frame, not on a stream".to_owned());
            }
            Event::Opened(connection, stream) => {
                stack.stop(connection, stream, REFUSED);
                stack.reset(connection, stream, REFUSED);
            }
            Event::Closed(_, ref closing) => self.lose(closing),
            Event::Writable(..) | Event::Ticket(_) | Event::EarlyDataRejected(_) => {}
        }
        Ok(())
    }

    /// Whether the connection is closed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Says what happened.
    pub fn finish(self) -> Result<Bye, EndpointError> {
        let mut requests = Vec::new();
        for mut frame in self.frames {
            frame.download.close()?;
            requests.push(frame.report);
        }
        Ok(Bye {
            handshake_ns: self.connected_at.map(nanos),
            requests,
            error: self.error,
            statistics: Statistics::default(),
        })
    }

    fn lose(&mut self, closing: &Closing) {
        self.fail(describe(closing));
        self.is_done = true;
    }

    fn ask(&mut self, stack: &mut impl Stack, connection: ConnectionKey) {
        if self.question.is_some() || self.connection != Some(connection) {
            return;
        }
        let Some(stream) = stack.open(connection) else {
            return;
        };
        self.question = Some(stream);
        let mut question = Bytes::from_static(QUESTION);
        let asked = stack.write(connection, stream, &mut question);
        let asked = asked.and_then(|()| stack.finish(connection, stream));
        if asked.is_err() || !question.is_empty() {
            self.fail("the question was not taken".to_owned());
        }
    }

    /// The answer to the question ends when all frames are over.
    fn hear(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        connection: ConnectionKey,
        stream: StreamKey,
    ) {
        match stack.read(connection, stream, &mut |_| ()) {
            Ok(Read::Blocked) => return,
            Ok(Read::Finished) => {}
            Err(_) => self.fail("the question was refused".to_owned()),
        }
        stack.close(now, connection, 0);
        self.is_done = true;
    }

    /// Reads a frame that has a separate stream.
    fn read(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        connection: ConnectionKey,
        stream: StreamKey,
    ) -> Result<(), EndpointError> {
        let Some(mut incoming) = self.streams.remove(&stream) else {
            return Ok(());
        };
        let read = stack.read(connection, stream, &mut |it| incoming.bytes.extend(it));
        let header = match self.note(now, &mut incoming) {
            Ok(header) => header,
            Err(fault) => {
                stack.stop(connection, stream, REFUSED);
                self.fail(fault);
                return Ok(());
            }
        };
        match (read, header) {
            (Ok(Read::Blocked), _) => {
                self.streams.insert(stream, incoming);
            }
            (Ok(Read::Finished), Some(Header { number, size, .. })) => {
                let body = Bytes::from(incoming.bytes).slice(Header::LENGTH..);
                if body.len() == size as usize {
                    self.frames[number as usize].complete(now, &[body])?;
                } else {
                    let came = body.len();
                    self.fail(format!("frame {number}: {came} of {size} bytes, and FIN"));
                }
            }
            (Ok(Read::Finished), None) => {
                self.fail("a stream ended within the header of its frame".to_owned());
            }
            // Its time was over.
            (Err(_), _) => {}
        }
        Ok(())
    }

    /// Tells the frame of a stream what has come of it, and gives its header, if that has. The
    /// error says what is wrong with it.
    fn note(&mut self, now: Duration, incoming: &mut Incoming) -> Result<Option<Header>, String> {
        let Some((header, body)) = Header::decode(&incoming.bytes) else {
            return Ok(None);
        };
        let is_known = std::mem::replace(&mut incoming.is_known, true);
        let zero = self.zero;
        let frame = self.frame(header, body.len())?;
        if !is_known && frame.header.is_some() {
            return Err(format!("frame {} came on two streams", header.number));
        }
        frame.meet(header, zero)?;
        frame.report.bytes = body.len() as u64;
        if !body.is_empty() {
            frame.report.first_byte_ns.get_or_insert(nanos(now));
        }
        Ok(Some(header))
    }

    /// Takes a part of a frame, and stores the frame if that was the last one.
    fn take_part(&mut self, now: Duration, bytes: &Bytes) -> Result<(), EndpointError> {
        match self.note_part(now, bytes) {
            Ok(Some(number)) => {
                let frame = &mut self.frames[number];
                let body: Vec<Bytes> = std::iter::from_fn(|| frame.parts.pop()).collect();
                frame.complete(now, &body)
            }
            Ok(None) => Ok(()),
            Err(fault) => {
                self.fail(fault);
                Ok(())
            }
        }
    }

    /// Takes a part of a frame, and gives the number of the frame if that was the last one. What
    /// has come before counts once. The error says what is wrong with the part.
    fn note_part(&mut self, now: Duration, bytes: &Bytes) -> Result<Option<usize>, String> {
        let (header, part) = Header::decode(bytes).ok_or("a part of a frame has no header")?;
        let (zero, came) = (self.zero, part.len() as u64);
        let frame = self.frame(header, part.len())?;
        frame.meet(header, zero)?;
        let part = bytes.slice(Header::LENGTH..);
        match frame.parts.insert(u64::from(header.offset), part) {
            Ok(()) if came > 0 => {}
            Ok(()) | Err(ReassemblyError::Twice(_)) => return Ok(None),
            Err(error) => return Err(format!("frame {}: {error}", header.number)),
        }
        frame.report.bytes += came;
        frame.report.first_byte_ns.get_or_insert(nanos(now));
        let is_whole = frame.parts.next() == u64::from(header.size);
        Ok(is_whole.then_some(header.number as usize))
    }

    /// The frame of a part with `bytes` bytes. The error says why there is none.
    fn frame(&mut self, header: Header, bytes: usize) -> Result<&mut Frame, String> {
        let (count, number) = (self.frames.len(), header.number);
        let Some(frame) = self.frames.get_mut(number as usize) else {
            return Err(format!("frame {number} came, of {count} from 0"));
        };
        let end = u64::from(header.offset) + bytes as u64;
        if header.size > LARGEST || end > u64::from(header.size) {
            let size = header.size;
            return Err(format!(
                "frame {number}: bytes up to {end} came of one of {size}; {LARGEST} is the most"
            ));
        }
        Ok(frame)
    }

    /// Keeps the first reason.
    fn fail(&mut self, words: String) {
        self.error.get_or_insert(words);
    }
}
