//! A client: takes datagrams of those behind it, and has a proxy send them to one target, or
//! takes their IP packets.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::time::Duration;

use bentpipe_connections::{DatagramOwner, SideEndpoint};
use bentpipe_endpoint::{Clock, EndpointError, Received, Transmit};
use bytes::Bytes;
use h3::error::Code;
use http::Uri;
use noq_proto::{ClientConfig, ConnectionError, EndpointConfig, Event};

use crate::channel::{Channel, Ending, Phase, Shared};
use crate::config::{ClientSettings, NO_ERROR, Purpose};
use crate::counts::Statistics;
use crate::forwarding::field::Forwarding;
use crate::forwarding::{ForwardQueue, TransformKind};
use crate::ip::Sides;

mod forwarding;
mod ip;
mod live;
mod request;

use forwarding::{FlowIds, VirtualIds};
use ip::HostAddresses;
use live::Live;
use request::request;

/// Datagrams of a flow that are kept until its request is on its way, and their bytes.
const MOST_EARLY: (usize, usize) = (256, 256 << 10);
/// Those behind it that it serves at a time; its requests, also those that wait for a stream.
const MOST_FLOWS: usize = 4096;
/// A flow without datagrams for so long is over (RFC 9298, section 3.1: two minutes at least).
const IDLE: Duration = Duration::from_mins(2);
/// A request that is not answered for so long has failed; there is no other before that. It is
/// looked at as often.
const ANSWER: Duration = Duration::from_secs(10);
/// A connection is begun at most as often: a proxy that refuses is not asked for each datagram.
const AGAIN: Duration = Duration::from_secs(1);

/// A client of one proxy, for one target.
pub struct Client {
    settings: ClientSettings,
    connecting: ClientConfig,
    uri: Uri,
    /// The packets that may pass before the proxy says which may, of requests for IP.
    sides: Option<Sides>,
    clock: Clock,
    endpoint: SideEndpoint<()>,
    live: Option<Live>,
    /// By the addresses of those behind it.
    flows: BTreeMap<SocketAddr, Flow>,
    arrived: VecDeque<Delivery>,
    /// By the virtual connection IDs of forwarded packets that come.
    virtual_ids: VirtualIds,
    /// Forwarded packets for the proxy, and whether these are next.
    forwarded: ForwardQueue,
    is_forwarded_next: bool,
    /// When a packet of the tunnel, or a forwarded one, came the last time.
    heard: Duration,
    counts: Statistics,
    /// Why the latest request or connection failed.
    error: Option<String>,
    next_sweep: Duration,
    next_connection: Duration,
    /// The addresses that the proxy assigns, where the client takes whichever these are.
    host: Option<HostAddresses>,
}

/// A datagram of the target's for one behind the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Whom it is for.
    pub to: SocketAddr,
    /// 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE; what comes out of the tunnel has 0 (RFC 9298,
    /// section 6.2).
    pub ecn: u8,
    /// Its payload.
    pub payload: Bytes,
}

/// The datagrams of one of those behind it.
struct Flow {
    channel: Shared,
    is_asked: bool,
    early: VecDeque<Bytes>,
    early_bytes: usize,
    started: Duration,
    touched: Duration,
    ids: FlowIds,
}

impl Client {
    /// A client; where it is `warm` it connects at once.
    pub fn new(settings: ClientSettings, clock: Clock) -> Result<Self, EndpointError> {
        settings.check()?;
        let sides = match &settings.wanted {
            Purpose::Udp { .. } => None,
            Purpose::Ip { clients, .. } => Some(match clients {
                Some(clients) => Sides::of_client(clients.clone()),
                None => Sides::of_any_client(),
            }),
        };
        let is_host = matches!(settings.wanted, Purpose::Ip { clients: None, .. });
        let mut client = Self {
            connecting: settings.connecting()?,
            uri: settings.wanted.uri()?,
            sides,
            settings,
            clock,
            endpoint: SideEndpoint::new(EndpointConfig::default(), None),
            live: None,
            flows: BTreeMap::new(),
            arrived: VecDeque::new(),
            virtual_ids: VirtualIds::default(),
            forwarded: ForwardQueue::default(),
            is_forwarded_next: false,
            heard: Duration::ZERO,
            counts: Statistics::default(),
            error: None,
            next_sweep: ANSWER,
            next_connection: Duration::ZERO,
            host: is_host.then(HostAddresses::default),
        };
        if client.settings.tunnel.warm && !is_host {
            client.connect(Duration::ZERO);
        }
        Ok(client)
    }

