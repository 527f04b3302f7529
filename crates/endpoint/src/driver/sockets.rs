//! Socket mode: UDP in real time, in one thread.

use std::time::Duration;

use signal_hook::consts::SIGTERM;

use crate::clock::Clock;
use crate::contract::Bye;
use crate::error::EndpointError;
use crate::setup::{Role, Setup};
use crate::stack::{Stack, Transmit};

use super::udp_socket::{Port, Wakeup};
use super::{Endpoint, MAX_DATAGRAMS};

/// The driver of real sockets.
pub struct Sockets<S> {
    endpoint: Endpoint<S>,
    clock: Clock,
    role: Role,
    port: Port,
    /// The datagrams being sent, whose bytes are in `buffer`; kept while the socket takes no more.
    blocked: Option<Transmit>,
    buffer: Vec<u8>,
}

impl<S: Stack> Sockets<S> {
    /// Opens the socket.
    pub fn new(endpoint: Endpoint<S>, setup: &Setup) -> Result<Self, EndpointError> {
        Ok(Self {
            endpoint,
            clock: setup.clock.clone(),
            role: setup.role,
            port: Port::open(setup.local, &[SIGTERM])?,
            blocked: None,
            buffer: Vec::new(),
        })
    }

    /// Lives until a client is done, or a server is asked to terminate.
    pub fn run(mut self) -> Result<Bye, EndpointError> {
        let now = self.tick();
        self.endpoint
            .application
            .start(&mut self.endpoint.stack, now)?;
        if self.role == Role::Server {
            println!("ready");
        }
        loop {
            let now = self.tick();
            self.endpoint.handle_timers(now);
            self.endpoint.handle_events(now)?;
            self.endpoint.wake(now)?;
            self.transmit(now)?;
            let finished = self.role == Role::Client && self.endpoint.application.is_done();
            if finished && self.blocked.is_none() {
                return self.endpoint.finish();
            }
            let awake = self.wait()?;
            if awake.signalled {
                return self.endpoint.finish();
            }
            if awake.readable {
                self.receive()?;
            }
        }
    }

    /// Real time since the start, made known to TLS.
    fn tick(&self) -> Duration {
        let now = self.clock.elapsed();
        self.clock.set(now);
        now
    }

    /// Sleeps until the socket, a timer or SIGTERM wants something.
    fn wait(&mut self) -> Result<Wakeup, EndpointError> {
        let timeout = self.endpoint.stack.next_timeout();
        let wake = self.endpoint.next_wake();
        let timeout = timeout.into_iter().chain(wake).min();
        let left = timeout.map(|time| time.saturating_sub(self.clock.elapsed()));
        self.port.wait(left, self.blocked.is_some())
    }

    fn receive(&mut self) -> Result<(), EndpointError> {
        let now = self.tick();
        let stack = &mut self.endpoint.stack;
        self.port
            .receive(|datagram| stack.handle_datagram(now, datagram))
    }

    /// Sends until there is nothing more to send or the socket takes no more.
    fn transmit(&mut self, now: Duration) -> Result<(), EndpointError> {
        let most = self.port.most_segments().min(MAX_DATAGRAMS);
        loop {
            let waiting = self.blocked.take();
            let Some(transmit) =
                waiting.or_else(|| self.endpoint.poll_transmit(now, most, &mut self.buffer))
            else {
                return Ok(());
            };
            if !self.port.send(&transmit, &self.buffer)? {
                self.blocked = Some(transmit);
                return Ok(());
            }
        }
    }
}
