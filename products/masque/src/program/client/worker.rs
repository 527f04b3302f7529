//! A client with its sockets: towards those behind it, and towards the proxy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bentpipe_connections::listening::most_segments;
use bentpipe_connections::poller::{self, Poller};
use bentpipe_endpoint::driver::{Port, ReceiveBuffer};
use bentpipe_endpoint::{Clock, EndpointError, Transmit};
use bentpipe_masque::{Client, ClientSettings, ErrorCounts, Statistics};
use tracing::{debug, info, warn};

use super::near::Near;

/// Calls to send before it is looked for what has come.
const CALLS: usize = 64;

/// The messages for a client.
pub type Inbox = bentpipe_service::inbox::Inbox<Message>;

/// A message to a client.
pub enum Message {
    /// End.
    End,
    /// Say what was counted.
    Count(SyncSender<Counted>),
}

/// The counters of a client.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    pub statistics: Statistics,
    /// UDP payloads that a socket did not take.
    pub unsent: u64,
    /// IP packets that the device did not take.
    pub unsent_packets: u64,
    pub errors: ErrorCounts,
    /// Calls to receive or send that failed.
    pub socket_errors: u64,
}

/// The name of something that a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Inbox,
    Near,
    Far,
}

impl poller::Token for Token {
    fn number(self) -> u64 {
        self as u64
    }

    fn of(number: u64) -> Self {
        match number {
            0 => Self::Inbox,
            1 => Self::Near,
            _ => Self::Far,
        }
    }
}

/// A client with its sockets, on a separate thread.
pub struct Worker {
    client: Client,
    clock: Clock,
    poller: Poller<Token>,
    inbox: Arc<Inbox>,
    near: Near,
    /// Towards the proxy.
    far: Port,
    landing: ReceiveBuffer,
    /// The datagrams being sent, while the socket takes no more; their bytes are in the buffer.
    blocked: Option<Transmit>,
    buffer: Vec<u8>,
    counted: Counted,
    /// The latest error that was logged.
    logged: Option<String>,
    was_connected: bool,
    is_ending: bool,
}

/// Opens the socket for those behind it.
pub fn listen(place: SocketAddr) -> Result<Port, EndpointError> {
    let socket = UdpSocket::bind(place);
    Port::over(socket.map_err(EndpointError::io("binding the socket"))?)
}

impl Worker {
    pub fn new(
        settings: ClientSettings,
        clock: Clock,
        near: Near,
        inbox: Arc<Inbox>,
    ) -> Result<Self, EndpointError> {
        let any: IpAddr = if settings.proxy.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let far = listen((any, 0).into())?;
        let poller = Poller::new()?;
        poller.add(&*inbox, Token::Inbox)?;
        poller.add(&near, Token::Near)?;
        poller.add(&far, Token::Far)?;
        Ok(Self {
            client: Client::new(settings, clock.clone())?,
            clock,
            poller,
            inbox,
            near,
            far,
            landing: ReceiveBuffer::default(),
            blocked: None,
            buffer: Vec::new(),
            counted: Counted::default(),
            logged: None,
            was_connected: false,
            is_ending: false,
        })
    }

    /// Serves until it is asked to end.
    pub fn run(mut self) -> Result<(), EndpointError> {
        let mut ready = vec![Token::Inbox];
        loop {
            let now = self.clock.elapsed();
            self.clock.set(now);
            for token in ready.drain(..) {
                self.receive(now, token)?;
            }
            if self.client.next_timeout().is_some_and(|time| time <= now) {
                self.client.handle_timeout(now);
            }
            self.hand_on();
            let more = self.transmit(now)?;
            self.report();
            if self.is_ending {
                return Ok(());
            }
            let timeout = if more {
                Some(Duration::ZERO)
            } else {
                let wake = self.client.next_timeout();
                wake.map(|time| time.saturating_sub(self.clock.elapsed()))
            };
            ready.extend_from_slice(self.poller.wait(timeout)?);
        }
    }

    /// Takes what has come. An error of a socket is about what is on its way alone; without a
    /// device nothing passes any more.
    fn receive(&mut self, now: Duration, token: Token) -> Result<(), EndpointError> {
        let Self {
            client,
            near,
            far,
            landing,
            ..
        } = self;
        let received = match token {
            Token::Inbox => {
                self.read_messages(now);
                Ok(())
            }
            Token::Near if near.is_device() => return near.receive(now, client),
            Token::Near => near.receive(now, client),
            Token::Far => far.receive_to(landing, |datagram| {
                client.handle_datagram(now, datagram);
            }),
        };
        self.tolerate("receive-failed", received);
        Ok(())
    }

    fn read_messages(&mut self, now: Duration) {
        for message in self.inbox.take() {
            match message {
                Message::End => {
                    self.client.close(now);
                    self.is_ending = true;
                }
                Message::Count(answer) => {
                    self.counted.statistics = self.client.counts();
                    self.counted.errors = self.client.error_counts();
                    // Who asked may have gone away.
                    let _ = answer.try_send(self.counted.clone());
                }
            }
        }
    }

    /// Hands on what has come out of the tunnel.
    fn hand_on(&mut self) {
        let unsent = self.near.hand_on(&mut self.client);
        self.counted.unsent += unsent.datagrams;
        self.counted.unsent_packets += unsent.packets;
        for error in unsent.errors {
            self.tolerate("send-failed", Err::<(), _>(error));
        }
    }

    /// Sends packets of the tunnel; says whether there may be more to send at once.
    fn transmit(&mut self, now: Duration) -> Result<bool, EndpointError> {
        if let Some(transmit) = self.blocked.take() {
            if !self.send(&transmit) {
                self.blocked = Some(transmit);
                return Ok(false);
            }
            self.poller.want_writable(&self.far, Token::Far, false)?;
        }
        let most = NonZeroUsize::new(most_segments(&self.far)).unwrap_or(NonZeroUsize::MIN);
        for _ in 0..CALLS {
            self.buffer.clear();
            let next = self.client.poll_transmit(now, most, &mut self.buffer);
            let Some(transmit) = next else {
                return Ok(false);
            };
            if !self.send(&transmit) {
                self.blocked = Some(transmit);
                self.poller.want_writable(&self.far, Token::Far, true)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn send(&mut self, transmit: &Transmit) -> bool {
        let sent = self.far.send(transmit, &self.buffer);
        self.tolerate("send-failed", sent).unwrap_or(true)
    }

    /// A socket's error is about what is on its way alone.
    fn tolerate<T>(&mut self, event: &'static str, result: Result<T, EndpointError>) -> Option<T> {
        result
            .map_err(|error| {
                self.counted.socket_errors += 1;
                debug!(why = %error, "{event}");
            })
            .ok()
    }

    /// Logs what has changed.
    fn report(&mut self) {
        let is_connected = self.client.is_ready();
        if is_connected != self.was_connected {
            self.was_connected = is_connected;
            if is_connected {
                self.logged = None;
                info!("connected");
            } else {
                info!("disconnected");
            }
        }
        if let Some(why) = self.client.error()
            && self.logged.as_deref() != Some(why)
        {
            warn!(why, "tunnel-failed");
            self.logged = Some(why.to_owned());
        }
    }
}
