//! A worker: a proxy with its sockets, on a separate thread.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bentpipe_connections::listening::ListeningPorts;
use bentpipe_connections::poller::{self, Poller};
use bentpipe_connections::steering::worker_of;
use bentpipe_endpoint::driver::{Port, ReceiveBuffer};
use bentpipe_endpoint::{Clock, EndpointError, Transmit};
use bentpipe_masque::{Event, FlowId, MasqueProxy, Output, Pool, Problem, Refusal, Target};
use bentpipe_service::ending::Ending;
use bentpipe_service::quota::OverLimit;
use tracing::{debug, error, info, warn};

use super::inbox::{Configuration, Inbox, Message, WorkerCounters};
use super::own::OwnAddresses;
use super::resolver::{Question, Resolver};
use crate::program::allow::{Judgement, Rule, choose, judge, may_be_own};
use crate::program::batch::Batch;
use crate::tun::TunFile;

mod ip;

/// Calls to send before it is looked for what has come.
const CALLS: usize = 64;
/// The messages up to which datagrams of others may wait; further ones are lost, as on their way.
const MOST_DATAGRAMS: usize = 4096;

/// The parts that all workers share.
pub struct Shared {
    pub inboxes: Arc<[Inbox]>,
    pub resolver: Resolver,
    /// Workers that have connections, or may get some.
    pub busy: AtomicUsize,
    /// The addresses for clients of IP packets.
    pub pool: Option<Arc<Pool>>,
    /// The addresses of this machine.
    pub own: OwnAddresses,
}

/// The name of something that a worker waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Inbox,
    /// The socket of a listening address.
    Client(usize),
    /// The socket of a flow, towards its target.
    Target(FlowId),
    /// The TUN device.
    Device,
}

impl poller::Token for Token {
    fn number(self) -> u64 {
        match self {
            Self::Inbox => 0,
            Self::Client(index) => 1 + 3 * index as u64,
            Self::Target(FlowId(flow)) => 2 + 3 * flow,
            Self::Device => 3,
        }
    }

    fn of(number: u64) -> Self {
        let index = || usize::try_from(number / 3).expect("it was a usize");
        match number % 3 {
            0 if number > 0 => Self::Device,
            0 => Self::Inbox,
            1 => Self::Client(index()),
            _ => Self::Target(FlowId(number / 3)),
        }
    }
}

/// A flow's socket.
struct TargetPort {
    port: Port,
    target: SocketAddr,
    client: Option<SocketAddr>,
    /// Bytes to the target, and back.
    up: u64,
    down: u64,
}

/// A worker, which runs on a separate thread.
pub struct Worker {
    number: usize,
    proxy: MasqueProxy,
    rules: Arc<[Rule]>,
    clock: Clock,
    poller: Poller<Token>,
    clients: ListeningPorts,
    targets: BTreeMap<FlowId, TargetPort>,
    /// This worker's queue of the TUN device, and the requests whose packets pass it.
    device: Option<TunFile>,
    tunnels: BTreeMap<FlowId, ip::Tunnelled>,
    /// The flows whose targets' names are being looked up: what is not here nobody waits for.
    asked: BTreeMap<FlowId, Arc<()>>,
    landing: ReceiveBuffer,
    shared: Arc<Shared>,
    /// The datagrams being sent, while their socket takes no more; their bytes are in the buffer.
    blocked: Option<(usize, Transmit)>,
    buffer: Vec<u8>,
    /// The datagrams for one target that leave together.
    batch: Batch,
    batch_flow: FlowId,
    counted: WorkerCounters,
    /// When those that are there are ended.
    close_at: Option<Duration>,
    ending: Ending,
}

