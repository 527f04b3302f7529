//! The connection of a client to its proxy, and the requests on it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use h3::error::Code;
use h3::{ConnectionState, client};
use http::Request;
use noq_proto::Connection;

use super::Flow;
use super::request::{Asker, exchange};
use crate::channel::{Ending, Shared};
use crate::counts::Statistics;
use crate::session::spawn;
use crate::tunnel::{Carriage, Tunnel};

/// The connection to the proxy.
pub struct Live {
    pub handle: usize,
    pub tunnel: Tunnel,
    pub asker: Rc<RefCell<Option<Asker>>>,
    /// By their streams.
    pub clients: BTreeMap<u64, SocketAddr>,
    /// Each request's task has a clone, also one that has failed and still waits for a stream.
    pub tasks: Rc<()>,
}

impl Live {
    pub fn new(handle: usize, carriage: Carriage) -> Self {
        let tunnel = Tunnel::new(carriage);
        let asker: Rc<RefCell<Option<Asker>>> = Rc::default();
        let (transport, spawner) = (
            tunnel.session.transport().clone(),
            tunnel.session.spawner().clone(),
        );
        let asking = asker.clone();
        tunnel.session.spawn(async move {
            let mut builder = client::builder();
            // Values drawn at random would not repeat.
            builder.send_grease(false).enable_datagram(true);
            builder.enable_extended_connect(true);
            if let Ok((mut driver, sender)) = builder.build::<_, _, Bytes>(transport).await {
                *asking.borrow_mut() = Some(sender);
                spawn(&spawner, async move {
                    driver.wait_idle().await;
                });
            }
        });
        Self {
            handle,
            tunnel,
            asker,
            clients: BTreeMap::new(),
            tasks: Rc::default(),
        }
    }

    /// Whether the proxy has said that it takes such requests (RFC 9220, section 3).
    pub fn may_ask(&self) -> bool {
        let asker = self.asker.borrow();
        asker
            .as_ref()
            .is_some_and(|it| it.settings().enable_extended_connect())
    }

    /// Whether HTTP/3 has begun, and the proxy has not said so.
    pub fn may_not_ask(&self) -> bool {
        self.asker.borrow().is_some() && !self.may_ask()
    }

    pub fn ask(&self, request: Request<()>, channel: Shared) {
        let Some(asker) = self.asker.borrow().clone() else {
            return;
        };
        let transport = self.tunnel.session.transport().clone();
        let spawner = self.tunnel.session.spawner().clone();
        let counted = self.tasks.clone();
        self.tunnel.session.spawn(async move {
            let exchanged = exchange(asker, request, &channel, transport, spawner).await;
            if let Err(error) = exchanged {
                let mut channel = channel.borrow_mut();
                channel.leave(Err(Code::H3_REQUEST_CANCELLED));
                channel.end(Ending::Failed(error));
            }
            drop(counted);
        });
    }

    /// Sends what has waited for a request's stream.
    pub fn flush(
        &mut self,
        (client, flow): (SocketAddr, &mut Flow),
        connection: &mut Connection,
        counts: &mut Statistics,
    ) {
        let Some(stream) = flow.channel.borrow().stream else {
            return;
        };
        let id = stream.into_inner();
        if !self.tunnel.channels.contains_key(&id) {
            self.clients.insert(id, client);
            // Nothing comes before the request is sent.
            self.tunnel.add(id, flow.channel.clone(), counts, |_| ());
        }
        flow.early_bytes = 0;
        for payload in flow.early.drain(..) {
            self.tunnel
                .send(connection, &flow.channel, &payload, counts);
        }
    }
}
