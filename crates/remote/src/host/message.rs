//! Messages: a line of JSON, with bytes behind it.

use std::io::{self, Write, stdout};
use std::mem;
use std::sync::{Arc, Mutex};

use rustix::stdio::stdin;
use serde_json::Value;

/// No line is longer.
const LINE: usize = 1 << 24;

/// A message that has come.
pub struct Message {
    /// The JSON of its line.
    pub said: Value,
    /// The bytes behind the line.
    pub bytes: Vec<u8>,
}

/// The messages that come, as far as they have.
#[derive(Default)]
pub struct Incoming {
    buffer: Vec<u8>,
    /// Up to where no line's end was found.
    looked: usize,
}

impl Incoming {
    /// Reads what is there; false at the end.
    pub fn read(&mut self) -> io::Result<bool> {
        let mut chunk = vec![0; 1 << 18];
        let count = rustix::io::retry_on_intr(|| rustix::io::read(stdin(), &mut chunk))?;
        self.buffer.extend_from_slice(&chunk[..count]);
        Ok(count > 0)
    }

    /// The next message that is there as a whole.
    pub fn next(&mut self) -> io::Result<Option<Message>> {
        let garbage = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let rest = &self.buffer[self.looked..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            self.looked = self.buffer.len();
            return match self.buffer.len() {
                ..LINE => Ok(None),
                _ => Err(garbage("a line without an end")),
            };
        };
        let end = self.looked + end;
        let said: Value = serde_json::from_slice(&self.buffer[..end])
            .map_err(|error| garbage(&format!("no JSON: {error}")))?;
        let bytes = said.get("bytes").and_then(Value::as_u64).unwrap_or(0);
        let bytes = usize::try_from(bytes).map_err(|_| garbage("too many bytes"))?;
        let whole = end + 1 + bytes;
        if self.buffer.len() < whole {
            self.looked = end;
            return Ok(None);
        }
        let behind = self.buffer.split_off(whole);
        let mut bytes = mem::replace(&mut self.buffer, behind);
        bytes.drain(..=end);
        self.looked = 0;
        Ok(Some(Message { said, bytes }))
    }
}

/// The way out for answers and events, from any thread.
#[derive(Clone, Default)]
pub struct Outgoing(Arc<Mutex<()>>);

impl Outgoing {
    /// Sends a message.
    pub fn send(&self, mut said: Value, bytes: &[u8]) -> io::Result<()> {
        if !bytes.is_empty() {
            said["bytes"] = bytes.len().into();
        }
        let mut line = serde_json::to_vec(&said)?;
        line.push(b'\n');
        let _alone = self.0.lock().expect("nobody panics with it");
        let mut out = stdout().lock();
        out.write_all(&line)?;
        out.write_all(bytes)?;
        out.flush()
    }
}
