//! One stream: what has come waits in an inbox for the program's thread; what goes stays with
//! `MsQuic` until it is sent.

use std::ffi::c_void;
use std::mem;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_endpoint::{ConnectionKey, Event, Read, StreamEnd, StreamKey};
use bytes::Bytes;
use msquic::{
    BufferRef, SendFlags, Status, StatusCode, StreamEvent, StreamOpenFlags, StreamRef,
    StreamShutdownFlags, StreamStartFlags,
};

use crate::messages::Message;

/// More than this is not taken from `MsQuic` before it is read, so that flow control holds the peer
/// back.
const INBOX_BYTES: u64 = 8 << 20;
/// `MsQuic` keeps a copy of what it is given, of a few such pieces at a time.
const PIECE_BYTES: usize = 1 << 18;

/// Data that have arrived and are not read yet.
#[derive(Debug, Default)]
struct Inbox {
    data: Vec<Bytes>,
    bytes: u64,
    /// The part of `bytes` that is still to be reported to `MsQuic` as read.
    owed: u64,
    finished: bool,
    reset: Option<u64>,
    /// A message that tells of all this is under way.
    told: bool,
}

/// A stream, closed when it is dropped, which must not happen in a callback.
#[derive(Debug)]
pub struct Stream {
    handle: msquic::Stream,
    inbox: Arc<Mutex<Inbox>>,
    /// The peer wants no more of what is sent.
    stopped: Arc<Mutex<Option<u64>>>,
}

impl Stream {
    /// Opens a stream and starts it as soon as the peer allows.
    pub fn open(
        connection: &msquic::Connection,
        keys: (ConnectionKey, StreamKey),
        sender: Sender<Message>,
    ) -> Result<Self, Status> {
        let (inbox, stopped) = Default::default();
        let callback = callback(keys, sender, &inbox, &stopped);
        let handle = msquic::Stream::open(connection, StreamOpenFlags::NONE, callback)?;
        handle.start(StreamStartFlags::NONE)?;
        Ok(Self {
            handle,
            inbox,
            stopped,
        })
    }

    /// Takes over a stream that the peer has opened; for the callback that tells of it.
    #[expect(unsafe_code, reason = "the wrapper lends what the program must close")]
    pub fn accept(
        stream: &StreamRef,
        keys: (ConnectionKey, StreamKey),
        sender: Sender<Message>,
    ) -> Self {
        let (inbox, stopped) = Default::default();
        stream.set_callback_handler(callback(keys, sender, &inbox, &stopped));
        // SAFETY: the handle is open, and nobody else closes it.
        let handle = unsafe { msquic::Stream::from_raw(stream.as_raw()) };
        Self {
            handle,
            inbox,
            stopped,
        }
    }

    /// Gives all of `data` to `MsQuic`, which sends it when it can.
    pub fn send(&self, data: &mut Bytes) -> Result<(), StreamEnd> {
        if let Some(code) = *lock(&self.stopped) {
            return Err(StreamEnd::ByPeer(code));
        }
        while !data.is_empty() {
            let piece = data.split_to(data.len().min(PIECE_BYTES));
            self.send_piece(piece).map_err(|_| StreamEnd::NotOpen)?;
        }
        Ok(())
    }

    #[expect(unsafe_code, reason = "MsQuic reads the bytes later")]
    fn send_piece(&self, piece: Bytes) -> Result<(), Status> {
        let piece = Box::new((BufferRef::from(&piece[..]), piece));
        let buffers = std::slice::from_ref(&piece.0);
        let context: *const Piece = &raw const *piece;
        // SAFETY: buffer and bytes live until SendComplete, which comes exactly once if this
        // succeeds.
        unsafe {
            self.handle
                .send(buffers, SendFlags::ALLOW_0_RTT, context.cast())
        }?;
        mem::forget(piece);
        Ok(())
    }

    /// Ends the sending side.
    pub fn finish(&self) -> Result<(), StreamEnd> {
        let done = self.handle.shutdown(StreamShutdownFlags::GRACEFUL, 0);
        done.map_err(|_| StreamEnd::NotOpen)
    }

    /// Abandons one side, with `RESET_STREAM` or `STOP_SENDING`. What has ended already needs
    /// neither.
    pub fn abort(&self, side: StreamShutdownFlags, code: u32) {
        let _ = self.handle.shutdown(side, u64::from(code));
    }

    /// Reads all that is there.
    pub fn read(&self, sink: &mut dyn FnMut(Bytes)) -> Result<Read, StreamEnd> {
        let (data, owed, finished, reset) = {
            let mut inbox = lock(&self.inbox);
            inbox.told = false;
            inbox.bytes = 0;
            let owed = mem::take(&mut inbox.owed);
            let data = mem::take(&mut inbox.data);
            (data, owed, inbox.finished, inbox.reset)
        };
        data.into_iter().for_each(sink);
        if owed > 0 {
            self.handle.receive_complete(owed);
        }
        match reset {
            Some(code) => Err(StreamEnd::ByPeer(code)),
            None if finished => Ok(Read::Finished),
            None => Ok(Read::Blocked),
        }
    }
}

/// A buffer for `MsQuic` to send, and the bytes that it points to.
type Piece = (BufferRef, Bytes);

fn callback(
    (connection, stream): (ConnectionKey, StreamKey),
    sender: Sender<Message>,
    inbox: &Arc<Mutex<Inbox>>,
    stopped: &Arc<Mutex<Option<u64>>>,
) -> impl FnMut(StreamRef, StreamEvent) -> Result<(), Status> + 'static {
    let (inbox, stopped) = (Arc::clone(inbox), Arc::clone(stopped));
    move |_, event| {
        let mut result = Ok(());
        match event {
            StreamEvent::Receive {
                total_buffer_length,
                buffers,
                ..
            } => result = lock(&inbox).take(buffers, *total_buffer_length),
            StreamEvent::PeerSendShutdown => lock(&inbox).finished = true,
            StreamEvent::PeerSendAborted { error_code } => lock(&inbox).reset = Some(error_code),
            StreamEvent::PeerReceiveAborted { error_code } => {
                *lock(&stopped) = Some(error_code);
                return Ok(());
            }
            StreamEvent::SendComplete { client_context, .. } => {
                release(client_context);
                return Ok(());
            }
            StreamEvent::ShutdownComplete { .. } => {
                let _ = sender.send(Message::StreamOver(connection, stream));
                return Ok(());
            }
            _ => return Ok(()),
        }
        if !mem::replace(&mut lock(&inbox).told, true) {
            let _ = sender.send(Message::Event(Event::Readable(connection, stream)));
        }
        result
    }
}

impl Inbox {
    /// Takes what came. `Err`: it is full, and `MsQuic` is to keep further data until it is
    /// informed that this is read.
    fn take(&mut self, buffers: &[BufferRef], length: u64) -> Result<(), Status> {
        for buffer in buffers {
            self.data.push(Bytes::copy_from_slice(buffer.as_bytes()));
        }
        self.bytes += length;
        if self.bytes < INBOX_BYTES {
            return Ok(());
        }
        self.owed += length;
        Err(StatusCode::QUIC_STATUS_PENDING.into())
    }
}

#[expect(unsafe_code, reason = "the pair of `send_piece`")]
fn release(context: *const c_void) {
    // SAFETY: made by `send_piece`, given back once.
    drop(unsafe { Box::from_raw(context.cast_mut().cast::<Piece>()) });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
