//! A request for UDP or IP, between the task that reads its stream, the task that writes it, and
//! who has the datagrams.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use h3::error::{Code, StreamError};
use h3::quic::StreamId;
use h3::{client, server};

use crate::capsule::{Capsule, CapsuleError, CapsuleReader, Content, put_datagram};
use crate::forwarding::field::Forwarding;
use crate::forwarding::{CidCapsule, Transforms};
use crate::ip::{Addressing, Route, Sides};
use crate::refusal::Refusal;
use crate::streams::wake;
use crate::transport::{Stream, Transport};

/// A channel; clones share it.
pub type Shared = Rc<RefCell<Channel>>;

/// Bytes of capsules up to which a request for addresses or connection IDs is answered.
const MOST_ANSWERS: usize = 64 << 10;
/// Capsules about connection IDs that wait to be looked at.
const MOST_HEARD: usize = 1024;

/// A request for UDP or IP.
#[derive(Default)]
pub struct Channel {
    /// Its stream, once that is open.
    pub stream: Option<StreamId>,
    pub phase: Phase,
    /// Payloads that came in capsules.
    pub arrived: VecDeque<Bytes>,
    /// The packets that may pass, of one for IP.
    pub sides: Option<Sides>,
    /// The client's offer to forward packets.
    pub offer: Option<Forwarding>,
    /// The transforms of forwarded packets, once both ends have agreed.
    pub transforms: Option<Transforms>,
    /// Capsules about connection IDs that came.
    pub heard: VecDeque<CidCapsule>,
    /// Capsules that are to be sent.
    outgoing: BytesMut,
    /// Bytes of these that answer the peer.
    answers: usize,
    /// How the sending side is to end, and with what code if that is an error.
    leaving: Option<Result<(), Code>>,
    writer: Option<Waker>,
    /// A proxy's answer, and who waits for that.
    decided: Option<Result<(), Refusal>>,
    decider: Option<Waker>,
}

/// The progress of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Phase {
    /// It was sent, or came, and there is no answer.
    #[default]
    Asked,
    /// It succeeded.
    Open,
    /// It was refused, or is over.
    Ended(Ending),
}

/// The way in which a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The peer ended it.
    Closed,
    /// The answer had this status.
    Refused(u16),
    /// An error, in words.
    Failed(String),
}

impl Channel {
    /// One whose stream is open.
    pub fn of(stream: StreamId) -> Self {
        Self {
            stream: Some(stream),
            ..Self::default()
        }
    }

    /// A proxy has decided on its answer.
    pub fn decide(&mut self, answer: Result<(), Refusal>) {
        self.decided.get_or_insert(answer);
        wake(&mut self.decider);
    }

    pub fn poll_decided(&mut self, context: &Context<'_>) -> Poll<Result<(), Refusal>> {
        if let Some(answer) = self.decided {
            return Poll::Ready(answer);
        }
        self.decider = Some(context.waker().clone());
        Poll::Pending
    }

    /// Bytes of capsules that wait.
    pub fn waiting(&self) -> usize {
        self.outgoing.len()
    }

    /// Adds a capsule to those that are to be sent.
    pub fn push(&mut self, payload: &[u8]) {
        put_datagram(&mut self.outgoing, payload);
        wake(&mut self.writer);
    }

    /// Adds a capsule about connection IDs.
    pub fn say(&mut self, capsule: &CidCapsule) {
        self.put_answer(|outgoing| capsule.put(outgoing));
    }

    fn put_answer(&mut self, put: impl FnOnce(&mut BytesMut)) {
        let before = self.outgoing.len();
        put(&mut self.outgoing);
        self.answers += self.outgoing.len() - before;
        wake(&mut self.writer);
    }

    /// Begins a request for IP: what this end has to say of addresses is to be sent.
    pub fn begin(&mut self, sides: Sides) {
        for said in sides.greeting() {
            said.put(&mut self.outgoing);
        }
        self.sides = Some(sides);
        wake(&mut self.writer);
    }

    /// Has a proxy carry packets elsewhere, and say so.
    pub fn reroute(&mut self, routes: &[Route]) {
        if let Some(said) = self.sides.as_mut().and_then(|it| it.reroute(routes)) {
            said.put(&mut self.outgoing);
            wake(&mut self.writer);
        }
    }

    /// Takes what the peer says of addresses, and answers.
    fn hear(&mut self, said: Addressing) -> Result<(), CapsuleError> {
        if let Some(answer) = self.sides.as_mut().and_then(|it| it.hear(said)) {
            if self.answers > MOST_ANSWERS {
                return Err(CapsuleError::TooMuch);
            }
            self.put_answer(|outgoing| answer.put(outgoing));
        }
        Ok(())
    }

