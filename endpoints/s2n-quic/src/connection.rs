//! A connection of s2n-quic and its streams.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use bentpipe_endpoint::{Closing, ConnectionKey, Read, StreamEnd, StreamKey};
use bytes::Bytes;
use s2n_quic::connection::Error;
use s2n_quic::stream::{BidirectionalStream, Error as StreamError};
use s2n_quic_core::endpoint::Location;

use crate::wakes::{Reason, Wakes};

/// A connection whose handshake is complete.
pub struct Connection {
    key: ConnectionKey,
    inner: s2n_quic::Connection,
    streams: BTreeMap<StreamKey, Stream>,
    wakes: Wakes,
    on_stream: Waker,
    on_credit: Waker,
    /// Whether its end is known to the application.
    ended: bool,
}

/// The result of polling for the peer's streams.
pub enum Accepted {
    Stream(StreamKey),
    Nothing,
    End(Closing),
}

/// A bidirectional stream.
pub struct Stream {
    inner: BidirectionalStream,
    on_read: Waker,
    on_write: Waker,
    reading: bool,
    writing: bool,
}

impl Connection {
    pub fn new(key: ConnectionKey, inner: s2n_quic::Connection, wakes: &Wakes) -> Self {
        Self {
            key,
            inner,
            streams: BTreeMap::new(),
            wakes: wakes.clone(),
            on_stream: wakes.waker(Reason::Streams(key)),
            on_credit: wakes.waker(Reason::Open(key)),
            ended: false,
        }
    }

    pub fn accept(&mut self) -> Accepted {
        if self.ended {
            return Accepted::Nothing;
        }
        let context = &mut Context::from_waker(&self.on_stream);
        let closing = match self.inner.poll_accept_bidirectional_stream(context) {
            Poll::Pending => return Accepted::Nothing,
            Poll::Ready(Ok(Some(stream))) => return Accepted::Stream(self.add(stream)),
            // Some errors, an idle timeout among them, are none here; a PING meets all of them.
            Poll::Ready(Ok(None)) => match self.inner.ping() {
                Err(error) => closing(error),
                Ok(()) => Closing::Error("the connection is closed".into()),
            },
            Poll::Ready(Err(error)) => closing(error),
        };
        self.ended = true;
        Accepted::End(closing)
    }

    pub fn open(&mut self) -> Option<StreamKey> {
        let context = &mut Context::from_waker(&self.on_credit);
        match self.inner.poll_open_bidirectional_stream(context) {
            Poll::Ready(Ok(stream)) => {
                let key = self.add(stream);
                // Nobody is woken who has not asked before.
                self.wakes.push(Reason::Read(self.key, key));
                Some(key)
            }
            // A connection that is no more says so elsewhere.
            Poll::Ready(Err(_)) | Poll::Pending => None,
        }
    }

    pub fn close(&mut self, code: u32) {
        self.ended = true;
        self.inner.close(code.into());
    }

    fn add(&mut self, inner: BidirectionalStream) -> StreamKey {
        let key = StreamKey(inner.id());
        let stream = Stream {
            inner,
            on_read: self.wakes.waker(Reason::Read(self.key, key)),
            on_write: self.wakes.waker(Reason::Write(self.key, key)),
            reading: true,
            writing: true,
        };
        self.streams.insert(key, stream);
        key
    }

    /// Does something with a stream, and drops the stream if nothing is left to be done with it.
    pub fn with<T>(
        &mut self,
        key: StreamKey,
        act: impl FnOnce(&mut Stream) -> Result<T, StreamEnd>,
    ) -> Result<T, StreamEnd> {
        let stream = self.streams.get_mut(&key).ok_or(StreamEnd::NotOpen)?;
        let result = act(stream);
        if !stream.reading && !stream.writing {
            self.streams.remove(&key);
        }
        result
    }
}

impl Stream {
    pub fn write(&mut self, data: &mut Bytes) -> Result<(), StreamEnd> {
        let context = &mut Context::from_waker(&self.on_write);
        while !data.is_empty() {
            let sent = match self.inner.poll_send_ready(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(room)) => {
                    let chunk = data.split_to(room.min(data.len()));
                    self.inner.send_data(chunk)
                }
                Poll::Ready(Err(error)) => Err(error),
            };
            if let Err(error) = sent {
                return stream_end(error, ());
            }
        }
        Ok(())
    }

    pub fn finish(&mut self) -> Result<(), StreamEnd> {
        self.writing = false;
        self.inner.finish().or_else(|error| stream_end(error, ()))
    }

    pub fn reset(&mut self, code: u32) {
        self.writing = false;
        // A stream that has ended needs no reset.
        let _ = self.inner.reset(code.into());
    }

    pub fn stop(&mut self, code: u32) {
        self.reading = false;
        // As above.
        let _ = self.inner.stop_sending(code.into());
    }

    pub fn read(&mut self, sink: &mut dyn FnMut(Bytes)) -> Result<Read, StreamEnd> {
        let context = &mut Context::from_waker(&self.on_read);
        loop {
            match self.inner.poll_receive(context) {
                Poll::Pending => return Ok(Read::Blocked),
                Poll::Ready(Ok(Some(bytes))) => sink(bytes),
                Poll::Ready(Ok(None)) => {
                    self.reading = false;
                    return Ok(Read::Finished);
                }
                Poll::Ready(Err(error)) => {
                    self.reading = false;
                    return stream_end(error, Read::Blocked);
                }
            }
        }
    }
}

/// The end of a connection is a separate event: until it comes its streams are `blocked`.
fn stream_end<T>(error: StreamError, blocked: T) -> Result<T, StreamEnd> {
    match error {
        StreamError::StreamReset { error, .. } => Err(StreamEnd::ByPeer(*error)),
        StreamError::ConnectionError { .. } => Ok(blocked),
        _ => Err(StreamEnd::NotOpen),
    }
}

/// The contract's term for an error.
pub fn closing(error: Error) -> Closing {
    match error {
        Error::Application { error, .. } => Closing::Application {
            code: *error,
            reason: String::new(),
        },
        Error::IdleTimerExpired { .. } => Closing::IdleTimeout,
        Error::MaxHandshakeDurationExceeded { .. } => Closing::Error("handshake timeout".into()),
        Error::Transport {
            initiator: Location::Remote,
            ..
        } => Closing::Error(format!("closed by peer: {error}")),
        other => Closing::Error(other.to_string()),
    }
}