impl Worker {
    pub fn new(
        number: usize,
        configuration: Configuration,
        clock: Clock,
        (listening, device): (Vec<UdpSocket>, Option<TunFile>),
        shared: Arc<Shared>,
    ) -> Result<Self, EndpointError> {
        let poller = Poller::new()?;
        poller.add(&shared.inboxes[number], Token::Inbox)?;
        let clients = ListeningPorts::new(listening)?;
        for (index, port) in clients.iter().enumerate() {
            poller.add(port, Token::Client(index))?;
        }
        if let Some(device) = &device {
            poller.add(device, Token::Device)?;
        }
        Ok(Self {
            number,
            proxy: MasqueProxy::new(configuration.proxy, clock.clone())?,
            rules: configuration.rules,
            clock,
            poller,
            clients,
            targets: BTreeMap::new(),
            device,
            tunnels: BTreeMap::new(),
            asked: BTreeMap::new(),
            landing: ReceiveBuffer::default(),
            shared,
            blocked: None,
            buffer: Vec::new(),
            batch: Batch::default(),
            batch_flow: FlowId(0),
            counted: WorkerCounters::default(),
            close_at: None,
            ending: Ending::default(),
        })
    }

    /// Serves until it is asked to end.
    pub fn run(mut self) -> Result<(), EndpointError> {
        let mut ready = vec![Token::Inbox];
        loop {
            let now = self.tick();
            for token in ready.drain(..) {
                self.receive(now, token)?;
            }
            if self.proxy.next_timeout().is_some_and(|time| time <= now) {
                self.proxy.handle_timeout(now);
            }
            if self.close_at.is_some_and(|time| time <= now) {
                self.close_at = None;
                self.proxy.close(now);
            }
            self.follow(now);
            let more = self.transmit(now)? | self.follow(now);
            self.note_drained(more);
            if self.ending.has_come(now) {
                return self.say_farewell(now);
            }
            let timeout = self.timeout(more);
            ready.extend_from_slice(self.poller.wait(timeout)?);
        }
    }

    /// Real time since the start, made known to TLS.
    fn tick(&self) -> Duration {
        let now = self.clock.elapsed();
        self.clock.set(now);
        now
    }

    /// Takes what has come. An error of a socket is about one destination; without the device
    /// nothing passes any more.
    fn receive(&mut self, now: Duration, token: Token) -> Result<(), EndpointError> {
        let received = match token {
            Token::Inbox => {
                self.read_messages(now);
                Ok(())
            }
            Token::Client(index) => self.receive_of_client(now, index),
            Token::Target(flow) => self.receive_of_target(now, flow),
            Token::Device => return self.receive_of_device(now),
        };
        self.tolerate("receive-failed", received);
        Ok(())
    }

    fn receive_of_client(&mut self, now: Duration, index: usize) -> Result<(), EndpointError> {
        let Self {
            number,
            proxy,
            clients,
            landing,
            shared,
            counted,
            ..
        } = self;
        let workers = shared.inboxes.len();
        let Some(port) = clients.get_mut(index) else {
            return Ok(());
        };
        port.receive_to(landing, |datagram| {
            let owner = worker_of(&datagram.payload, workers);
            if owner == *number {
                proxy.handle_datagram(now, datagram);
            } else if shared.inboxes[owner]
                .send_if_below(MOST_DATAGRAMS, Message::Datagram(datagram))
            {
                counted.handed_on += 1;
            } else {
                counted.lost += 1;
            }
        })
    }

    fn receive_of_target(&mut self, now: Duration, flow: FlowId) -> Result<(), EndpointError> {
        let Self {
            proxy,
            targets,
            landing,
            ..
        } = self;
        let Some(TargetPort {
            port, target, down, ..
        }) = targets.get_mut(&flow)
        else {
            return Ok(());
        };
        let taken = port.receive_to(landing, |datagram| {
            // Before a socket was connected, it took datagrams of all.
            if datagram.remote != *target {
                return;
            }
            *down += datagram.payload.len() as u64;
            proxy.handle_reply(now, flow, datagram.ecn, &datagram.payload);
        });
        if let Err(error) = &taken {
            proxy.fail(now, flow, &error.to_string());
        }
        taken
    }

