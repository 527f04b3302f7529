//! The messages to a worker.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

/// Messages for one worker, which it is woken for: it can wait for this as for a socket.
pub struct Inbox<M> {
    wake: OwnedFd,
    waiting: Mutex<Vec<M>>,
}

impl<M> Inbox<M> {
    /// An empty one.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            waiting: Mutex::default(),
        })
    }

    /// Leaves a message.
    pub fn send(&self, message: M) {
        self.send_if_below(usize::MAX, message);
    }

    /// Leaves a message unless `most` wait; whether it was left.
    pub fn send_if_below(&self, most: usize, message: M) -> bool {
        let mut waiting = self.waiting.lock().expect("nobody panics with it");
        let has_room = waiting.len() < most;
        if has_room {
            waiting.push(message);
        }
        drop(waiting);
        // It fails when the worker has been woken 2^64 times in vain.
        let _ = write(&self.wake, &1_u64.to_ne_bytes());
        has_room
    }

    /// All that have come.
    pub fn take(&self) -> Vec<M> {
        let mut count = [0; 8];
        let _ = read(&self.wake, &mut count);
        std::mem::take(&mut *self.waiting.lock().expect("nobody panics with it"))
    }
}

impl<M> AsFd for Inbox<M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
