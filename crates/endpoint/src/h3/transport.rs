//! A connection of a [`Stack`] as the library of HTTP/3 wants one.
//!
//! The library's tasks put what they want into queues, and wait there; [`Session::pump`] carries
//! it to the stack, which only its caller has.

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use futures_executor::{LocalPool, LocalSpawner};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};

use crate::stack::{Closing, ConnectionKey, Event, Read, Stack, StreamEnd, StreamKey};

/// The tasks of a connection, and its queues.
pub struct Session {
    connection: ConnectionKey,
    tasks: LocalPool,
    transport: Transport,
}

impl Session {
    pub fn new(connection: ConnectionKey) -> Self {
        Self {
            connection,
            tasks: LocalPool::new(),
            transport: Transport::default(),
        }
    }

    pub fn connection(&self) -> ConnectionKey {
        self.connection
    }

    pub fn transport(&self) -> Transport {
        self.transport.clone()
    }

    pub fn spawner(&self) -> LocalSpawner {
        self.tasks.spawner()
    }

    /// Takes from the stack what an event of this connection is about.
    pub fn handle(&mut self, stack: &mut impl Stack, event: &Event) {
        let mut queues = self.transport.lock();
        match *event {
            Event::Opened(_, stream) => {
                queues.accepted.push(stream);
                queues.read(stack, self.connection, stream);
            }
            Event::OpenedOneWay(_, stream) => {
                queues.accepted_one_way.push(stream);
                queues.read(stack, self.connection, stream);
            }
            Event::Readable(_, stream) => queues.read(stack, self.connection, stream),
            Event::Writable(_, stream) => {
                queues.changed.insert(stream);
            }
            Event::Closed(_, ref closing) => queues.lose(closing),
            Event::Connected(_)
            | Event::Ticket(_)
            | Event::EarlyDataRejected(_)
            | Event::DatagramFrame(..)
            | Event::MoreStreams(_) => {}
        }
    }

    /// Lets the tasks go on until each waits for something that is still to come.
    pub fn pump(&mut self, stack: &mut impl Stack) {
        loop {
            self.tasks.run_until_stalled();
            if !self.transport.lock().carry(stack, self.connection) {
                return;
            }
        }
    }

    /// Whether a request waits until the peer allows one more stream.
    pub fn waits_for_streams(&self) -> bool {
        !self.transport.lock().wanted.is_empty()
    }

    /// The error code with which the library wants to close the connection, if it does.
    pub fn wants_to_close(&self) -> Option<u32> {
        let code = self.transport.lock().close?;
        Some(u32::try_from(code).unwrap_or(u32::MAX))
    }
}

/// A queue of streams, and who waits for one.
#[derive(Default)]
struct Streams {
    there: VecDeque<StreamKey>,
    waiting: Option<Waker>,
}

impl Streams {
    fn push(&mut self, stream: StreamKey) {
        self.there.push_back(stream);
        wake(&mut self.waiting);
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<StreamKey> {
        if let Some(stream) = self.there.pop_front() {
            return Poll::Ready(stream);
        }
        self.waiting = Some(context.waker().clone());
        Poll::Pending
    }
}

/// The receiving side of a stream.
#[derive(Default)]
struct Receiving {
    arrived: VecDeque<Bytes>,
    end: Option<Result<(), StreamEnd>>,
    waiting: Option<Waker>,
}

/// The sending side of a stream.
#[derive(Default)]
struct Sending {
    unsent: Bytes,
    finish: bool,
    reset: Option<u64>,
    failed: Option<StreamEnd>,
    waiting: Option<Waker>,
}

/// Streams that tasks wait for and events that have arrived, until they are handed over.
#[derive(Default)]
struct Queues {
    accepted: Streams,
    accepted_one_way: Streams,
    /// Wanted by tasks, each of which waits.
    wanted: Vec<Waker>,
    wanted_one_way: Vec<Waker>,
    opened: VecDeque<StreamKey>,
    opened_one_way: VecDeque<StreamKey>,
    receiving: BTreeMap<StreamKey, Receiving>,
    sending: BTreeMap<StreamKey, Sending>,
    /// Streams that have something to send, or may go on to.
    changed: BTreeSet<StreamKey>,
    stops: Vec<(StreamKey, u64)>,
    close: Option<u64>,
    lost: Option<ConnectionErrorIncoming>,
}

impl Queues {
    fn read(&mut self, stack: &mut impl Stack, connection: ConnectionKey, stream: StreamKey) {
        let receiving = self.receiving.entry(stream).or_default();
        if receiving.end.is_some() {
            return;
        }
        let arrived = &mut receiving.arrived;
        let read = stack.read(connection, stream, &mut |bytes| arrived.push_back(bytes));
        receiving.end = match read {
            Ok(Read::Blocked) => None,
            Ok(Read::Finished) => Some(Ok(())),
            Err(end) => Some(Err(end)),
        };
        wake(&mut receiving.waiting);
    }