    /// A datagram of the proxy's has come.
    pub fn handle_datagram(&mut self, now: Duration, datagram: Received) {
        if self.take_forwarded(now, &datagram) {
            return;
        }
        let instant = self.clock.instant(now);
        if let DatagramOwner::Connection(handle) = self.endpoint.handle(instant, datagram) {
            self.heard = now;
            self.settle(now, handle);
        }
    }

    /// Sends a datagram of one behind it to the target. `ecn`: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE;
    /// it is lost in the tunnel (RFC 9298, section 6.2).
    pub fn send(&mut self, now: Duration, from: SocketAddr, ecn: u8, payload: &[u8]) {
        if self.forward(now, from, ecn, payload) {
            return;
        }
        if self.flows.len() >= MOST_FLOWS && !self.flows.contains_key(&from) {
            self.counts.unknown_datagrams_total += 1;
            return;
        }
        if self.live.is_none() {
            self.connect(now);
        }
        let Some(live) = self.live.as_mut() else {
            self.counts.unknown_datagrams_total += 1;
            return;
        };
        let flow = self.flows.entry(from);
        let forward = self.settings.tunnel.forward;
        let flow = flow.or_insert_with(|| Flow::new(now, self.sides.clone(), forward));
        flow.touched = now;
        flow.see_client(now, payload, &mut self.virtual_ids);
        let is_sent = flow.channel.borrow().stream.is_some();
        let handle = live.handle;
        if !is_sent {
            flow.keep(payload, &mut self.counts);
            self.progress(now, handle);
        } else if let Some(entry) = self.endpoint.get(handle) {
            let connection = &mut entry.connection;
            let tunnel = &mut live.tunnel;
            tunnel.send(connection, &flow.channel, payload, &mut self.counts);
            if flow.ids.has_said() {
                tunnel.session.pump(connection);
            }
            // Writing shows that the proxy has asked to stop.
            if flow.channel.borrow().has_ended() {
                self.progress(now, handle);
            }
        }
        self.settle(now, handle);
    }

    /// The next datagram of the target's.
    pub fn poll_arrived(&mut self) -> Option<Delivery> {
        self.arrived.pop_front()
    }

