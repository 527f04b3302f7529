//! What a worker is told by others.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bentpipe_endpoint::Received;
use bentpipe_pep::{Config, Statistics};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

/// Datagrams of others that may wait; further ones are lost, as on their way.
const MOST_DATAGRAMS: usize = 4096;

/// A message to a worker.
pub enum Message {
    /// Connections to come are like this.
    Reconfigure(Box<Config>),
    /// Take nobody any more; those there are may go on for so long.
    Drain(Duration),
    /// End at once.
    End,
    /// Say what was counted.
    Count(SyncSender<WorkerCounters>),
}

/// The counters of a worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerCounters {
    pub statistics: Statistics,
    /// Calls to receive or send that failed.
    pub socket_errors: u64,
    /// Datagrams that were another worker's.
    pub handed_on: u64,
    /// Those among them that found no room.
    pub lost: u64,
}

/// Messages and datagrams for one worker, which it is woken for.
pub struct Inbox {
    wake: OwnedFd,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    messages: Vec<Message>,
    /// Those that came to another worker.
    datagrams: Vec<Received>,
}

impl Inbox {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            waiting: Mutex::default(),
        })
    }

    pub fn send(&self, message: Message) {
        let mut waiting = self.waiting.lock().expect("nobody panics with it");
        waiting.messages.push(message);
        drop(waiting);
        self.wake();
    }

    /// Hands a datagram on that came to another worker; says whether there was room.
    pub fn hand_on(&self, datagram: Received) -> bool {
        let mut waiting = self.waiting.lock().expect("nobody panics with it");
        let room = waiting.datagrams.len() < MOST_DATAGRAMS;
        if room {
            waiting.datagrams.push(datagram);
        }
        drop(waiting);
        self.wake();
        room
    }

    /// All that has come.
    pub fn take(&self) -> (Vec<Message>, Vec<Received>) {
        let mut count = [0; 8];
        let _ = read(&self.wake, &mut count);
        let mut waiting = self.waiting.lock().expect("nobody panics with it");
        let Waiting {
            messages,
            datagrams,
        } = std::mem::take(&mut *waiting);
        (messages, datagrams)
    }

    fn wake(&self) {
        // It fails when the worker has been woken 2^64 times in vain.
        let _ = write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
