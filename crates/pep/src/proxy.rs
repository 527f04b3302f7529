//! The proxy as its drivers see it.

use std::time::Duration;

use bentpipe_endpoint::{Clock, Received, Transmit};

use crate::config::Config;
use crate::error::PepError;
use crate::event::Event;
use crate::statistics::Statistics;

/// Through which of the proxy's sockets a datagram goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that clients connect to.
    Client,
    /// The one that next hops are connected from.
    Server,
    /// One towards the next hop, for a flow that is forwarded untouched.
    ///
    /// A driver with a single socket on the server side sends these from there, too, and gives what comes to [`Side::Server`].
    Aside(u64),
}

/// A proxy.
pub struct Proxy {
    config: Config,
    clock: Clock,
}

#[expect(clippy::todo, unused_variables, reason = "the skeleton only")]
impl Proxy {
    /// A proxy that has no connection yet. Times are durations since the start of `clock`.
    pub fn new(config: Config, clock: Clock) -> Result<Self, PepError> {
        Ok(Self { config, clock })
    }

    /// A datagram has arrived.
    pub fn handle_datagram(&mut self, now: Duration, side: Side, datagram: Received) {
        todo!()
    }

    /// When [`Proxy::handle_timeout`] wants to be called.
    pub fn next_timeout(&mut self) -> Option<Duration> {
        todo!()
    }

    /// Handles all timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Duration) {
        todo!()
    }

    /// What to send next: fills the empty `buffer` with up to `max_datagrams` datagrams of one size.
    pub fn poll_transmit(
        &mut self,
        now: Duration,
        max_datagrams: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<(Side, Transmit)> {
        todo!()
    }

    /// What has happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }

    /// Counters and gauges.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        todo!()
    }

    /// Connections to come are like this.
    pub fn reconfigure(&mut self, config: Config) -> Result<(), PepError> {
        todo!()
    }

    /// From now on accepts nobody; connections go on until they end by themselves or `limits.linger` is over, then are closed.
    pub fn drain(&mut self, now: Duration) {
        todo!()
    }

    /// Whether nothing is left after [`Proxy::drain`].
    #[must_use]
    pub fn is_drained(&self) -> bool {
        todo!()
    }
}
