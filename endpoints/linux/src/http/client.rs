//! The client: loads a page, in some test cases behind an earlier visit.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bentpipe_endpoint::contract::Bye;
use bentpipe_endpoint::{Clock, EndpointError, PageLoad, Setup, browser_headers};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;

use super::connection::Connector;
use super::pool::{Asker, Pool};
use super::{H2, runtime};
use crate::kernel::Kernel;

/// A client with nothing to wait for looks again after this.
const LONG: Duration = Duration::from_secs(3600);

/// Loads the page over `parallel` connections of HTTP/1.1 at most, or one of HTTP/2, and leaves its
/// report, also when it is asked to end.
pub fn load(setup: &Setup, kernel: &Kernel, parallel: usize) -> Result<(), EndpointError> {
    let is_told_to_end = Arc::new(AtomicBool::new(false));
    let tls = || crate::client::tls(setup, kernel);
    let visitor = Visitor {
        clock: setup.clock.clone(),
        news: told_to_end(is_told_to_end.clone())?,
        is_told_to_end,
        most: if setup.alpn == H2 { 1 } else { parallel },
        is_http2: setup.alpn == H2,
        connector: Rc::new(Connector {
            sockets: kernel.nonblocking(),
            tls: kernel.is_tls().then(tls).transpose()?,
            remote: setup.remote.expect("a client is told"),
            keylog: setup.keylog.clone(),
        }),
    };
    let start = setup.clock.start_unix();
    let (mut all, mut failure) = (Vec::new(), None);
    for visit in [PageLoad::earlier(setup)?, Some(PageLoad::new(setup)?)] {
        let Some(mut load) = visit else { continue };
        if failure.is_none() {
            load = visitor.visit(load)?;
        }
        let (requests, failed) = load.finish()?;
        all.extend(requests);
        failure = failure.or(failed);
    }
    if let Some(file) = &setup.report {
        let bye = Bye {
            requests: all,
            ..Bye::default()
        };
        bye.later(start).write(file)?;
    }
    failure.map_or(Ok(()), |words| Err(EndpointError::Failed(words)))
}

/// The state that the visits of one client share.
struct Visitor {
    clock: Clock,
    /// Something has come, or SIGTERM.
    news: Arc<Notify>,
    is_told_to_end: Arc<AtomicBool>,
    /// Connections at one time.
    most: usize,
    is_http2: bool,
    connector: Rc<Connector>,
}

impl Visitor {
    /// Loads a page over separate connections, which are closed at its end.
    fn visit(&self, load: PageLoad) -> Result<PageLoad, EndpointError> {
        let client = Rc::new(Client {
            clock: self.clock.clone(),
            load: RefCell::new(load),
            news: self.news.clone(),
            is_told_to_end: self.is_told_to_end.clone(),
            pool: RefCell::new(Pool::new(self.most)),
            is_http2: self.is_http2,
            connector: self.connector.clone(),
        });
        let tasks = LocalSet::new();
        tasks.block_on(&runtime()?, client.clone().run());
        drop(tasks); // and with them what else holds the client
        Ok(Rc::into_inner(client)
            .expect("its tasks are no more")
            .load
            .into_inner())
    }
}

/// The object that is notified when SIGTERM comes, after `is_told` was set.
fn told_to_end(is_told: Arc<AtomicBool>) -> Result<Arc<Notify>, EndpointError> {
    let mut signals = Signals::new([SIGTERM]).map_err(EndpointError::io("waiting for SIGTERM"))?;
    let news = Arc::new(Notify::new());
    let told = news.clone();
    thread::spawn(move || {
        signals.forever().next();
        is_told.store(true, Ordering::Release);
        told.notify_one();
    });
    Ok(news)
}

struct Client {
    clock: Clock,
    load: RefCell<PageLoad>,
    /// Something has come, or SIGTERM.
    news: Arc<Notify>,
    is_told_to_end: Arc<AtomicBool>,
    pool: RefCell<Pool>,
    is_http2: bool,
    connector: Rc<Connector>,
}

impl Client {
    async fn run(self: Rc<Self>) {
        self.load.borrow_mut().start(self.now());
        loop {
            self.ask();
            let wake = self.load.borrow().next_wake();
            if self.load.borrow().is_done() || self.is_told_to_end.load(Ordering::Acquire) {
                return;
            }
            let left = wake.map_or(LONG, |it| it.saturating_sub(self.now()));
            let _ = timeout(left, self.news.notified()).await;
        }
    }

    /// Asks for what is to be asked for, on connections that are free, and opens more for the rest.
    fn ask(self: &Rc<Self>) {
        let mut pool = self.pool.borrow_mut();
        while let Some(asker) = pool.take() {
            let Some(number) = self.with_load(PageLoad::ask) else {
                pool.give(asker);
                break;
            };
            if let Asker::Http2(shared) = &asker {
                pool.give(Asker::Http2(shared.clone()));
            }
            spawn_local(self.clone().fetch(number, asker));
        }
        for _ in 0..pool.open(self.with_load(PageLoad::ready)) {
            spawn_local(self.clone().open());
        }
    }

    async fn open(self: Rc<Self>) {
        let made = if self.is_http2 {
            self.connector.http2().await.map(Asker::Http2)
        } else {
            self.connector.http1().await.map(Asker::Http1)
        };
        match made {
            Ok(asker) => self.pool.borrow_mut().opened(asker),
            Err(error) => {
                if self.pool.borrow_mut().failed() {
                    self.fail(&error.to_string());
                }
            }
        }
        self.news.notify_one();
    }

    /// All that waits fails: there is no connection.
    fn fail(&self, why: &str) {
        while let Some(number) = self.with_load(PageLoad::ask) {
            self.with_load(|load| load.ended(number, &Err(why.to_owned())));
        }
    }

    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Sets the time of the page's load, and calls `act` with it.
    fn with_load<T>(&self, act: impl FnOnce(&mut PageLoad) -> T) -> T {
        let mut load = self.load.borrow_mut();
        load.set_time(self.now());
        act(&mut load)
    }

    async fn fetch(self: Rc<Self>, number: usize, mut asker: Asker) {
        let ended = match (self.request(number), &mut asker) {
            (Err(why), _) => Err(why),
            (Ok(it), Asker::Http1(asker)) => self.store(number, asker.send_request(it).await).await,
            (Ok(it), Asker::Http2(asker)) => self.store(number, asker.send_request(it).await).await,
        };
        self.with_load(|load| load.ended(number, &ended));
        self.news.notify_one();
        if let Asker::Http1(mut connection) = asker {
            // It is free when the response has ended as it should.
            let is_free = ended.is_ok() && connection.ready().await.is_ok();
            let mut pool = self.pool.borrow_mut();
            if is_free {
                pool.give(Asker::Http1(connection));
            } else {
                pool.lose();
            }
            self.news.notify_one();
        }
    }

    fn request(&self, number: usize) -> Result<Request<Empty<Bytes>>, String> {
        let load = self.load.borrow();
        let path = load.path(number);
        let mut request = Request::builder();
        if self.is_http2 {
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
