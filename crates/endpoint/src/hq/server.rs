//! The server: answers `GET /path` with the file, or with `RESET_STREAM`; in `upload` it stores
//! what `PUT /path` brings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use crate::contract::{Bye, Statistics};
use crate::error::EndpointError;
use crate::files::ServedFolder;
use crate::setup::Setup;
use crate::stack::{Closing, ConnectionKey, Event, Read, Stack, StreamKey};
use crate::test_case::TestCase;
use crate::words::{describe, missing, nanos};

use super::upload::Upload;
use super::{LONGEST_QUESTION, REFUSED};

/// A server, its files and its replies under way.
#[derive(Debug)]
pub struct Server {
    files: Files,
    exchanges: BTreeMap<(ConnectionKey, StreamKey), Exchange>,
    connected_at: Option<Duration>,
    /// Connections that are not closed, from the end of their handshake or their first early data.
    open: BTreeSet<ConnectionKey>,
    /// Whether there ever was one, be it one that failed.
    had_any: bool,
    error: Option<String>,
}

#[derive(Debug)]
enum Files {
    /// They are asked for.
    Sent(ServedFolder),
    /// They are stored in this folder.
    Stored(PathBuf),
}

#[derive(Debug)]
enum Exchange {
    Asking(Vec<u8>),
    /// The rest of the reply.
    Answering(Bytes),
    Storing(Upload),
}

/// The state of a request after more of it has arrived.
enum RequestProgress {
    NotAll,
    Answer(Bytes),
    /// The file is here: FIN is the answer.
    Stored,
    Refused,
}

