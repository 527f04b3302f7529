//! The side that receives: counts each byte once, as it comes.

use std::collections::BTreeSet;
use std::time::Duration;

use noq_proto::{Connection, Dir, ReadError, StreamId};

use crate::interval_timer::IntervalTimer;
use crate::protocol::{Interval, ReceiverCounters, Request};

/// The receiving side of a test.
#[derive(Debug)]
pub struct Receiver {
    request: Request,
    open: BTreeSet<StreamId>,
    /// Streams that have ended.
    ended: u32,
    bytes: u64,
    first: Option<Duration>,
    last: Duration,
    timer: Option<IntervalTimer>,
    /// The report.
    reported: u64,
}

impl Receiver {
    pub fn new(request: Request) -> Self {
        Self {
            request,
            open: BTreeSet::new(),
            ended: 0,
            bytes: 0,
            first: None,
            last: Duration::ZERO,
            timer: None,
            reported: 0,
        }
    }

    /// Takes the streams that the peer has opened.
    pub fn accept(&mut self, connection: &mut Connection, now: Duration) {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.open.insert(id);
            self.read(connection, now, id);
        }
    }

    /// Reads what a stream has.
    ///
    /// As it comes, not in order: in order, the library ends a connection that has lost every other
    /// packet (`docs/upstream/gaps.md`).
    pub fn read(&mut self, connection: &mut Connection, now: Duration, id: StreamId) {
        if !self.open.contains(&id) {
            return;
        }
        let mut receiver = connection.recv_stream(id);
        let Ok(mut chunks) = receiver.read(false) else {
            return;
        };
        let before = self.bytes;
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.bytes += chunk.bytes.len() as u64,
                Err(ReadError::Blocked) => break false,
                // Time has ended it.
                Ok(None) | Err(ReadError::Reset(_)) => break true,
            }
        };
        // Whether flow control credit is to be sent, the next poll finds out by itself.
        let _ = chunks.finalize();
        if ended {
            self.open.remove(&id);
            self.ended += 1;
        }
        if self.bytes > before {
            self.last = now;
            let first = *self.first.get_or_insert(now);
            let length = Duration::from_secs_f64(self.request.interval_s);
            self.timer
                .get_or_insert_with(|| IntervalTimer::new(first, length));
        }
    }

    pub fn first_byte(&self) -> Option<Duration> {
        self.first
    }

    pub fn received(&self) -> ReceiverCounters {
        ReceiverCounters { bytes: self.bytes }
    }

    /// From the first byte to the last.
    pub fn seconds(&self) -> f64 {
        let first = self.first.unwrap_or(self.last);
        self.last.saturating_sub(first).as_secs_f64()
    }

    pub fn is_done(&self) -> bool {
        self.ended >= self.request.streams
    }

    pub fn wake(&self) -> Option<Duration> {
        self.timer.as_ref().map(IntervalTimer::wake)
    }

    /// The intervals that have ended. Where the program slept through some, all bytes belong to the
    /// first.
    pub fn intervals(&mut self, now: Duration) -> Vec<Interval> {
        let done = self.is_done();
        let Some(timer) = &mut self.timer else {
            return Vec::new();
        };
        let now = if done { self.last } else { now };
        let mut found = Vec::new();
        while let Some(index) = timer.ended(now) {
            found.push((index, self.request.interval_s));
        }
        if done {
            let rest = timer.last(now);
            found.extend(rest.map(|(index, rest)| (index, rest.as_secs_f64())));
            self.timer = None;
        }
        let mut new = self.bytes - self.reported;
        if !found.is_empty() {
            self.reported = self.bytes;
        }
        let interval = |(index, seconds)| Interval {
            index,
            seconds,
            received: Some(ReceiverCounters {
                bytes: std::mem::take(&mut new),
            }),
            sent: None,
        };
        found.into_iter().map(interval).collect()
    }
}