    fn lose(&mut self, closing: &Closing) {
        self.lost = Some(match closing {
            Closing::Application { code, .. } => {
                ConnectionErrorIncoming::ApplicationClose { error_code: *code }
            }
            Closing::IdleTimeout => ConnectionErrorIncoming::Timeout,
            Closing::Error(words) => ConnectionErrorIncoming::InternalError(words.clone()),
        });
        for streams in [&mut self.accepted, &mut self.accepted_one_way] {
            wake(&mut streams.waiting);
        }
        for waker in self.wanted.drain(..).chain(self.wanted_one_way.drain(..)) {
            waker.wake();
        }
        let receiving = self.receiving.values_mut().map(|it| &mut it.waiting);
        let sending = self.sending.values_mut().map(|it| &mut it.waiting);
        receiving.chain(sending).for_each(wake);
    }

    /// Carries what tasks want to the stack; says whether one of them may go on.
    fn carry(&mut self, stack: &mut impl Stack, connection: ConnectionKey) -> bool {
        let mut goes_on = false;
        while !self.wanted.is_empty()
            && let Some(stream) = stack.open(connection)
        {
            self.opened.push_back(stream);
            self.wanted.remove(0).wake();
            goes_on = true;
        }
        while !self.wanted_one_way.is_empty()
            && let Some(stream) = stack.open_one_way(connection)
        {
            self.opened_one_way.push_back(stream);
            self.wanted_one_way.remove(0).wake();
            goes_on = true;
        }
        for stream in std::mem::take(&mut self.changed) {
            if let Some(sending) = self.sending.get_mut(&stream) {
                goes_on |= sending.carry(stack, connection, stream);
            }
        }
        for (stream, code) in self.stops.drain(..) {
            stack.stop(connection, stream, code_of(code));
        }
        goes_on
    }

    fn lost_stream(&self) -> Option<StreamErrorIncoming> {
        let connection_error = self.lost.clone()?;
        Some(StreamErrorIncoming::ConnectionErrorIncoming { connection_error })
    }
}

impl Sending {
    /// Whether its task may go on.
    fn carry(&mut self, stack: &mut impl Stack, connection: ConnectionKey, key: StreamKey) -> bool {
        if let Some(code) = self.reset.take() {
            stack.reset(connection, key, code_of(code));
            self.unsent.clear();
        }
        let had = !self.unsent.is_empty();
        if had && let Err(end) = stack.write(connection, key, &mut self.unsent) {
            self.failed = Some(end);
            self.unsent.clear();
        }
        if !self.unsent.is_empty() {
            return false;
        }
        if std::mem::take(&mut self.finish) && self.failed.is_none() {
            self.failed = stack.finish(connection, key).err();
        }
        wake(&mut self.waiting);
        had
    }