    fn take(&mut self, capsule: Capsule) -> Result<(), CapsuleError> {
        match capsule {
            Capsule::Payload(payload) => self.arrived.push_back(payload),
            Capsule::Addressing(said) => self.hear(said)?,
            Capsule::Cid(said) => {
                if self.heard.len() >= MOST_HEARD || self.answers > MOST_ANSWERS {
                    return Err(CapsuleError::TooMuch);
                }
                self.heard.push_back(said);
            }
        }
        Ok(())
    }

    fn content(&self) -> Content {
        match (&self.sides, &self.transforms) {
            (Some(_), _) => Content::Ip,
            (None, Some(_)) => Content::Quic,
            (None, None) => Content::Udp,
        }
    }

    /// Ends the sending side.
    pub fn leave(&mut self, how: Result<(), Code>) {
        self.leaving.get_or_insert(how);
        wake(&mut self.writer);
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// The request succeeded, unless it has ended already.
    pub fn open(&mut self) {
        if self.phase == Phase::Asked {
            self.phase = Phase::Open;
        }
    }

    pub fn end(&mut self, ending: Ending) {
        if !self.has_ended() {
            self.phase = Phase::Ended(ending);
        }
    }

    fn poll_outgoing(&mut self, context: &Context<'_>) -> Poll<Result<Bytes, Result<(), Code>>> {
        if let Some(Err(code)) = self.leaving {
            return Poll::Ready(Err(Err(code)));
        }
        if !self.outgoing.is_empty() {
            self.answers = 0;
            return Poll::Ready(Ok(self.outgoing.split().freeze()));
        }
        if let Some(how) = self.leaving {
            return Poll::Ready(Err(how));
        }
        self.writer = Some(context.waker().clone());
        Poll::Pending
    }
}

/// The receiving side of a request's stream: a client's or a server's.
pub trait Incoming {
    async fn data(&mut self) -> Result<Option<Bytes>, StreamError>;
    fn stop(&mut self, code: Code);
}

/// The sending side of it.
pub trait Outgoing {
    async fn send(&mut self, data: Bytes) -> Result<(), StreamError>;
    async fn finish(&mut self) -> Result<(), StreamError>;
    fn reset(&mut self, code: Code);
}

macro_rules! request_stream {
    ($kind:ident) => {
        impl Incoming for $kind::RequestStream<Stream, Bytes> {
            async fn data(&mut self) -> Result<Option<Bytes>, StreamError> {
                let data = self.recv_data().await?;
                Ok(data.map(|mut data| data.copy_to_bytes(data.remaining())))
            }

            fn stop(&mut self, code: Code) {
                self.stop_sending(code);
            }
        }

        impl Outgoing for $kind::RequestStream<Stream, Bytes> {
            async fn send(&mut self, data: Bytes) -> Result<(), StreamError> {
                self.send_data(data).await
            }

            async fn finish(&mut self) -> Result<(), StreamError> {
                self.finish().await
            }

            fn reset(&mut self, code: Code) {
                self.stop_stream(code);
            }
        }
    };
}

request_stream!(client);
request_stream!(server);

/// Reads a request's capsules until its stream ends.
pub async fn read(mut stream: impl Incoming, id: StreamId, channel: Shared, transport: Transport) {
    let mut capsules = CapsuleReader::of(channel.borrow().content());
    let ended = loop {
        let data = match stream.data().await {
            Ok(Some(data)) => data,
            Ok(None) => break capsules.finish().map_err(|error| error.to_string()),
            Err(error) => break Err(error.to_string()),
        };
        let mut channel = channel.borrow_mut();
        if channel.has_ended() {
            // Nobody takes any more what arrives.
            stream.stop(Code::H3_REQUEST_CANCELLED);
            return;
        }
        transport.used(id);
        let read = capsules.read(data, |capsule| channel.take(capsule));
        if let Err(error) = read {
            break Err(error.to_string());
        }
    };
    let mut channel = channel.borrow_mut();
    if let Err(error) = ended {
        // Malformed (RFC 9297, section 3.3), or abandoned by the peer.
        stream.stop(Code::H3_MESSAGE_ERROR);
        channel.leave(Err(Code::H3_MESSAGE_ERROR));
        channel.end(Ending::Failed(error));
    } else {
        channel.leave(Ok(()));
        channel.end(Ending::Closed);
    }
}

/// Writes a request's capsules until it is left.
pub async fn write(mut stream: impl Outgoing, channel: Shared) {
    loop {
        let next = std::future::poll_fn(|context| channel.borrow_mut().poll_outgoing(context));
        let sent = match next.await {
            Ok(capsules) => stream.send(capsules).await,
            Err(Ok(())) => {
                // One that is reset already needs no end.
                let _ = stream.finish().await;
                return;
            }
            Err(Err(code)) => {
                stream.reset(code);
                return;
            }
        };
        if let Err(error) = sent {
            // Who is asked to stop has to reset the stream (RFC 9000, section 3.5).
            stream.reset(Code::H3_REQUEST_CANCELLED);
            channel.borrow_mut().end(Ending::Failed(error.to_string()));
            return;
        }
    }
}
