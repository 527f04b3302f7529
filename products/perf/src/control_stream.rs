//! The stream that carries messages: lines that come, lines that go.

use std::collections::VecDeque;

use noq_proto::{Connection, ReadError, StreamId, WriteError};

use crate::protocol::{Message, next_line};

/// Before the data, which would delay the reports otherwise.
const PRIORITY: i32 = 1;

/// One side of the control stream.
#[derive(Debug, Default)]
pub struct ControlStream {
    stream: Option<StreamId>,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    messages: VecDeque<Message>,
    /// To be ended when all is written.
    last: bool,
    finished: bool,
}

impl ControlStream {
    pub fn stream(&self) -> Option<StreamId> {
        self.stream
    }

    /// From now on `stream` is used.
    pub fn attach(&mut self, connection: &mut Connection, stream: StreamId) {
        self.stream = Some(stream);
        // A stream that is closed already will say so when it is written to.
        let _ = connection.send_stream(stream).set_priority(PRIORITY);
    }

    pub fn send(&mut self, message: &Message) {
        self.outbox.extend(message.to_line());
    }

    /// Nothing more will be said.
    pub fn finish(&mut self) {
        self.last = true;
    }

    pub fn next(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    /// Writes what fits.
    pub fn flush(&mut self, connection: &mut Connection) -> Result<(), String> {
        let Some(stream) = self.stream else {
            return Ok(());
        };
        let mut sender = connection.send_stream(stream);
        while !self.outbox.is_empty() {
            match sender.write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(WriteError::Blocked) => return Ok(()),
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    return Err("the other side does not listen any more".into());
                }
            }
        }
        if self.last && !self.finished {
            self.finished = true;
            let _ = sender.finish();
        }
        Ok(())
    }

    /// Reads what has come.
    pub fn read(&mut self, connection: &mut Connection) -> Result<(), String> {
        let Some(stream) = self.stream else {
            return Ok(());
        };
        let mut receiver = connection.recv_stream(stream);
        // Closed: all of it has been read.
        let Ok(mut chunks) = receiver.read(true) else {
            return Ok(());
        };
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.inbox.extend_from_slice(&chunk.bytes),
                Ok(None) | Err(ReadError::Blocked) => break Ok(()),
                Err(ReadError::Reset(_)) => break Err("the other side gave up".into()),
            }
        };
        // Whether flow control credit is to be sent, the next poll finds out by itself.
        let _ = chunks.finalize();
        while let Some(line) = next_line(&mut self.inbox)? {
            self.messages.push_back(Message::parse(&line)?);
        }
        end
    }
}
