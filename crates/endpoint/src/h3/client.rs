//! The client: loads a page over one connection, in some test cases behind an earlier visit over
//! another one. Files that are all asked for at once are a page without initiators.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::task::LocalSpawnExt;
use h3::client::SendRequest;
use http::{Method, Request};

use super::NO_ERROR;
use super::transport::{Session, Transport};
use crate::contract::{Bye, RequestReport, Statistics};
use crate::error::EndpointError;
use crate::options::Options;
use crate::page::{PageLoad, browser_headers};
use crate::setup::Setup;
use crate::stack::{ConnectionKey, Event, Stack};
use crate::tickets::Resume;
use crate::words::{describe, missing, nanos};

/// More than that no client has.
const MOST_PARALLEL: usize = 100_000;

/// The library's end of the connection that asks.
type Asker = SendRequest<Transport, Bytes>;

/// A client and its page.
pub struct Client {
    remote: SocketAddr,
    load: Rc<RefCell<PageLoad>>,
    /// The visit behind this one, and how its connection starts.
    next: Option<(PageLoad, Resume)>,
    /// The reports of the visit before this one.
    earlier: Vec<RequestReport>,
    session: Option<Session>,
    asker: Rc<RefCell<Option<Asker>>>,
    /// The most requests that are under way at one time.
    most: usize,
    state: State,
    has_ticket: bool,
    /// The first connection was complete.
    connected_at: Option<Duration>,
    error: Option<String>,
}

/// The state of the connection that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its handshake is not complete.
    Connecting,
    /// The same, and requests go as early data.
    Early,
    /// Its handshake is complete.
    Connected,
    /// The connection is closed, and there is no further visit.
    Done,
}

impl Client {
    /// A client with the requests of `setup`; takes the option `parallel`.
    pub fn new(setup: &Setup, options: &mut Options) -> Result<Self, EndpointError> {
        let most = options.take_number("parallel", 1..=MOST_PARALLEL)?;
        let load = PageLoad::new(setup)?;
        let (load, next) = match PageLoad::earlier(setup)? {
            None => (load, None),
            Some(earlier) => (earlier, Some((load, setup.test_case.resume()))),
        };
        Ok(Self {
            remote: setup.remote.ok_or_else(|| missing("remote"))?,
            load: Rc::new(RefCell::new(load)),
            next,
            earlier: Vec::new(),
            session: None,
            asker: Rc::default(),
            most: most.unwrap_or(usize::MAX),
            state: State::Connecting,
            has_ticket: false,
            connected_at: None,
            error: None,
        })
    }

    /// Starts the first connection.
    pub fn start(&mut self, stack: &mut impl Stack, now: Duration) -> Result<(), EndpointError> {
        self.connect(stack, now, Resume::Nothing)
    }

    fn connect(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        resume: Resume,
    ) -> Result<(), EndpointError> {
        let connection = stack.connect(now, self.remote, resume)?;
        self.load.borrow_mut().start(now);
        let session = Session::new(connection);
        self.state = match resume {
            Resume::EarlyData => State::Early,
            Resume::Nothing | Resume::Session => State::Connecting,
        };
        self.asker = Rc::default();
        let asker = self.asker.clone();
        let transport = session.transport();
        let spawner = session.spawner();
        spawn(&session, async move {
            let mut builder = h3::client::builder();
            // Values drawn at random would not repeat.
            builder.send_grease(false);
            if let Ok((mut driver, sender)) = builder.build::<_, _, Bytes>(transport).await {
                *asker.borrow_mut() = Some(sender);
                let _ = spawner.spawn_local(async move {
                    driver.wait_idle().await;
                });
            }
        });
        self.session = Some(session);
        Ok(())
    }

    /// Tells it what happened at `now`.
    pub fn handle(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        event: &Event,
    ) -> Result<(), EndpointError> {
        let Some(session) = self.session.as_mut() else {
            return Ok(());
        };
        if session.connection() != event.connection() {
            return Ok(());
        }
        session.handle(stack, event);
        match event {
            // Behind early data that was rejected it is still said.
            Event::Connected(_) if self.state != State::Done => {
                self.connected_at.get_or_insert(now);
                self.state = State::Connected;
            }
            Event::Ticket(_) => self.has_ticket = true,
            Event::EarlyDataRejected(connection) => {
                let words = || "the server rejected the early data".to_owned();
                self.error.get_or_insert_with(words);
                stack.close(now, *connection, NO_ERROR);
                self.state = State::Done;
            }
            Event::Closed(_, closing) => {
                self.error.get_or_insert_with(|| describe(closing));
                self.state = State::Done;
            }
            _ => {}
        }
        self.advance(stack, now)
    }

