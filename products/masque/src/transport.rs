//! A connection of noq as the library of HTTP/3 wants one.
//!
//! The library's tasks put what they want into queues, and wait there; [`Session`] carries it to
//! the connection, which only its caller has. What a peer can make a stream hold is bounded.

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};

use crate::streams::{End, Receiving, Sending, wake};

/// Streams that tasks wait for and events that have arrived, until they are handed over.
#[derive(Default)]
pub struct Queues {
    pub accepted: Arrivals,
    pub accepted_one_way: Arrivals,
    pub wanted: Wanted,
    pub wanted_one_way: Wanted,
    pub receiving: BTreeMap<u64, Receiving>,
    pub sending: BTreeMap<u64, Sending>,
    /// Streams that have something to send, or may go on to.
    pub changed: BTreeSet<u64>,
    pub stops: Vec<(u64, u64)>,
    /// How many a task has of each.
    handles: BTreeMap<u64, usize>,
    pub close: Option<u64>,
    pub lost: Option<ConnectionErrorIncoming>,
}

/// Streams that the peer opened, and who waits for one.
#[derive(Default)]
pub struct Arrivals {
    there: VecDeque<u64>,
    waiting: Option<Waker>,
}

/// Streams that are to be opened, each for a task that waits.
#[derive(Default)]
pub struct Wanted {
    pub waiting: VecDeque<Waker>,
    pub opened: VecDeque<u64>,
}

impl Arrivals {
    pub fn push(&mut self, stream: u64) {
        self.there.push_back(stream);
        wake(&mut self.waiting);
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<u64> {
        if let Some(stream) = self.there.pop_front() {
            return Poll::Ready(stream);
        }
        self.waiting = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Queues {
    /// The connection is no more: everybody who waits is told.
    pub fn lose(&mut self, error: ConnectionErrorIncoming) {
        self.lost = Some(error);
        for streams in [&mut self.accepted, &mut self.accepted_one_way] {
            wake(&mut streams.waiting);
        }
        for wanted in [&mut self.wanted, &mut self.wanted_one_way] {
            wanted.waiting.drain(..).for_each(Waker::wake);
        }
        for stream in self.receiving.values_mut() {
            wake(&mut stream.waiting);
        }
        for stream in self.sending.values_mut() {
            wake(&mut stream.waiting);
        }
    }

    /// The peer has this side keep too much.
    pub fn refuse_load(&mut self) {
        self.close.get_or_insert(Code::H3_EXCESSIVE_LOAD.value());
    }

    /// A task has let go of a stream: who has not read it to its end wants no more of it.
    fn let_go(&mut self, id: u64) {
        let Some(count) = self.handles.get_mut(&id) else {
            return;
        };
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.handles.remove(&id);
        if let Some(receiving) = self.receiving.remove(&id)
            && receiving.end.is_none()
        {
            self.stops.push((id, Code::H3_REQUEST_CANCELLED.value()));
        }
        if let Some(sending) = self.sending.get_mut(&id) {
            sending.is_left = true;
            self.changed.insert(id);
        }
    }

    fn lost_stream(&self) -> Option<StreamErrorIncoming> {
        let connection_error = self.lost.clone()?;
        Some(StreamErrorIncoming::ConnectionErrorIncoming { connection_error })
    }
}

fn ended(end: End) -> StreamErrorIncoming {
    match end {
        End::ByPeer(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        End::NotOpen => StreamErrorIncoming::Unknown("the stream is closed".into()),
    }
}

/// A connection, or what opens its streams; clones share it.
#[derive(Clone, Default)]
pub struct Transport(Rc<RefCell<Queues>>);

impl Transport {
    pub fn lock(&self) -> RefMut<'_, Queues> {
        self.0.borrow_mut()
    }

    /// Notes that all that was handed over of a stream so far has been made use of.
    pub fn used(&self, stream: StreamId) {
        if let Some(receiving) = self.lock().receiving.get_mut(&stream.into_inner()) {
            receiving.unused = 0;
        }
    }

    /// Bytes of a stream that the connection has not taken.
    pub fn unsent(&self, stream: StreamId) -> usize {
        let queues = self.lock();
        let sending = queues.sending.get(&stream.into_inner());
        sending.map_or(0, |it| it.unsent.len())
    }

    fn stream(&self, queues: &mut Queues, id: u64) -> Stream {
        *queues.handles.entry(id).or_default() += 1;
        Stream {
            transport: self.clone(),
            id,
        }
    }

    fn poll_accept(
        &self,
        context: &Context<'_>,
        streams: fn(&mut Queues) -> &mut Arrivals,
    ) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        let mut queues = self.lock();
        if let Some(lost) = &queues.lost {
            return Poll::Ready(Err(lost.clone()));
        }
        let polled = streams(&mut queues).poll(context);
        polled.map(|id| Ok(self.stream(&mut queues, id)))
    }

    fn poll_open(
        &self,
        context: &Context<'_>,
        wanted: fn(&mut Queues) -> &mut Wanted,
    ) -> Poll<Result<Stream, StreamErrorIncoming>> {
        let mut queues = self.lock();
        if let Some(id) = wanted(&mut queues).opened.pop_front() {
            return Poll::Ready(Ok(self.stream(&mut queues, id)));
        }
        if let Some(error) = queues.lost_stream() {
            return Poll::Ready(Err(error));
        }
        let waker = context.waker().clone();
        wanted(&mut queues).waiting.push_back(waker);
        Poll::Pending
    }
}

impl quic::Connection<Bytes> for Transport {
    type RecvStream = Stream;
    type OpenStreams = Self;

    fn poll_accept_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        self.poll_accept(context, |it| &mut it.accepted_one_way)
    }

    fn poll_accept_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        self.poll_accept(context, |it| &mut it.accepted)
    }