    /// When [`Self::handle_timeout`] wants to be called.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let timer = self.endpoint.next_timeout();
        let timer = timer.map(|at| self.clock.since_start(at));
        let sweep = (!self.flows.is_empty()).then_some(self.next_sweep);
        let asking = self.next_asking();
        timer.into_iter().chain(sweep).chain(asking).min()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Duration) {
        let instant = self.clock.instant(now);
        while let Some(handle) = self.endpoint.handle_timeout(instant) {
            self.settle(now, handle);
        }
        if now >= self.next_sweep {
            self.sweep(now);
        }
        if self.next_asking().is_some_and(|at| at <= now) {
            self.ask_for_addresses(now);
        }
    }

    /// The next datagrams to the proxy.
    pub fn poll_transmit(
        &mut self,
        now: Duration,
        most: NonZeroUsize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        // In turns, so that neither keeps the other waiting.
        self.is_forwarded_next = !self.is_forwarded_next;
        if self.is_forwarded_next {
            let forwarded = self.forwarded.poll(most, buffer);
            return forwarded.or_else(|| self.poll_tunnel(now, most, buffer));
        }
        self.poll_tunnel(now, most, buffer)
            .or_else(|| self.forwarded.poll(most, buffer))
    }

    fn poll_tunnel(
        &mut self,
        now: Duration,
        most: NonZeroUsize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let instant = self.clock.instant(now);
        let (mut transmit, handle) = self.endpoint.poll_transmit(instant, most, buffer)?;
        if let Some(handle) = handle {
            self.settle(now, handle);
        }
        self.settings.tunnel.mark(&mut transmit);
        Some(transmit)
    }

    /// Its counts, with those of the connection that is there.
    pub fn counts(&mut self) -> Statistics {
        let mut counts = self.counts.clone();
        if let Some(live) = &self.live
            && let Some(entry) = self.endpoint.get(live.handle)
        {
            counts.add_packets(&mut entry.connection);
        }
        counts.connections = self.live.is_some().into();
        counts.requests = self.flows.len() as u64;
        counts
    }

    /// Whether the proxy is connected, and takes requests.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.live.as_ref().is_some_and(Live::may_ask)
    }

    /// Why the latest request or connection failed, if one did.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// The congestion controller's report, to be asked when the client is gone.
    pub fn take_report(&mut self) -> Option<bentpipe_noq_options::Report> {
        self.settings.tunnel.report.take()
    }

    fn connect(&mut self, now: Duration) {
        if now < self.next_connection {
            return;
        }
        self.next_connection = now + AGAIN;
        let to = (self.settings.proxy, self.settings.proxy_name.as_str());
        let peers = &self.settings.tunnel.peers;
        let instant = self.clock.instant(now);
        let config = self.connecting.clone();
        match self.endpoint.connect(instant, config, to, peers) {
            Ok(handle) => {
                self.counts.connections_total += 1;
                self.live = Some(Live::new(handle, self.settings.tunnel.carriage));
                self.settle(now, handle);
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Has everything follow from what was done to the connection, until nothing more does.
    fn settle(&mut self, now: Duration, handle: usize) {
        let mut events = VecDeque::new();
        loop {
            let drained = self.endpoint.drive(handle, &mut events);
            let is_live = self.live.as_ref().is_some_and(|live| live.handle == handle);
            if !is_live {
                return;
            }
            if let Some(mut connection) = drained {
                self.counts.add_packets(&mut connection);
                let lost = events.iter().find_map(|event| match event {
                    Event::ConnectionLost { reason } => why(reason),
                    _ => None,
                });
                self.error = lost.or(self.error.take());
                self.forget();
                return;
            }
            if events.is_empty() {
                return;
            }
            // Datagrams alone change nothing about requests.
            let is_more = events
                .iter()
                .any(|it| !matches!(it, Event::DatagramReceived));
            while let Some(event) = events.pop_front() {
                self.handle_event(now, handle, &event);
            }
            if is_more || self.wants_to_close() {
                self.progress(now, handle);
            }
        }
    }

    /// Whether the proxy has broken HTTP/3, which a datagram alone can do.
    fn wants_to_close(&self) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|it| it.tunnel.session.wants_to_close().is_some())
    }

    fn handle_event(&mut self, now: Duration, handle: usize, event: &Event) {
        let (Some(live), Some(entry)) = (self.live.as_mut(), self.endpoint.get(handle)) else {
            return;
        };
        let connection = &mut entry.connection;
        match event {
            Event::DatagramReceived => {
                let (clients, arrived) = (&live.clients, &mut self.arrived);
                let (flows, ids) = (&mut self.flows, &mut self.virtual_ids);
                let mut has_said = false;
                let taken = live
                    .tunnel
                    .receive(connection, &mut self.counts, |id, payload| {
                        if let Some(client) = clients.get(&id) {
                            has_said |= flows
                                .get_mut(client)
                                .is_some_and(|it| it.see_target(now, &payload, ids));
                            arrived.push_back(Delivery::tunnelled(*client, payload));
                        }
                    });
                if let Err(code) = taken {
                    live.tunnel.session.transport().lock().close = Some(code.value());
                }
                if has_said {
                    live.tunnel.session.pump(connection);
                }
            }
            Event::ConnectionLost { reason } => {
                self.error = why(reason).or(self.error.take());
                live.tunnel.session.handle(connection, event);
                live.tunnel.session.pump(connection);
                self.lose_handle(handle);
            }
            _ => live.tunnel.session.handle(connection, event),
        }
    }

    /// Lets requests go on: sends those that can be, and what has waited for them.
    fn progress(&mut self, now: Duration, handle: usize) {
        let (Some(live), Some(entry)) = (self.live.as_mut(), self.endpoint.get(handle)) else {
            return;
        };
        let connection = &mut entry.connection;
        live.tunnel.session.pump(connection);
        if live.may_ask() {
            let places = MOST_FLOWS.saturating_sub(Rc::strong_count(&live.tasks) - 1);
            let waiting = self.flows.values_mut().filter(|flow| !flow.is_asked);
            for flow in waiting.take(places) {
                flow.is_asked = true;
                flow.started = now;
                self.counts.requests_total += 1;
                let request = request(&self.uri, &self.settings, flow.offer().as_ref());
                live.ask(request, flow.channel.clone());
            }
            live.tunnel.session.pump(connection);
        }
        let mut over = Vec::new();
        for (client, flow) in &mut self.flows {
            live.flush((*client, flow), connection, &mut self.counts);
            let arrived = std::mem::take(&mut flow.channel.borrow_mut().arrived);
            for payload in arrived {
                self.counts.received_capsules_total += 1;
                self.counts.received_bytes_total += payload.len() as u64;
                flow.see_target(now, &payload, &mut self.virtual_ids);
                self.arrived
                    .push_back(Delivery::tunnelled(*client, payload));
            }
            flow.hear(*client, &mut self.virtual_ids, &mut self.counts);
            let channel = flow.channel.borrow();
            if let Phase::Ended(ending) = &channel.phase {
                match ending {
                    Ending::Closed => {}
                    Ending::Refused(status) => {
                        self.counts.refused_requests_total += 1;
                        self.error = Some(format!("the proxy answered with status {status}"));
                    }
                    Ending::Failed(error) => {
                        self.counts.failed_requests_total += 1;
                        self.error = Some(error.clone());
                    }
                }
                over.push((*client, channel.stream));
            }
        }
        for (client, stream) in over {
            if let Some(gone) = self.flows.remove(&client) {
                gone.ids.forget(&mut self.virtual_ids);
            }
            if let Some(stream) = stream {
                live.tunnel.channels.remove(&stream.into_inner());
                live.clients.remove(&stream.into_inner());
            }
        }
        live.tunnel.session.pump(connection);
        if let Some(code) = live.tunnel.session.wants_to_close() {
            self.error = Some(format!("HTTP/3: closed with error {code:#x}"));
            self.counts.add_packets(connection);
            let instant = self.clock.instant(now);
            self.endpoint.close(instant, handle, code, b"");
            self.forget();
        }
    }

    /// Ends flows that have been silent, and requests that nobody answers.
    fn sweep(&mut self, now: Duration) {
        self.next_sweep = now + ANSWER;
        let takes_none = self.live.as_ref().is_some_and(Live::may_not_ask);
        for flow in self.flows.values_mut() {
            let mut channel = flow.channel.borrow_mut();
            let is_unanswered =
                flow.is_asked && channel.phase == Phase::Asked && now >= flow.started + ANSWER;
            if is_unanswered {
                channel.leave(Err(Code::H3_REQUEST_CANCELLED));
                channel.end(Ending::Failed("the proxy does not answer".to_owned()));
            } else if takes_none && !flow.is_asked && now >= flow.started + ANSWER {
                let why = "the proxy takes no such requests: no extended CONNECT in its SETTINGS";
                channel.end(Ending::Failed(why.to_owned()));
            } else if self.host.is_none() && now >= flow.touched + IDLE {
                channel.leave(Ok(()));
                channel.end(Ending::Closed);
            }
        }
        if let Some(handle) = self.live.as_ref().map(|live| live.handle) {
            self.progress(now, handle);
            self.settle(now, handle);
        }
    }

    fn lose_handle(&mut self, handle: usize) {
        if let Some(entry) = self.endpoint.get(handle) {
            self.counts.add_packets(&mut entry.connection);
        }
        self.forget();
    }

    /// There is no connection any more: what comes next begins another.
    fn forget(&mut self) {
        self.live = None;
        self.flows.clear();
        self.virtual_ids.clear();
        self.forwarded.clear();
    }

    /// Says goodbye to the proxy.
    pub fn close(&mut self, now: Duration) {
        self.stop_asking();
        if let Some(live) = &self.live {
            let handle = live.handle;
            self.lose_handle(handle);
            let instant = self.clock.instant(now);
            self.endpoint.close(instant, handle, NO_ERROR, b"");
            self.settle(now, handle);
        }
    }
}

