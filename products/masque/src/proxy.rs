//! A proxy: sends its clients' datagrams to targets, each flow from a socket of its own, which its
//! driver has.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_connections::{DatagramOwner, SideEndpoint};
use bentpipe_endpoint::{Clock, EndpointError, Received, Transmit};
use bytes::Bytes;
use http::StatusCode;
use noq_proto::{Connection, EndpointConfig, Event, Incoming, ServerConfig};

use crate::channel::{Ending, Phase, Shared};
use crate::config::{NO_ERROR, ProxySettings};
use crate::requests::{Requested, Requests, serve};
use crate::target::Target;
use crate::tunnel::{Counts, Tunnel};

/// Datagrams of a flow that wait for its socket; further ones are lost.
const MOST_HELD: usize = 64;

/// The number of a flow: a request that succeeded, and its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// A task for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Open a socket for this target, and [answer](UdpProxy::answer).
    Open(FlowId, Target),
    /// Send a datagram to the flow's target.
    Send(FlowId, Bytes),
    /// Close the flow's socket.
    Close(FlowId),
}

/// A proxy and its clients' connections.
pub struct UdpProxy {
    settings: ProxySettings,
    accepting: Arc<ServerConfig>,
    clock: Clock,
    endpoint: SideEndpoint<()>,
    /// By the handles of their connections.
    clients: BTreeMap<usize, Client>,
    flows: BTreeMap<FlowId, Flow>,
    latest_flow: u64,
    outputs: VecDeque<Output>,
    counts: Counts,
    is_draining: bool,
}

/// A request, and its socket once there is one.
struct Flow {
    /// The handle of its client's connection.
    client: usize,
    channel: Shared,
    is_open: bool,
    /// Datagrams that wait for the socket.
    held: VecDeque<Bytes>,
}

/// A client's connection.
struct Client {
    tunnel: Tunnel,
    requests: Requests,
    /// By their streams.
    flows: BTreeMap<u64, FlowId>,
}

impl UdpProxy {
    /// A proxy without clients.
    pub fn new(settings: ProxySettings, clock: Clock) -> Result<Self, EndpointError> {
        let accepting = settings.accepting(&clock)?;
        Ok(Self {
            endpoint: SideEndpoint::new(EndpointConfig::default(), Some(accepting.clone())),
            accepting: Arc::new(accepting),
            settings,
            clock,
            clients: BTreeMap::new(),
            flows: BTreeMap::new(),
            latest_flow: 0,
            outputs: VecDeque::new(),
            counts: Counts::default(),
            is_draining: false,
        })
    }

    /// A client's datagram has come.
    pub fn handle_datagram(&mut self, now: Duration, datagram: Received) {
        let instant = self.clock.instant(now);
        match self.endpoint.handle(instant, datagram) {
            DatagramOwner::Connection(handle) => self.settle(now, handle),
            DatagramOwner::NewConnection(incoming) => self.accept(now, *incoming),
            DatagramOwner::Nobody => {}
        }
    }