    fn read_messages(&mut self, now: Duration) {
        for message in self.shared.inboxes[self.number].take() {
            match message {
                Message::Reconfigure(configuration) => {
                    let Configuration { proxy, rules } = *configuration;
                    self.rules = rules;
                    if let Err(error) = self.proxy.reconfigure(now, proxy) {
                        error!(worker = self.number, why = %error, "reload-failed");
                    }
                }
                Message::Drain(grace) => {
                    self.proxy.drain(now);
                    self.close_at = Some(now + grace);
                    self.ending.drain(now + grace);
                }
                Message::End => {
                    self.proxy.close(now);
                    self.ending = Ending::Now;
                }
                Message::Count(answer) => {
                    self.counted.statistics = self.proxy.counts();
                    self.counted.errors = self.proxy.error_counts();
                    // Who asked may have gone away.
                    let _ = answer.try_send(self.counted.clone());
                }
                Message::Datagram(datagram) => self.proxy.handle_datagram(now, datagram),
                Message::Packet(packet) => self.take_packet(now, &packet),
                Message::Resolved(flow, target, addresses) => {
                    self.resolved(now, flow, &target, &addresses);
                }
            }
        }
    }

    /// Does what the proxy asks for; says whether there was anything.
    fn follow(&mut self, now: Duration) -> bool {
        let mut is_any = false;
        while let Some(output) = self.proxy.poll_output() {
            is_any = true;
            match output {
                Output::Send(flow, ecn, payload) => self.send(now, flow, ecn, &payload),
                Output::Open(flow, target) => {
                    self.flush(now);
                    self.open(now, flow, &target);
                }
                Output::Close(flow) => {
                    self.flush(now);
                    self.close(flow);
                }
                Output::Tell(event) => self.tell(event),
                Output::Packet(flow, packet) => self.send_packet(now, flow, &packet),
                Output::Unrouted(flow, packet) => {
                    self.refuse_packet(now, flow, &packet, Problem::Prohibited);
                }
            }
        }
        self.flush(now);
        is_any
    }

    fn send(&mut self, now: Duration, flow: FlowId, ecn: u8, payload: &[u8]) {
        let most = self.clients.most_segments();
        if self.batch_flow == flow && self.batch.add(ecn, payload, most) {
            return;
        }
        self.flush(now);
        self.batch_flow = flow;
        self.batch.add(ecn, payload, most);
    }

    /// Sends the datagrams that wait for others.
    fn flush(&mut self, now: Duration) {
        if self.batch.is_empty() {
            return;
        }
        let (flow, count) = (self.batch_flow, self.batch.count());
        let Some(TargetPort {
            port, target, up, ..
        }) = self.targets.get_mut(&flow)
        else {
            self.batch.clear();
            self.counted.unsent += count;
            return;
        };
        let bytes = self.batch.bytes();
        match self.batch.send(port, *target) {
            Ok(true) => *up += bytes,
            Ok(false) => self.counted.unsent += count,
            Err(error) => {
                self.counted.unsent += count;
                self.proxy.fail(now, flow, &error.to_string());
                self.tolerate("send-failed", Err::<(), _>(error));
            }
        }
    }

    /// Decides on a request.
    fn open(&mut self, now: Duration, flow: FlowId, target: &Target) {
        match judge(&self.rules, target) {
            Judgement::Address(address) => self.connect(now, flow, target, &[address]),
            Judgement::Refused => self.refuse(now, flow, target, Refusal::NotAllowed),
            Judgement::Name => self.look_up(now, flow, target),
        }
    }

