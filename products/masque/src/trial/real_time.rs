//! The clock, the sockets and the lines of an end in real time.

use std::io::{Write, stdout};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use bentpipe_endpoint::driver::Port;
use bentpipe_endpoint::{Clock, EndpointError, Transmit};

use super::end::End;

/// Real time since the start, made known to TLS.
pub fn tick(clock: &Clock) -> Duration {
    let now = clock.elapsed();
    clock.set(now);
    now
}

/// A socket; the signal is waited for elsewhere.
pub fn open(local: SocketAddr) -> Result<Port, EndpointError> {
    let socket = UdpSocket::bind(local).map_err(EndpointError::io("binding the socket"))?;
    Port::over(socket)
}

/// Prints a line.
pub fn say(line: &str) -> Result<(), EndpointError> {
    let mut out = stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(EndpointError::io("writing to standard output"))
}

/// The packets of the tunnel that are being sent, while its socket takes no more.
#[derive(Default)]
pub struct Outbox {
    buffer: Vec<u8>,
    blocked: Option<Transmit>,
}

impl Outbox {
    pub fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// Sends packets of the tunnel until there are none or its socket takes no more.
    pub fn send(
        &mut self,
        end: &mut End,
        port: &mut Port,
        now: Duration,
    ) -> Result<(), EndpointError> {
        let most = port.most_segments();
        loop {
            let waiting = self.blocked.take();
            let next = waiting.or_else(|| end.poll_transmit(now, most, &mut self.buffer));
            let Some(transmit) = next else {
                return Ok(());
            };
            if !port.send(&transmit, &self.buffer)? {
                self.blocked = Some(transmit);
                return Ok(());
            }
        }
    }
}
