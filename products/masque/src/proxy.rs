//! A proxy: sends its clients' datagrams to targets, each flow from a socket of its own, which its
//! driver has, and their IP packets by routes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_connections::{DatagramOwner, SideEndpoint};
use bentpipe_endpoint::{Clock, EndpointError, Received, Transmit};
use bentpipe_service::quota::ConnectionPermit;
use h3::quic::StreamId;
use http::StatusCode;
use noq_proto::{Connection, Event as ConnectionEvent, Incoming, ServerConfig, StreamEvent};

use crate::channel::{Ending, Phase};
use crate::config::{NO_ERROR, ProxySettings};
use crate::counts::Statistics;
use crate::forwarding::ForwardQueue;
use crate::refusal::Refusal;
use crate::requests::{RequestKind, Requested, Requests, Takes, Tokens, serve};
use crate::tunnel::Tunnel;

mod flow;
mod forwarding;
mod ids;
mod ip;
mod sweep;

pub use flow::{Event, Output};
pub use ids::FlowId;

use flow::{DropCounts, Flow};
use ids::VirtualIds;
use ip::{Errors, begin_ip, free, note};

/// Requests without a token that is known, after which a connection is ended.
const MOST_UNKNOWN: u32 = 4;
/// Bytes of the streams of a client that has shown no token which may wait behind a gap.
const HELD_OF_UNKNOWN: usize = 1 << 20;
/// Requests without datagrams, and clients without a token, are looked for as often.
const SWEEP: Duration = Duration::from_secs(1);

/// A proxy and its clients' connections.
pub struct MasqueProxy {
    settings: ProxySettings,
    tokens: Tokens,
    accepting: Arc<ServerConfig>,
    clock: Clock,
    endpoint: SideEndpoint<()>,
    /// By the handles of their connections.
    clients: BTreeMap<usize, Client>,
    flows: BTreeMap<FlowId, Flow>,
    /// The requests that have addresses of a pool.
    by_address: BTreeMap<IpAddr, FlowId>,
    /// The virtual connection IDs that forwarded packets of clients have.
    virtual_ids: VirtualIds,
    /// Forwarded packets for clients, and whether these are next.
    forwarded: ForwardQueue,
    is_forwarded_next: bool,
    latest_flow: u64,
    outputs: VecDeque<Output>,
    counts: Statistics,
    errors: Errors,
    is_draining: bool,
    next_sweep: Duration,
}

/// A client's connection.
struct Client {
    address: SocketAddr,
    _permit: ConnectionPermit,
    tunnel: Tunnel,
    requests: Requests,
    /// By their streams.
    flows: BTreeMap<u64, FlowId>,
    /// Streams of requests that were refused, whose answers may not have arrived.
    refusals: BTreeSet<u64>,
    /// Bytes that wait for sockets.
    held_bytes: usize,
    since: Duration,
    /// A request of it has been accepted: it has shown a token, or needs none.
    is_known: bool,
    /// Requests without a token that is known.
    unknown: u32,
}

impl MasqueProxy {
    /// A proxy without clients.
    pub fn new(settings: ProxySettings, clock: Clock) -> Result<Self, EndpointError> {
        let accepting = settings.accepting(&clock)?;
        Ok(Self {
            endpoint: SideEndpoint::new(settings.endpoint(), Some(accepting.clone())),
            accepting: Arc::new(accepting),
            tokens: Rc::new(RefCell::new(settings.tokens.as_slice().into())),
            clock,
            clients: BTreeMap::new(),
            flows: BTreeMap::new(),
            by_address: BTreeMap::new(),
            virtual_ids: VirtualIds::new(&settings.ids()),
            forwarded: ForwardQueue::default(),
            is_forwarded_next: false,
            latest_flow: 0,
            outputs: VecDeque::new(),
            counts: Statistics::default(),
            errors: Errors::default(),
            is_draining: false,
            next_sweep: SWEEP,
            settings,
        })
    }

