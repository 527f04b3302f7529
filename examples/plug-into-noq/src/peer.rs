//! An endpoint of noq with one connection, without a socket and without a clock.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Endpoint,
    EndpointConfig, Event, FourTuple, ServerConfig,
};

use crate::link::Link;

pub struct Peer {
    endpoint: Endpoint,
    pub connection: Option<(ConnectionHandle, Connection)>,
}

/// The address of the other side: any, since nothing is sent to it.
fn other() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 4433).into()
}

impl Peer {
    pub fn server(config: ServerConfig) -> Self {
        Self::new(Some(Arc::new(config)))
    }

    pub fn client(config: ClientConfig, now: Instant) -> Self {
        let mut peer = Self::new(None);
        let connecting = peer.endpoint.connect(now, config, other(), "localhost");
        peer.connection = Some(connecting.expect("the first connection"));
        peer
    }

    fn new(server: Option<Arc<ServerConfig>>) -> Self {
        // Over a path of a fixed MTU nothing is to be found out.
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), server, true);
        Self {
            endpoint,
            connection: None,
        }
    }

    pub fn receive(&mut self, now: Instant, datagram: BytesMut) {
        let from = FourTuple::from_remote(other());
        let mut answer = Vec::new();
        match self.endpoint.handle(now, from, None, datagram, &mut answer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                self.connection = accepted.ok();
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// Lets the connection do what it wants to do now, and sends that over `link`.
    pub fn drive(&mut self, now: Instant, link: &mut Link) -> Result<(), ConnectionError> {
        let Some((handle, connection)) = &mut self.connection else {
            return Ok(());
        };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            if let Event::ConnectionLost { reason } = event {
                return Err(reason);
            }
        }
        let mut datagram = Vec::new();
        while connection
            .poll_transmit(now, NonZeroUsize::MIN, &mut datagram)
            .is_some()
        {
            link.send(now, datagram.drain(..).collect());
        }
        Ok(())
    }

    pub fn timeout(&self) -> Option<Instant> {
        let (_, connection) = self.connection.as_ref()?;
        connection.poll_timeout()
    }
}
