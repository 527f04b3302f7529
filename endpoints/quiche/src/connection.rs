//! A connection of quiche, and its events that the application already has.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Instant;

use bentpipe_endpoint::{
    Closing, ConnectionKey, Event, PathEnds, Read, StreamEnd, StreamKey, Transmit,
};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use quiche::{BufFactory, ConnectionError, Error, RecvInfo, Shutdown};

use crate::acks::DelayedAcks;

/// The most that is read at once.
const READ_BYTES: usize = 1 << 16;
/// quiche's default for streams (RFC 9218 is HTTP's; here it only makes a stream known to quiche
/// before it has data).
const URGENCY: u8 = 127;

/// Data are handed to quiche as they are, without a copy.
#[derive(Debug, Clone, Default)]
pub struct Shared;

impl BufFactory for Shared {
    type Buf = Bytes;
    type DgramBuf = Vec<u8>;

    fn buf_from_slice(buffer: &[u8]) -> Bytes {
        Bytes::copy_from_slice(buffer)
    }

    fn dgram_buf_from_slice(buffer: &[u8]) -> Vec<u8> {
        buffer.to_vec()
    }
}

/// A connection and its bookkeeping.
pub struct Connection {
    key: ConnectionKey,
    quic: quiche::Connection<Shared>,
    /// The local address that the peer sent to last.
    source: Option<IpAddr>,
    connected: bool,
    /// Whether a session ticket has come.
    ticket: bool,
    /// The application knows that it is no more, or has closed it.
    over: bool,
    /// The stream that is opened next.
    next_stream: u64,
    /// How many more could be opened when it was looked up last.
    streams_left: u64,
    /// Streams that the peer has opened.
    opened: BTreeSet<u64>,
    acks: DelayedAcks,
    /// quiche is not to be asked for datagrams before this time.
    held_until: Option<Instant>,
}

impl Connection {
    pub fn new(key: ConnectionKey, quic: quiche::Connection<Shared>, ack_every: u64) -> Self {
        Self {
            key,
            source: None,
            connected: false,
            ticket: false,
            over: false,
            next_stream: u64::from(quic.is_server()),
            streams_left: 0,
            opened: BTreeSet::new(),
            acks: DelayedAcks::new(ack_every),
            held_until: None,
            quic,
        }
    }

    pub fn receive(
        &mut self,
        now: Instant,
        datagram: &mut [u8],
        info: RecvInfo,
        local_ip: Option<IpAddr>,
    ) {
        self.source = local_ip.or(self.source);
        if self.connected {
            self.acks.receive(now);
        }
        // Errors of the packet or the peer show in `settle`.
        let _ = self.quic.recv(datagram, info);
    }

    /// When it wants to be handled: for its timers, or because datagrams wait for their time.
    pub fn next_timeout(&self) -> Option<Instant> {
        let timer = self.quic.timeout_instant();
        timer.into_iter().chain(self.held_until).min()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.quic.timeout_instant().is_some_and(|time| time <= now) {
            self.quic.on_timeout();
            self.acks.send_now();
        }
    }

