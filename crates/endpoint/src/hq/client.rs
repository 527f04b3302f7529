//! The client: asks for everything at once, or for the first request and then, over a second
//! connection, for the others.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use crate::contract::{Bye, Statistics};
use crate::error::EndpointError;
use crate::setup::Setup;
use crate::stack::{ConnectionKey, Event, Stack, StreamKey};
use crate::tickets::Resume;

use super::REFUSED;
use super::request::Request;
use crate::words::{describe, missing, nanos};

/// A client and its requests.
#[derive(Debug)]
pub struct Client {
    remote: SocketAddr,
    requests: Vec<Request>,
    /// The connection that is in use.
    connection: Option<ConnectionKey>,
    /// The requests that belong to it.
    turn: Range<usize>,
    /// Which request a stream carries.
    streams: BTreeMap<StreamKey, usize>,
    /// The first request that has no stream yet.
    unasked: usize,
    unanswered: usize,
    /// Whether a session ticket has come.
    ticket: bool,
    /// How the connection after this one starts; `Nothing`: there is none after it.
    next: Resume,
    connected_at: Option<Duration>,
    error: Option<String>,
    done: bool,
}

impl Client {
    /// A client with the requests of `setup`.
    pub fn new(setup: &Setup) -> Result<Self, EndpointError> {
        Ok(Self {
            remote: setup.remote.ok_or_else(|| missing("remote"))?,
            requests: Request::all(setup)?,
            connection: None,
            turn: 0..0,
            streams: BTreeMap::new(),
            unasked: 0,
            unanswered: 0,
            ticket: false,
            next: setup.test_case.resume(),
            connected_at: None,
            error: None,
            done: false,
        })
    }

    /// Starts the first connection.
    pub fn start(&mut self, stack: &mut impl Stack, now: Duration) -> Result<(), EndpointError> {
        let all = self.requests.len();
        let end = match self.next {
            Resume::Nothing => all,
            Resume::Session | Resume::EarlyData => all.min(1),
        };
        self.connect(stack, now, 0..end, Resume::Nothing)
    }

    fn connect(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        turn: Range<usize>,
        resume: Resume,
    ) -> Result<(), EndpointError> {
        let connection = stack.connect(now, self.remote, resume)?;
        self.connection = Some(connection);
        self.turn = turn;
        self.begin_turn();
        if resume == Resume::EarlyData {
            self.ask(stack, now, connection);
        }
        Ok(())
    }

    /// None of the connection's requests has been asked.
    fn begin_turn(&mut self) {
        self.streams.clear();
        self.unasked = self.turn.start;
        self.unanswered = self.turn.len();
    }

    /// Tells it what happened at `now`.
    pub fn handle(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        event: &Event,
    ) -> Result<(), EndpointError> {
        // The first connection may still be closing when the second is in use.
        if self.connection != Some(event.connection()) {
            return Ok(());
        }
        match *event {
            Event::Connected(connection) => {
                self.connected_at.get_or_insert(now);
                self.ask(stack, now, connection);
                self.advance(stack, now, connection)?;
            }
            Event::Ticket(connection) => {
                self.ticket = true;
                self.advance(stack, now, connection)?;
            }
            Event::EarlyDataRejected(_) => {
                let requests = &mut self.requests[self.turn.clone()];
                requests.iter_mut().for_each(Request::restart);
                self.begin_turn();
            }
            Event::MoreStreams(connection) => self.ask(stack, now, connection),
            Event::Writable(connection, stream) => {
                if let Some(index) = self.streams.get(&stream) {
                    self.requests[*index].send(stack, now, connection, stream);
                }
            }
            Event::Readable(connection, stream) => {
                self.receive(stack, now, connection, stream)?;
                self.advance(stack, now, connection)?;
            }
            Event::Opened(connection, stream) => {
                stack.stop(connection, stream, REFUSED);
                stack.reset(connection, stream, REFUSED);
            }
            Event::OpenedOneWay(connection, stream) => stack.stop(connection, stream, REFUSED),
            Event::DatagramFrame(..) => {}
            Event::Closed(_, ref closing) => {
                self.fail(describe(closing));
                self.done = true;
            }
        }
        Ok(())
    }

    /// Whether every request has ended and the connection is closed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Completes the files and says what happened.
    pub fn finish(self) -> Result<Bye, EndpointError> {
        let requests = self.requests.into_iter().map(Request::close);
        Ok(Bye {
            handshake_ns: self.connected_at.map(nanos),
            requests: requests.collect::<Result<_, _>>()?,
            error: self.error,
            statistics: Statistics::default(),
        })
    }

    /// Opens streams for as many requests as the server allows.
    fn ask(&mut self, stack: &mut impl Stack, now: Duration, connection: ConnectionKey) {
        while self.unasked < self.turn.end {
            let Some(stream) = stack.open(connection) else {
                return;
            };
            self.streams.insert(stream, self.unasked);
            self.requests[self.unasked].send(stack, now, connection, stream);
            self.unasked += 1;
        }
    }

    fn receive(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        connection: ConnectionKey,
        stream: StreamKey,
    ) -> Result<(), EndpointError> {
        let Some(index) = self.streams.get(&stream) else {
            return Ok(());
        };
        let request = &mut self.requests[*index];
        let Some(ending) = request.receive(stack, now, connection, stream)? else {
            return Ok(());
        };
        self.unanswered -= 1;
        if let Err(failure) = ending {
            let words = format!("{}: {failure}", request.path());
            self.fail(words);
        }
        Ok(())
    }

    /// Closes a connection that has done its part, and goes on to the next, if there is one.
    fn advance(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        connection: ConnectionKey,
    ) -> Result<(), EndpointError> {
        let another = self.next != Resume::Nothing;
        if self.done || self.unanswered > 0 || (another && !self.ticket) {
            return Ok(());
        }
        stack.close(now, connection, 0);
        if !another {
            self.done = true;
            return Ok(());
        }
        let resume = std::mem::replace(&mut self.next, Resume::Nothing);
        let rest = self.turn.end..self.requests.len();
        self.connect(stack, now, rest, resume)
    }

    /// Keeps the first reason.
    fn fail(&mut self, words: String) {
        self.error.get_or_insert(words);
    }
}
