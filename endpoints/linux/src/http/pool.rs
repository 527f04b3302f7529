//! The connections of a client: how many there are, and which of them take a request.

use super::connection::{Http1, Http2};

/// A connection that takes a request.
pub enum Asker {
    /// A connection of HTTP/1.1: one request at a time.
    Http1(Http1),
    /// A connection of HTTP/2: any number; clones are of the same connection.
    Http2(Http2),
}

/// The connections of a client. A request gets one when that is free, and not before, so that the
/// most urgent of those that wait is the next.
pub struct Pool {
    free: Vec<Asker>,
    /// The number of connections that are being made.
    opening: usize,
    /// All of them, those among them.
    count: usize,
    most: usize,
}

impl Pool {
    /// None; `most` is how many there may be.
    pub fn new(most: usize) -> Self {
        Self {
            free: Vec::new(),
            opening: 0,
            count: 0,
            most,
        }
    }

    /// A connection that is free: a request's, if there is one.
    pub fn take(&mut self) -> Option<Asker> {
        self.free.pop()
    }

    /// A connection is free.
    pub fn give(&mut self, asker: Asker) {
        self.free.push(asker);
    }

    /// How many connections are to be made for `waiting` requests that wait: they are being made
    /// then.
    pub fn open(&mut self, waiting: usize) -> usize {
        let lacking = waiting.saturating_sub(self.opening);
        let opened = lacking.min(self.most - self.count);
        self.opening += opened;
        self.count += opened;
        opened
    }

    /// One that was being made is there and free.
    pub fn opened(&mut self, asker: Asker) {
        self.opening -= 1;
        self.give(asker);
    }

    /// One that was being made is not to be had. Whether no other one is there, either.
    pub fn failed(&mut self) -> bool {
        self.opening -= 1;
        self.lose();
        self.count == 0
    }

    /// A connection is no more.
    pub fn lose(&mut self) {
        self.count -= 1;
    }
}
