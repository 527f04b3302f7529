//! HTTP/3 on a connection of noq: the library's tasks, and what carries between them and noq.

use futures_executor::{LocalPool, LocalSpawner};
use futures_util::task::LocalSpawnExt;
use h3::quic::ConnectionErrorIncoming;
use noq_proto::{Connection, ConnectionError, Dir, Event, StreamEvent};

use crate::streams::{Receiving, error_code, stream_id};
use crate::transport::{Queues, Transport, Wanted};

/// The tasks of a connection, and its queues.
pub struct Session {
    tasks: LocalPool,
    spawner: LocalSpawner,
    transport: Transport,
    /// Bytes of all streams that may wait behind a gap, or until they are taken.
    most_held: usize,
}

impl Session {
    /// A connection on which nothing has happened.
    pub fn new(most_held: usize) -> Self {
        let tasks = LocalPool::new();
        Self {
            spawner: tasks.spawner(),
            tasks,
            transport: Transport::default(),
            most_held,
        }
    }

    /// Changes how many bytes of all streams may wait.
    pub fn hold(&mut self, most_held: usize) {
        self.most_held = most_held;
    }

    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    pub fn spawner(&self) -> &LocalSpawner {
        &self.spawner
    }

    /// Adds a task.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        spawn(&self.spawner, task);
    }

    /// Takes from the connection what an event is about.
    pub fn handle(&mut self, connection: &mut Connection, event: &Event) {
        let queues = &mut *self.transport.lock();
        match event {
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = connection.streams().accept(*dir) {
                    let id = u64::from(id);
                    queues.receiving.insert(id, Receiving::default());
                    read(queues, connection, id, self.most_held);
                    match dir {
                        Dir::Bi => queues.accepted.push(id),
                        Dir::Uni => queues.accepted_one_way.push(id),
                    }
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                read(queues, connection, u64::from(*id), self.most_held);
            }
            Event::Stream(StreamEvent::Writable { id } | StreamEvent::Stopped { id, .. }) => {
                queues.changed.insert(u64::from(*id));
            }
            Event::ConnectionLost { reason } => queues.lose(lost(reason)),
            _ => {}
        }
    }

    /// Lets the tasks go on until each waits for something that is still to come.
    pub fn pump(&mut self, connection: &mut Connection) {
        loop {
            self.tasks.run_until_stalled();
            if !carry(&mut self.transport.lock(), connection) {
                return;
            }
        }
    }

    /// The error code with which the library wants to close the connection, if it does.
    pub fn wants_to_close(&self) -> Option<u64> {
        self.transport.lock().close
    }
}

/// Adds a task to those of a connection.
pub fn spawn(spawner: &LocalSpawner, task: impl Future<Output = ()> + 'static) {
    // Where the tasks are gone, so is the connection.
    let _ = spawner.spawn_local(task);
}

fn read(queues: &mut Queues, connection: &mut Connection, id: u64, most_held: usize) {
    let others = queues.receiving.iter().filter(|(other, _)| **other != id);
    let held: usize = others.map(|(_, it)| it.held()).sum();
    // Nobody reads one that was let go; it was stopped.
    if let Some(receiving) = queues.receiving.get_mut(&id) {
        receiving.read(connection, id, most_held.saturating_sub(held));
        if receiving.is_excessive() {
            queues.refuse_load();
        }
    }
}

fn lost(reason: &ConnectionError) -> ConnectionErrorIncoming {
    match reason {
        ConnectionError::ApplicationClosed(closed) => ConnectionErrorIncoming::ApplicationClose {
            error_code: closed.error_code.into_inner(),
        },
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::InternalError(other.to_string()),
    }
}

/// Carries what tasks want to the connection; says whether one of them may go on.
fn carry(queues: &mut Queues, connection: &mut Connection) -> bool {
    let mut goes_on = open(&mut queues.wanted, connection, Dir::Bi, |id| {
        queues.receiving.insert(id, Receiving::default());
    });
    goes_on |= open(&mut queues.wanted_one_way, connection, Dir::Uni, |_| ());
    for id in std::mem::take(&mut queues.changed) {
        if let Some(sending) = queues.sending.get_mut(&id) {
            goes_on |= sending.carry(connection, id);
            if sending.is_left && (sending.unsent.is_empty() || sending.failed.is_some()) {
                queues.sending.remove(&id);
            }
        }
    }
    for (id, code) in queues.stops.drain(..) {
        // A stream that is closed already needs no stop.
        let _ = connection.recv_stream(stream_id(id)).stop(error_code(code));
    }
    goes_on
}

fn open(
    wanted: &mut Wanted,
    connection: &mut Connection,
    dir: Dir,
    mut opened: impl FnMut(u64),
) -> bool {
    let mut goes_on = false;
    while !wanted.waiting.is_empty()
        && let Some(id) = connection.streams().open(dir)
    {
        let id = u64::from(id);
        opened(id);
        wanted.opened.push_back(id);
        if let Some(waker) = wanted.waiting.pop_front() {
            waker.wake();
        }
        goes_on = true;
    }
    goes_on
}