    /// Has connections to come be as these settings say, requests to come need their tokens, and
    /// packets go where they say; clients are told of that.
    pub fn reconfigure(
        &mut self,
        now: Duration,
        settings: ProxySettings,
    ) -> Result<(), EndpointError> {
        let accepting = settings.accepting(&self.clock)?;
        self.accepting = Arc::new(accepting);
        *self.tokens.borrow_mut() = settings.tokens.as_slice().into();
        self.settings = settings;
        self.reroute(now);
        Ok(())
    }

    /// Where the client of a flow is.
    #[must_use]
    pub fn client_of(&self, flow: FlowId) -> Option<SocketAddr> {
        let flow = self.flows.get(&flow)?;
        self.clients.get(&flow.client).map(|it| it.address)
    }

    /// A client's datagram has come.
    pub fn handle_datagram(&mut self, now: Duration, datagram: Received) {
        if self.forward_to_target(now, &datagram) {
            return;
        }
        let instant = self.clock.instant(now);
        match self.endpoint.handle(instant, datagram) {
            DatagramOwner::Connection(handle) => {
                self.settle(now, handle);
                self.note_move(handle);
            }
            DatagramOwner::NewConnection(incoming) => self.accept(now, *incoming),
            DatagramOwner::Nobody => {}
        }
    }

    /// A datagram of a flow's target has come. `ecn`: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE; it is
    /// lost in the tunnel (RFC 9298, section 6.2).
    pub fn handle_reply(&mut self, now: Duration, flow: FlowId, ecn: u8, payload: &[u8]) {
        if self.forward_to_client(now, flow, ecn, payload) {
            return;
        }
        let Some(Flow {
            client,
            channel,
            touched,
            ..
        }) = self.flows.get_mut(&flow)
        else {
            return;
        };
        *touched = now;
        let handle = *client;
        if let (Some(client), Some(entry)) =
            (self.clients.get_mut(&handle), self.endpoint.get(handle))
        {
            let connection = &mut entry.connection;
            let tunnel = &mut client.tunnel;
            tunnel.send(connection, channel, payload, &mut self.counts);
            // Writing shows that a client has asked to stop.
            if channel.borrow().has_ended() {
                self.progress(now, handle);
            }
            self.settle(now, handle);
        }
    }

    /// Says whether there is a socket for a flow, or why not.
    pub fn answer(&mut self, now: Duration, flow: FlowId, answer: Result<(), Refusal>) {
        let Some(asked) = self.flows.get_mut(&flow) else {
            return;
        };
        let handle = asked.client;
        asked.channel.borrow_mut().decide(answer);
        if answer.is_ok() {
            asked.is_open = true;
            let bytes = std::mem::take(&mut asked.held_bytes);
            if let Some(client) = self.clients.get_mut(&handle) {
                client.held_bytes -= bytes;
            }
            let held = asked.held.drain(..);
            self.outputs
                .extend(held.map(|it| Output::Send(flow, 0, it)));
        }
        self.progress(now, handle);
        self.settle(now, handle);
    }

    /// A flow's socket is of no use any more.
    pub fn fail(&mut self, now: Duration, flow: FlowId, why: &str) {
        self.end_flow(now, flow, Ending::Failed(why.to_owned()));
    }

    fn end_flow(&mut self, now: Duration, flow: FlowId, ending: Ending) {
        let Some(Flow {
            client, channel, ..
        }) = self.flows.get(&flow)
        else {
            return;
        };
        let handle = *client;
        let mut channel = channel.borrow_mut();
        channel.leave(Ok(()));
        channel.end(ending);
        drop(channel);
        self.progress(now, handle);
        self.settle(now, handle);
    }