    fn look_up(&mut self, now: Duration, flow: FlowId, target: &Target) {
        let Some(client) = self.proxy.client_of(flow) else {
            return; // it has gone away
        };
        let wanted = Arc::new(());
        let question = Question {
            worker: self.number,
            flow,
            target: target.clone(),
            client: client.ip(),
            wanted: Arc::downgrade(&wanted),
        };
        if self.shared.resolver.ask(question) {
            self.asked.insert(flow, wanted);
        } else {
            self.refuse(now, flow, target, Refusal::TooManyNames);
        }
    }

    fn resolved(&mut self, now: Duration, flow: FlowId, target: &Target, addresses: &[IpAddr]) {
        self.asked.remove(&flow);
        let allowed = choose(&self.rules, target, addresses);
        if addresses.is_empty() {
            self.refuse(now, flow, target, Refusal::NoAddress);
        } else {
            self.connect(now, flow, target, &allowed);
        }
    }

    /// Opens a socket to the first of a target's addresses to which there is a way.
    fn connect(&mut self, now: Duration, flow: FlowId, target: &Target, addresses: &[SocketAddr]) {
        let Some(client) = self.proxy.client_of(flow) else {
            return; // it has gone away
        };
        let mut refusal = Refusal::NotAllowed;
        let found = addresses.iter().find_map(|address| {
            let port = self.tolerate("socket-failed", bind(*address));
            let Some(port) = port else {
                refusal = Refusal::NoSocket;
                return None;
            };
            let connected = port.connect(*address);
            if self.tolerate("socket-failed", connected).is_none() {
                refusal = Refusal::Unroutable;
                return None;
            }
            let is_own = is_own(&port, *address) || self.shared.own.contains(address.ip());
            let is_fine = !is_own || may_be_own(&self.rules, target, *address);
            is_fine.then_some((port, *address))
        });
        let Some((port, address)) = found else {
            return self.refuse(now, flow, target, refusal);
        };
        match self.poller.add(&port, Token::Target(flow)) {
            Ok(()) => {
                info!(request = %self.key(flow), %client, %target, %address, "opened");
                let port = TargetPort {
                    port,
                    target: address,
                    client: Some(client),
                    up: 0,
                    down: 0,
                };
                self.targets.insert(flow, port);
                self.proxy.answer(now, flow, Ok(()));
            }
            Err(error) => {
                self.tolerate("socket-failed", Err::<(), _>(error));
                self.refuse(now, flow, target, Refusal::NoSocket);
            }
        }
    }