    fn opener(&self) -> Self {
        self.clone()
    }
}

impl quic::OpenStreams<Bytes> for Transport {
    type BidiStream = Stream;
    type SendStream = Stream;

    fn poll_open_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Stream, StreamErrorIncoming>> {
        self.poll_open(context, |it| &mut it.wanted)
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Stream, StreamErrorIncoming>> {
        self.poll_open(context, |it| &mut it.wanted_one_way)
    }

    fn close(&mut self, code: Code, _: &[u8]) {
        self.lock().close.get_or_insert(code.value());
    }
}

/// A stream of a connection, or one side of it.
pub struct Stream {
    transport: Transport,
    id: u64,
}

impl Stream {
    fn stream_id(&self) -> StreamId {
        StreamId::try_from(self.id).expect("a stream ID comes from the library")
    }

    /// Whether all that was to be sent has been taken.
    fn poll_sent(&self, context: &Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let mut queues = self.transport.lock();
        if let Some(error) = queues.lost_stream() {
            return Poll::Ready(Err(error));
        }
        let sending = queues.sending.entry(self.id).or_default();
        if let Some(end) = sending.failed {
            return Poll::Ready(Err(ended(end)));
        }
        if sending.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        sending.waiting = Some(context.waker().clone());
        Poll::Pending
    }

    fn change(&self, change: impl FnOnce(&mut Sending)) {
        let mut queues = self.transport.lock();
        change(queues.sending.entry(self.id).or_default());
        queues.changed.insert(self.id);
    }
}

impl quic::SendStream<Bytes> for Stream {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.poll_sent(context)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        let mut data = data.into();
        self.change(|it| it.unsent = data.copy_to_bytes(data.remaining()));
        Ok(())
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let sent = self.poll_sent(context);
        if let Poll::Ready(Ok(())) = sent {
            self.change(|it| it.finish = true);
        }
        sent
    }

    fn reset(&mut self, code: u64) {
        self.change(|it| it.reset = Some(code));
    }

    fn send_id(&self) -> StreamId {
        self.stream_id()
    }
}

impl quic::RecvStream for Stream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let mut queues = self.transport.lock();
        let lost = queues.lost_stream();
        let receiving = queues.receiving.entry(self.id).or_default();
        if let Some(bytes) = receiving.take() {
            if receiving.is_excessive() {
                queues.refuse_load();
                return Poll::Ready(Err(ended(End::NotOpen)));
            }
            return Poll::Ready(Ok(Some(bytes)));
        }
        match (receiving.end, lost) {
            (Some(Ok(())), _) => Poll::Ready(Ok(None)),
            (Some(Err(end)), _) => Poll::Ready(Err(ended(end))),
            (None, Some(error)) => Poll::Ready(Err(error)),
            (None, None) => {
                receiving.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn stop_sending(&mut self, code: u64) {
        self.transport.lock().stops.push((self.id, code));
    }

    fn recv_id(&self) -> StreamId {
        self.stream_id()
    }
}

impl quic::BidiStream<Bytes> for Stream {
    type SendStream = Self;
    type RecvStream = Self;

    fn split(self) -> (Self, Self) {
        let other = self.transport.stream(&mut self.transport.lock(), self.id);
        (other, self)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.transport.lock().let_go(self.id);
    }
}
