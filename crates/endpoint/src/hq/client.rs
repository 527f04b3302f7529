//! The client: asks for everything at once, stores the replies, closes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use crate::contract::{Bye, RequestReport};
use crate::error::EndpointError;
use crate::setup::Setup;
use crate::stack::{ConnectionKey, Event, Read, Stack, StreamEnd, StreamKey};

use super::{REFUSED, describe, nanos};

const BUFFER_BYTES: usize = 1 << 18;

/// A client and its requests.
#[derive(Debug)]
pub struct Client {
    remote: SocketAddr,
    requests: Vec<Request>,
    /// Which request a stream carries.
    streams: BTreeMap<StreamKey, usize>,
    /// The first request that has no stream yet.
    unasked: usize,
    unanswered: usize,
    connected_at: Option<Duration>,
    error: Option<String>,
    done: bool,
}

#[derive(Debug)]
struct Request {
    /// What is left to be sent of `GET /path\r\n`.
    question: Bytes,
    file: PathBuf,
    writer: Option<BufWriter<File>>,
    report: RequestReport,
    ended: bool,
}

impl Client {
    /// A client with the requests of `setup`.
    pub fn new(setup: &Setup) -> Result<Self, EndpointError> {
        let missing = |field| EndpointError::Field {
            field,
            value: String::new(),
            problem: "a client needs it (endpoints/CONTRACT.md)".into(),
        };
        let downloads = setup
            .downloads
            .as_deref()
            .ok_or_else(|| missing("downloads"))?;
        let remote = setup.remote.ok_or_else(|| missing("remote"))?;
        let requests: Vec<_> = setup
            .requests
            .iter()
            .map(|url| Request::new(url, downloads))
            .collect::<Result<_, _>>()?;
        let unanswered = requests.len();
        Ok(Self {
            remote,
            requests,
            streams: BTreeMap::new(),
            unasked: 0,
            unanswered,
            connected_at: None,
            error: None,
            done: false,
        })
    }

    /// Starts the connection.
    pub fn start(&mut self, stack: &mut impl Stack, now: Duration) -> Result<(), EndpointError> {
        stack.connect(now, self.remote).map(drop)
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
                self.connected_at = Some(now);
                self.ask(stack, connection);
            }
            Event::MoreStreams(connection) => self.ask(stack, connection),
            Event::Writable(connection, stream) => self.send(stack, connection, stream),
            Event::Readable(connection, stream) => self.receive(stack, now, connection, stream)?,
            Event::Opened(connection, stream) => {
                stack.stop(connection, stream, REFUSED);
                stack.reset(connection, stream, REFUSED);
            }
            Event::Closed(_, ref closing) => {
                self.fail(describe(closing));
                self.done = true;
            }
        }
        let (Event::Connected(connection) | Event::Readable(connection, _)) = *event else {
            return Ok(());
        };
        if self.unanswered == 0 && !self.done {
            stack.close(now, connection, 0);
            self.done = true;
        }
        Ok(())
    }

    /// Whether every request has ended and the connection is closed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Completes the files and says what happened.
    pub fn finish(self) -> Result<Bye, EndpointError> {
        let mut requests = Vec::with_capacity(self.requests.len());
        for mut request in self.requests {
            if let Some(writer) = &mut request.writer {
                writer.flush().map_err(EndpointError::file(&request.file))?;
            }
            requests.push(request.report);
        }
        Ok(Bye {
            handshake_ns: self.connected_at.map(nanos),
            requests,
            error: self.error,
        })
    }

    /// Opens streams for as many requests as the server allows.
    fn ask(&mut self, stack: &mut impl Stack, connection: ConnectionKey) {
        while self.unasked < self.requests.len() {
            let Some(stream) = stack.open(connection) else {
                return;
            };
            self.streams.insert(stream, self.unasked);
            self.unasked += 1;
            self.send(stack, connection, stream);
        }
    }

    fn send(&mut self, stack: &mut impl Stack, connection: ConnectionKey, stream: StreamKey) {
        let Some(request) = self
            .streams
            .get(&stream)
            .map(|index| &mut self.requests[*index])
        else {
            return;
        };
        if request.question.is_empty() {
            return;
        }
        // A server that wants no more of the question may answer all the same: reading will tell.
        let sent = stack.write(connection, stream, &mut request.question);
        if sent.is_ok() && request.question.is_empty() {
            let _ = stack.finish(connection, stream);
        }
    }

    fn receive(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        connection: ConnectionKey,
        stream: StreamKey,
    ) -> Result<(), EndpointError> {
        let Some(index) = self.streams.get(&stream) else {
            return Ok(());
        };
        let request = &mut self.requests[*index];
        let mut result = Ok(());
        let read = stack.read(connection, stream, &mut |bytes| {
            if result.is_ok() {
                result = request.store(now, &bytes);
            }
        });
        result?;
        let failure = match read {
            Ok(Read::Blocked) => return Ok(()),
            Ok(Read::Finished) => {
                // An empty reply is a file, too.
                request.open()?;
                None
            }
            Err(StreamEnd::ByPeer(code)) => Some(format!("reset by the server with code {code}")),
            Err(StreamEnd::NotOpen) => Some("the stream closed".to_owned()),
        };
        if !request.ended {
            request.ended = true;
            self.unanswered -= 1;
            if let Some(failure) = failure {
                let words = format!("{}: {failure}", request.report.path);
                self.fail(words);
            }
        }
        Ok(())
    }

    /// Keeps the first reason.
    fn fail(&mut self, words: String) {
        self.error.get_or_insert(words);
    }
}

impl Request {
    fn new(url: &str, downloads: &Path) -> Result<Self, EndpointError> {
        let problem = |problem: &str| EndpointError::Field {
            field: "requests",
            value: url.to_owned(),
            problem: problem.to_owned(),
        };
        let path = url
            .strip_prefix("https://")
            .and_then(|rest| rest.find('/').map(|start| &rest[start..]))
            .ok_or_else(|| problem("write a URL such as https://server:443/1024"))?;
        let relative = Path::new(&path[1..]);
        if !relative
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
            || relative.as_os_str().is_empty()
        {
            return Err(problem(
                "its path must name a file within the downloads folder",
            ));
        }
        Ok(Self {
            question: format!("GET {path}\r\n").into(),
            file: downloads.join(relative),
            writer: None,
            report: RequestReport {
                path: path.to_owned(),
                ..RequestReport::default()
            },
            ended: false,
        })
    }

    /// The file of the reply, made when it is needed first.
    fn open(&mut self) -> Result<&mut BufWriter<File>, EndpointError> {
        if self.writer.is_none() {
            if let Some(folder) = self.file.parent() {
                fs::create_dir_all(folder).map_err(EndpointError::file(folder))?;
            }
            let file = File::create(&self.file).map_err(EndpointError::file(&self.file))?;
            self.writer = Some(BufWriter::with_capacity(BUFFER_BYTES, file));
        }
        Ok(self.writer.as_mut().expect("made above"))
    }

    fn store(&mut self, now: Duration, bytes: &[u8]) -> Result<(), EndpointError> {
        let written = self.open()?.write_all(bytes);
        written.map_err(EndpointError::file(&self.file))?;
        self.report.bytes += bytes.len() as u64;
        self.report.first_byte_ns.get_or_insert(nanos(now));
        self.report.last_byte_ns = Some(nanos(now));
        Ok(())
    }
}
