//! The pool of connections between a terminal and its gateway, at both of its ends.
//!
//! A terminal has some ready, each for one client; on it goes a preamble, and then what the client
//! says. The gateway takes from it where the client wants to go. So no client waits for a handshake
//! over the satellite.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::epoll::{self, EventData};
use rustix::io::{Errno, read};
use rustix::net::sockopt::{
    set_socket_keepalive, set_socket_linger, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
    socket_error,
};
use tracing::{debug, warn};

use super::Relay;
use crate::config::PoolConfig;
use crate::pair::{Ends, is_connected};
use crate::preamble::{Preamble, decode};
use crate::sockets;
use crate::watched_socket::{ALL_EVENTS, unless_it_waits};

/// Ports of connections that come from a client's address; its own are those that systems choose,
/// which are above (RFC 6335, section 6; Linux's `ip_local_port_range`).
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// A connection of the pool that nobody has yet.
#[derive(Debug)]
pub(super) struct Warm {
    socket: OwnedFd,
    is_ready: bool,
}

/// One that a terminal has opened, and on which a preamble comes.
#[derive(Debug)]
pub(super) struct Arriving {
    socket: OwnedFd,
    said: Vec<u8>,
    /// When something came last.
    moved: Duration,
}

impl Arriving {
    /// Whether anything has been said.
    pub(super) fn has_begun(&self) -> bool {
        !self.said.is_empty()
    }
}

impl Relay {
    /// Opens what is missing in the pool.
    pub(super) fn fill_pool(&mut self) {
        let Some(pool) = self.config.pool.filter(|_| !self.is_ending()) else {
            return;
        };
        while self.warm.len() < pool.connections {
            let opened = self.open_warm(&pool).and_then(|socket| {
                set_socket_linger(&socket, Some(Duration::ZERO))?;
                let number = self.number();
                let data = EventData::new_u64(2 * number + 1);
                epoll::add(&self.epoll, &socket, data, ALL_EVENTS)?;
                Ok((number, socket))
            });
            match opened {
                Ok((number, socket)) => {
                    let is_ready = false;
                    self.warm.insert(number, Warm { socket, is_ready });
                }
                Err(error) => {
                    warn!(gateway = %pool.gateway, why = %error, "pool-failed");
                    return; // until it is looked again
                }
            }
        }
    }

    fn open_warm(&mut self, pool: &PoolConfig) -> Result<OwnedFd, Errno> {
        let side = &self.config.server_side;
        let Some(from) = pool.from else {
            return sockets::connect(side, pool.gateway, None).and_then(kept_alive);
        };
        for _ in PORTS {
            let port = self.next_port;
            self.next_port = if port + 1 < PORTS.end {
                port + 1
            } else {
                PORTS.start
            };
            match sockets::connect(side, pool.gateway, Some(SocketAddr::new(from, port))) {
                Err(Errno::ADDRINUSE | Errno::ADDRNOTAVAIL) => {}
                result => return result.and_then(kept_alive),
            }
        }
        Err(Errno::ADDRNOTAVAIL)
    }

    /// The first port that such connections come from.
    pub(super) const FIRST_PORT: u16 = PORTS.start;

    /// A connection to the gateway for a client: one that is ready, or one that is being opened.
    pub(super) fn take_warm(&mut self, pool: &PoolConfig) -> Result<(Option<u64>, OwnedFd), Errno> {
        let ready = self.warm.iter().find(|(_, warm)| warm.is_ready);
        let Some(number) = ready.map(|(number, _)| *number) else {
            self.statistics.pool_misses_total += 1;
            return self.open_warm(pool).map(|socket| (None, socket));
        };
        self.statistics.pool_hits_total += 1;
        let warm = self.warm.remove(&number).expect("it was found");
        self.fill_pool();
        Ok((Some(number), warm.socket))
    }

