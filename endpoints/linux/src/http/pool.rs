//! The connections of HTTP/1.1: a request takes the first that is free, be it new or used.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::sync::oneshot;
use tokio::task::spawn_local;

use super::connection::{Connector, Http1};

/// As many connections browsers have to a server.
pub const MOST: usize = 6;

/// The connections of a client.
pub struct Pool {
    connector: Rc<Connector>,
    connections: RefCell<Connections>,
}

#[derive(Default)]
struct Connections {
    free: Vec<Http1>,
    waiting: VecDeque<oneshot::Sender<Result<Http1, String>>>,
    /// Those that are there or are being made.
    count: usize,
}

impl Pool {
    pub fn new(connector: Rc<Connector>) -> Self {
        Self {
            connector,
            connections: RefCell::default(),
        }
    }

    /// A connection for a request. One more is opened if none is free; which of them this request
    /// takes is open until then.
    pub async fn take(self: &Rc<Self>) -> Result<Http1, String> {
        let (tell, told) = oneshot::channel();
        let opens = {
            let mut all = self.connections.borrow_mut();
            if let Some(free) = all.free.pop() {
                return Ok(free);
            }
            all.waiting.push_back(tell);
            let opens = all.count < MOST;
            all.count += usize::from(opens);
            opens
        };
        if opens {
            let pool = self.clone();
            spawn_local(async move { pool.open().await });
        }
        told.await.map_err(|_| "no connection is left".to_owned())?
    }

    async fn open(&self) {
        match self.connector.http1().await {
            Ok(made) => self.give(made),
            Err(error) => {
                self.lose();
                let waiting = self.connections.borrow_mut().waiting.pop_front();
                if let Some(waiting) = waiting {
                    let _ = waiting.send(Err(error.to_string())); // or it has ended
                }
            }
        }
    }

    /// A connection is free.
    pub fn give(&self, mut asker: Http1) {
        let mut all = self.connections.borrow_mut();
        while let Some(waiting) = all.waiting.pop_front() {
            match waiting.send(Ok(asker)) {
                Ok(()) => return,
                Err(Ok(back)) => asker = back, // its request has ended
                Err(Err(_)) => unreachable!("it was a connection"),
            }
        }
        all.free.push(asker);
    }

    /// A connection is no more.
    pub fn lose(&self) {
        self.connections.borrow_mut().count -= 1;
    }
}