    /// A datagram of a flow's target has come.
    pub fn handle_reply(&mut self, now: Duration, flow: FlowId, payload: &[u8]) {
        let Some(Flow {
            client, channel, ..
        }) = self.flows.get(&flow)
        else {
            return;
        };
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

    /// Says whether there is a socket for a flow, or the status of the answer.
    pub fn answer(&mut self, now: Duration, flow: FlowId, answer: Result<(), StatusCode>) {
        let Some(asked) = self.flows.get_mut(&flow) else {
            return;
        };
        let handle = asked.client;
        let status = answer.err().unwrap_or(StatusCode::OK);
        asked.channel.borrow_mut().decide(status);
        if answer.is_ok() {
            asked.is_open = true;
            let held = asked.held.drain(..);
            self.outputs.extend(held.map(|it| Output::Send(flow, it)));
        }
        self.progress(now, handle);
        self.settle(now, handle);
    }

    /// A flow's socket is of no use any more.
    pub fn fail(&mut self, now: Duration, flow: FlowId, why: &str) {
        let Some(Flow {
            client, channel, ..
        }) = self.flows.get(&flow)
        else {
            return;
        };
        let handle = *client;
        let mut channel = channel.borrow_mut();
        channel.leave(Ok(()));
        channel.end(Ending::Failed(why.to_owned()));
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
        let timer = self.endpoint.next_timeout()?;
        Some(self.clock.since_start(timer))
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Duration) {
        let instant = self.clock.instant(now);
        while let Some(handle) = self.endpoint.handle_timeout(instant) {
            self.settle(now, handle);
        }
    }

    /// The next datagrams to clients.
    pub fn poll_transmit(
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
    pub fn counts(&mut self) -> Counts {
        let mut counts = self.counts;
        for handle in self.clients.keys() {
            if let Some(entry) = self.endpoint.get(*handle) {
                counts.tunnel.add(&mut entry.connection);
            }
        }
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

    /// Takes no further connections and requests; those that are there go on.
    pub fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Ends all connections.
    pub fn close(&mut self, now: Duration) {
        self.is_draining = true;
        for handle in self.clients.keys().copied().collect::<Vec<_>>() {
            self.close_client(now, handle, NO_ERROR);
        }
    }

    fn accept(&mut self, now: Duration, incoming: Incoming) {
        if self.is_draining || self.clients.len() >= self.settings.connections {
            self.endpoint.refuse(incoming);
            return;
        }
        // Half of all places are for those who have shown that they are at their address.
        if self.clients.len() * 2 >= self.settings.connections
            && !incoming.remote_address_validated()
        {
            self.endpoint.retry(incoming);
            return;
        }
        let instant = self.clock.instant(now);
        let config = ServerConfig::clone(&self.accepting);
        let peers = &self.settings.tunnel.peers;
        if let Ok(handle) = self.endpoint.accept(instant, incoming, config, peers) {
            self.counts.connections += 1;
            let tunnel = Tunnel::new(self.settings.tunnel.carriage);
            let requests = Requests::default();
            serve(&tunnel.session, &requests, &self.settings.tokens);
            let client = Client {
                tunnel,
                requests,
                flows: BTreeMap::new(),
            };
            self.clients.insert(handle, client);
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
                .any(|it| !matches!(it, Event::DatagramReceived));
            while let Some(event) = events.pop_front() {
                self.handle_event(handle, &event);
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

    fn handle_event(&mut self, handle: usize, event: &Event) {
        let (Some(client), Some(entry)) =
            (self.clients.get_mut(&handle), self.endpoint.get(handle))
        else {
            return;
        };
        let connection = &mut entry.connection;
        match event {
            Event::DatagramReceived => {
                let (ids, flows) = (&client.flows, &mut self.flows);
                let outputs = &mut self.outputs;
                let taken = client
                    .tunnel
                    .receive(connection, &mut self.counts, |id, payload| {
                        if let Some(id) = ids.get(&id)
                            && let Some(flow) = flows.get_mut(id)
                        {
                            outputs.extend(flow.pass(*id, payload));
                        }
                    });
                if let Err(code) = taken {
                    client.tunnel.session.transport().lock().close = Some(code.value());
                }
            }
            Event::ConnectionLost { .. } => {
                client.tunnel.session.handle(connection, event);
                client.tunnel.session.pump(connection);
                self.counts.tunnel.add(connection);
                self.forget(handle);
            }
            _ => client.tunnel.session.handle(connection, event),
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
        for request in client.requests.borrow_mut().drain(..) {
            if self.is_draining {
                request
                    .channel
                    .borrow_mut()
                    .decide(StatusCode::SERVICE_UNAVAILABLE);
                continue;
            }
            self.latest_flow += 1;
            let flow = FlowId(self.latest_flow);
            self.counts.requests += 1;
            let Requested { target, channel } = request;
            self.outputs.push_back(Output::Open(flow, target));
            let stream = channel.borrow().stream.expect("a request has a stream");
            let id = stream.into_inner();
            client.flows.insert(id, flow);
            let mut held = VecDeque::new();
            let counts = &mut self.counts;
            client.tunnel.add(id, channel.clone(), counts, |payload| {
                held.push_back(payload);
            });
            let asked = Flow {
                client: handle,
                channel,
                is_open: false,
                held,
            };
            self.flows.insert(flow, asked);
        }
        let mut over = Vec::new();
        for (stream, flow) in &client.flows {
            let Some(there) = self.flows.get_mut(flow) else {
                continue;
            };
            let arrived = std::mem::take(&mut there.channel.borrow_mut().arrived);
            for payload in arrived {
                self.counts.received_capsules += 1;
                self.counts.received_bytes += payload.len() as u64;
                self.outputs.extend(there.pass(*flow, payload));
            }
            let channel = there.channel.borrow();
            if let Phase::Ended(ending) = &channel.phase {
                match ending {
                    Ending::Closed => {}
                    Ending::Refused(_) => self.counts.refused_requests += 1,
                    Ending::Failed(_) => self.counts.failed_requests += 1,
                }
                over.push((*stream, *flow));
            }
        }
        for (stream, flow) in over {
            client.flows.remove(&stream);
            client.tunnel.channels.remove(&stream);
            self.flows.remove(&flow);
            self.outputs.push_back(Output::Close(flow));
        }
        client.tunnel.session.pump(connection);
        if let Some(code) = client.tunnel.session.wants_to_close() {
            self.close_client(now, handle, code);
        }
    }

    fn close_client(&mut self, now: Duration, handle: usize, code: u64) {
        if let Some(entry) = self.endpoint.get(handle) {
            self.counts.tunnel.add(&mut entry.connection);
        }
        self.forget(handle);
        let instant = self.clock.instant(now);
        self.endpoint.close(instant, handle, code, b"");
        self.settle(now, handle);
    }

    fn lose(&mut self, handle: usize, connection: &mut Connection) {
        if self.clients.contains_key(&handle) {
            self.counts.tunnel.add(connection);
            self.forget(handle);
        }
    }

    /// A connection is no more: neither are its flows.
    fn forget(&mut self, handle: usize) {
        let Some(client) = self.clients.remove(&handle) else {
            return;
        };
        for flow in client.flows.into_values() {
            self.flows.remove(&flow);
            self.outputs.push_back(Output::Close(flow));
        }
    }
}

impl Flow {
    /// The task that a datagram leads to: before there is a socket it waits.
    fn pass(&mut self, id: FlowId, payload: Bytes) -> Option<Output> {
        if self.is_open {
            return Some(Output::Send(id, payload));
        }
        if self.held.len() < MOST_HELD {
            self.held.push_back(payload);
        }
        None
    }
}