    fn refuse(&mut self, now: Duration, flow: FlowId, target: &Target, refusal: Refusal) {
        match refusal {
            Refusal::NotAllowed => self.counted.not_allowed += 1,
            Refusal::NoAddress => self.counted.unresolved += 1,
            Refusal::TooManyNames => self.counted.too_many_names += 1,
            Refusal::NoSocket
            | Refusal::NoAddressLeft
            | Refusal::Unroutable
            | Refusal::Draining => {}
        }
        if let Some(client) = self.proxy.client_of(flow) {
            let (status, why) = (refusal.status().as_u16(), refusal.words());
            warn!(%client, %target, status, why, "request-refused");
        }
        self.proxy.answer(now, flow, Err(refusal));
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::Connected(client) => debug!(%client, "connected"),
            Event::Disconnected(client) => debug!(%client, "disconnected"),
            Event::Refused(client, why) => {
                let why = match why {
                    Some(OverLimit::Connections) => "limits.connections",
                    Some(OverLimit::ConnectionsOfClient) => "limits.connections-per-client",
                    None => "shutting down",
                };
                warn!(%client, why, "refused");
            }
            Event::RequestRefused(client, status) => {
                let why = match status {
                    407 => "no token that is known",
                    400 => "no target",
                    _ => "no request that is served",
                };
                warn!(%client, status, why, "request-refused");
            }
            Event::Assigned(flow, client, addresses) => self.open_tunnel(flow, client, &addresses),
            Event::IpRefused(client, refusal) => self.note_refused(client, refusal),
        }
    }

    fn close(&mut self, flow: FlowId) {
        self.asked.remove(&flow);
        self.close_tunnel(flow);
        let Some(it) = self.targets.remove(&flow) else {
            return; // it was refused
        };
        let (request, up, down) = (self.key(flow), it.up, it.down);
        let (client, address) = (it.client.map(tracing::field::display), it.target);
        info!(%request, client, %address, bytes_to_target = up, bytes_to_client = down, "closed");
    }

    /// The number of a request in the log, which each worker counts.
    fn key(&self, flow: FlowId) -> String {
        format!("{}-{}", self.number, flow.0)
    }

    /// Sends packets of tunnels; says whether there may be more to send at once.
    fn transmit(&mut self, now: Duration) -> Result<bool, EndpointError> {
        if let Some((index, transmit)) = self.blocked.take() {
            if !self.send_to_client(index, &transmit) {
                self.blocked = Some((index, transmit));
                return Ok(false);
            }
            self.want_writable(index, false)?;
        }
        let most = self.clients.most_segments();
        let most = std::num::NonZeroUsize::new(most).unwrap_or(std::num::NonZeroUsize::MIN);
        for _ in 0..CALLS {
            self.buffer.clear();
            let next = self.proxy.poll_transmit(now, most, &mut self.buffer);
            let Some(transmit) = next else {
                return Ok(false);
            };
            let index = self.clients.for_answer(&transmit);
            if !self.send_to_client(index, &transmit) {
                self.blocked = Some((index, transmit));
                self.want_writable(index, true)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn send_to_client(&mut self, index: usize, transmit: &Transmit) -> bool {
        let port = self.clients.get_mut(index);
        let sent = port.map_or(Ok(true), |port| port.send(transmit, &self.buffer));
        self.tolerate("send-failed", sent).unwrap_or(true)
    }

    fn want_writable(&self, index: usize, wanted: bool) -> Result<(), EndpointError> {
        self.clients.get(index).map_or(Ok(()), |port| {
            self.poller
                .want_writable(port, Token::Client(index), wanted)
        })
    }

    /// A socket's error is about one destination: what was to be sent is lost, as on its way, and
    /// all else goes on.
    fn tolerate<T>(&mut self, event: &'static str, result: Result<T, EndpointError>) -> Option<T> {
        result
            .map_err(|error| {
                self.counted.socket_errors += 1;
                debug!(why = %error, "{event}");
            })
            .ok()
    }

    /// Sends what closes connections, as far as the sockets take it.
    fn say_farewell(&mut self, now: Duration) -> Result<(), EndpointError> {
        while self.transmit(now)? {}
        Ok(())
    }

    /// The last worker that has nothing left ends all; `more`: there may be packets to send.
    fn note_drained(&mut self, more: bool) {
        let is_quiet = !more && self.blocked.is_none() && self.proxy.busy() == (0, 0);
        if is_quiet && self.ending.note_drained(&self.shared.busy) {
            for inbox in self.shared.inboxes.iter() {
                inbox.send(Message::End);
            }
        }
    }

    /// How long to sleep.
    fn timeout(&self, more: bool) -> Option<Duration> {
        if more {
            return Some(Duration::ZERO);
        }
        let own = self.ending.time().into_iter().chain(self.close_at);
        let wake = self.proxy.next_timeout().into_iter().chain(own).min();
        wake.map(|time| time.saturating_sub(self.clock.elapsed()))
    }
}

/// A socket for a target. Once connected it takes datagrams of its target alone (RFC 9298, section
/// 3.1).
fn bind(target: SocketAddr) -> Result<Port, EndpointError> {
    let any: IpAddr = if target.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0));
    Port::over(socket.map_err(EndpointError::io("opening a socket for a target"))?)
}

/// Whether a connected socket leads to an address of this machine: that is then its own, too.
fn is_own(port: &Port, target: SocketAddr) -> bool {
    port.local_address().is_ok_and(|it| it.ip() == target.ip())
}

#[cfg(test)]
mod tests;
