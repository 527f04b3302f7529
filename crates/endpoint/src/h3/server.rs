//! The server: answers each request with the file that its path names.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_executor::LocalSpawner;
use futures_util::task::LocalSpawnExt;
use h3::error::StreamError;
use h3::server::RequestResolver;
use http::{Method, Response, StatusCode};

use super::NO_ERROR;
use super::transport::{Session, Transport};
use crate::contract::{Bye, Statistics};
use crate::error::EndpointError;
use crate::files::ServedFolder;
use crate::setup::Setup;
use crate::stack::{Closing, ConnectionKey, Event, Stack};
use crate::words::{describe, missing, nanos};

/// A server of files.
pub struct Server {
    www: Rc<RefCell<ServedFolder>>,
    sessions: BTreeMap<ConnectionKey, Session>,
    /// Connections that this side has closed: their further events are ignored.
    closed: BTreeSet<ConnectionKey>,
    connected_at: Option<Duration>,
    had_any: bool,
    error: Option<String>,
}

impl Server {
    /// A server of the files in `setup.www`.
    pub fn new(setup: &Setup) -> Result<Self, EndpointError> {
        let www = setup.www.as_deref().ok_or_else(|| missing("www"))?;
        Ok(Self {
            www: Rc::new(RefCell::new(ServedFolder::new(www)?)),
            sessions: BTreeMap::new(),
            closed: BTreeSet::new(),
            connected_at: None,
            had_any: false,
            error: None,
        })
    }

    /// Tells it what happened at `now`.
    pub fn handle(&mut self, stack: &mut impl Stack, now: Duration, event: &Event) {
        let key = event.connection();
        if self.closed.contains(&key) {
            return;
        }
        match event {
            Event::Closed(_, closing) => {
                self.had_any = true;
                self.sessions.remove(&key);
                self.judge(closing);
                return;
            }
            Event::Connected(_) => {
                self.connected_at.get_or_insert(now);
            }
            _ => {}
        }
        self.had_any = true;
        let www = &self.www;
        let session = self.sessions.entry(key).or_insert_with(|| serve(key, www));
        session.handle(stack, event);
        session.pump(stack);
        if let Some(code) = session.wants_to_close() {
            stack.close(now, key, code);
            self.sessions.remove(&key);
            self.closed.insert(key);
            let words = || format!("HTTP/3: closed with error {code:#x}");
            self.error.get_or_insert_with(words);
        }
    }

    /// Whether there was a connection and there is none any more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.had_any && self.sessions.is_empty()
    }

    /// Says what happened.
    #[must_use]
    pub fn finish(self) -> Bye {
        Bye {
            handshake_ns: self.connected_at.map(nanos),
            requests: Vec::new(),
            error: self.error,
            statistics: Statistics::default(),
        }
    }

    fn judge(&mut self, closing: &Closing) {
        let regular = [0, u64::from(NO_ERROR)];
        let is_regular =
            matches!(closing, Closing::Application { code, .. } if regular.contains(code));
        if !is_regular {
            self.error.get_or_insert_with(|| describe(closing));
        }
    }
}

/// The task of a connection, which has one for each of its requests.
fn serve(key: ConnectionKey, www: &Rc<RefCell<ServedFolder>>) -> Session {
    let session = Session::new(key);
    let (transport, spawner, www) = (session.transport(), session.spawner(), www.clone());
    let task = accept(transport, spawner.clone(), www);
    spawner.spawn_local(task).expect("the pool is there");
    session
}

async fn accept(transport: Transport, spawner: LocalSpawner, www: Rc<RefCell<ServedFolder>>) {
    let mut builder = h3::server::builder();
    builder.send_grease(false); // what is drawn at random would not repeat
    let Ok(mut connection) = builder.build::<_, Bytes>(transport).await else {
        return;
    };
    while let Ok(Some(request)) = connection.accept().await {
        let www = www.clone();
        let _ = spawner.spawn_local(async move {
            // Failures are the client's to report.
            let _ = answer(request, &www).await;
        });
    }
}

async fn answer(
    request: RequestResolver<Transport, Bytes>,
    www: &RefCell<ServedFolder>,
) -> Result<(), StreamError> {
    let (request, mut stream) = request.resolve_request().await?;
    let path = request.uri().path().trim_start_matches('/');
    let file = www.borrow_mut().load(path);
    let Some(file) = file.filter(|_| request.method() == Method::GET) else {
        stream
            .send_response(status(StatusCode::NOT_FOUND, 0))
            .await?;
        return stream.finish().await;
    };
    stream
        .send_response(status(StatusCode::OK, file.len()))
        .await?;
    if !file.is_empty() {
        stream.send_data(file).await?;
    }
    stream.finish().await
}

fn status(code: StatusCode, length: usize) -> Response<()> {
    let response = Response::builder().status(code);
    let response = response.header(http::header::CONTENT_LENGTH, length);
    response.body(()).expect("a number is a header's value")
}