    fn error(&self) -> Option<StreamErrorIncoming> {
        self.failed.map(terminated)
    }
}

fn wake(waiting: &mut Option<Waker>) {
    if let Some(waker) = waiting.take() {
        waker.wake();
    }
}

fn code_of(code: u64) -> u32 {
    u32::try_from(code).unwrap_or(u32::MAX)
}

fn terminated(end: StreamEnd) -> StreamErrorIncoming {
    match end {
        StreamEnd::ByPeer(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        StreamEnd::NotOpen => StreamErrorIncoming::Unknown("the stream is closed".into()),
    }
}

/// A connection, or what opens its streams; clones share it.
#[derive(Clone, Default)]
pub struct Transport(Rc<RefCell<Queues>>);

impl Transport {
    fn lock(&self) -> RefMut<'_, Queues> {
        self.0.borrow_mut()
    }

    fn stream(&self, key: StreamKey) -> Stream {
        Stream {
            transport: self.clone(),
            key,
        }
    }

    fn poll_accept(
        &self,
        context: &Context<'_>,
        streams: fn(&mut Queues) -> &mut Streams,
    ) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        let mut queues = self.lock();
        if let Some(lost) = &queues.lost {
            return Poll::Ready(Err(lost.clone()));
        }
        let polled = streams(&mut queues).poll(context);
        polled.map(|key| Ok(self.stream(key)))
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
        let mut queues = self.lock();
        if let Some(key) = queues.opened.pop_front() {
            return Poll::Ready(Ok(self.stream(key)));
        }
        if let Some(error) = queues.lost_stream() {
            return Poll::Ready(Err(error));
        }
        queues.wanted.push(context.waker().clone());
        Poll::Pending
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Stream, StreamErrorIncoming>> {
        let mut queues = self.lock();
        if let Some(key) = queues.opened_one_way.pop_front() {
            return Poll::Ready(Ok(self.stream(key)));
        }
        if let Some(error) = queues.lost_stream() {
            return Poll::Ready(Err(error));
        }
        queues.wanted_one_way.push(context.waker().clone());
        Poll::Pending
    }

    fn close(&mut self, code: Code, _: &[u8]) {
        self.lock().close.get_or_insert(code.value());
    }
}

/// A stream of a connection.
pub struct Stream {
    transport: Transport,
    key: StreamKey,
}

impl Stream {
    fn id(&self) -> StreamId {
        StreamId::try_from(self.key.0).expect("a stream ID comes from the library")
    }

    /// Whether all that was to be sent has been taken.
    fn poll_sent(&self, context: &Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let mut queues = self.transport.lock();
        if let Some(error) = queues.lost_stream() {
            return Poll::Ready(Err(error));
        }
        let sending = queues.sending.entry(self.key).or_default();
        if let Some(error) = sending.error() {
            return Poll::Ready(Err(error));
        }
        if sending.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        sending.waiting = Some(context.waker().clone());
        Poll::Pending
    }
}

impl quic::SendStream<Bytes> for Stream {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.poll_sent(context)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        let mut data = data.into();
        let mut queues = self.transport.lock();
        let sending = queues.sending.entry(self.key).or_default();
        sending.unsent = data.copy_to_bytes(data.remaining());
        queues.changed.insert(self.key);
        Ok(())
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let sent = self.poll_sent(context);
        if let Poll::Ready(Ok(())) = sent {
            let mut queues = self.transport.lock();
            queues.sending.entry(self.key).or_default().finish = true;
            queues.changed.insert(self.key);
        }
        sent
    }

    fn reset(&mut self, code: u64) {
        let mut queues = self.transport.lock();
        queues.sending.entry(self.key).or_default().reset = Some(code);
        queues.changed.insert(self.key);
    }

    fn send_id(&self) -> StreamId {
        self.id()
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
        let receiving = queues.receiving.entry(self.key).or_default();
        if let Some(bytes) = receiving.arrived.pop_front() {
            return Poll::Ready(Ok(Some(bytes)));
        }
        match (receiving.end, lost) {
            (Some(Ok(())), _) => Poll::Ready(Ok(None)),
            (Some(Err(end)), _) => Poll::Ready(Err(terminated(end))),
            (None, Some(error)) => Poll::Ready(Err(error)),
            (None, None) => {
                receiving.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn stop_sending(&mut self, code: u64) {
        self.transport.lock().stops.push((self.key, code));
    }

    fn recv_id(&self) -> StreamId {
        self.id()
    }
}