    /// Looks at a connection of the pool to which something has happened.
    pub(super) fn look_at_warm(&mut self, number: u64) {
        let Some(warm) = self.warm.get_mut(&number) else {
            return;
        };
        let state = socket_error(&warm.socket).and_then(|it| it).and_then(|()| {
            if !is_connected(&warm.socket)? {
                return Ok(false);
            }
            match unless_it_waits(|| read(&warm.socket, &mut [0; 1]))? {
                None => Ok(true),
                Some(_) => Err(Errno::CONNRESET), // a gateway waits, and says nothing
            }
        });
        match state {
            Ok(is_ready) => warm.is_ready = is_ready,
            Err(error) => {
                debug!(why = %error, "pool-closed");
                self.warm.remove(&number);
            }
        }
    }

    /// Waits for what a terminal says on a connection of its pool.
    pub(super) fn arrive(
        &mut self,
        socket: OwnedFd,
        peer: IpAddr,
        now: Duration,
        ready: &mut BTreeSet<u64>,
    ) -> Result<(), Errno> {
        let terminals = self.config.terminals.as_ref();
        if terminals.is_some_and(|it| !it.contains(&peer.to_canonical())) {
            self.statistics.refused_total += 1;
            warn!(client = %peer, why = "pool.terminals", "refused");
            return Ok(());
        }
        let number = self.number();
        let data = EventData::new_u64(2 * number);
        epoll::add(&self.epoll, &socket, data, ALL_EVENTS)?;
        let arriving = Arriving {
            socket,
            said: Vec::new(),
            moved: now,
        };
        self.arriving.insert(number, arriving);
        ready.insert(number);
        Ok(())
    }

    /// Reads a terminal's preamble, and opens the connection that it asks for.
    pub(super) fn listen_to(&mut self, number: u64, now: Duration, ready: &mut BTreeSet<u64>) {
        let Some(arriving) = self.arriving.get_mut(&number) else {
            return;
        };
        let asked = loop {
            match decode(&arriving.said) {
                Preamble::Of(ends) => break Ok(ends),
                Preamble::Wrong => break Err(Errno::PROTO),
                Preamble::Needs(more) => {
                    let mut bytes = vec![0; more];
                    match unless_it_waits(|| read(&arriving.socket, &mut bytes)) {
                        Ok(None) => return,
                        Ok(Some(0)) => break Err(Errno::CONNRESET),
                        Ok(Some(count)) => {
                            arriving.said.extend(&bytes[..count]);
                            arriving.moved = now;
                        }
                        Err(error) => break Err(error),
                    }
                }
            }
        };
        let said_nothing = arriving.said.is_empty();
        let Some(arriving) = self.arriving.remove(&number) else {
            return;
        };
        match asked.and_then(|ends| self.serve(arriving.socket, ends, Some(number), now)) {
            Ok(number) => ready.extend(number),
            Err(_) if said_nothing => {} // one that nobody needed
            Err(error) => {
                self.statistics.reset_total += 1;
                debug!(why = %error, "open-failed");
            }
        }
    }

    /// Gives up terminals that say nothing for `idle`, or not all for `handshake`.
    pub(super) fn sweep_arriving(&mut self, now: Duration, idle: Duration, handshake: Duration) {
        self.arriving.retain(|_, arriving| {
            let limit = if arriving.said.is_empty() {
                idle
            } else {
                handshake
            };
            now < arriving.moved + limit
        });
    }

    /// Connections of the pool that are ready.
    pub(super) fn ready_in_pool(&self) -> usize {
        self.warm.values().filter(|it| it.is_ready).count()
    }
}

/// Has the kernel find out within a minute that a gateway, or what stands before it, has forgotten
/// a connection: a client must not get that one.
fn kept_alive(socket: OwnedFd) -> Result<OwnedFd, Errno> {
    set_socket_keepalive(&socket, true)?;
    set_tcp_keepidle(&socket, Duration::from_secs(30))?;
    set_tcp_keepintvl(&socket, Duration::from_secs(10))?;
    set_tcp_keepcnt(&socket, 3)?;
    Ok(socket)
}

/// The ends, if a pool is between, as they are sent to the gateway.
pub(super) fn preface(ends: Ends) -> Vec<u8> {
    crate::preamble::encode(ends)
}
