//! One request of a client: `GET /path` and its reply, or `PUT /path` with a file.

use std::time::Duration;

use bytes::Bytes;

use crate::contract::RequestReport;
use crate::error::EndpointError;
use crate::setup::Setup;
use crate::stack::{ConnectionKey, Read, Stack, StreamEnd, StreamKey};
use crate::test_case::TestCase;

use super::REFUSED;
use crate::files::{Download, ServedFolder};
use crate::words::{missing, nanos, path_of, wrong_request};

/// A request and what became of it.
#[derive(Debug)]
pub struct Request {
    /// All of the request's first line, and what is left to be sent of it.
    line: Bytes,
    unsent_line: Bytes,
    payload: Payload,
    /// Whether FIN has been sent.
    asked: bool,
    ended: bool,
    report: RequestReport,
}

#[derive(Debug)]
enum Payload {
    /// The file for the reply.
    Reply(Download),
    /// The rest of the file that is to be sent, and the number of bytes that came in answer, where
    /// none should.
    File { unsent: Bytes, answered: usize },
}

/// The end of a request: as it should be, or why not.
pub type Ending = Result<(), String>;

impl Request {
    /// The requests of `setup`, in their order.
    pub fn all(setup: &Setup) -> Result<Vec<Self>, EndpointError> {
        if setup.test_case == TestCase::Upload {
            let www = setup.www.as_deref().ok_or_else(|| missing("www"))?;
            let mut www = ServedFolder::new(www)?;
            let upload = |url: &String| {
                let path = path_of(url);
                let file = path.and_then(|path| Some((path, www.load(&path[1..])?)));
                let problem = "its path must name a file within the www folder";
                let (path, unsent) = file.ok_or_else(|| wrong_request(url, problem))?;
                let answered = 0;
                Ok(Self::new("PUT", path, Payload::File { unsent, answered }))
            };
            return setup.requests.iter().map(upload).collect();
        }
        let folder = setup.downloads.as_deref();
        let folder = folder.ok_or_else(|| missing("downloads"))?;
        let reply = |url: &String| {
            let (path, download) = Download::of_url(folder, url)?;
            Ok(Self::new("GET", path, Payload::Reply(download)))
        };
        setup.requests.iter().map(reply).collect()
    }

    fn new(method: &str, path: &str, payload: Payload) -> Self {
        let line = Bytes::from(format!("{method} {path}\r\n"));
        Self {
            unsent_line: line.clone(),
            line,
            payload,
            asked: false,
            ended: false,
            report: RequestReport {
                path: path.to_owned(),
                ..RequestReport::default()
            },
        }
    }

    /// The request's path, with its leading slash.
    pub fn path(&self) -> &str {
        &self.report.path
    }

    /// Begins anew, after the server rejected all that was sent.
    pub fn restart(&mut self) {
        self.unsent_line = self.line.clone();
        self.asked = false;
    }

    /// Sends as much as the stream takes.
    pub fn send(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        connection: ConnectionKey,
        stream: StreamKey,
    ) {
        if self.asked {
            return;
        }
        // A server that wants no more of the request may answer all the same: reading will tell.
        let mut written = stack.write(connection, stream, &mut self.unsent_line);
        let mut all = self.unsent_line.is_empty();
        if let Payload::File { unsent, .. } = &mut self.payload
            && all
        {
            let before = unsent.len();
            written = written.and_then(|()| stack.write(connection, stream, unsent));
            if unsent.len() < before {
                self.report.bytes += (before - unsent.len()) as u64;
                self.report.first_byte_ns.get_or_insert(nanos(now));
            }
            all = unsent.is_empty();
        }
        if all && written.is_ok() {
            self.asked = true;
            let _ = stack.finish(connection, stream);
        }
    }

    /// Reads what has come of the answer; says how the request ended when it does.
    pub fn receive(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        connection: ConnectionKey,
        stream: StreamKey,
    ) -> Result<Option<Ending>, EndpointError> {
        if self.ended {
            return Ok(None);
        }
        let mut result = Ok(());
        let read = stack.read(connection, stream, &mut |bytes| {
            if result.is_ok() {
                result = self.take(now, &bytes);
            }
        });
        result?;
        let ending = match read {
            Ok(Read::Blocked) => return Ok(None),
            Ok(Read::Finished) => self.finish(now)?,
            Err(StreamEnd::ByPeer(code)) => Err(format!("reset by the server with code {code}")),
            Err(StreamEnd::NotOpen) => Err("the stream closed".to_owned()),
        };
        self.ended = true;
        if !self.asked {
            stack.reset(connection, stream, REFUSED);
        }
        Ok(Some(ending))
    }

    fn take(&mut self, now: Duration, bytes: &[u8]) -> Result<(), EndpointError> {
        match &mut self.payload {
            Payload::Reply(download) => {
                download.write(bytes)?;
                self.report.bytes += bytes.len() as u64;
                self.report.first_byte_ns.get_or_insert(nanos(now));
                self.report.last_byte_ns = Some(nanos(now));
            }
            Payload::File { answered, .. } => *answered += bytes.len(),
        }
        Ok(())
    }

    /// The answer has ended regularly.
    fn finish(&mut self, now: Duration) -> Result<Ending, EndpointError> {
        Ok(match &mut self.payload {
            // An empty reply is a file, too.
            Payload::Reply(download) => Ok(download.complete()?),
            Payload::File { .. } if !self.asked => {
                Err("the server answered before it had the file".to_owned())
            }
            Payload::File { answered: 0, .. } => {
                self.report.last_byte_ns = Some(nanos(now));
                Ok(())
            }
            Payload::File { answered, .. } => {
                Err(format!("answered with {answered} bytes, where none belong"))
            }
        })
    }

    /// Completes the file as far as it came, and says what happened.
    pub fn close(mut self) -> Result<RequestReport, EndpointError> {
        if let Payload::Reply(download) = &mut self.payload {
            download.close()?;
        }
        Ok(self.report)
    }
}
