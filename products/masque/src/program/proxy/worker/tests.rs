//! A worker's tokens and sockets, and that nobody is left waiting when it ends.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::path::Path;

use bentpipe_connections::poller::Token as _;
use bentpipe_connections::{DatagramOwner, SideEndpoint};
use bentpipe_endpoint::Tls;
use bentpipe_noq_options::RememberedPaths;
use bentpipe_service::settings::SettingsFile as _;
use noq_proto::crypto::rustls::QuicClientConfig;
use noq_proto::{ClientConfig, ConnectionError, EndpointConfig, Event as ConnectionEvent};

use super::super::file::ProxyFile;
use super::super::resolved::ResolvedProxy;
use super::*;

#[test]
fn tokens_keep_their_numbers() {
    for token in [
        Token::Inbox,
        Token::Client(0),
        Token::Client(7),
        Token::Target(FlowId(0)),
        Token::Target(FlowId(u64::MAX / 8)),
        Token::Device,
    ] {
        assert_eq!(Token::of(token.number()), token);
    }
}

#[test]
fn a_targets_socket_takes_datagrams_of_its_target_alone() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let [target, stranger] = [(); 2].map(|()| UdpSocket::bind(any).unwrap());
    let address = target.local_addr().unwrap();
    let mut port = bind(address).unwrap();
    port.connect(address).unwrap();
    assert!(is_own(&port, address), "both are of this machine");
    let to = port.local_address().unwrap();
    // Over loopback a datagram is there when the call returns.
    stranger.send_to(b"stranger", to).unwrap();
    target.send_to(b"target", to).unwrap();
    let mut came = Vec::new();
    port.receive_to(&mut ReceiveBuffer::default(), |it| came.push(it.payload))
        .unwrap();
    assert_eq!(came, [&b"target"[..]]);
}

/// Connections of clients over one socket, which only show what becomes of them.
struct Crowd {
    clock: Clock,
    endpoint: SideEndpoint<()>,
    port: Port,
    /// How many are connected, and how many of them the proxy has closed.
    connected: usize,
    closed: usize,
}

impl Crowd {
    fn new(count: usize, proxy: SocketAddr) -> Self {
        let clock = Clock::start_now();
        let certs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../endpoints/certs/p256");
        let tls = Tls {
            certs: &certs,
            clock: &clock,
            alpn: "h3",
            keylog: None,
        };
        let tls = QuicClientConfig::try_from(tls.client().unwrap()).unwrap();
        let config = ClientConfig::new(Arc::new(tls));
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let mut crowd = Self {
            endpoint: SideEndpoint::new(EndpointConfig::default(), None),
            port: Port::over(socket).unwrap(),
            connected: 0,
            closed: 0,
            clock,
        };
        let (now, to) = (crowd.now(), (proxy, "server"));
        for _ in 0..count {
            let config = config.clone();
            let made = crowd
                .endpoint
                .connect(now, config, to, &RememberedPaths::default());
            crowd.drive(made.unwrap());
        }
        crowd
    }

    fn now(&self) -> std::time::Instant {
        let now = self.clock.elapsed();
        self.clock.set(now);
        self.clock.instant(now)
    }

    /// Goes on until this is so.
    fn go_on_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let (mut landing, mut buffer) = (ReceiveBuffer::default(), Vec::new());
        while !is_so(self) {
            let now = self.now();
            let mut came = Vec::new();
            let received = self.port.receive_to(&mut landing, |it| came.push(it));
            received.unwrap();
            for datagram in came {
                let owner = self.endpoint.handle(now, datagram);
                if let DatagramOwner::Connection(handle) = owner {
                    self.drive(handle);
                }
            }
            while let Some(handle) = self.endpoint.handle_timeout(now) {
                self.drive(handle);
            }
            let one = NonZeroUsize::MIN;
            while let Some((transmit, handle)) = self.endpoint.poll_transmit(now, one, &mut buffer)
            {
                // What a full socket does not take is sent again, as if it were lost on its way.
                let _ = self.port.send(&transmit, &buffer).unwrap();
                buffer.clear();
                self.drive(handle.unwrap());
            }
            std::thread::yield_now();
        }
    }

    fn drive(&mut self, handle: usize) {
        let mut events = VecDeque::new();
        self.endpoint.drive(handle, &mut events);
        for event in events {
            match event {
                ConnectionEvent::Connected => self.connected += 1,
                ConnectionEvent::ConnectionLost { reason } => {
                    // The latter where the proxy has not seen the end of the handshake.
                    let is_said = matches!(
                        reason,
                        ConnectionError::ApplicationClosed(_)
                            | ConnectionError::ConnectionClosed(_)
                    );
                    assert!(is_said, "{reason}");
                    self.closed += 1;
                }
                _ => {}
            }
        }
    }
}

/// More than two rounds of [`CALLS`].
const MANY: usize = 200;

#[test]
fn all_clients_without_requests_are_told_when_the_proxy_drains_or_ends() {
    let certs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../endpoints/certs/p256");
    let text = format!(
        "clients.anybody = true\nlimits.connections = 1000\n\
         limits.connections-per-client = 1000\n[[certificate]]\n\
         chain = \"{certs}/cert.pem\"\nkey = \"{certs}/priv.key\"\n"
    );
    let file = Path::new("masque.toml");
    let source = bentpipe_service::settings::Source { file, text: &text };
    let file = ProxyFile::parse(Some(source), &[]).unwrap();
    let resolved = ResolvedProxy::new(file).unwrap();
    for message in [Message::Drain(Duration::from_mins(1)), Message::End] {
        let inboxes: Arc<[Inbox]> = [Inbox::new().unwrap()].into();
        let shared = Arc::new(Shared {
            resolver: Resolver::start(&inboxes).unwrap(),
            inboxes,
            busy: 1.into(),
            pool: None,
            own: OwnAddresses::default(),
        });
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let place = socket.local_addr().unwrap();
        let worker = std::thread::scope(|scope| {
            let clock = Clock::start_now();
            let configuration = resolved.configuration(0, 1, &clock).unwrap();
            let of_worker = shared.clone();
            let worker = std::thread::Builder::new().spawn_scoped(scope, move || {
                Worker::new(0, configuration, clock, (vec![socket], None), of_worker)?.run()
            });
            let mut crowd = Crowd::new(MANY, place);
            crowd.go_on_until(|it| it.connected == MANY);
            shared.inboxes[0].send(message);
            crowd.go_on_until(|it| it.closed == MANY);
            worker.unwrap().join().unwrap()
        });
        worker.unwrap();
    }
}