    /// Writes the next datagram to send into the buffer.
    ///
    /// quiche would give packets out ahead of their time, with the time at which they are to be
    /// sent. It takes the moment of this call for the time of sending, though, so it is not asked
    /// before the pacer lets the next packet go. A `CONNECTION_CLOSE` does not wait.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(usize, Transmit)> {
        let release = self.quic.get_next_release_time();
        let paced = release
            .filter(|decision| !decision.can_burst() && !self.over)
            .and_then(|decision| decision.time(now));
        self.held_until = paced.or_else(|| self.acks.wait_until(now));
        if self.held_until.is_some() {
            return None;
        }
        match self.quic.send(buffer) {
            Ok((size, info)) => {
                let from = Some(info.from.ip()).filter(|ip| !ip.is_unspecified());
                Some((size, Transmit::to(info.to, from.or(self.source))))
            }
            Err(Error::Done) => {
                self.acks.sent();
                None
            }
            Err(_) => {
                // The next packet says so, if there can be one; `INTERNAL_ERROR` of RFC 9000,
                // section 20.1.
                let _ = self.quic.close(false, 1, b"");
                None
            }
        }
    }

    /// Migrates to another path, which the server learns from the first packet there; `false`: it
    /// cannot yet.
    pub fn migrate(&mut self, to: PathEnds) -> bool {
        let migrated = self.connected && self.quic.migrate(to.local, to.remote).is_ok();
        if migrated {
            // Else quiche says nothing there before it has something to say. The path exists.
            let _ = self.quic.send_ack_eliciting();
            self.acks.send_now();
        }
        migrated
    }

    /// Collects what the application should know.
    pub fn settle(&mut self, events: &mut VecDeque<Event>) {
        if self.over {
            return;
        }
        let key = self.key;
        if !self.connected && self.quic.is_established() {
            self.connected = true;
            events.push_back(Event::Connected(key));
        }
        while let Some(id) = self.quic.stream_readable_next() {
            let (bidirectional, by_peer) = (id & 2 == 0, id & 1 != self.next_stream & 1);
            if by_peer && bidirectional && self.opened.insert(id) {
                events.push_back(Event::Opened(key, StreamKey(id)));
            } else {
                events.push_back(Event::Readable(key, StreamKey(id)));
            }
        }
        let left = self.quic.peer_streams_left_bidi();
        if self.connected && left > self.streams_left {
            events.push_back(Event::MoreStreams(key));
        }
        self.streams_left = left;
        while let Some(id) = self.quic.stream_writable_next() {
            events.push_back(Event::Writable(key, StreamKey(id)));
        }
        if let Some(closing) = self.closing() {
            self.over = true;
            events.push_back(Event::Closed(key, closing));
        }
    }

    /// The state that a client needs to resume the session, when its first ticket has come. Further
    /// tickets come in the same packet.
    pub fn take_session(&mut self) -> Option<Vec<u8>> {
        if self.ticket || self.quic.is_server() {
            return None;
        }
        let session = self.quic.session()?.to_vec();
        self.ticket = true;
        Some(session)
    }

    /// Offers as many further connection IDs as the peer stores, as quiche's own programs do;
    /// returns them.
    pub fn offer_connection_ids(&mut self) -> Vec<Vec<u8>> {
        let mut offered = Vec::new();
        while self.connected && self.quic.scids_left() > 0 {
            let id = new_connection_id();
            let mut token = [0; 16];
            getrandom::getrandom(&mut token).expect("the system has random bytes");
            let new = quiche::ConnectionId::from_ref(&id);
            let token = u128::from_be_bytes(token);
            if self.quic.new_scid(&new, token, false).is_err() {
                break;
            }
            offered.push(id);
        }
        offered
    }

    fn closing(&self) -> Option<Closing> {
        if self.quic.is_timed_out() {
            return Some(Closing::IdleTimeout);
        }
        if let Some(error) = self.quic.peer_error() {
            if !error.is_app {
                let words = format!("closed by peer: {}", describe(error));
                return Some(Closing::Error(words));
            }
            return Some(Closing::Application {
                code: error.error_code,
                reason: String::from_utf8_lossy(&error.reason).into_owned(),
            });
        }
        if let Some(error) = self.quic.local_error() {
            return Some(Closing::Error(describe(error)));
        }
        let ended = self.quic.is_closed() || self.quic.is_draining();
        ended.then(|| Closing::Error("the connection ended without a reason".into()))
    }

    /// Whether quiche has nothing more to do with it.
    pub fn is_closed(&self) -> bool {
        self.quic.is_closed()
    }

    /// Opens a stream. If the server rejects the early data, quiche sends the same streams again.
    pub fn open(&mut self) -> Option<StreamKey> {
        let ready = self.connected || self.quic.is_in_early_data();
        if !ready || self.quic.peer_streams_left_bidi() == 0 {
            return None;
        }
        let id = self.next_stream;
        self.quic.stream_priority(id, URGENCY, true).ok()?;
        self.next_stream += 4;
        self.streams_left = self.quic.peer_streams_left_bidi();
        Some(StreamKey(id))
    }

    pub fn write(&mut self, StreamKey(id): StreamKey, data: &mut Bytes) -> Result<(), StreamEnd> {
        self.acks.send_now();
        while !data.is_empty() {
            match self.quic.stream_send_zc(id, data.clone(), false) {
                Ok((sent, _)) => data.advance(sent),
                Err(Error::Done) => return Ok(()),
                Err(error) => return Err(stream_end(&error)),
            }
        }
        Ok(())
    }

    pub fn finish(&mut self, StreamKey(id): StreamKey) -> Result<(), StreamEnd> {
        self.acks.send_now();
        let end = self.quic.stream_send(id, b"", true);
        end.map(drop).map_err(|error| stream_end(&error))
    }

    /// Ends one direction; a stream that has ended already needs no more.
    pub fn shut_down(&mut self, StreamKey(id): StreamKey, direction: Shutdown, code: u32) {
        self.acks.send_now();
        let _ = self.quic.stream_shutdown(id, direction, code.into());
    }

    pub fn read(
        &mut self,
        StreamKey(id): StreamKey,
        sink: &mut dyn FnMut(Bytes),
    ) -> Result<Read, StreamEnd> {
        loop {
            // An end alone has no bytes, but wants to be read, too.
            let size = self.quic.stream_readable_len(id, READ_BYTES).max(1);
            let mut data = BytesMut::with_capacity(size);
            match self.quic.stream_recv_buf(id, (&mut data).limit(size)) {
                Ok((count, finished)) => {
                    if count > 0 {
                        sink(data.freeze());
                    }
                    if finished {
                        return Ok(Read::Finished);
                    }
                }
                Err(Error::Done) => return Ok(Read::Blocked),
                Err(error) => return Err(stream_end(&error)),
            }
        }
    }

    pub fn close(&mut self, code: u32) {
        self.acks.send_now();
        self.over = true;
        // One that is closed already needs no more.
        let _ = self.quic.close(true, code.into(), b"");
    }
}

fn stream_end(error: &Error) -> StreamEnd {
    match *error {
        Error::StreamReset(code) | Error::StreamStopped(code) => StreamEnd::ByPeer(code),
        _ => StreamEnd::NotOpen,
    }
}

fn describe(error: &ConnectionError) -> String {
    let kind = if error.is_app {
        "application"
    } else {
        "transport"
    };
    let reason = String::from_utf8_lossy(&error.reason);
    let separator = if reason.is_empty() { "" } else { ", " };
    format!("{kind} error {:#x}{separator}{reason}", error.error_code)
}

/// Twenty random bytes, as in quiche's own programs.
pub fn new_connection_id() -> Vec<u8> {
    let mut id = vec![0; quiche::MAX_CONN_ID_LEN];
    getrandom::getrandom(&mut id).expect("the system has random bytes");
    id
}
