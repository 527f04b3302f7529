//! The server: answers `GET /path` with the file, or with `RESET_STREAM`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use memmap2::Mmap;

use crate::contract::Bye;
use crate::error::EndpointError;
use crate::setup::Setup;
use crate::stack::{Closing, ConnectionKey, Event, Read, Stack, StreamKey};

use super::{REFUSED, describe, nanos};

/// A question longer than this is none.
const LONGEST_QUESTION: usize = 4096;

/// A server, its files and its replies under way.
#[derive(Debug)]
pub struct Server {
    www: PathBuf,
    /// Files that have been asked for; copies share their memory.
    files: BTreeMap<PathBuf, Bytes>,
    exchanges: BTreeMap<(ConnectionKey, StreamKey), Exchange>,
    connected_at: Option<Duration>,
    /// Connections whose handshake is complete and that are not closed.
    open: BTreeSet<ConnectionKey>,
    /// Whether there ever was one, be it one that failed.
    had_any: bool,
    error: Option<String>,
}

#[derive(Debug)]
enum Exchange {
    Asking(Vec<u8>),
    /// What is left of the reply.
    Answering(Bytes),
}

impl Server {
    /// A server of the files in `setup.www`.
    pub fn new(setup: &Setup) -> Result<Self, EndpointError> {
        let www = setup.www.as_deref().ok_or_else(|| EndpointError::Field {
            field: "www",
            value: String::new(),
            problem: "a server needs it (endpoints/CONTRACT.md)".into(),
        })?;
        Ok(Self {
            www: www.canonicalize().map_err(EndpointError::file(www))?,
            files: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            connected_at: None,
            open: BTreeSet::new(),
            had_any: false,
            error: None,
        })
    }

    /// Tells it what happened at `now`.
    pub fn handle(&mut self, stack: &mut impl Stack, now: Duration, event: &Event) {
        match *event {
            Event::Connected(connection) => {
                self.connected_at.get_or_insert(now);
                self.had_any = true;
                self.open.insert(connection);
            }
            Event::Opened(connection, stream) => {
                self.exchanges
                    .insert((connection, stream), Exchange::Asking(Vec::new()));
                self.listen(stack, connection, stream);
            }
            Event::Readable(connection, stream) => self.listen(stack, connection, stream),
            Event::Writable(connection, stream) => self.answer(stack, connection, stream),
            Event::Closed(connection, ref closing) => self.close(connection, closing),
            Event::MoreStreams(_) => {}
        }
    }

    /// Whether there was a connection and there is none any more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.had_any && self.open.is_empty()
    }

    /// Says what happened.
    #[must_use]
    pub fn finish(self) -> Bye {
        let handshake_ns = self.connected_at.map(nanos);
        Bye {
            handshake_ns,
            requests: Vec::new(),
            error: self.error,
        }
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

    fn listen(&mut self, stack: &mut impl Stack, connection: ConnectionKey, stream: StreamKey) {
        let key = (connection, stream);
        let Some(Exchange::Asking(question)) = self.exchanges.get_mut(&key) else {
            return;
        };
        let read = stack.read(connection, stream, &mut |bytes| {
            if question.len() <= LONGEST_QUESTION {
                question.extend_from_slice(&bytes);
            }
        });
        let reply = match read {
            Ok(Read::Blocked) if question.len() <= LONGEST_QUESTION => return,
            Ok(Read::Finished) => parse_question(question).and_then(|path| {
                let file = locate(&self.www, path)?;
                load(&mut self.files, file)
            }),
            _ => None,
        };
        if let Some(reply) = reply {
            self.exchanges.insert(key, Exchange::Answering(reply));
            self.answer(stack, connection, stream);
        } else {
            self.exchanges.remove(&key);
            stack.stop(connection, stream, REFUSED);
            stack.reset(connection, stream, REFUSED);
        }
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

/// The file that `path` means, if there is one within `www`.
fn locate(www: &Path, path: &str) -> Option<PathBuf> {
    let file = www.join(path).canonicalize().ok()?;
    (file.starts_with(www) && file.is_file()).then_some(file)
}

/// The file's bytes, mapped once: what is not sent is not read, and nothing is copied.
#[expect(
    unsafe_code,
    reason = "whoever cuts a file that is being served gets what they ask for"
)]
fn load(files: &mut BTreeMap<PathBuf, Bytes>, path: PathBuf) -> Option<Bytes> {
    if let Some(bytes) = files.get(&path) {
        return Some(bytes.clone());
    }
    let file = File::open(&path).ok()?;
    // SAFETY: the files of a trial stay as they are until its end; they are written before it starts.
    let bytes = Bytes::from_owner(unsafe { Mmap::map(&file) }.ok()?);
    files.insert(path, bytes.clone());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn questions_are_one_line() {
        assert_eq!(parse_question(b"GET /a/b\r\n"), Some("a/b"));
        assert_eq!(parse_question(b"GET /a"), Some("a"));
        for wrong in [&b"GET /"[..], b"GET a", b"PUT /a\r\n", b"", b"GET /\xff"] {
            assert_eq!(parse_question(wrong), None);
        }
    }

    #[test]
    fn only_files_within_the_folder_are_served() {
        let root = tempfile::tempdir().unwrap();
        let www = root.path().canonicalize().unwrap().join("www");
        fs::create_dir_all(www.join("inner")).unwrap();
        fs::write(www.join("inner/file"), "inside").unwrap();
        fs::write(root.path().join("secret"), "outside").unwrap();
        std::os::unix::fs::symlink(root.path().join("secret"), www.join("link")).unwrap();
        assert_eq!(locate(&www, "inner/file"), Some(www.join("inner/file")));
        assert_eq!(
            locate(&www, "inner/../inner/file"),
            Some(www.join("inner/file"))
        );
        let absolute = root.path().join("secret");
        for wrong in [
            "absent",
            "inner",
            "../secret",
            "link",
            absolute.to_str().unwrap(),
        ] {
            assert_eq!(locate(&www, wrong), None, "{wrong}");
        }
    }
}