    /// The time of the next call of [`Client::advance`], if nothing arrives before.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        let can_ask = self.session.as_ref().is_some_and(|it| self.can_ask(it));
        self.load.borrow().next_wake().filter(|_| can_ask)
    }

    /// Goes as far as it can: asks for what is to be asked for, and closes the connection when all
    /// has come.
    pub fn advance(&mut self, stack: &mut impl Stack, now: Duration) -> Result<(), EndpointError> {
        let Some(mut session) = self.session.take() else {
            return Ok(());
        };
        self.load.borrow_mut().set_time(now);
        session.pump(stack);
        while self.can_ask(&session)
            && let Some((number, asker)) = self.next()
        {
            spawn(&session, fetch(self.load.clone(), number, asker));
            session.pump(stack);
        }
        self.load.borrow_mut().check()?;
        let connection = session.connection();
        let failed = session.wants_to_close();
        self.session = Some(session);
        if self.state == State::Done {
            return Ok(());
        }
        if let Some(code) = failed {
            let words = format!("HTTP/3: closed with error {code:#x}");
            self.error.get_or_insert(words);
            stack.close(now, connection, code);
            self.state = State::Done;
        } else if self.state == State::Connected && self.load.borrow().is_done() {
            return self.close(stack, now, connection);
        }
        Ok(())
    }

    /// Whether there is a connection that takes one request more.
    fn can_ask(&self, session: &Session) -> bool {
        let can_send = matches!(self.state, State::Early | State::Connected);
        let is_there = can_send && self.asker.borrow().is_some();
        is_there && !session.waits_for_streams() && self.load.borrow().under_way() < self.most
    }

    /// The next resource to be asked for, if there is one, and what asks.
    fn next(&self) -> Option<(usize, Asker)> {
        let asker = self.asker.borrow().clone()?;
        Some((self.load.borrow_mut().ask()?, asker))
    }

    /// Closes a connection whose visit has come to its end, and begins the next visit, if there is
    /// one.
    fn close(
        &mut self,
        stack: &mut impl Stack,
        now: Duration,
        connection: ConnectionKey,
    ) -> Result<(), EndpointError> {
        if self.next.is_some() && !self.has_ticket {
            return Ok(());
        }
        stack.close(now, connection, NO_ERROR);
        let Some((load, resume)) = self.next.take() else {
            self.state = State::Done;
            return Ok(());
        };
        let (earlier, failure) = self.load.borrow_mut().finish()?;
        self.earlier = earlier;
        self.load = Rc::new(RefCell::new(load));
        if failure.is_some() {
            self.error = failure;
            self.state = State::Done;
            return Ok(());
        }
        self.connect(stack, now, resume)?;
        self.advance(stack, now)
    }

    /// Whether all that could be asked for has ended and the connection is closed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Completes the files and says what happened.
    pub fn finish(self) -> Result<Bye, EndpointError> {
        let (requests, failure) = self.load.borrow_mut().finish()?;
        let later = self.next.map(|(mut load, _)| load.finish()).transpose()?;
        let later = later.map_or_else(Vec::new, |(requests, _)| requests);
        Ok(Bye {
            handshake_ns: self.connected_at.map(nanos),
            requests: [self.earlier, requests, later].concat(),
            error: self.error.or(failure),
            statistics: Statistics::default(),
        })
    }
}

fn spawn(session: &Session, task: impl Future<Output = ()> + 'static) {
    let spawned = session.spawner().spawn_local(task);
    spawned.expect("the pool is there");
}

/// Asks for a resource and stores what comes.
async fn fetch(load: Rc<RefCell<PageLoad>>, number: usize, mut asker: Asker) {
    let ended = exchange(&load, number, &mut asker).await;
    load.borrow_mut().ended(number, &ended);
}

async fn exchange(
    load: &RefCell<PageLoad>,
    number: usize,
    asker: &mut Asker,
) -> Result<(), String> {
    let request = request(&load.borrow(), number)?;
    let words = |error: h3::error::StreamError| error.to_string();
    let mut stream = asker.send_request(request).await.map_err(words)?;
    stream.finish().await.map_err(words)?;
    let response = stream.recv_response().await.map_err(words)?;
    load.borrow_mut().answered(number);
    if response.status() != http::StatusCode::OK {
        return Err(format!("answered with status {}", response.status()));
    }
    while let Some(mut data) = stream.recv_data().await.map_err(words)? {
        let bytes = data.copy_to_bytes(data.remaining());
        load.borrow_mut().arrived(number, &bytes);
    }
    Ok(())
}

fn request(load: &PageLoad, number: usize) -> Result<Request<()>, String> {
    let uri = format!("https://server{}", load.path(number));
    let mut request = Request::builder().method(Method::GET).uri(uri);
    for (name, value) in browser_headers(load.priority(number)) {
        request = request.header(name, value);
    }
    request.body(()).map_err(|error| error.to_string())
}
