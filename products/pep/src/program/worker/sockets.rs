//! The sockets of a worker.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use bentpipe_connections::listening::ListeningPorts;
use bentpipe_connections::poller::Poller;
use bentpipe_endpoint::driver::{Port, ReceiveBuffer};
use bentpipe_endpoint::{EndpointError, Received, Transmit};
use bentpipe_pep::Socket;

use super::token::Token;

/// The sockets of a worker: towards clients, towards next hops, and those of flows that are
/// forwarded untouched.
pub struct Sockets {
    poller: Poller<Token>,
    client: ListeningPorts,
    /// For IPv4 and IPv6; each is opened when it is first needed.
    server: [Option<Port>; 2],
    bypassed: BTreeMap<u64, Port>,
    landing: ReceiveBuffer,
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
        let client = ListeningPorts::new(listening)?;
        for (index, port) in client.iter().enumerate() {
            poller.add(port, Token::Client(index))?;
        }
        Ok(Self {
            poller,
            client,
            server: [None, None],
            bypassed: BTreeMap::new(),
            landing: ReceiveBuffer::default(),
        })
    }

    pub fn poller(&mut self) -> &mut Poller<Token> {
        &mut self.poller
    }

    /// Datagrams of one size that the kernel takes in one call.
    pub fn most_segments(&self) -> usize {
        self.client.most_segments()
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
            Token::Client(index) => self.client.get(index),
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
            Token::Client(index) => self.client.get_mut(index),
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
                let index = self.client.for_answer(transmit);
                let port = self.client.get_mut(index);
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
