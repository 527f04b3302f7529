//! Clients whose handshake waits until the connection to the next hop stands.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::Duration;

use bentpipe_service::quota::ConnectionPermit;
use rustix::event::epoll::{self, EventData};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use tracing::debug;

use super::{EVENTS, Relay};
use crate::pair::{ClientConnection, Ends, Pair, is_connected};
use crate::sockets;
use crate::syn_gate::{Syn, SynGate, open_for_all};
use crate::watched_socket::ALL_EVENTS;

/// A client that has asked, and the connection to where it wants to go.
#[derive(Debug)]
pub(super) struct PendingClient {
    syn: Syn,
    server: OwnedFd,
    permit: ConnectionPermit,
    pub since: Duration,
    is_admitted: bool,
}

impl Relay {
    /// Reads all SYNs, and opens connections to their destinations.
    pub(super) fn hear(&mut self, gate: usize, now: Duration) {
        for _ in 0..EVENTS {
            let Some(syn) = self.gates.get(gate).and_then(SynGate::next) else {
                return;
            };
            let ends = syn.ends;
            if !self.config.ports.contains(&ends.server.port()) {
                continue;
            }
            if let Some(number) = self.asking_by_ends.get(&ends) {
                // One that is sent again is of who asks already. It may have been let in, and not
                // have fitted into the queue.
                self.admit_again(*number);
                continue;
            }
            match self.ask(syn, now) {
                // The kernel has this connection already: it answers by itself.
                Err(Errno::ADDRINUSE | Errno::ADDRNOTAVAIL) | Ok(()) => {}
                Err(error) => {
                    self.statistics.reset_total += 1;
                    debug!(why = %error, "open-failed");
                }
            }
        }
    }

    fn ask(&mut self, syn: Syn, now: Duration) -> Result<(), Errno> {
        let Ends { client, server } = syn.ends;
        let limits = self.config.limits;
        let permit = match self.config.quota.acquire(client.ip(), limits) {
            Ok(permit) => permit,
            Err(limit) => {
                self.refuse(client, limit);
                return self.gate_of(&syn).map_or(Ok(()), |gate| gate.refuse(&syn));
            }
        };
        let socket = sockets::connect(&self.config.server_side, server, Some(client))?;
        let number = self.number();
        let data = EventData::new_u64(2 * number + 1);
        epoll::add(&self.epoll, &socket, data, ALL_EVENTS)?;
        self.asking_by_ends.insert(syn.ends, number);
        let asking = PendingClient {
            syn,
            server: socket,
            permit,
            since: now,
            is_admitted: false,
        };
        self.asking.insert(number, asking);
        Ok(())
    }

    /// Answers a client of which it is known whether its server does.
    pub(super) fn answer(&mut self, number: u64) {
        let Some(asking) = self.asking.get_mut(&number) else {
            return;
        };
        let stands = socket_error(&asking.server)
            .and_then(|it| it)
            .and_then(|()| is_connected(&asking.server));
        match stands {
            Ok(true) if !asking.is_admitted => {
                asking.is_admitted = true;
                let syn = asking.syn.clone();
                let result = self.gate_of(&syn).map(|gate| gate.admit(&syn));
                if let Some(Err(error)) = result {
                    debug!(why = %error, "open-failed");
                }
            }
            Ok(_) => {}
            Err(_) => {
                self.statistics.reset_total += 1;
                if let Some(syn) = self.stop_asking(number)
                    && let Some(gate) = self.gate_of(&syn)
                {
                    // A client that does not get it sends its SYN once more.
                    let _ = gate.refuse(&syn);
                }
            }
        }
    }

    fn admit_again(&self, number: u64) {
        let asking = self.asking.get(&number).filter(|it| it.is_admitted);
        if let Some(asking) = asking
            && let Some(gate) = self.gate_of(&asking.syn)
            && let Err(error) = gate.admit(&asking.syn)
        {
            debug!(why = %error, "open-failed");
        }
    }

    /// Makes a pair of a client that was admitted.
    pub(super) fn admitted(
        &mut self,
        client: OwnedFd,
        ends: Ends,
        now: Duration,
        ready: &mut BTreeSet<u64>,
    ) -> Result<(), Errno> {
        open_for_all(&client)?;
        let number = self.asking_by_ends.remove(&ends).ok_or(Errno::TIMEDOUT)?;
        let asking = self.asking.remove(&number).ok_or(Errno::TIMEDOUT)?;
        sockets::dress_accepted(&client, &self.config.client_side)?;
        let data = EventData::new_u64(2 * number);
        epoll::add(&self.epoll, &client, data, ALL_EVENTS)?;
        let client = ClientConnection {
            socket: client,
            permit: asking.permit,
        };
        let pair = Pair::new(client, asking.server, Vec::new(), now)?;
        self.log.opened(number, ends);
        self.pairs.insert(number, pair);
        ready.insert(number);
        Ok(())
    }

    /// Gives up clients whose server has not answered in time: they have had no answer, either.
    pub(super) fn sweep_asking(&mut self, now: Duration, limit: Duration) {
        let late = self.asking.iter();
        let late = late.filter(|(_, asking)| now >= asking.since + limit);
        for number in late.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.statistics.timed_out_total += 1;
            self.stop_asking(number);
        }
    }

    fn stop_asking(&mut self, number: u64) -> Option<Syn> {
        let asking = self.asking.remove(&number)?;
        self.asking_by_ends.remove(&asking.syn.ends);
        self.unpause();
        Some(asking.syn)
    }

    fn gate_of(&self, syn: &Syn) -> Option<&SynGate> {
        let is_ipv6 = syn.ends.client.is_ipv6();
        self.gates.iter().find(|gate| gate.is_ipv6() == is_ipv6)
    }
}