impl Server {
    /// A server of the files in `setup.www`; in `upload` of the folder `setup.downloads`.
    pub fn new(setup: &Setup) -> Result<Self, EndpointError> {
        let files = if setup.test_case == TestCase::Upload {
            let folder = setup.downloads.clone();
            Files::Stored(folder.ok_or_else(|| missing("downloads"))?)
        } else {
            let www = setup.www.as_deref().ok_or_else(|| missing("www"))?;
            Files::Sent(ServedFolder::new(www)?)
        };
        Ok(Self {
            files,
            exchanges: BTreeMap::new(),
            connected_at: None,
            open: BTreeSet::new(),
            had_any: false,
            error: None,
        })
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
                self.had_any = true;
                self.open.insert(connection);
            }
            Event::Opened(connection, stream) => {
                // Early data come before the handshake is complete.
                self.had_any = true;
                self.open.insert(connection);
                let exchange = match self.files {
                    Files::Sent(_) => Exchange::Asking(Vec::new()),
                    Files::Stored(_) => Exchange::Storing(Upload::Line(Vec::new())),
                };
                self.exchanges.insert((connection, stream), exchange);
                self.listen(stack, connection, stream)?;
            }
            Event::Readable(connection, stream) => self.listen(stack, connection, stream)?,
            Event::Writable(connection, stream) => self.answer(stack, connection, stream),
            Event::Closed(connection, ref closing) => self.close(connection, closing),
            Event::OpenedOneWay(connection, stream) => stack.stop(connection, stream, REFUSED),
            Event::Ticket(_)
            | Event::EarlyDataRejected(_)
            | Event::DatagramFrame(..)
            | Event::MoreStreams(_) => {}
        }
        Ok(())
    }

    /// Whether there was a connection and there is none any more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.had_any && self.open.is_empty()
    }

    /// Completes the files and says what happened.
    pub fn finish(self) -> Result<Bye, EndpointError> {
        for exchange in self.exchanges.into_values() {
            if let Exchange::Storing(Upload::File(mut download)) = exchange {
                download.close()?;
            }
        }
        Ok(Bye {
            handshake_ns: self.connected_at.map(nanos),
            requests: Vec::new(),
            error: self.error,
            statistics: Statistics::default(),
        })
    }

    fn close(&mut self, connection: ConnectionKey, closing: &Closing) {
        self.had_any = true;
        self.open.remove(&connection);
        self.exchanges.retain(|(owner, _), _| *owner != connection);
        let regular = matches!(closing, Closing::Application { code: 0, .. });
        if !regular {
            self.error.get_or_insert_with(|| describe(closing));
        }
    }

    fn listen(
        &mut self,
        stack: &mut impl Stack,
        connection: ConnectionKey,
        stream: StreamKey,
    ) -> Result<(), EndpointError> {
        let key = (connection, stream);
        match self.hear(stack, connection, stream)? {
            RequestProgress::NotAll => {}
            RequestProgress::Answer(reply) => {
                self.exchanges.insert(key, Exchange::Answering(reply));
                self.answer(stack, connection, stream);
            }
            RequestProgress::Stored => {
                self.exchanges.remove(&key);
                let _ = stack.finish(connection, stream);
            }
            RequestProgress::Refused => {
                self.exchanges.remove(&key);
                stack.stop(connection, stream, REFUSED);
                stack.reset(connection, stream, REFUSED);
            }
        }
        Ok(())
    }

    /// Reads what there is of a question.
    fn hear(
        &mut self,
        stack: &mut impl Stack,
        connection: ConnectionKey,
        stream: StreamKey,
    ) -> Result<RequestProgress, EndpointError> {
        let exchange = self.exchanges.get_mut(&(connection, stream));
        Ok(match (exchange, &mut self.files) {
            (Some(Exchange::Asking(question)), Files::Sent(www)) => {
                let read = stack.read(connection, stream, &mut |bytes| {
                    if question.len() <= LONGEST_QUESTION {
                        question.extend_from_slice(&bytes);
                    }
                });
                match read {
                    Ok(Read::Blocked) if question.len() <= LONGEST_QUESTION => {
                        RequestProgress::NotAll
                    }
                    Ok(Read::Finished) => parse_question(question)
                        .and_then(|path| www.load(path))
                        .map_or(RequestProgress::Refused, RequestProgress::Answer),
                    _ => RequestProgress::Refused,
                }
            }
            (Some(Exchange::Storing(upload)), Files::Stored(folder)) => {
                let mut result = Ok(());
                let read = stack.read(connection, stream, &mut |bytes| {
                    if result.is_ok() {
                        result = upload.take(folder, &bytes);
                    }
                });
                result?;
                match read {
                    Ok(Read::Blocked) if !matches!(upload, Upload::Refused) => {
                        RequestProgress::NotAll
                    }
                    Ok(Read::Finished) if upload.complete()? => RequestProgress::Stored,
                    _ => RequestProgress::Refused,
                }
            }
            // Another event of a stream that has had its answer.
            _ => RequestProgress::NotAll,
        })
    }

    fn answer(&mut self, stack: &mut impl Stack, connection: ConnectionKey, stream: StreamKey) {
        let key = (connection, stream);
        let Some(Exchange::Answering(rest)) = self.exchanges.get_mut(&key) else {
            return;
        };
        match stack.write(connection, stream, rest) {
            Ok(()) if !rest.is_empty() => return,
            Ok(()) => {
                let _ = stack.finish(connection, stream);
            }
            // The client wants no more of it.
            Err(_) => stack.reset(connection, stream, REFUSED),
        }
        self.exchanges.remove(&key);
    }
}

/// The path of `GET /path\r\n`, without its first slash.
fn parse_question(question: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(question)
        .ok()?
        .trim_end_matches(['\r', '\n']);
    line.strip_prefix("GET /").filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_one_line() {
        assert_eq!(parse_question(b"GET /a/b\r\n"), Some("a/b"));
        assert_eq!(parse_question(b"GET /a"), Some("a"));
        for wrong in [&b"GET /"[..], b"GET a", b"PUT /a\r\n", b"", b"GET /\xff"] {
            assert_eq!(parse_question(wrong), None);
        }
    }
}
