//! The client: stores each frame that comes whole, and says when.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use super::header::Header;
use super::{EXPIRED, QUESTION};
use crate::contract::{Bye, RequestReport, Statistics};
use crate::error::EndpointError;
use crate::files::Download;
use crate::setup::Setup;
use crate::stack::{Closing, ConnectionKey, Event, Read, Resume, Stack, StreamEnd, StreamKey};
use crate::words::{describe, missing, nanos};

/// A larger frame is none.
const LARGEST: usize = 1 << 24;

/// A viewer of frames.
#[derive(Debug)]
pub struct Viewer {
    remote: SocketAddr,
    /// The trial's time zero, since 1970.
    zero: Duration,
    connection: Option<ConnectionKey>,
    /// The stream of its question; `None`: it was not asked yet.
    question: Option<StreamKey>,
    frames: Vec<(Download, RequestReport)>,
    /// Parts of frames that came in DATAGRAM frames, by number.
    parts: BTreeMap<usize, Parts>,
    /// What has come on each stream.
    streams: BTreeMap<StreamKey, Vec<u8>>,
    connected_at: Option<Duration>,
    error: Option<String>,
    is_done: bool,
}

/// A frame of which parts have come.
#[derive(Debug)]
struct Parts {
    body: Vec<u8>,
    came: usize,
}

impl Viewer {
    /// A viewer of the frames that `setup.requests` name.
    pub fn new(setup: &Setup) -> Result<Self, EndpointError> {
        let folder = setup.downloads.as_deref();
        let folder = folder.ok_or_else(|| missing("downloads"))?;
        let frame = |url: &String| {
            let (path, download) = Download::of_url(folder, url)?;
            let report = RequestReport {
                path: path.to_owned(),
                ..RequestReport::default()
            };
            Ok((download, report))
        };
        let frames = setup.requests.iter().map(frame);
        Ok(Self {
            remote: setup.remote.ok_or_else(|| missing("remote"))?,
            zero: setup.clock.start_unix(),
            connection: None,
            question: None,
            frames: frames.collect::<Result<_, EndpointError>>()?,
            parts: BTreeMap::new(),
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
            Event::OpenedOneWay(connection, stream) | Event::Readable(connection, stream) => {
                self.read(stack, now, connection, stream)?;
            }
            Event::DatagramFrame(_, ref bytes) => self.take_part(now, bytes)?,
            Event::Opened(connection, stream) => {
                stack.stop(connection, stream, EXPIRED);
                stack.reset(connection, stream, EXPIRED);
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
        for (mut download, report) in self.frames {
            download.close()?;
            requests.push(report);
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

    /// Reads a frame that has a stream of its own.
    fn read(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        connection: ConnectionKey,
        stream: StreamKey,
    ) -> Result<(), EndpointError> {
        let received = self.streams.entry(stream).or_default();
        let read = stack.read(connection, stream, &mut |bytes| received.extend(bytes));
        if received.len() > LARGEST {
            stack.stop(connection, stream, EXPIRED);
            self.fail("a frame is too large".to_owned());
            return Ok(());
        }
        let Some((header, body)) = Header::decode(received) else {
            return Ok(());
        };
        let Some((_, report)) = self.frames.get_mut(header.number as usize) else {
            self.fail(format!("frame {} is none", header.number));
            return Ok(());
        };
        let came = body.len() as u64;
        if came > 0 {
            report.first_byte_ns.get_or_insert(nanos(now));
            report.bytes = came;
        }
        match read {
            Ok(Read::Blocked) => {}
            Ok(Read::Finished) if came == u64::from(header.size) => {
                let whole = self.streams.remove(&stream).expect("it was read above");
                self.complete(now, header, &whole[Header::LENGTH..])?;
            }
            Ok(Read::Finished) => {
                self.streams.remove(&stream);
                let size = header.size;
                self.fail(format!(
                    "frame {}: {came} of {size} bytes, and FIN",
                    header.number
                ));
            }
            // Its time was over.
            Err(StreamEnd::ByPeer(_) | StreamEnd::NotOpen) => drop(self.streams.remove(&stream)),
        }
        Ok(())
    }

    /// Takes a part of a frame.
    fn take_part(&mut self, now: Duration, bytes: &[u8]) -> Result<(), EndpointError> {
        let Some((header, part)) = Header::decode(bytes) else {
            self.fail("a part of a frame has no header".to_owned());
            return Ok(());
        };
        let (number, size, offset) = (
            header.number as usize,
            header.size as usize,
            header.offset as usize,
        );
        let is_within = size <= LARGEST && offset + part.len() <= size;
        let Some((_, report)) = self.frames.get_mut(number).filter(|_| is_within) else {
            self.fail(format!("a part of frame {number} is none"));
            return Ok(());
        };
        report.first_byte_ns.get_or_insert(nanos(now));
        report.bytes += part.len() as u64;
        let parts = self.parts.entry(number).or_insert_with(|| Parts {
            body: vec![0; size],
            came: 0,
        });
        if parts.body.len() != size {
            self.fail(format!("frame {number} has two sizes"));
            return Ok(());
        }
        parts.body[offset..offset + part.len()].copy_from_slice(part);
        parts.came += part.len();
        if parts.came == size {
            let parts = self.parts.remove(&number).expect("it was found above");
            self.complete(now, header, &parts.body)?;
        }
        Ok(())
    }

    /// A frame has come whole.
    fn complete(
        &mut self,
        now: Duration,
        header: Header,
        body: &[u8],
    ) -> Result<(), EndpointError> {
        let (download, report) = &mut self.frames[header.number as usize];
        let made = Duration::from_nanos(header.made_ns).saturating_sub(self.zero);
        report.asked_ns = Some(nanos(made));
        report.last_byte_ns = Some(nanos(now));
        download.write(body)?;
        download.complete()
    }

    /// Keeps the first reason.
    fn fail(&mut self, words: String) {
        self.error.get_or_insert(words);
    }
}
