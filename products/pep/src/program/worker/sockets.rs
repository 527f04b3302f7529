//! The sockets of a worker.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use bentpipe_endpoint::driver::{Port, ReceiveBuffer};
use bentpipe_endpoint::{EndpointError, Received, Transmit};
use bentpipe_pep::Socket;

use super::poller::{Poller, Token};

/// The most that UDP over IPv4 carries, and so the most that one call can send.
const MOST_BYTES: usize = 65_507;
/// The largest UDP payload that the library sends: an Ethernet frame's.
const LARGEST_PAYLOAD: usize = 1500 - 28;

/// The sockets of a worker: towards clients, towards next hops, and those of flows that are
/// forwarded untouched.
pub struct Sockets {
    poller: Poller,
    client: Vec<Listening>,
    /// For IPv4 and IPv6; each is opened when it is first needed.
    server: [Option<Port>; 2],
    bypassed: BTreeMap<u64, Port>,
    landing: ReceiveBuffer,
}

/// A socket that clients connect to.
struct Listening {
    port: Port,
    place: SocketAddr,
}

/// The outcome of a transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Yes,
    /// The socket takes no more.
    Blocked(Token),
}

impl Sockets {
    /// Over the sockets of the listening addresses.
    pub fn new(listening: Vec<UdpSocket>) -> Result<Self, EndpointError> {
        let poller = Poller::new()?;
        let mut client = Vec::new();
        for (index, socket) in listening.into_iter().enumerate() {
            let port = Port::over(socket)?;
            poller.add(&port, Token::Client(index))?;
            let place = port.local_address()?;
            client.push(Listening { port, place });
        }
        Ok(Self {
            poller,
            client,
            server: [None, None],
            bypassed: BTreeMap::new(),
            landing: ReceiveBuffer::default(),
        })
    }

    pub fn poller(&mut self) -> &mut Poller {
        &mut self.poller
    }

    /// Datagrams of one size that the kernel takes in one call: as many as it knows, and no more
    /// bytes than UDP can carry.
    pub fn most_segments(&self) -> usize {
        let port = self.client.first().map(|it| &it.port);
        port.map_or(1, Port::most_segments)
            .min(MOST_BYTES / LARGEST_PAYLOAD)
    }

    /// Opens what a flow that is forwarded untouched needs.
    pub fn open_bypass(&mut self, flow: u64, next_hop: SocketAddr) -> Result<(), EndpointError> {
        let port = open(next_hop.is_ipv4())?;
        port.connect(next_hop)?;
        self.poller.add(&port, Token::Bypass(flow))?;
        self.bypassed.insert(flow, port);
        Ok(())
    }

    pub fn close_bypass(&mut self, flow: u64) {
        self.bypassed.remove(&flow);
    }

    pub fn send(
        &mut self,
        socket: Socket,
        transmit: &Transmit,
        bytes: &[u8],
    ) -> Result<Sent, EndpointError> {
        let Some((port, token)) = self.port_for(socket, transmit)? else {
            return Ok(Sent::Yes);
        };
        Ok(if port.send(transmit, bytes)? {
            Sent::Yes
        } else {
            Sent::Blocked(token)
        })
    }

    /// Whether to wake when a blocked socket takes more.
    pub fn want_writable(&mut self, token: Token, wanted: bool) -> Result<(), EndpointError> {
        let port = match token {
            Token::Inbox => None,
            Token::Client(index) => self.client.get(index).map(|it| &it.port),
            Token::Server(index) => self.server[index].as_ref(),
            Token::Bypass(flow) => self.bypassed.get(&flow),
        };
        port.map_or(Ok(()), |port| {
            self.poller.want_writable(port, token, wanted)
        })
    }

    /// Hands on one batch of what has come.
    pub fn receive(
        &mut self,
        token: Token,
        take: impl FnMut(Received),
    ) -> Result<(), EndpointError> {
        let port = match token {
            Token::Inbox => None,
            Token::Client(index) => self.client.get_mut(index).map(|it| &mut it.port),
            Token::Server(index) => self.server[index].as_mut(),
            Token::Bypass(flow) => self.bypassed.get_mut(&flow),
        };
        port.map_or(Ok(()), |port| port.receive_to(&mut self.landing, take))
    }

    /// `None`: the flow has ended, and what it still has to send is lost.
    fn port_for(
        &mut self,
        socket: Socket,
        transmit: &Transmit,
    ) -> Result<Option<(&mut Port, Token)>, EndpointError> {
        Ok(match socket {
            Socket::Client => {
                let index = self.listening(transmit);
                let port = self.client.get_mut(index).map(|it| &mut it.port);
                port.map(|port| (port, Token::Client(index)))
            }
            Socket::Server => {
                let is_ipv4 = transmit.destination.is_ipv4();
                let index = usize::from(!is_ipv4);
                if self.server[index].is_none() {
                    let port = open(is_ipv4)?;
                    self.poller.add(&port, Token::Server(index))?;
                    self.server[index] = Some(port);
                }
                let port = self.server[index].as_mut();
                port.map(|port| (port, Token::Server(index)))
            }
            Socket::Bypass(flow) => {
                let port = self.bypassed.get_mut(&flow);
                port.map(|port| (port, Token::Bypass(flow)))
            }
        })
    }

    /// Which socket an answer leaves by: the one that its client came to.
    fn listening(&self, transmit: &Transmit) -> usize {
        let is_it = |it: &Listening| {
            let ip = it.place.ip();
            let exactly = transmit
                .source
                .is_some_and(|source| source.to_canonical() == ip.to_canonical());
            exactly || (ip.is_unspecified() && ip.is_ipv4() == transmit.destination.is_ipv4())
        };
        self.client.iter().position(is_it).unwrap_or(0)
    }
}

/// A socket from which next hops are connected to.
fn open(is_ipv4: bool) -> Result<Port, EndpointError> {
    let any: IpAddr = if is_ipv4 {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0))
        .map_err(EndpointError::io("opening a socket towards the next hop"))?;
    Port::over(socket)
}
