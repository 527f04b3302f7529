//! The client: loads a page.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bentpipe_endpoint::contract::Bye;
use bentpipe_endpoint::{Clock, EndpointError, PageLoad, Setup, browser_headers};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tokio::sync::{Notify, OnceCell};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;

use super::connection::{Connector, Http2};
use super::pool::{MOST, Pool};
use super::{H2, runtime};
use crate::kernel::Kernel;

/// A client with nothing to wait for looks again after this.
const LONG: Duration = Duration::from_secs(3600);

/// Loads the page, and leaves its report.
pub fn load(setup: &Setup, kernel: &Kernel) -> Result<(), EndpointError> {
    let is_http2 = setup.alpn == H2;
    let at_once = if is_http2 { usize::MAX } else { MOST };
    let connector = Rc::new(Connector {
        sockets: kernel.nonblocking(),
        tls: kernel
            .is_tls()
            .then(|| crate::client::tls(setup, kernel))
            .transpose()?,
        remote: setup.remote.expect("a client is told"),
        keylog: setup.keylog.clone(),
    });
    let client = Rc::new(Client {
        clock: setup.clock.clone(),
        load: RefCell::new(PageLoad::new(setup, at_once)?),
        news: Notify::new(),
        pool: Rc::new(Pool::new(connector.clone())),
        http2: is_http2.then(OnceCell::new),
        connector,
    });
    let start = setup.clock.start_unix();
    let tasks = LocalSet::new();
    tasks.block_on(&runtime()?, client.clone().run());
    let (requests, failure) = client.load.borrow_mut().finish()?;
    if let Some(file) = &setup.report {
        let bye = Bye {
            requests,
            ..Bye::default()
        };
        bye.later(start).write(file)?;
    }
    failure.map_or(Ok(()), |words| Err(EndpointError::Failed(words)))
}

struct Client {
    clock: Clock,
    load: RefCell<PageLoad>,
    /// Something has come.
    news: Notify,
    pool: Rc<Pool>,
    /// The connection of HTTP/2; none with HTTP/1.1.
    http2: Option<OnceCell<Http2>>,
    connector: Rc<Connector>,
}

impl Client {
    async fn run(self: Rc<Self>) {
        self.load.borrow_mut().start(self.now());
        loop {
            let next = self.with_load(PageLoad::ask);
            if let Some(number) = next {
                spawn_local(self.clone().fetch(number));
                continue;
            }
            let wake = self.load.borrow().next_wake();
            if self.load.borrow().is_done() {
                return;
            }
            let left = wake.map_or(LONG, |it| it.saturating_sub(self.now()));
            let _ = timeout(left, self.news.notified()).await;
        }
    }

    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// What the load of the page does, told what time it is.
    fn with_load<T>(&self, act: impl FnOnce(&mut PageLoad) -> T) -> T {
        let mut load = self.load.borrow_mut();
        load.set_time(self.now());
        act(&mut load)
    }

    async fn fetch(self: Rc<Self>, number: usize) {
        let ended = match &self.http2 {
            Some(connection) => self.over_http2(connection, number).await,
            None => self.over_http1(number).await,
        };
        self.with_load(|load| load.ended(number, &ended));
        self.news.notify_one();
    }

    async fn over_http2(&self, connection: &OnceCell<Http2>, number: usize) -> Result<(), String> {
        let connected = connection.get_or_try_init(|| self.connector.http2());
        let connected = connected.await.map_err(|error| error.to_string())?;
        let response = connected.clone().send_request(self.request(number)?).await;
        self.store(number, response).await
    }

    /// A connection is free when the response has ended as it should.
    async fn over_http1(&self, number: usize) -> Result<(), String> {
        let mut asker = self.pool.take().await?;
        let ended = match self.request(number) {
            Ok(request) => self.store(number, asker.send_request(request).await).await,
            Err(why) => Err(why),
        };
        if ended.is_ok() && asker.ready().await.is_ok() {
            self.pool.give(asker);
        } else {
            self.pool.lose();
        }
        ended
    }

    fn request(&self, number: usize) -> Result<Request<Empty<Bytes>>, String> {
        let load = self.load.borrow();
        let path = load.path(number);
        let mut request = Request::builder();
        if self.http2.is_some() {
            request = request.uri(format!("https://server{path}"));
        } else {
            request = request.uri(path).header("host", "server");
        }
        for (name, value) in browser_headers(load.priority(number)) {
            request = request.header(name, value);
        }
        let request = request.body(Empty::new());
        request.map_err(|error| error.to_string())
    }

    async fn store(
        &self,
        number: usize,
        response: Result<Response<Incoming>, hyper::Error>,
    ) -> Result<(), String> {
        let mut response = response.map_err(|error| error.to_string())?;
        self.with_load(|load| load.answered(number));
        if response.status() != StatusCode::OK {
            return Err(format!("answered with status {}", response.status()));
        }
        while let Some(frame) = response.frame().await {
            let frame = frame.map_err(|error| error.to_string())?;
            if let Ok(bytes) = frame.into_data() {
                self.with_load(|load| load.arrived(number, &bytes));
                self.news.notify_one();
            }
        }
        Ok(())
    }
}