    /// The next task for the driver.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Self::handle_timeout`] wants to be called.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let timer = self.endpoint.next_timeout();
        let timer = timer.map(|at| self.clock.since_start(at));
        let is_swept = self.settings.idle.is_some() && !self.flows.is_empty()
            || !self.settings.tokens.is_empty() && !self.clients.is_empty();
        let sweep = is_swept.then_some(self.next_sweep);
        timer.into_iter().chain(sweep).min()
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
    }

    /// The next datagrams to clients.
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
            return forwarded.or_else(|| self.poll_tunnels(now, most, buffer));
        }
        self.poll_tunnels(now, most, buffer)
            .or_else(|| self.forwarded.poll(most, buffer))
    }

    fn poll_tunnels(
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

    /// Its counts, with those of connections that are there.
    pub fn counts(&mut self) -> Statistics {
        let mut counts = self.counts.clone();
        for handle in self.clients.keys() {
            if let Some(entry) = self.endpoint.get(*handle) {
                counts.add_packets(&mut entry.connection);
            }
        }
        counts.connections = self.clients.len() as u64;
        counts.requests = self.flows.len() as u64;
        counts
    }

    /// Connections and flows that are there.
    #[must_use]
    pub fn busy(&self) -> (usize, usize) {
        (self.clients.len(), self.flows.len())
    }

    /// The congestion controller's report, to be asked when the proxy is gone.
    pub fn take_report(&mut self) -> Option<bentpipe_noq_options::Report> {
        self.settings.tunnel.report.take()
    }

    /// Takes no further connections and requests; those that are there go on. A connection
    /// without requests is ended.
    pub fn drain(&mut self, now: Duration) {
        self.is_draining = true;
        for handle in self.clients.keys().copied().collect::<Vec<_>>() {
            if let Some(client) = self.clients.get(&handle) {
                client.requests.borrow_mut().drain();
            }
            self.progress(now, handle);
            self.settle(now, handle);
        }
    }

    /// Ends all connections.
    pub fn close(&mut self, now: Duration) {
        self.is_draining = true;
        for handle in self.clients.keys().copied().collect::<Vec<_>>() {
            self.close_client(now, handle, NO_ERROR);
        }
    }

    fn accept(&mut self, now: Duration, incoming: Incoming) {
        let address = incoming.remote_address();
        let (quota, limits) = (&self.settings.quota, self.settings.connections);
        // Half of all places are for those who have shown that they are at their address.
        if !self.is_draining
            && !incoming.remote_address_validated()
            && quota.is_half_used(address.ip(), limits)
        {
            self.endpoint.retry(incoming);
            return;
        }
        let permit = match quota.acquire(address.ip(), limits) {
            Ok(permit) if !self.is_draining => permit,
            refused => {
                self.counts.refused_connections_total += 1;
                self.tell(Event::Refused(address, refused.err()));
                self.endpoint.refuse(incoming);
                return;
            }
        };
        let instant = self.clock.instant(now);
        let config = ServerConfig::clone(&self.accepting);
        let peers = &self.settings.tunnel.peers;
        if let Ok(handle) = self.endpoint.accept(instant, incoming, config, peers) {
            self.counts.connections_total += 1;
            let carriage = self.settings.tunnel.carriage;
            let mut tunnel = Tunnel::new(carriage);
            if !self.settings.tokens.is_empty() {
                tunnel.session.hold(carriage.held.min(HELD_OF_UNKNOWN));
            }
            let requests = Requests::default();
            let takes = Takes {
                ip: self.settings.ip.is_some(),
                forward: self.settings.tunnel.forward,
            };
            serve(&tunnel.session, (&requests, takes), &self.tokens);
            let client = Client {
                address,
                _permit: permit,
                tunnel,
                requests,
                flows: BTreeMap::new(),
                refusals: BTreeSet::new(),
                held_bytes: 0,
                since: now,
                is_known: false,
                unknown: 0,
            };
            self.clients.insert(handle, client);
            self.tell(Event::Connected(address));
            self.settle(now, handle);
        }
    }

    /// Has everything follow from what was done to a connection, until nothing more does.
    fn settle(&mut self, now: Duration, handle: usize) {
        let mut events = VecDeque::new();
        loop {
            let drained = self.endpoint.drive(handle, &mut events);
            if let Some(mut connection) = drained {
                self.lose(handle, &mut connection);
                return;
            }
            if events.is_empty() {
                return;
            }
            // Datagrams alone change nothing about requests.
            let is_more = events
                .iter()
                .any(|it| !matches!(it, ConnectionEvent::DatagramReceived));
            while let Some(event) = events.pop_front() {
                self.handle_event(now, handle, &event);
            }
            if is_more || self.wants_to_close(handle) {
                self.progress(now, handle);
            }
        }
    }

    /// Whether a client has broken HTTP/3, which a datagram alone can do.
    fn wants_to_close(&self, handle: usize) -> bool {
        let client = self.clients.get(&handle);
        client.is_some_and(|it| it.tunnel.session.wants_to_close().is_some())
    }

    fn handle_event(&mut self, now: Duration, handle: usize, event: &ConnectionEvent) {
        let (Some(client), Some(entry)) =
            (self.clients.get_mut(&handle), self.endpoint.get(handle))
        else {
            return;
        };
        let connection = &mut entry.connection;
        match event {
            ConnectionEvent::DatagramReceived => {
                let (ids, flows) = (&client.flows, &mut self.flows);
                let (outputs, held) = (&mut self.outputs, &mut client.held_bytes);
                let mut unpassed = DropCounts::default();
                let taken = client
                    .tunnel
                    .receive(connection, &mut self.counts, |id, payload| {
                        if let Some(id) = ids.get(&id)
                            && let Some(flow) = flows.get_mut(id)
                        {
                            unpassed.add(flow.pass(now, *id, payload, outputs, held));
                        }
                    });
                unpassed.count(&mut self.counts);
                if let Err(code) = taken {
                    client.tunnel.session.transport().lock().close = Some(code.value());
                }
            }
            ConnectionEvent::ConnectionLost { .. } => {
                client.tunnel.session.handle(connection, event);
                client.tunnel.session.pump(connection);
                self.counts.add_packets(connection);
                self.forget(handle);
            }
            _ => {
                if let ConnectionEvent::Stream(
                    StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. },
                ) = event
                {
                    client.refusals.remove(&u64::from(*id));
                }
                client.tunnel.session.handle(connection, event);
            }
        }
    }

    /// Lets a client's requests go on.
    fn progress(&mut self, now: Duration, handle: usize) {
        let (Some(client), Some(entry)) =
            (self.clients.get_mut(&handle), self.endpoint.get(handle))
        else {
            return;
        };
        let connection = &mut entry.connection;
        client.tunnel.session.pump(connection);
        let (requested, refused) = client.requests.borrow_mut().take();
        for status in refused {
            self.counts.requests_total += 1;
            self.counts.refused_requests_total += 1;
            client.unknown += u32::from(status == StatusCode::PROXY_AUTHENTICATION_REQUIRED);
            let event = Event::RequestRefused(client.address, status.as_u16());
            self.outputs.push_back(Output::Tell(event));
        }
        if !requested.is_empty() && !std::mem::replace(&mut client.is_known, true) {
            let held = self.settings.tunnel.carriage.held;
            client.tunnel.session.hold(held);
        }
        for request in requested {
            if self.is_draining {
                self.counts.requests_total += 1;
                self.counts.refused_requests_total += 1;
                let mut channel = request.channel.borrow_mut();
                client
                    .refusals
                    .extend(channel.stream.map(StreamId::into_inner));
                channel.decide(Err(Refusal::Draining));
                continue;
            }
            self.latest_flow += 1;
            let flow = FlowId(self.latest_flow);
            self.counts.requests_total += 1;
            let Requested { kind, channel } = request;
            let mut lease = Ok(None);
            match kind {
                RequestKind::Udp(target) => self.outputs.push_back(Output::Open(flow, target)),
                RequestKind::Ip(scope) => {
                    let ip = self.settings.ip.as_ref();
                    lease = begin_ip(&channel, ip, scope, client.address.ip());
                }
            }
            let stream = channel.borrow().stream.expect("a request has a stream");
            let id = stream.into_inner();
            client.flows.insert(id, flow);
            let mut asked = Flow::new(now, handle, channel.clone());
            let told = (&mut self.by_address, &mut self.outputs);
            note(lease, (flow, &mut asked), client.address, told);
            let (outputs, held) = (&mut self.outputs, &mut client.held_bytes);
            let mut unpassed = DropCounts::default();
            client.tunnel.add(id, channel, &mut self.counts, |payload| {
                unpassed.add(asked.pass(now, flow, payload, outputs, held));
            });
            unpassed.count(&mut self.counts);
            self.flows.insert(flow, asked);
        }
        // Those that are decided already have capsules to read.
        client.tunnel.session.pump(connection);

        let mut over = Vec::new();
        for (stream, flow) in &client.flows {
            let Some(there) = self.flows.get_mut(flow) else {
                continue;
            };
            let (outputs, held) = (&mut self.outputs, &mut client.held_bytes);
            there.pass_capsules(now, *flow, (outputs, held), &mut self.counts);
            there.hear(*flow, &mut self.virtual_ids, &mut self.counts);
            let channel = there.channel.borrow();
            if let Phase::Ended(ending) = &channel.phase {
                match ending {
                    Ending::Closed => {}
                    Ending::Refused(_) => {
                        self.counts.refused_requests_total += 1;
                        client.refusals.insert(*stream);
                    }
                    Ending::Failed(_) => self.counts.failed_requests_total += 1,
                }
                over.push((*stream, *flow));
            }
        }
        for (stream, flow) in over {
            client.flows.remove(&stream);
            client.tunnel.channels.remove(&stream);
            if let Some(gone) = self.flows.remove(&flow) {
                client.held_bytes -= gone.held_bytes;
                free(&mut self.by_address, &gone);
                self.virtual_ids.forget(&gone.ids);
            }
            self.outputs.push_back(Output::Close(flow));
        }
        client.tunnel.session.pump(connection);
        let is_left = self.is_draining && client.flows.is_empty() && client.refusals.is_empty();
        let is_over = is_left || client.unknown >= MOST_UNKNOWN && !client.is_known;
        let wanted = client.tunnel.session.wants_to_close();
        if let Some(code) = wanted.or(is_over.then_some(NO_ERROR)) {
            self.close_client(now, handle, code);
        }
    }

    fn close_client(&mut self, now: Duration, handle: usize, code: u64) {
        if let Some(entry) = self.endpoint.get(handle) {
            self.counts.add_packets(&mut entry.connection);
        }
        self.forget(handle);
        let instant = self.clock.instant(now);
        self.endpoint.close(instant, handle, code, b"");
        self.settle(now, handle);
    }

    fn lose(&mut self, handle: usize, connection: &mut Connection) {
        if self.clients.contains_key(&handle) {
            self.counts.add_packets(connection);
            self.forget(handle);
        }
    }

    fn tell(&mut self, event: Event) {
        self.outputs.push_back(Output::Tell(event));
    }

    /// A connection is no more: neither are its flows.
    fn forget(&mut self, handle: usize) {
        let Some(client) = self.clients.remove(&handle) else {
            return;
        };
        for flow in client.flows.into_values() {
            if let Some(gone) = self.flows.remove(&flow) {
                free(&mut self.by_address, &gone);
                self.virtual_ids.forget(&gone.ids);
            }
            self.outputs.push_back(Output::Close(flow));
        }
        self.tell(Event::Disconnected(client.address));
    }
}