impl Flow {
    fn new(now: Duration, sides: Option<Sides>, forward: Option<TransformKind>) -> Self {
        let mut channel = Channel::default();
        channel.offer = forward.map(Forwarding::with_random_key);
        if let Some(sides) = sides {
            channel.begin(sides);
        }
        Self {
            channel: Rc::new(RefCell::new(channel)),
            is_asked: false,
            early: VecDeque::new(),
            early_bytes: 0,
            started: now,
            touched: now,
            ids: FlowIds::default(),
        }
    }

    fn offer(&self) -> Option<Forwarding> {
        self.channel.borrow().offer.clone()
    }

    fn keep(&mut self, payload: &[u8], counts: &mut Statistics) {
        let (packets, bytes) = MOST_EARLY;
        if self.early.len() >= packets || self.early_bytes + payload.len() > bytes {
            counts.queue_full_datagrams_total += 1;
            return;
        }
        self.early_bytes += payload.len();
        self.early.push_back(Bytes::copy_from_slice(payload));
    }
}

/// Why a connection was lost, unless the proxy ended it in peace.
fn why(reason: &ConnectionError) -> Option<String> {
    match reason {
        ConnectionError::ApplicationClosed(closed)
            if closed.error_code.into_inner() == NO_ERROR =>
        {
            None
        }
        other => Some(other.to_string()),
    }
}
