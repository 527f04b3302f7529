//! noq's estimate of the RTT, which its controllers want with each ACK, and which only a connection
//! of noq makes: a handshake without sockets.

use std::any::Any;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use noq_proto::congestion::{Controller, ControllerFactory};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, FourTuple,
    RttEstimator, ServerConfig, TransportConfig,
};

type Seen = Arc<Mutex<Option<RttEstimator>>>;

#[derive(Debug, Clone)]
struct Spy(Seen);

impl ControllerFactory for Spy {
    fn build(self: Arc<Self>, _now: Instant, _mtu: u16) -> Box<dyn Controller> {
        Box::new((*self).clone())
    }
}

impl Controller for Spy {
    fn on_ack(
        &mut self,
        _now: Instant,
        _sent: Instant,
        _bytes: u64,
        _pn: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        *self.0.lock().expect("nobody panics") = Some(*rtt);
    }
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: bool, _: u64, _: u64) {}
    fn on_mtu_update(&mut self, _new_mtu: u16) {}
    fn window(&self) -> u64 {
        self.initial_window()
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
    fn initial_window(&self) -> u64 {
        12_000
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The RTT estimate of noq's client after the server's first flight, 600 ms after its own.
#[must_use]
pub fn estimator_of_a_real_connection() -> RttEstimator {
    let (client_config, server_config, seen) = configs();
    let mut ours = Endpoint::new(Arc::new(EndpointConfig::default()), None, false);
    let endpoint_config = Arc::new(EndpointConfig::default());
    let mut theirs = Endpoint::new(endpoint_config, Some(Arc::new(server_config)), false);
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let there = SocketAddr::from((Ipv4Addr::LOCALHOST, 2));
    #[expect(
        clippy::disallowed_methods,
        reason = "std has no other way to make an Instant"
    )]
    let left = Instant::now();
    let arrived = left + Duration::from_millis(600);

    let (_, mut client) = ours
        .connect(left, client_config, there, "localhost")
        .expect("a client that has sent nothing can connect");
    let mut server: Option<(ConnectionHandle, Connection)> = None;
    for datagram in datagrams(&mut client, left) {
        let path = FourTuple::new(here, None);
        let mut buffer = Vec::new();
        match theirs.handle(left, path, None, datagram, &mut buffer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = theirs.accept(incoming, left, &mut buffer, None);
                server = Some(accepted.map_err(|_| "refused").expect("a valid Initial"));
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                let (_, server) = server.as_mut().expect("the first datagram begins it");
                server.handle_event(event);
            }
            _ => {}
        }
    }
    let (_, mut server) = server.expect("the client has sent its first flight");
    for datagram in datagrams(&mut server, left) {
        let path = FourTuple::new(there, None);
        let handled = ours.handle(arrived, path, None, datagram, &mut Vec::new());
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = handled {
            client.handle_event(event);
        }
    }
    let seen = seen.lock().expect("nobody panics");
    seen.expect("the server has acknowledged the client's Initial")
}

fn configs() -> (ClientConfig, ServerConfig, Seen) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])
        .expect("a name that is a name");
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(signed.cert.der().clone())
        .expect("what has just been made");
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let chain = vec![signed.cert.der().clone()];
    let server = ServerConfig::with_single_cert(chain, key.into()).expect("key and certificate");

    let seen = Seen::default();
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Spy(Arc::clone(&seen))));
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).expect("one root");
    client.transport_config(Arc::new(transport));
    (client, server, seen)
}

/// All that a connection has to send.
fn datagrams(connection: &mut Connection, now: Instant) -> Vec<BytesMut> {
    let mut all = Vec::new();
    let mut buffer = Vec::new();
    while connection
        .poll_transmit(now, 1.try_into().expect("not zero"), &mut buffer)
        .is_some()
    {
        all.push(BytesMut::from(&buffer[..]));
        buffer.clear();
    }
    all
}
