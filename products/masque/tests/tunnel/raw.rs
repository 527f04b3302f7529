//! A peer that says what a test wants it to: a connection without HTTP/3.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_connections::{DatagramOwner, SideEndpoint};
use bentpipe_endpoint::{Clock, Received, Transmit};
use bentpipe_noq_options::RememberedPaths;
use bytes::Bytes;
use noq_proto::crypto::rustls::QuicClientConfig;
use noq_proto::{
    ClientConfig, Connection, ConnectionError, Dir, EndpointConfig, Event, StreamId,
    TransportConfig,
};

use crate::world::{Peer, address, tls};

/// The peer; clones share it, so that a world can have one and a test another.
#[derive(Clone)]
pub struct Raw(Rc<RefCell<Inner>>);

struct Inner {
    clock: Clock,
    endpoint: SideEndpoint<()>,
    handle: usize,
    closed: Option<ConnectionError>,
    resets: Vec<u64>,
    stops: Vec<u64>,
    answers: Vec<u8>,
}

impl Raw {
    pub fn connect(clock: &Clock) -> Self {
        Self::connect_with(clock, TransportConfig::default())
    }

    pub fn connect_with(clock: &Clock, transport: TransportConfig) -> Self {
        let mut tls = tls(clock).0;
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        config.transport_config(Arc::new(transport));
        let mut endpoint = SideEndpoint::new(EndpointConfig::default(), None);
        let peers = RememberedPaths::default();
        let now = clock.instant(Duration::ZERO);
        let handle = endpoint.connect(now, config, (address(2), "server"), &peers);
        let mut inner = Inner {
            clock: clock.clone(),
            endpoint,
            handle: handle.unwrap(),
            closed: None,
            resets: Vec::new(),
            stops: Vec::new(),
            answers: Vec::new(),
        };
        inner.settle();
        Self(Rc::new(RefCell::new(inner)))
    }

    pub fn from() -> SocketAddr {
        address(66)
    }

    /// Does something with the connection.
    pub fn act<T>(&self, act: impl FnOnce(&mut Connection) -> T) -> T {
        let inner = &mut *self.0.borrow_mut();
        let handle = inner.handle;
        let done = act(&mut inner.endpoint.get(handle).unwrap().connection);
        inner.settle();
        done
    }

    /// Opens a stream and writes as much of this as goes.
    pub fn write(&self, dir: Dir, bytes: &[u8]) -> StreamId {
        let opened = self.act(|connection| connection.streams().open(dir));
        let id = opened.expect("there may be one more");
        self.append(id, bytes);
        id
    }

    /// Writes as much of this as goes, and says how much that is.
    pub fn append(&self, id: StreamId, bytes: &[u8]) -> usize {
        // Stopped or blocked: whoever stops or blocks has an end of its own for that.
        self.act(|connection| connection.send_stream(id).write(bytes).unwrap_or(0))
    }

    /// Asks the proxy to send no more on a stream.
    pub fn stop(&self, id: StreamId) {
        self.act(|connection| connection.recv_stream(id).stop(0_u32.into()))
            .unwrap();
    }

    pub fn finish(&self, id: StreamId) {
        // One that was stopped already needs no end.
        let _ = self.act(|connection| connection.send_stream(id).finish());
    }

    pub fn datagram(&self, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        self.act(|connection| connection.datagrams().send(bytes, true))
            .unwrap();
    }

    /// The code with which the peer closed the connection.
    pub fn closed_with(&self) -> Option<u64> {
        match &self.0.borrow().closed {
            Some(ConnectionError::ApplicationClosed(closed)) => {
                Some(closed.error_code.into_inner())
            }
            Some(other) => panic!("{other}"),
            None => None,
        }
    }

    /// The codes with which the proxy asked to stop streams.
    pub fn stops(&self) -> Vec<u64> {
        self.0.borrow().stops.clone()
    }

    /// The codes with which streams were reset.
    pub fn resets(&self) -> Vec<u64> {
        self.0.borrow().resets.clone()
    }

    /// The bytes that came on bidirectional streams.
    pub fn answers(&self) -> Vec<u8> {
        self.0.borrow().answers.clone()
    }
}

impl Inner {
    fn settle(&mut self) {
        let mut events = VecDeque::new();
        loop {
            let drained = self.endpoint.drive(self.handle, &mut events);
            if drained.is_some() || events.is_empty() {
                return;
            }
            let connection = &mut self.endpoint.get(self.handle).unwrap().connection;
            while let Some(event) = events.pop_front() {
                match event {
                    Event::ConnectionLost { reason } => self.closed = Some(reason),
                    Event::Stream(noq_proto::StreamEvent::Readable { id }) => {
                        let mut stream = connection.recv_stream(id);
                        let Ok(mut chunks) = stream.read(true) else {
                            continue;
                        };
                        loop {
                            match chunks.next(usize::MAX) {
                                Ok(Some(chunk)) if id.dir() == Dir::Bi => {
                                    self.answers.extend_from_slice(&chunk.bytes);
                                }
                                Ok(Some(_)) => {}
                                Err(noq_proto::ReadError::Reset(code)) => {
                                    self.resets.push(code.into_inner());
                                    break;
                                }
                                _ => break,
                            }
                        }
                        let _ = chunks.finalize();
                    }
                    Event::Stream(noq_proto::StreamEvent::Stopped { error_code, .. }) => {
                        self.stops.push(error_code.into_inner());
                    }
                    _ => {}
                }
            }
        }
    }
}

impl Peer for Raw {
    fn handle_datagram(&mut self, now: Duration, datagram: Received) {
        let inner = &mut *self.0.borrow_mut();
        let now = inner.clock.instant(now);
        if let DatagramOwner::Connection(_) = inner.endpoint.handle(now, datagram) {
            inner.settle();
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        let inner = self.0.borrow();
        let timeout = inner.endpoint.next_timeout()?;
        Some(inner.clock.since_start(timeout))
    }

    fn handle_timeout(&mut self, now: Duration) {
        let inner = &mut *self.0.borrow_mut();
        let now = inner.clock.instant(now);
        while inner.endpoint.handle_timeout(now).is_some() {
            inner.settle();
        }
    }

    fn poll_transmit(&mut self, now: Duration, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let inner = &mut *self.0.borrow_mut();
        let now = inner.clock.instant(now);
        let most = NonZeroUsize::new(10).unwrap();
        let (transmit, _) = inner.endpoint.poll_transmit(now, most, buffer)?;
        inner.settle();
        Some(transmit)
    }
}
