//! The tasks that s2n-quic wakes, in the order in which it does.
//!
//! Its application side is made of functions that are polled with a waker. There is no executor
//! here: a waker notes what it is for, and the adapter polls that again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use bentpipe_endpoint::{ConnectionKey, StreamKey};

/// A task that can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A client's connection is established, or has failed.
    Connected(ConnectionKey),
    /// A server has a further connection.
    Accept,
    /// The peer has opened a stream, or the connection is no more.
    Streams(ConnectionKey),
    /// The peer allows further streams.
    Open(ConnectionKey),
    /// Reading.
    Read(ConnectionKey, StreamKey),
    /// Writing.
    Write(ConnectionKey, StreamKey),
}

type Queue = VecDeque<Reason>;

/// The queue of what can go on.
#[derive(Debug, Clone, Default)]
pub struct Wakes(Arc<Mutex<Queue>>);

impl Wakes {
    /// A waker that notes `reason`.
    pub fn waker(&self, reason: Reason) -> Waker {
        let wakes = self.clone();
        Arc::new(Note { wakes, reason }).into()
    }

    pub fn push(&self, reason: Reason) {
        self.lock().push_back(reason);
    }

    pub fn pop(&self) -> Option<Reason> {
        self.lock().pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Note {
    wakes: Wakes,
    reason: Reason,
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.wakes.push(self.reason);
    }
}
